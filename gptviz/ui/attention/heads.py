"""All heads at a glance, and what each does on this prompt."""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.attention import head_score_heatmap
from gptviz.figures.pixels import max_pool, quantise
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.components.tiles import Row, Tile, tiles
from gptviz.ui.pick import pick_head, pick_layer
from gptviz.ui.selection import Selection

SCORES = {
    "previous_token": "previous token",
    "induction": "induction",
    "duplicate_token": "duplicate token",
    "self": "self",
    "first_token": "first token",
    "entropy": "entropy (nats)",
}


def choose_head(chosen: Selection) -> tuple[int, int]:
    with st.container(horizontal=True):
        return pick_layer(chosen), pick_head(chosen)


def pick(id: str) -> None:
    st.session_state.layer, st.session_state.head = map(int, id.split("."))


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


@st.cache_resource(show_spinner=False, max_entries=24)
def thumbnails(variant: state.Variant, ids: tuple[int, ...], _chosen: Selection) -> list[Row]:
    """Every head's tile; the same for every head that is chosen."""
    scores, heads = state.head_scores(variant, ids), range(_chosen.config.n_head)
    return [
        Row(f"Layer {layer}", "", [thumbnail(_chosen, scores, layer, head) for head in heads])
        for layer in range(_chosen.config.n_layer)
    ]


def thumbnail(chosen: Selection, scores: dict[str, np.ndarray], layer: int, head: int) -> Tile:
    from gptviz.analysis import head_kind

    measured = {SCORES[name]: float(values[layer, head]) for name, values in scores.items()}
    words = ", ".join(f"{name} {style.number(value)}" for name, value in measured.items() if np.isfinite(value))
    title, kind = f"layer {layer}, head {head}", head_kind(scores, layer, head)
    pixels = quantise(max_pool(chosen.visible_pattern(layer, head), 64), 1)
    return Tile(f"{layer}.{head}", title, pixels, "attention", hover=words, label=f"head {head}", detail=kind)


def head_scores(chosen: Selection, selected: tuple[int, int]) -> None:
    from gptviz.analysis import HEAD_SCORES

    scores = state.head_scores(chosen.variant, chosen.ids)
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
        st.text("\n".join(f"{word}: {_said(scores[known][selected])}" for known, word in SCORES.items()))


def _said(score: float) -> str:
    return style.number(float(score)) if np.isfinite(score) else "not measurable here"
