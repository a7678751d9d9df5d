"""The tree of alternatives: the most likely ways on, as high as they are likely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.sampling import branches
from gptviz.ui import numbers, state
from gptviz.ui.components.plot import Click, plot
from gptviz.ui.frame import follow
from gptviz.ui.live import redraw
from gptviz.ui.sampling.follow import go_on_with
from gptviz.ui.sampling.settings import current
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz.generation import Branch, Tree


@st.cache_resource(show_spinner=False, max_entries=16)
def _tree(variant: state.Variant, ids: tuple[int, ...], width: int, depth: int) -> Tree:
    from gptviz import generation

    size = numbers.vocabulary(variant.name)
    return generation.alternatives(state.model(variant), state.trace(variant, ids), width, depth, size)


def ways() -> None:
    st.subheader("The ways on", anchor=False)
    st.caption(
        "The most likely next tokens, after each of them the most likely again, to be read from left to right. As high "
        "as a way is likely under the settings above; what is left white is all other ways. Click one to go on with it."
    )
    then: dict[str, Any] = dict(bind="query-params", width=200, on_change=redraw, args=("ways",))
    with st.container(horizontal=True):
        st.slider("Branches", 1, 5, 3, key="branches", **then)
        st.slider("Depth", 1, 4, 3, key="depth", **then)
    follow("ways", _ways, sampled=True)
    with st.expander("Formula"):
        st.latex(r"p(x_1, \dots, x_n) = \prod_i p(x_i \mid \text{prompt}, x_1, \dots, x_{i-1})")
        st.caption(
            "The chain rule: a language model gives every text a probability, token by token, after "
            "[Shannon 1948](https://doi.org/10.1002/j.1538-7305.1948.tb01338.x). The most likely token at each step "
            "need not begin the most likely text."
        )


def _ways(chosen: Selection) -> None:
    from gptviz import generation

    width, depth = st.session_state.branches, st.session_state.depth
    tree = _tree(chosen.variant, chosen.ids, width, depth)
    found = generation.branches_of(tree, **current().filters)
    plot(_figure(chosen, found), key="ways", alt="The most likely ways on, as a tree.", on_click=_go_on)
    leaves = [branch.joint for branch in found if len(branch.path) == depth]
    first = sum(branch.joint for branch in found if len(branch.path) == 1)
    st.caption(
        f"Check: no column exceeds 1. The first holds {style.number(first)}, and of all ways of {depth} "
        f"token{'s' if depth > 1 else ''} the {len(leaves)} shown hold {style.number(sum(leaves))}."
    )


def _figure(chosen: Selection, found: list[Branch]) -> go.Figure:
    called = _called(chosen, found)
    return branches(
        np.array([branch.start for branch in found]),
        np.array([branch.joint for branch in found]),
        np.array([len(branch.path) for branch in found]),
        [called[branch.path[-1]] for branch in found],
        ["".join(called[i] for i in branch.path) for branch in found],
        np.array([branch.prob for branch in found]),
        theme=chosen.theme,
        ids=[".".join(map(str, branch.path)) for branch in found],
    )


def _called(chosen: Selection, found: list[Branch]) -> dict[int, str]:
    ids = np.unique([branch.path[-1] for branch in found])
    return dict(zip(ids.tolist(), numbers.labels_of(chosen.variant.name, ids), strict=True))


def _go_on(click: Click) -> None:
    """The whole way that was clicked is added, as if it had been generated."""
    go_on_with(tuple(map(int, click["customdata"][0].split("."))))
