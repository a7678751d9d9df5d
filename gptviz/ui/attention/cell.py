"""One cell of a head's pattern: the arithmetic that made it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.ui.choice import choose
from gptviz.ui.components.plot import Click
from gptviz.ui.markdown import literal
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.analysis import Stages


def choose_cell(click: Click) -> None:
    choose(cell=f"{int(click['y'])}, {int(click['x'])}")


def cell_arithmetic(chosen: Selection, stages: Stages, layer: int, head: int, *, as_is: bool) -> None:
    """The chosen cell's weight, from its dot product on, and what it moves, in this head's numbers.

    as_is: the matrix above shows the weights as they are.
    """
    at = _named(len(chosen.ids))
    if at is None:
        return
    query, key = at
    does = "may not attend to" if chosen.hidden(layer)[query, key] else "attends to"
    st.text(f"‘{chosen.labels[query]}’ ({query}) {does} ‘{chosen.labels[key]}’ ({key})")
    _weight(chosen, stages, layer, query, key)
    if not as_is:
        st.caption("A is the weight as the model has it, whatever the matrix above hides or weighs.")
    if not chosen.hidden(layer)[query, key]:
        _moved(chosen, layer, head, query, key)
    if st.toggle("Show the products of q · k", key="products", bind="query-params"):
        _products(chosen, stages, layer, head, query, key)


def _named(size: int) -> tuple[int, int] | None:
    """The cell that was clicked or typed; None, and why, where there is none in a matrix of that size."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input("Cell", key="cell", bind="query-params", placeholder="query, key", max_chars=16, width=120)
        found = re.fullmatch(r"\s*(\d{1,9})\s*[,\s]\s*(\d{1,9})\s*", text)
        at = (int(found[1]), int(found[2])) if found else None
        if at and max(at) < size:
            return at
        if at:
            st.caption(f"{literal(text)} lies outside: positions go from 0 to {size - 1} here.")
        elif text.strip():
            st.caption(f"{literal(text)} names no cell: two positions do, the query’s and the key’s, as in 1, 0.")
        else:
            st.caption("Click a cell to see its arithmetic, or type the positions of its query and its key.")
    return None


def _weight(chosen: Selection, stages: Stages, layer: int, query: int, key: int) -> None:
    """From the dot product to the weight, or to the mask that makes it 0."""
    from gptviz.analysis import attention_cell

    cell = attention_cell(stages, chosen.config.scale(layer), query, key)
    bias = "" if stages.bias is None else f" + ({style.tex(cell.bias)})"
    penalty = r" - m\,|i - j|" if bias else ""
    score = float(stages.biased[query, key])
    st.latex(
        rf"S = \frac{{q \cdot k}}{{\sqrt D}}{penalty}"
        rf" = {style.tex(cell.scale)} \times ({style.tex(cell.raw)}){bias} = {style.tex(score)}"
    )
    if chosen.future[query, key]:
        st.caption("This key lies in the query's future: the mask puts −∞ in the score's place, so its weight is 0.")
    elif chosen.hidden(layer)[query, key]:
        window = chosen.config.window(layer)
        st.caption(f"This layer sees {window} tokens at a time: −∞ stands in the score's place, so its weight is 0.")
    else:
        share = rf"\frac{{{style.tex(float(np.exp(cell.score)))}}}{{{style.tex(cell.row_sum)}}}"
        st.latex(rf"A = \frac{{e^S}}{{\sum_j e^{{S_j}}}} = {share} = {style.tex(cell.weight)}")


def _moved(chosen: Selection, layer: int, head: int, query: int, key: int) -> None:
    """Weight times value: what this key adds to the query's mix."""
    from gptviz.analysis import contribution

    part, weight = contribution(chosen.run, layer, head, query, key), float(chosen.run.pattern(layer, head)[query, key])
    added = rf"{style.tex(weight)} \times {style.tex(part.length)} = {style.tex(part.added)}"
    st.latex(rf"\lVert A\,v \rVert = {added}, \qquad \frac{{A\,v \cdot z}}{{z \cdot z}} = {style.tex(part.share)}")
    st.caption(
        "What this key adds to the query's mix z: its length, and its share of z. "
        f"Check: the row's A v sum to the captured z; the largest error is {style.number(part.error)}."
    )


def _products(chosen: Selection, stages: Stages, layer: int, head: int, query: int, key: int) -> None:
    """The D products that the dot product is the sum of, the largest first."""
    from gptviz.analysis import head_vectors

    asks, answers = head_vectors(chosen.run, layer, head).dotted
    q, k = asks[query].astype(np.float64), answers[key].astype(np.float64)
    order = np.argsort(-np.abs(q * k), kind="stable")
    so_far = np.cumsum((q * k)[order])
    rows = [
        (str(d), *map(style.number, (q[d], k[d], q[d] * k[d], total))) for d, total in zip(order, so_far, strict=True)
    ]
    with st.container(height=280):
        st.html(table(("dimension", "q", "k", "q × k", "sum so far"), rows, theme=chosen.theme))
    error = abs(float(so_far[-1]) - float(stages.raw[query, key]))
    st.caption(f"Check: the {len(rows)} products sum to q · k; the error is {style.number(error)}.")
