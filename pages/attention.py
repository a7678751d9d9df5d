"""All heads, one head, and the stages by which its pattern comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.attention import (
    Weights,
    attention_heatmap,
    attention_values,
    head_score_heatmap,
    stage_heatmap,
)
from gptviz.figures.pixels import max_pool, quantise
from gptviz.ui import state
from gptviz.ui.components.ahead import ahead
from gptviz.ui.components.plot import Click, plot
from gptviz.ui.components.tiles import Row, Tile, tiles
from gptviz.ui.frame import Selection, frame

if TYPE_CHECKING:
    from gptviz.analysis import Stages

WIDEST = 620  # pixels, of the large matrix

STAGES = {
    "raw": ("q · k", "The dot product of every query with every key.", r"S_{ij} = q_i \cdot k_j"),
    "scaled": (
        "scaled",
        "Divided by √D, so that the scores keep the same spread however wide a head is.",
        r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}}",
    ),
    "biased": (
        "+ position bias",
        "ALiBi lowers a score in proportion to the distance.",
        r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} - m\,|i - j|",
    ),
    "masked": (
        "masked",
        "The future is set to −∞: no query may look there.",
        r"S_{ij} = -\infty \;\text{ for }\; j > i",
    ),
    "pattern": (
        "softmax",
        "Every row becomes shares that sum to 1: how much each token takes from each other one.",
        r"A_{ij} = \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}",
    ),
}
SCALES = {"0-1": "0 to 1", "max": "this head’s maximum", "log": "log"}
SCORES = {
    "previous_token": "previous token",
    "induction": "induction",
    "duplicate_token": "duplicate token",
    "self": "self",
    "first_token": "first token",
    "entropy": "entropy (nats)",
}


def pick(id: str) -> None:
    st.session_state.layer, st.session_state.head = map(int, id.split("."))


def choose_head(chosen: Selection) -> tuple[int, int]:
    layers, heads = range(chosen.config.n_layer), range(chosen.config.n_head)
    with st.container(horizontal=True):
        layer = st.selectbox("Layer", layers, key="layer", bind="query-params", width=120)
        head = st.selectbox("Head", heads, key="head", bind="query-params", width=120)
    return layer, head


@st.cache_resource(show_spinner=False, max_entries=24)
def thumbnails(variant: state.Variant, ids: tuple[int, ...], _chosen: Selection) -> list[Row]:
    """Every head's tile; the same for every head that is chosen."""
    scores, heads = state.head_scores(variant, ids), range(_chosen.config.n_head)
    return [
        Row(f"Layer {layer}", "", [thumbnail(_chosen, scores, layer, head) for head in heads])
        for layer in range(_chosen.config.n_layer)
    ]


def grid(chosen: Selection, selected: tuple[int, int]) -> None:
    ramps = {"attention": tuple(style.ramp("attention", chosen.theme, 255))}
    tiles(
        thumbnails(chosen.variant, chosen.ids, chosen),
        ramps=ramps,
        selected="{}.{}".format(*selected),
        key="heads",
        tile_size=60,
        on_pick=pick,
        alt="Every head's attention",
    )


def thumbnail(chosen: Selection, scores: dict[str, np.ndarray], layer: int, head: int) -> Tile:
    from gptviz.analysis import head_kind

    measured = {SCORES[name]: float(values[layer, head]) for name, values in scores.items()}
    words = ", ".join(f"{name} {style.number(value)}" for name, value in measured.items() if np.isfinite(value))
    title, kind = f"layer {layer}, head {head}", head_kind(scores, layer, head)
    pixels = quantise(max_pool(chosen.visible_pattern(layer, head), 64), 1)
    return Tile(f"{layer}.{head}", title, pixels, "attention", hover=words, label=f"head {head}", detail=kind)


def one_head(chosen: Selection, layer: int, head: int) -> None:
    from gptviz.analysis import attention_stages

    stages = attention_stages(chosen.run, layer, head)
    absent = {"biased": stages.bias is None, "masked": not chosen.variant.causal}
    names = [name for name in STAGES if not absent.get(name)]
    stage = st.segmented_control(
        "Stage",
        names,
        default="pattern",
        required=True,
        key="stage",
        bind="query-params",
        format_func=lambda name: STAGES[name][0],
    )
    title, sentence, formula = STAGES[stage]
    st.caption(sentence)
    figure = pattern_figure(chosen, stages.pattern) if stage == "pattern" else scores_figure(chosen, stages, stage)
    beyond = max(0, figure.layout.width - WIDEST)  # taken off both sides, as the matrix is square
    width, height = figure.layout.width - beyond, figure.layout.height - beyond
    figure.update_layout(uirevision=f"{len(chosen.ids)}", width=width, height=height)
    plot(figure, key="attention_heatmap", alt=alternative(layer, head, title), on_click=choose_cell)
    if stage == "pattern" and st.session_state.scale != "max" and not st.session_state.hide_first:
        ahead(
            *other_heads(chosen.variant, chosen.ids, layer, title, chosen),
            key="heads_ahead",
            tiles="heads",
            plot="attention_heatmap",
        )
    cell_arithmetic(chosen, stages)
    turned = " q and k are taken after their rotation." if chosen.variant.pos_encoding == "rotary" else ""
    with st.expander("Formula"):
        st.latex(formula)
        st.caption(
            f"D = {chosen.config.d_head} (d_head), i the query, j the key.{turned} Scaled dot-product attention: "
            "[Vaswani et al. 2017, equation 1](https://arxiv.org/abs/1706.03762)."
        )


