"""One cell of a head's pattern: the arithmetic that made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.ui.components.plot import Click
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz.analysis import Stages


def choose_cell(click: Click) -> None:
    st.session_state.cell = int(click["y"]), int(click["x"])


def cell_arithmetic(chosen: Selection, stages: Stages, layer: int) -> None:
    """The chosen cell's weight, from its dot product on, in this head's numbers."""
    from gptviz.analysis import attention_cell

    query, key = st.session_state.get("cell", (len(chosen.ids), 0))
    if max(query, key) >= len(chosen.ids):
        st.caption("Click a cell to see its arithmetic.")
        return
    st.text(f"‘{chosen.labels[query]}’ ({query}) attends to ‘{chosen.labels[key]}’ ({key})")
    if chosen.future[query, key]:
        st.caption("This key lies in the query's future: its score is −∞ and its weight exactly 0.")
        return
    if chosen.hidden(layer)[query, key]:
        window = chosen.config.window(layer)
        st.caption(f"This layer sees {window} tokens at a time: the key's score is −∞ and its weight exactly 0.")
        return
    cell = attention_cell(stages, chosen.config.scale(layer), query, key)
    bias = "" if stages.bias is None else f" + ({style.tex(cell.bias)})"
    score = rf"{style.tex(cell.scale)} \times ({style.tex(cell.raw)}){bias} = {style.tex(cell.score)}"
    penalty = r" - m\,|i - j|" if bias else ""
    st.latex(rf"S = \frac{{q \cdot k}}{{\sqrt D}}{penalty} = {score}")
    exponential = style.tex(float(np.exp(cell.score)))
    share = rf"\frac{{{exponential}}}{{{style.tex(cell.row_sum)}}}"
    st.latex(rf"A = \frac{{e^S}}{{\sum_j e^{{S_j}}}} = {share} = {style.tex(cell.weight)}")
