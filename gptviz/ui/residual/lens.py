"""The logit lens as a table to click on, and what one of its cells holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.logit_lens import WORDS, layer_names, lens_levels, lens_scale
from gptviz.ui import numbers, state
from gptviz.ui.choice import choose
from gptviz.ui.components.cells import Table, cells
from gptviz.ui.pick import LAST, pick_position
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.figures.logit_lens import Measure

MEASURES: dict[Measure, tuple[str, str]] = {
    "probability": ("Probability", "How sure the layer is of the token it shows."),
    "rank": ("Rank", "The rank that the layer gives to the token that is the most likely in the end: 1 is settled."),
    "entropy": ("Entropy", "How open the layer's choice is: 0 is one token alone."),
    "kl": ("KL", "How far the layer's distribution is from the final one: KL(final ‖ layer)."),
}
ROWS = 128  # positions in the table at once
SHOWN = 10  # tokens of a cell


def lens(chosen: Selection) -> int:
    """Draws the table and its chosen cell; returns the chosen position."""
    st.subheader("Logit lens: the prediction as it forms", anchor=False)
    st.caption(
        "If the model stopped after a layer, this token would come next. Click a cell, or move with the arrow keys."
    )
    left, right = st.columns([3, 2], gap="medium")
    with right:
        with st.container(horizontal=True):
            position = pick_position(chosen, "Position")
            layer = _pick_layer(chosen.config.n_layer)
        _one_cell(chosen, position, layer)
    with left:
        measure = st.segmented_control(
            "Colour",
            list(MEASURES),
            default="probability",
            required=True,
            key="lens",
            bind="query-params",
            format_func=lambda name: MEASURES[name][0],
        )
        st.caption(MEASURES[measure][1])
        _table(chosen, measure, position, layer)
    error = numbers.lens(chosen.variant, chosen.ids).error
    st.caption(f"Check: the last column's logits are the model's own; the largest error is {style.number(error)}.")
    _formula(chosen)
    return position


def _pick_layer(n_layer: int) -> int:
    """An index into the streams; the last one unless another is chosen."""
    names = layer_names(n_layer + 1)
    options = range(n_layer, -1, -1)  # the first is the default, which a click may then replace without a warning
    if st.session_state.get("lens_layer") not in options:  # chosen for a deeper model
        st.session_state.pop("lens_layer", None)
    return st.selectbox(
        "After",
        options,
        key="lens_layer",
        bind="query-params",
        format_func=names.__getitem__,
        width=120,
    )


def _table(chosen: Selection, measure: Measure, position: int, layer: int) -> None:
    size = len(chosen.ids)
    first = _first_row(size)
    drawn = _cells(chosen.variant, chosen.ids, measure, first, chosen.theme)
    cells(
        drawn,
        selected=(min(max(position - first, 0), len(drawn.rows) - 1), layer),
        key="lens_table",
        on_pick=lambda row, column: _choose(first + row, column, size),
        alt="The most likely token after every layer, at every position.",
    )


def _first_row(size: int) -> int:
    if size <= ROWS:
        return 0
    return st.slider(
        "First position in the table",
        0,
        size - ROWS,
        size - ROWS,
        key="lens_first",
        bind="query-params",
        help=f"The table holds {ROWS} positions at a time.",
    )


def _choose(position: int, layer: int, size: int) -> None:
    choose(position=LAST if position == size - 1 else position, lens_layer=layer)


@st.cache_resource(show_spinner=False, max_entries=64)
def _cells(variant: state.Variant, ids: tuple[int, ...], measure: Measure, first: int, theme: style.Theme) -> Table:
    summary = numbers.lens(variant, ids)
    rows = slice(first, first + ROWS)
    token, values = summary.token.T[rows], getattr(summary, measure).T[rows]  # (rows, L + 1)
    called = dict(zip(found := np.unique(token), numbers.labels_of(variant.name, found), strict=True))
    scale = lens_scale(getattr(summary, measure), measure, theme)
    ends = [style.number(int(end) if measure == "rank" else float(end)) for end in (scale.low, scale.high)]
    return Table(
        rows=[f"{at} {label}" for at, label in enumerate(numbers.labels_of(variant.name, np.array(ids)))][rows],
        columns=layer_names(token.shape[1]),
        text=[[called[i] for i in row] for row in token],
        values=[[style.number(value) for value in row] for row in values.tolist()],
        levels=lens_levels(values, scale),
        colours=scale.colours,
        measure=WORDS[measure],
        low=ends[0],
        high=ends[1],
    )


def _one_cell(chosen: Selection, position: int, layer: int) -> None:
    from gptviz import analysis

    size, name = numbers.vocabulary(chosen.variant.name), chosen.variant.name
    logits = analysis.lens_logits(state.checkpoint(chosen.variant.name).model, chosen.run, layer, position)[
        :size
    ].astype(np.float64)
    probs, final = (_softmax(row) for row in (logits, chosen.run.logits[position, :size].double().numpy()))
    top = np.argsort(-probs, kind="stable")[:SHOWN]
    place = layer_names(chosen.config.n_layer + 1)[layer]
    st.text(f"After {place}, at ‘{chosen.labels[position]}’ ({position})")
    rows = [
        (label, style.number(float(logits[i])), style.number(float(probs[i])), style.number(float(final[i])))
        for i, label in zip(top, numbers.labels_of(name, top), strict=True)
    ]
    st.html(table(["Token", "Logit", "Probability", "In the end"], rows, theme=chosen.theme))
    summary = numbers.lens(chosen.variant, chosen.ids)
    best = numbers.labels_of(name, summary.token[-1, position : position + 1])[0]
    st.text(
        f"In the end ‘{best}’ is the most likely: here its rank is {int(summary.rank[layer, position])}. "
        f"Entropy {style.number(float(summary.entropy[layer, position]), 'nats')}, "
        f"KL to the final {style.number(float(summary.kl[layer, position]), 'nats')}."
    )


def _softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max())
    return exponentials / exponentials.sum()


def _formula(chosen: Selection) -> None:
    bias = " + b_U" if chosen.config.unembed_bias else ""
    with st.expander("Formula"):
        st.latex(
            rf"\mathrm{{lens}}_\ell = \mathrm{{softmax}}\big(\mathrm{{norm}}_\mathrm{{final}}(x_\ell)\,W_U{bias}\big)"
        )
        st.latex(r"\mathrm{KL}(p \,\|\, q) = \sum_i p_i \log\frac{p_i}{q_i},\qquad H(q) = -\sum_i q_i \log q_i")
        st.caption(
            "The norm takes its mean and scale anew from every layer's stream. The logit lens: "
            "[nostalgebraist 2020]"
            "(https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens); "
            "the divergence as its measure, p the final distribution and q the layer's: "
            "[Belrose et al. 2023](https://arxiv.org/abs/2303.08112)."
        )
