"""A head's circuits for the tokens of the prompt: what it looks for and what it writes, from the weights alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.circuits import ov_heatmap, qk_heatmap
from gptviz.ui import numbers, state
from gptviz.ui.attention.heads import chosen_head
from gptviz.ui.components.plot import plot
from gptviz.ui.live import redraw
from gptviz.ui.pick import pick_window
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.analysis import OVTop

MOST = 64  # tokens drawn at a time
KEPT = 3  # tokens named in a cell of the table
TALLEST, FEW = 420, 16  # pixels of a table with more rows than that: it scrolls
FIRST_STRONG, POP = "\u2068", "\u2069"  # Unicode's isolates
LEFT_OUT = {"learned": "positions", "sinusoidal": "positions", "rotary": "rotary’s turning", "alibi": "ALiBi’s bias"}


class Circuits(NamedTuple):
    """One head's, for some tokens."""

    qk: np.ndarray  # each row less its mean
    ov: np.ndarray
    top: OVTop


class Scores(NamedTuple):
    """One head's, over the whole vocabulary."""

    matching: float
    copying: float


def ask_for_circuits() -> None:
    """They are drawn only when asked for: the page is drawn at every generated token."""
    st.subheader("Circuits", anchor=False)
    st.caption(
        "What this head looks for, and what it writes where it looks, token against token: from the weights alone, "
        "whatever else the prompt says."
    )
    st.toggle("Show circuits", key="circuits", bind="query-params", on_change=redraw, args=("circuits",))


def circuits(chosen: Selection) -> None:
    if not st.session_state.circuits:
        return
    layer, head = chosen_head()
    ids = _shown(chosen, layer)
    found, scores = _circuits(chosen.variant, ids, layer, head), _scores(chosen.variant, layer, head)
    called = dict(zip(chosen.ids, chosen.labels, strict=True))
    labels = [called[i] for i in ids]
    with st.container(horizontal=True, gap="small"):
        figure = qk_heatmap(found.qk, labels, theme=chosen.theme).update_layout(uirevision=str(ids))
        with st.container(width=figure.layout.width):
            _looks_for(figure, scores.matching, f"Layer {layer}, head {head}")
        figure = ov_heatmap(found.ov, labels, theme=chosen.theme).update_layout(uirevision=str(ids))
        with st.container(width=figure.layout.width):
            _writes(figure, scores.copying, f"Layer {layer}, head {head}")
    _promoted(chosen, found.top, labels)
    _formula(chosen, layer)


def _looks_for(figure: go.Figure, matching: float, place: str) -> None:
    st.markdown("**QK circuit: what it looks for**")
    st.caption(
        "A query (row) scores the keys (columns) in vermilion above the mean of its row, and those in blue below it."
    )
    plot(figure, key="qk_circuit", alt=f"{place}: every token’s score for every other, by content alone.")
    st.caption(
        f"Matching score {_said(matching)}: near 1, tokens look for themselves; near −1, away from themselves. "
        "Measured over the whole vocabulary."
    )


def _writes(figure: go.Figure, copying: float, place: str) -> None:
    st.markdown("**OV circuit: what it writes**")
    st.caption(
        "Attention to a token (row) raises the logits of the tokens in vermilion (columns) and lowers those in blue."
    )
    plot(figure, key="ov_circuit", alt=f"{place}: what attention to every token does to every logit.")
    st.caption(
        f"Copying score {_said(copying)}: near 1, attention to a token makes that token likelier; near −1, less "
        "likely. Measured over the whole vocabulary."
    )


def _said(score: float) -> str:
    return style.number(score) if np.isfinite(score) else "not measurable here"


def _shown(chosen: Selection, layer: int) -> tuple[int, ...]:
    """The different tokens of the prompt in order of first appearance, MOST of them."""
    every = tuple(dict.fromkeys(chosen.ids))
    first = pick_window("Tokens", "circuit_tokens", len(every), MOST)
    window = f", {MOST} at a time" if len(every) > MOST else ""
    words = "The only token" if len(every) == 1 else f"The {len(every)} different tokens"
    left_out = [LEFT_OUT.get(chosen.variant.pos_encoding, ""), "what earlier layers write" if layer else ""]
    st.caption(
        f"{words} of the prompt{window}. The head reads nothing but embeddings here, through its layer’s norm."
        + (f" Left out: {' and '.join(filter(None, left_out))}." if any(left_out) else "")
    )
    return every[first : first + MOST]


