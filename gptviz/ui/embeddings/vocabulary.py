"""Where a token's vector lies: its nearest neighbours, and a map of the vocabulary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.embeddings import neighbour_bars
from gptviz.figures.vocabulary import Places
from gptviz.figures.vocabulary import vocabulary_map as map_figure
from gptviz.ui import state
from gptviz.ui.choice import choose
from gptviz.ui.components.plot import Click, plot
from gptviz.ui.pick import LAST
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz.analysis import Neighbours, VocabularyMap

MOST_OPTIONS = 2000  # of the vocabulary in the menu; larger ones offer the prompt's tokens, and what is clicked
DIMENSIONS = {2: "2-D", 3: "3-D"}


def vocabulary(chosen: Selection) -> None:
    """Neighbours on the left, the map on the right, both around one token."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.subheader("Nearest neighbours", anchor=False)
        token = _pick_token(chosen)
        _neighbours(chosen, token)
    with right:
        st.subheader("Map of the vocabulary", anchor=False)
        _map(chosen, token)


def _size(name: str) -> int:
    """Rows of W_E that are tokens: rows beyond are padding."""
    loaded = state.checkpoint(name)
    return min(len(loaded.tokenizer), loaded.model.config.vocab_size)


@st.cache_resource(show_spinner=False, max_entries=8)
def _menu(name: str, size: int) -> list[str]:
    """How the first `size` tokens are called."""
    return state.checkpoint(name).tokenizer.labels(range(size))


def _pick_token(chosen: Selection) -> int:
    name, size = chosen.variant.name, _size(chosen.variant.name)
    tokenizer, menu = state.checkpoint(name).tokenizer, _menu(name, min(size, MOST_OPTIONS))

    def words(id: int) -> str:
        if id == LAST:
            return "the last token"
        return f"{id} {menu[id] if id < len(menu) else tokenizer.labels([id])[0]}"

    others = range(size) if size <= MOST_OPTIONS else ()
    known = dict.fromkeys([LAST, *reversed(chosen.ids), *_asked(size), *others])
    token = st.selectbox(
        "Token",
        list(known),
        key="token",
        bind="query-params",
        format_func=words,
        help="A click on a point of the map or on a bar chooses that token.",
    )
    return chosen.ids[-1] if token == LAST else token


def _asked(size: int) -> list[int]:
    """A token that was clicked, or that the address names, is in the menu too."""
    now = st.session_state.get("token")
    found = re.match(r"\d{1,9}", str(st.query_params.get("token", "")) if now is None else str(now))
    return [int(found[0])] if found and int(found[0]) < size else []


@st.cache_resource(show_spinner=False, max_entries=64)
def _nearest(name: str, token: int) -> Neighbours:
    from gptviz.analysis import nearest_tokens

    return nearest_tokens(state.checkpoint(name).model, token, size=_size(name))


def _neighbours(chosen: Selection, token: int) -> None:
    tokenizer = state.checkpoint(chosen.variant.name).tokenizer
    near = _nearest(chosen.variant.name, token)
    st.text(f"‘{tokenizer.labels([token])[0]}’ (id {token}) · norm {style.number(near.own_norm)}")
    if not len(near.ids):
        st.info("This vocabulary has no other token.")
        return
    st.caption(
        "The tokens whose rows of W_E point the most alike, out of the whole vocabulary. What the model treats alike "
        "lies together, whatever it is spelled like."
    )
    figure = neighbour_bars(tokenizer.labels(near.ids), near.cosine, near.norms, theme=chosen.theme)
    st.session_state["neighbours shown"] = near.ids.tolist()
    plot(figure, key="neighbours", alt="The ten nearest tokens by cosine, as bars.", on_click=_choose_bar)
    error = style.number(abs(1 - near.own_cosine))
    st.caption(f"Check: its cosine with itself is 1; the error is {error}. {_tied(chosen, token)}")
    with st.expander("Formula"):
        st.latex(r"\cos(a, b) = \frac{W_E[a] \cdot W_E[b]}{\lVert W_E[a]\rVert \, \lVert W_E[b]\rVert}")
        st.caption(
            "Vectors of words that mean alike lie together: [Mikolov et al. 2013](https://arxiv.org/abs/1301.3781)."
        )


