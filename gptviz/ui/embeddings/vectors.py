"""Token rows, position rows and their sum: what block 0 reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.embeddings import vector_panels
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.pick import pick_window
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz.analysis import EmbeddingSum

COLUMNS, ROWS = 48, 128  # of a panel: what can still be made out, and 100 kB for three

POSITION = {"learned": "rows of W_pos", "sinusoidal": "the waves"}
NO_VECTOR = {
    "rotary": "Rotary positions add nothing here: they turn queries and keys inside every attention layer.",
    "alibi": "ALiBi adds nothing here: it lowers the attention scores with distance.",
    "none": "Without positions nothing is added: the rows of W_E enter block 0 as they are.",
}


@st.cache_resource(show_spinner=False, max_entries=state.MOST_TRACES)
def _sum(variant: state.Variant, ids: tuple[int, ...]) -> EmbeddingSum:
    from gptviz.analysis import embedding_sum

    return embedding_sum(state.model(variant), state.trace(variant, ids))


def vectors(chosen: Selection) -> None:
    """The heatmaps, the check and the formula."""
    total = _sum(chosen.variant, chosen.ids)
    parts = "Token + position" if total.position is not None else "Token alone"
    st.subheader(f"{parts}: what enters the first block", anchor=False)
    st.caption(_sentence(chosen, total.position is not None))
    column, row = _windows(chosen)
    figure = _figure(chosen.variant, chosen.ids, column, row, chosen.theme, chosen)
    plot(figure, key="vectors", alt="The prompt's token vectors, position vectors and their sums, a row a token.")
    names = "hook_embed is rows of W_E"
    names += (
        f", hook_pos_embed {POSITION[chosen.variant.pos_encoding]}, and their sum is"
        if total.position is not None
        else " and"
    )
    st.caption(f"Check: {names} blocks.0.hook_resid_pre; the largest error is {style.number(total.error)}.")
    _formula(chosen, total.position is not None)


def _sentence(chosen: Selection, added: bool) -> str:
    if not added:
        return f"A row of W_E for every token. {NO_VECTOR.get(chosen.variant.pos_encoding, '')}"
    made_up = " The position rows are random numbers, never trained." if "pos_embed" in chosen.untrained else ""
    return (
        f"Each token looks up its row of W_E, and {POSITION[chosen.variant.pos_encoding]} for its position are added; "
        f"the sum is all that the blocks get to read.{made_up}"
    )


def _windows(chosen: Selection) -> tuple[int, int]:
    """The first dimension and the first token drawn: choices only where not all fit."""
    width, size = chosen.run.config.n_embd, len(chosen.ids)
    with st.container(horizontal=True):
        column = pick_window("Dimensions", "dimensions", width, COLUMNS)
        row = pick_window("Tokens", "tokens", size, ROWS)
    return column, row


@st.cache_resource(show_spinner=False, max_entries=24)
def _figure(
    variant: state.Variant, ids: tuple[int, ...], column: int, row: int, theme: style.Theme, _chosen: Selection
) -> go.Figure:
    total = _sum(variant, ids)
    window = slice(row, row + ROWS), slice(column, column + COLUMNS)
    panels = {"token: rows of W_E": total.token[window]}
    if total.position is not None:
        position = f"position: {POSITION[variant.pos_encoding]}"
        panels |= {position: total.position[window], "sum: the residual stream": total.total[window]}
    return vector_panels(panels, _chosen.labels[row : row + ROWS], theme=theme, first=column)


def _formula(chosen: Selection, added: bool) -> None:
    config = chosen.run.config
    scale = rf"{style.tex(config.pos_scale)}\, " if config.pos_scale != 1 else ""
    with st.expander("Formula"):
        st.latex(r"x_t = W_E[\text{id}_t]" + (rf" + {scale}W_{{pos}}[t]" if added else ""))
        st.caption(
            f"W_E has {config.vocab_size:,} rows (vocab_size) of {config.n_embd:,} numbers (n_embd, d_model). "
            "Embeddings and positions: [Vaswani et al. 2017, sections 3.4 and 3.5](https://arxiv.org/abs/1706.03762)."
        )
