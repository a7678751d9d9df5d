"""All heads at a glance, and what each does on this prompt."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.attention import head_score_heatmap
from gptviz.figures.pixels import thumbnails as pooled
from gptviz.ui import state
from gptviz.ui.choice import choose
from gptviz.ui.components.plot import plot
from gptviz.ui.components.tiles import Row, Tile, tiles
from gptviz.ui.live import redraw
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
RANDOM = "random"  # a score that is not measured on the prompt
ORDERS = {"": "by layer", **{name: f"by {words}" for name, words in SCORES.items()}}


CHOICE, GRID, SCORE = "choice", "heads", "scores"  # parts of the page
HEAD = (CHOICE, GRID, "linker", SCORE, "circuits")  # the parts that show or name the chosen head


def choice() -> None:
    """Which head, and in which order all of them: controls that only a choice of theirs draws again."""
    config = state.checkpoint(st.session_state.model).model.config
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pick_layer(config, head_changed)
        pick_head(config, head_changed)
        order = st.selectbox(
            "Order of all heads",
            ORDERS,
            key="order_heads",
            bind="query-params",
            format_func=ORDERS.__getitem__,
            on_change=redraw,
            args=(CHOICE, GRID),
            width=240,
        )
        bound: dict[str, Any] = dict(bind="query-params", on_change=redraw, args=(GRID,), width=240)
        if order == "entropy":
            st.slider("At most", 0.0, 7.0, 7.0, 0.1, key="at_most", help="In nats.", **bound)
        elif order:
            st.slider("At least", 0.0, 1.0, 0.0, 0.01, key="at_least", **bound)


def head_changed() -> None:
    redraw(*HEAD)


def chosen_head() -> tuple[int, int]:
    """Layer and head."""
    return st.session_state.layer, st.session_state.head


def pick(id: str) -> None:
    layer, head = map(int, id.split("."))
    choose(layer=layer, head=head)
    head_changed()


def grid(chosen: Selection, selected: tuple[int, int]) -> None:
    """Every head's picture, layer by layer or by what the heads do."""
    ramps = {"attention": tuple(style.ramp("attention", chosen.theme, 255))}
    rows = thumbnails(chosen.variant, chosen.ids, chosen)
    if order := st.session_state.order_heads:
        rows = by_score(rows, state.head_scores(chosen.variant, chosen.ids)[order], order, chosen.config.n_head)
    if not rows:
        st.info("No head is within that bound on this prompt.")
        return
    tiles(
        rows,
        ramps=ramps,
        selected="{}.{}".format(*selected),
        key="heads",
        tile_size=60,
        on_pick=pick,
        alt="Every head's attention",
    )


def by_score(rows: list[Row], scores: np.ndarray, name: str, abreast: int) -> list[Row]:
    """The heads within the bound that is asked for, the strongest first; scores (L, H). An entropy is better low."""
    low_first = name == "entropy"
    bound = st.session_state.at_most if low_first else st.session_state.at_least
    every = {tile.id: tile for row in rows for tile in row.tiles}
    ranked = sorted((float(score), place) for place, score in np.ndenumerate(scores) if np.isfinite(score))
    ranked = ranked if low_first else ranked[::-1]
    kept = [
        dataclasses.replace(every[f"{layer}.{head}"], label=f"L{layer}H{head}", detail=f"{style.number(score)}")
        for score, (layer, head) in ranked
        if (score <= bound if low_first else score >= bound)
    ]
    starts = range(0, len(kept), abreast)
    return [Row(f"{at + 1} to {min(at + abreast, len(kept))}", "", kept[at : at + abreast]) for at in starts]


@st.cache_resource(show_spinner=False, max_entries=24)
def thumbnails(variant: state.Variant, ids: tuple[int, ...], _chosen: Selection) -> list[Row]:
    """Every head's tile; the same for every head that is chosen."""
    scores = state.head_scores(variant, ids)
    return [Row(f"Layer {layer}", "", _layer(_chosen, scores, layer)) for layer in range(_chosen.config.n_layer)]


def _layer(chosen: Selection, scores: dict[str, np.ndarray], layer: int) -> list[Tile]:
    patterns = chosen.run[f"blocks.{layer}.attn.hook_pattern"].numpy()
    pixels = pooled(patterns, chosen.hidden(layer))
    return [thumbnail(scores, layer, head, pixels[head]) for head in range(len(pixels))]


def thumbnail(scores: dict[str, np.ndarray], layer: int, head: int, pixels: np.ndarray) -> Tile:
    from gptviz.analysis import head_kind

    measured = {SCORES[name]: float(values[layer, head]) for name, values in scores.items()}
    words = ", ".join(f"{name} {style.number(value)}" for name, value in measured.items() if np.isfinite(value))
    title, kind = f"layer {layer}, head {head}", head_kind(scores, layer, head)
    return Tile(f"{layer}.{head}", title, pixels, "attention", hover=words, label=f"head {head}", detail=kind)


def choose_score() -> None:
    st.subheader("What the heads do on this prompt", anchor=False)
    st.selectbox(
        "Score",
        [*SCORES, RANDOM],
        key="score",
        bind="query-params",
        format_func=_words,
        on_change=redraw,
        args=(SCORE,),
    )


def head_scores(chosen: Selection) -> None:
    """The chosen score of every head, and all of the chosen head's."""
    name, selected = st.session_state.score, chosen_head()
    scores, definition = measured(chosen, name)
    st.caption(definition[0].upper() + definition[1:] + ".")
    if np.isnan(scores).all():
        st.info("This prompt has no place for it, so there is nothing to measure. Try the example “Repeated words”.")
        return
    picture, words = st.columns([3, 2], gap="medium")
    with picture:
        figure = head_score_heatmap(scores, theme=chosen.theme, name=_words(name), selected=selected)
        plot(figure, key="head_scores", alt=f"{_words(name)} score of every head.")
    with words:
        st.markdown("**Layer {}, head {}**".format(*selected))
        every = {word: measured(chosen, known)[0] for known, word in SCORES.items()}
        if name == RANDOM:
            every[_words(name)] = scores
        st.text("\n".join(f"{word}: {_said(values[selected])}" for word, values in every.items()))


def measured(chosen: Selection, name: str) -> tuple[np.ndarray, str]:
    """A score of every head (L, H) on this prompt, or on random tokens; and what it is."""
    from gptviz.analysis import HEAD_SCORES, repeated_random_ids

    if name != RANDOM:
        return state.head_scores(chosen.variant, chosen.ids)[name], HEAD_SCORES[name]
    ids = tuple(repeated_random_ids(chosen.config).tolist())
    twice = f"{len(ids) // 2} random tokens and then the same again, whatever the prompt (Olsson 2022)"
    return (
        state.head_scores(chosen.variant, ids)["induction"],
        f"attention to what followed the token's earlier occurrence, on {twice}",
    )


def _words(name: str) -> str:
    return SCORES.get(name, "induction on random tokens")


def _said(score: float) -> str:
    return style.number(float(score)) if np.isfinite(score) else "not measurable here"