@st.cache_resource(show_spinner=False, max_entries=24)
def _circuits(variant: state.Variant, ids: tuple[int, ...], layer: int, head: int) -> Circuits:
    from gptviz.analysis import ov_circuit, ov_top, qk_circuit

    model, size = state.model(variant), numbers.vocabulary(variant.name)
    scores = qk_circuit(model, ids, layer, head)
    return Circuits(
        scores - scores.mean(1, keepdims=True),
        ov_circuit(model, ids, layer, head, size),
        ov_top(model, ids, layer, head, KEPT, size),
    )


@st.cache_resource(show_spinner=False, max_entries=256)
def _scores(variant: state.Variant, layer: int, head: int) -> Scores:
    from gptviz.analysis import circuit_eigenvalues, eigenvalue_score

    found = circuit_eigenvalues(state.model(variant), layer, head, numbers.vocabulary(variant.name))
    return Scores(eigenvalue_score(found.qk), eigenvalue_score(found.ov))


def _promoted(chosen: Selection, top: OVTop, labels: Sequence[str]) -> None:
    name, size = chosen.variant.name, numbers.vocabulary(chosen.variant.name)
    st.caption(
        "Of the whole vocabulary, what attention to each token promotes and suppresses the most, and by how much."
    )
    ends = (top.promoted, top.raised), (top.suppressed, top.lowered)
    promoted, suppressed = ([_named(name, *row) for row in zip(*end, strict=True)] for end in ends)
    ranks = [style.number(int(rank)) for rank in top.rank]
    head = ["Attended to", f"Own rank of {style.number(size)}", "Promotes", "Suppresses"]
    rows = list(zip(labels, ranks, promoted, suppressed, strict=True))
    with st.container(height=TALLEST if len(rows) > FEW else "content", border=False):
        st.html(table(head, rows, theme=chosen.theme))


def _named(name: str, ids: np.ndarray, values: np.ndarray) -> str:
    called = [style.shortened(label, 12) for label in numbers.labels_of(name, ids)]
    isolated = [f"‘{FIRST_STRONG}{label}{POP}’" for label in called]  # a right-to-left word leaves its neighbours alone
    return ", ".join(f"{label} {style.number(value)}" for label, value in zip(isolated, values.tolist(), strict=True))


def _formula(chosen: Selection, layer: int) -> None:
    config = chosen.run.config
    sigma, scale = (style.number(x) for x in (float(chosen.run["ln_final.hook_scale"][-1, 0]), config.scale(layer)))
    b_q, b_k = (" + b_Q", " + b_K") if config.qkv_bias else ("", "")
    normed = "q and k, the brackets, have norms of their own. " if config.qk_norm else ""
    centring = "its centring and its weight γ" if config.norm == "layernorm" else "its weight γ"
    with st.expander("Formula"):
        st.latex(rf"\mathrm{{QK}} = s\,(E\,W_Q{b_q})(E\,W_K{b_k})^T")
        st.latex(r"\mathrm{OV} = E\,W_V\,W_O\,(\gamma \odot W_U)")
        st.latex(r"\text{score} = \frac{\sum_i \lambda_i}{\sum_i |\lambda_i|}")
        st.caption(
            "W_E W_Q W_Kᵀ W_Eᵀ and W_E W_V W_O W_U of "
            "[Elhage et al. 2021](https://transformer-circuits.pub/2021/framework/index.html), with what those models "
            f"lack: E is W_E, each row through the norm in front of this layer’s attention. {normed}"
            f"s = {scale} is the layer’s factor on q · k. Behind W_O stands the final norm with {centring}, but "
            f"without its scale σ, which depends on all that is in the stream: divided by it ({sigma} at the last "
            "token of this prompt), the numbers are logits."
        )
        st.caption(
            "What moves all scores of a query or all logits alike changes no probability, so each row is drawn less "
            "its mean: QK’s over the tokens shown, OV’s over the vocabulary. What the head writes wherever it looks "
            "(biases, that of the norm in E among them) is left out of OV. λ are the eigenvalues of the "
            "circuit over the whole vocabulary, each row less its mean."
        )
