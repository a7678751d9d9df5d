"""One head: the stages from q · k to what it adds to the stream."""

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
    stage_heatmap,
    vectors_heatmap,
)
from gptviz.figures.matrix import MOST_EXACT
from gptviz.ui import state
from gptviz.ui.attention.cell import cell_arithmetic, choose_cell
from gptviz.ui.attention.heads import chosen_head
from gptviz.ui.attention.stages import SQUARE, STAGES, VECTORS, choose_stage, described, explain, strip
from gptviz.ui.components.ahead import ahead, fitting
from gptviz.ui.components.plot import payload, plot
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz.analysis import HeadOutput, Stages

MATRIX = "attention_heatmap"  # the large one's key
WIDEST = 620  # pixels, of the large matrix
SCALES: dict[Weights, str] = {"0-1": "0 to 1", "max": "this head’s maximum", "log": "log"}


def one_head(chosen: Selection, layer: int, head: int) -> None:
    from gptviz.analysis import attention_stages

    stages = attention_stages(chosen.run, layer, head)
    stage = choose_stage(chosen, stages)
    title, sentence, formula = described(chosen.run.config, layer, stage)
    strip(chosen, layer, stages, stage)
    st.caption(sentence)
    if stage == "vectors":
        queries_keys_values(chosen, layer, head)
    elif stage in VECTORS:
        figure = vectors_figure(chosen, layer, head, stage)
        plot(sized(figure, chosen), key="attention_vectors", alt=alternative(layer, head, f"{title}, a row a token"))
    else:
        if stage == "pattern":
            pattern_controls(chosen, layer, head)
        figure, alt = matrix(chosen, stages, layer, head, stage)
        plot(figure, key=MATRIX, alt=alt, on_click=choose_cell)
        if stage == "pattern":
            send_ahead(chosen, layer)
        cell_arithmetic(chosen, stages, layer, head, as_is=stage != "pattern" or not shares_of(chosen))
    explain(chosen, formula)


def ahead_of_play(chosen: Selection) -> dict[str, bytes]:
    """What the large matrix will show of another text, in the stage that is on screen."""
    from gptviz.analysis import attention_stages

    stage = st.session_state.stage
    if stage not in SQUARE or len(chosen.ids) ** 2 > MOST_EXACT:
        return {}
    layer, head = chosen_head()
    figure, alt = matrix(chosen, attention_stages(chosen.run, layer, head), layer, head, stage)
    return {MATRIX: payload(figure, key=MATRIX, alt=alt, clickable=True)}


def matrix(chosen: Selection, stages: Stages, layer: int, head: int, stage: str) -> tuple[go.Figure, str]:
    """A stage with a cell for each two tokens, and its words."""
    drawn = pattern_figure(chosen, layer, head) if stage == "pattern" else scores_figure(chosen, stages, stage)
    return sized(drawn, chosen), alternative(layer, head, f"{STAGES[stage][0]} of every query and key")


def sized(figure: go.Figure, chosen: Selection) -> go.Figure:
    """At most WIDEST: what is beyond is taken off both sides, as the matrix is square. A zoom lasts while it grows."""
    beyond = max(0, figure.layout.width - WIDEST)
    width, height = figure.layout.width - beyond, figure.layout.height - beyond
    return figure.update_layout(uirevision=str(hash(chosen.typed)), width=width, height=height)


def alternative(layer: int, head: int, what: str) -> str:
    return f"Layer {layer}, head {head}: {what}."


def send_ahead(chosen: Selection, layer: int) -> None:
    """So that a click on another head is answered by the browser, where the figures differ in their numbers alone.

    Not during play, where the next token comes sooner than a click.
    """
    chosen_so = st.session_state
    if chosen_so.scale == "max" or chosen_so.hide_first or chosen_so.value_weighted or chosen_so.playing:
        return
    values, alts = other_heads(chosen.variant, chosen.ids, layer, chosen)
    ahead(values, alts, key="heads_ahead", tiles="heads", plot=MATRIX)