def _choose_bar(click: Click) -> None:
    choose(token=st.session_state["neighbours shown"][int(click["y"])])


def _choose_point(click: Click) -> None:
    if click["customdata"]:
        choose(token=int(click["customdata"][1]))


def _tied(chosen: Selection, token: int) -> str:
    from gptviz.analysis import embedding_against_unembedding

    if chosen.run.config.tie_weights:
        return "Tied: W_U, which makes the logits, is W_Eᵀ: a token is read and written by one vector."
    cosine = embedding_against_unembedding(state.checkpoint(chosen.variant.name).model, token)
    return f"Untied: this token's row of W_E and column of W_U have cosine {style.number(cosine)}."


@st.cache_resource(show_spinner=False, max_entries=8)
def _fitted(name: str) -> tuple[VocabularyMap, Places]:
    """The map of a vocabulary, and what is drawn of it."""
    from gptviz.analysis import vocabulary_map

    loaded = state.checkpoint(name)
    fitted = vocabulary_map(loaded.model, _size(name))
    return fitted, Places(fitted.points, loaded.tokenizer.labels(fitted.ids), fitted.ids)


def _places(name: str, ids: list[int]) -> Places:
    loaded = state.checkpoint(name)
    rows = loaded.model.embed.weight.detach()[ids].cpu().float().numpy()
    return Places(_fitted(name)[0].place(rows), loaded.tokenizer.labels(ids), np.array(ids))


@st.cache_resource(show_spinner=False, max_entries=32)
def _figure(name: str, ids: tuple[int, ...], token: int, dimensions: int, theme: style.Theme) -> go.Figure:
    fitted, every = _fitted(name)
    prompt, chosen = _places(name, list(dict.fromkeys(ids))), _places(name, [token])
    return map_figure(every, prompt, chosen, theme=theme, shares=fitted.shares, dimensions=dimensions)


def _map(chosen: Selection, token: int) -> None:
    dimensions = st.segmented_control(
        "Dimensions of the map",
        list(DIMENSIONS),
        default=2,
        required=True,
        key="map",
        bind="query-params",
        format_func=DIMENSIONS.__getitem__,
    )
    fitted, every = _fitted(chosen.variant.name)
    size, shown = _size(chosen.variant.name), len(every.ids)
    drawn = f"{shown:,} of {size:,} tokens, evenly spaced by id, are drawn. " if shown < size else ""
    share = style.number(100 * float(fitted.shares[:dimensions].sum()))
    st.caption(
        f"Every point is a token's row of W_E, seen from the side that spreads the rows the most (PCA). {drawn}These "
        f"{dimensions} directions hold {share}% of the variance: points that meet here may lie far apart in the rest."
    )
    figure = _figure(chosen.variant.name, chosen.ids, token, dimensions, chosen.theme)
    # A key for each, as the mode bar of a flat chart is not that of a scene.
    plot(figure, key=f"map_{dimensions}d", alt="The vocabulary as a map.", on_click=_choose_point)
    _map_check(fitted, size)


def _map_check(fitted: VocabularyMap, size: int) -> None:
    error = float(np.abs(fitted.axes.T @ fitted.axes - np.eye(3)).max())
    few = f" They are worked out from {fitted.fitted:,} rows, evenly spaced by id." if fitted.fitted < size else ""
    st.caption(
        "Check: the directions have length 1 and stand at right angles; the largest error is "
        f"{style.number(error)}.{few}"
    )
    with st.expander("Formula"):
        st.latex(
            r"\operatorname{cov}(W_E)\, a_i = \lambda_i a_i, \quad \text{place}_i = (W_E[\text{id}] - \bar w) \cdot a_i"
        )
        st.caption(
            "w̄ is the mean row; the share of a direction is λ over the sum of all λ. Principal component analysis: "
            "[Pearson 1901](https://doi.org/10.1080/14786440109462720)."
        )
