"""The positional encoding itself, drawn as what it is: a table, a rotation, lines, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.positions import (
    MOST_CELLS,
    alibi_lines,
    in_pairs,
    position_table,
    similarity_matrix,
)
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.embeddings.rotation import one_rotation
from gptviz.ui.pick import pick_window
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    pass

MOST_POSITIONS = 512  # drawn, unless the prompt is longer

PAPERS = {
    "learned": (
        r"p_t = W_{pos}[t]",
        "a row a position, learned: [Radford et al. 2018 (GPT)](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf).",
    ),
    "sinusoidal": (
        r"p_{t,2i} = a \sin\!\big(t / 10000^{2i/C}\big), \quad p_{t,2i+1} = a \cos\!\big(t / 10000^{2i/C}\big)",
        "C is n_embd, a what this model scales the waves by (pos_scale, {pos_scale}; in the paper 1, with embeddings "
        "scaled by √C): [Vaswani et al. 2017, section 3.5](https://arxiv.org/abs/1706.03762).",
    ),
    "rotary": (
        r"\begin{pmatrix} x'_i \\ x'_{i+R/2} \end{pmatrix} = \begin{pmatrix} \cos t\omega_i & -\sin t\omega_i \\ "
        r"\sin t\omega_i & \cos t\omega_i \end{pmatrix} \begin{pmatrix} x_i \\ x_{i+R/2} \end{pmatrix}, \quad "
        r"\omega_i = b^{-2i/R}",
        "here x is a query or a key, R how many of its dimensions turn (d_rotary), i = 0 … R/2 − 1 the pair, b the "
        "base (rope_base): [Su et al. 2021, equation 34](https://arxiv.org/abs/2104.09864), which pairs neighbours; "
        "that a number's partner is half the way on is the arrangement of GPT-NeoX and Llama.",
    ),
    "alibi": (
        r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt D} - m_h\,|i - j|, \quad m_h = 2^{-8h/H}, \; h = 1 \dots H",
        "for a number of heads H that is no power of two, the slopes of the next smaller one, and every other one of "
        "the next larger: [Press et al. 2021](https://arxiv.org/abs/2108.12409).",
    ),
}


def positions(chosen: Selection) -> None:
    """What the model is told of where a token stands."""
    kind = chosen.variant.pos_encoding
    st.subheader(f"Positional encoding: {kind}", anchor=False)
    {"learned": _added, "sinusoidal": _added, "rotary": _rotary, "alibi": _alibi, "none": _none}[kind](chosen)
    if kind in PAPERS:
        formula, words = PAPERS[kind]
        with st.expander("Formula"):
            st.latex(formula)
            words = words.format(pos_scale=style.number(chosen.run.config.pos_scale))
            st.caption(words[0].upper() + words[1:])


def _length(chosen: Selection) -> int:
    """How many positions are drawn: all that fit, and always the prompt's."""
    return max(len(chosen.ids), min(chosen.run.config.block_size, MOST_POSITIONS))


@st.cache_resource(show_spinner=False, max_entries=16)
def _added_figures(
    variant: state.Variant, length: int, first: int, theme: style.Theme
) -> tuple[go.Figure, go.Figure, str]:
    """The table from one position on, the cosines of all rows, and what has to be said of both."""
    from gptviz.analysis import added_positions, cosines

    rows = added_positions(state.model(variant), length)
    alike = cosines(rows)
    check = float(np.abs(np.diag(alike) - 1).max())
    return (
        position_table(rows[first : first + MOST_CELLS], theme=theme, columns="dimension", unit="value", first=first),
        similarity_matrix(alike, theme=theme, title="cosine"),
        f"Check: every position has cosine 1 with itself; the largest error is {style.number(check)}.",
    )


def _added(chosen: Selection) -> None:
    length = _length(chosen)
    first = pick_window("Positions", "positions", length, MOST_CELLS)
    rows, alike, check = _added_figures(chosen.variant, length, first, chosen.theme)
    words = {
        "sinusoidal": "Waves of many lengths: fast ones on the left tell neighbours apart, slow ones on the right tell "
        "the beginning from the end. Nothing here is learned.",
        "learned": "A row a position, learned like the token rows. Where neighbours are alike, the model has found out "
        "that positions form a line."
        if "pos_embed" not in chosen.untrained
        else "This table is random numbers: the model was trained with another encoding and has none of its own.",
    }[chosen.variant.pos_encoding]
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption(f"{words}{_thinned(chosen.run.config.n_embd)}")
        plot(rows, key="position_table", alt="The vector of every position, a row each.")
    with right:
        st.caption(f"How alike two positions are: the cosine of their rows. {check}")
        plot(alike, key="position_similarity", alt="Cosine of every two position vectors.")


def _thinned(width: int) -> str:
    shown = len(in_pairs(width))
    return "" if shown == width else f" Of {width:,} dimensions {shown} are drawn, evenly spaced pairs."


@st.cache_resource(show_spinner=False, max_entries=16)
def _rotary_figures(variant: state.Variant, length: int, first: int, theme: style.Theme) -> tuple[go.Figure, go.Figure]:
    from gptviz.analysis import rotary_similarity, rotary_table

    config = state.model(variant).config
    turned = np.cos(rotary_table(config, length)[first : first + MOST_CELLS])
    return (
        position_table(turned, theme=theme, columns="pair", unit="cosine of the angle", first=first),
        similarity_matrix(rotary_similarity(config, length), theme=theme, title="mean cosine"),
    )


def _rotary(chosen: Selection) -> None:
    st.caption(
        "Queries and keys are cut into pairs of numbers, and each pair turns like a clock's hand: at its own speed, "
        "one step further at every position. How much the turns add to the angle between a query and a key "
        "then depends on their distance alone."
    )
    one_rotation(chosen)
    first = pick_window("Positions", "positions", _length(chosen), MOST_CELLS)
    angles, alike = _rotary_figures(chosen.variant, _length(chosen), first, chosen.theme)
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption(
            "The cosine of the angle that each pair has turned by: pairs on the left turn fast, on the right slowly."
        )
        plot(angles, key="position_table", alt="Cosine of the angle of every pair at every position.")
    with right:
        st.caption(
            "How alike a vector of equal pairs is to itself at another position: it falls with distance, in waves."
        )
        plot(alike, key="position_similarity", alt="Similarity of every two positions under rotation.")


@st.cache_resource(show_spinner=False, max_entries=16)
def _alibi_figure(variant: state.Variant, length: int, theme: style.Theme) -> tuple[go.Figure, str]:
    from gptviz.analysis import alibi_lines as lines

    slopes, bias = lines(state.model(variant).config, length)
    error = float(np.abs(bias + slopes[:, None] * np.arange(length)).max())
    return alibi_lines(slopes, bias, theme=theme), style.number(error)


def _alibi(chosen: Selection) -> None:
    figure, error = _alibi_figure(chosen.variant, _length(chosen), chosen.theme)
    st.caption(
        "Nothing is added to the embeddings. Every head takes something off its scores in proportion to the distance: "
        "a steep head sees only its neighbourhood, a flat one the whole text."
    )
    plot(figure, key="alibi", alt="The bias that each head adds to a score, by distance.")
    st.caption(f"Check: the bias is −m times the distance; the largest error is {error}.")


def _none(chosen: Selection) -> None:
    st.info(
        "No encoding: the model is told nothing of where a token stands. "
        + (
            "The causal mask alone still tells it something, as later tokens see more of the text."
            if chosen.variant.causal
            else "Without a causal mask either, it sees the prompt as a bag of tokens: any order gives the same."
        )
    )