@st.cache_resource(show_spinner=False, max_entries=24)
def other_heads(
    variant: state.Variant, ids: tuple[int, ...], layer: int, _chosen: Selection
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The numbers and words of the heads that a click may choose next, as many as fit: those of this layer first."""
    layers = sorted(range(_chosen.config.n_layer), key=lambda other: abs(other - layer))
    room = fitting(4 * int((~_chosen.hidden(layer)).sum()))
    heads = [(other, head) for other in layers for head in range(_chosen.config.n_head)][:room]
    title = STAGES["pattern"][0]
    return (
        {f"{at}.{head}": attention_values(_chosen.run.pattern(at, head), _chosen.hidden(at)) for at, head in heads},
        {f"{at}.{head}": alternative(at, head, f"{title} of every query and key") for at, head in heads},
    )


def scores_figure(chosen: Selection, stages: Stages, stage: str) -> go.Figure:
    return stage_heatmap(getattr(stages, stage), chosen.labels, theme=chosen.theme, title="")


def pattern_figure(chosen: Selection, layer: int, head: int) -> go.Figure:
    """The weights as the controls want them."""
    from gptviz.analysis import head_vectors, value_weighted, without_first

    shown, hidden = chosen.run.pattern(layer, head), chosen.hidden(layer)
    if st.session_state.value_weighted:
        shown = value_weighted(shown, head_vectors(chosen.run, layer, head).v)
    if hides_first(chosen):
        shown = without_first(shown)
        hidden = hidden | np.isnan(shown)
    blank = "masked, or hidden" if hides_first(chosen) else "masked"
    how = dict(scale=st.session_state.scale, masked=hidden, of=shares_of(chosen), blank=blank)
    return attention_heatmap(shown, chosen.labels, theme=chosen.theme, **how)


def shares_of(chosen: Selection) -> str:
    """What the matrix shows shares of, where that is not all of the query's attention."""
    what = "what is moved" if st.session_state.value_weighted else "the attention"
    if hides_first(chosen):
        return f"{what} without the first token"
    return what if st.session_state.value_weighted else ""


def hides_first(chosen: Selection) -> bool:
    return st.session_state.hide_first and len(chosen.ids) > 1


def pattern_controls(chosen: Selection, layer: int, head: int) -> None:
    """The colour scale, whether weights count by what they move, whether the first token is hidden; what then holds."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Colour scale",
            list(SCALES),
            default="0-1",
            required=True,
            key="scale",
            bind="query-params",
            format_func=SCALES.__getitem__,
        )
        weighted = st.toggle(
            "Weigh by the values",
            key="value_weighted",
            bind="query-params",
            help="A weight on a short value moves little: A‖v‖, rows made to sum to 1 again; after Kobayashi et al. "
            "2020, who measure v once W_O has carried it into the stream.",
        )
        st.toggle(
            "Hide the first token",
            key="hide_first",
            bind="query-params",
            disabled=len(chosen.ids) < 2,
            help="Heads with nothing to say rest on the first token. Without it, each row is made to sum to 1 again.",
        )
    if weighted:
        st.caption("Each weight times the length of its value, as a share of its row: how much it moves, not looks.")
    if hides_first(chosen):
        st.caption("The first token’s column is left out, and what is left of each row is made to sum to 1 again.")
    if not shares_of(chosen):
        error = float(np.abs(chosen.run.pattern(layer, head).sum(1) - 1).max())
        st.caption(f"Check: every row sums to 1; the largest error is {style.number(error)}.")


def queries_keys_values(chosen: Selection, layer: int, head: int) -> None:
    """The head's vectors, a row a token; with rotary positions q and k before and after their rotation."""
    from gptviz.analysis import head_vectors, projection_error

    vectors = head_vectors(chosen.run, layer, head)
    error = style.number(projection_error(state.model(chosen.variant), chosen.run, layer, head))
    biases = ", plus their biases," if chosen.config.qkv_bias else ""
    words = f"the normalised stream times W_Q, W_K and W_V{biases} gives these rows"
    st.caption(f"Check: {words}; the largest error is {error}.")
    matrices = {"q": vectors.q, "k": vectors.k, "v": vectors.v}
    if vectors.turned_q is not None and vectors.turned_k is not None:
        st.caption("Below, q and k once more as the scores use them: each pair of dimensions turned by its position.")
        matrices |= {"q, rotated": vectors.turned_q, "k, rotated": vectors.turned_k}
    for name, rows in matrices.items():
        st.markdown(f"**{name}**")
        figure = vectors_heatmap(rows, chosen.labels, theme=chosen.theme, title=name)
        plot(sized(figure, chosen), key=f"attention_{name}", alt=alternative(layer, head, f"{name}, a row a token"))


def vectors_figure(chosen: Selection, layer: int, head: int, stage: str) -> go.Figure:
    output = head_outputs(chosen.variant, chosen.ids, layer, head)
    if stage == "values":
        words, error = "the pattern times the values is hook_z", output.mix_error
    else:
        bias = " and W_O's bias" if chosen.config.out_bias else ""
        words, error = f"all heads' outputs{bias} sum to hook_attn_out", output.sum_error
    st.caption(f"Check: {words}; the largest error is {style.number(error)}.")
    rows = output.mix if stage == "values" else output.written
    unit = "z" if stage == "values" else "o"
    return vectors_heatmap(rows, chosen.labels, theme=chosen.theme, title=unit)


@st.cache_resource(show_spinner=False, max_entries=24)
def head_outputs(variant: state.Variant, ids: tuple[int, ...], layer: int, head: int) -> HeadOutput:
    from gptviz.analysis import head_output

    return head_output(state.model(variant), state.trace(variant, ids), layer, head)