def alternative(layer: int, head: int, title: str) -> str:
    return f"Layer {layer}, head {head}: {title} of every query and key."


@st.cache_resource(show_spinner=False, max_entries=24)
def other_heads(
    variant: state.Variant, ids: tuple[int, ...], layer: int, title: str, _chosen: Selection
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The numbers and words of the heads that a click may choose next: those of this layer first."""
    layers = sorted(range(_chosen.config.n_layer), key=lambda other: abs(other - layer))
    heads = [(other, head) for other in layers for head in range(_chosen.config.n_head)]
    return (
        {f"{at}.{head}": attention_values(_chosen.run.pattern(at, head), _chosen.future) for at, head in heads},
        {f"{at}.{head}": alternative(at, head, title) for at, head in heads},
    )


def choose_cell(click: Click) -> None:
    st.session_state.cell = int(click["y"]), int(click["x"])


def cell_arithmetic(chosen: Selection, stages: Stages) -> None:
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
    cell = attention_cell(stages, chosen.config.attn_scale, query, key)
    bias = "" if stages.bias is None else f" + ({style.tex(cell.bias)})"
    score = rf"{style.tex(cell.scale)} \times ({style.tex(cell.raw)}){bias} = {style.tex(cell.score)}"
    penalty = r" - m\,|i - j|" if bias else ""
    st.latex(rf"S = \frac{{q \cdot k}}{{\sqrt D}}{penalty} = {score}")
    exponential = style.tex(float(np.exp(cell.score)))
    share = rf"\frac{{{exponential}}}{{{style.tex(cell.row_sum)}}}"
    st.latex(rf"A = \frac{{e^S}}{{\sum_j e^{{S_j}}}} = {share} = {style.tex(cell.weight)}")


def scores_figure(chosen: Selection, stages: Stages, stage: str) -> go.Figure:
    return stage_heatmap(getattr(stages, stage), chosen.labels, theme=chosen.theme, title="")


def pattern_figure(chosen: Selection, pattern: np.ndarray) -> go.Figure:
    from gptviz.analysis import without_first

    scale, hide = pattern_controls(chosen)
    if hide:
        rest = without_first(pattern)
        hidden = chosen.future | np.isnan(rest)
        return attention_heatmap(rest, chosen.labels, theme=chosen.theme, scale=scale, masked=hidden)
    error = float(np.abs(pattern.sum(1) - 1).max())
    st.caption(f"Check: every row sums to 1; the largest error is {style.number(error)}.")
    return attention_heatmap(pattern, chosen.labels, theme=chosen.theme, scale=scale, masked=chosen.future)


def pattern_controls(chosen: Selection) -> tuple[Weights, bool]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        scale = st.segmented_control(
            "Colour scale",
            list(SCALES),
            default="0-1",
            required=True,
            key="scale",
            bind="query-params",
            format_func=SCALES.__getitem__,
        )
        hide = st.toggle(
            "Hide the first token",
            key="hide_first",
            bind="query-params",
            disabled=len(chosen.ids) < 2,
            help="Heads with nothing to say rest on the first token. Without it, each row is made to sum to 1 again.",
        )
    return scale, hide and len(chosen.ids) > 1


def head_scores_panel(chosen: Selection, scores: dict[str, np.ndarray], selected: tuple[int, int]) -> None:
    from gptviz.analysis import HEAD_SCORES

    st.subheader("What the heads do on this prompt", anchor=False)
    name = st.selectbox("Score", list(SCORES), key="score", bind="query-params", format_func=SCORES.__getitem__)
    st.caption(HEAD_SCORES[name][0].upper() + HEAD_SCORES[name][1:] + ".")
    if np.isnan(scores[name]).all():
        st.info("This prompt has no place for it, so there is nothing to measure. Try the example “Repeated words”.")
        return
    picture, words = st.columns([3, 2], gap="medium")
    with picture:
        figure = head_score_heatmap(scores[name], theme=chosen.theme, name=SCORES[name], selected=selected)
        plot(figure, key="head_scores", alt=f"{SCORES[name]} score of every head.")
    with words:
        st.markdown("**Layer {}, head {}**".format(*selected))
        for known, words_for_it in SCORES.items():
            value = float(scores[known][selected])
            st.text(f"{words_for_it}: {style.number(value) if np.isfinite(value) else 'not measurable here'}")


def draw(chosen: Selection) -> None:
    left, right = st.columns([1, 2], gap="medium")
    with right:
        st.subheader("One head", anchor=False)
        layer, head = choose_head(chosen)
        one_head(chosen, layer, head)
    with left:
        st.subheader("All heads", anchor=False)
        st.caption("Row: query, column: key. Click a head, or move with the arrow keys.")
        grid(chosen, (layer, head))
    head_scores_panel(chosen, state.head_scores(chosen.variant, chosen.ids), (layer, head))


frame("Attention", "Every token asks (query), every token answers (key): who looks at whom, in every head.", draw)
