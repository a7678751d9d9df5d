"""What rotary does to one pair of one query and one key, with the real numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.positions import Arrow, rotation_plane
from gptviz.ui.components.plot import plot
from gptviz.ui.pick import pick_head, pick_layer, pick_position
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.analysis import Turn


def one_rotation(chosen: Selection) -> None:
    """The choice of a query, a key and a pair; both arrows; and the check."""
    from gptviz.analysis import rotary_turn

    half = chosen.run.config.d_rotary // 2
    with st.container(horizontal=True):
        layer, head = pick_layer(chosen.config), pick_head(chosen.config)
        query, key = pick_position(chosen, "Query"), pick_position(chosen, "Key", "key_position", len(chosen.ids) // 2)
        pair = st.selectbox("Pair", range(half), key="pair", bind="query-params", width=120)
    q = rotary_turn(chosen.run, layer, head, query, pair, "q")
    k = rotary_turn(chosen.run, layer, head, key, pair, "k")
    arrows = [
        Arrow(f"q of ‘{chosen.labels[query]}’ ({query})", q.before, q.after, q.angle, "attention"),
        Arrow(f"k of ‘{chosen.labels[key]}’ ({key})", k.before, k.after, k.angle, "position"),
    ]
    picture, words = st.columns([3, 2], gap="medium")
    with picture:
        figure = rotation_plane(arrows, theme=chosen.theme, dimensions=(pair, pair + half))
        plot(figure, key="rotation", alt="One pair of a query and of a key before and after their rotation.")
    with words:
        _rotation_words(q, k, query, key, chosen.theme)


def _rotation_words(q: Turn, k: Turn, query: int, key: int, theme: style.Theme) -> None:
    st.caption("Dotted: as the weights made it; solid: after the turn; the arc: the angle, whole turns left out.")
    degrees = [style.number(float(np.degrees(turn.angle))) for turn in (q, k)]
    rows = [
        ("position", str(query), str(key)),
        ("turned by (degrees)", *degrees),
        ("turned by (radians)", style.number(q.angle), style.number(k.angle)),
    ]
    st.html(table(["", "q", "k"], rows, theme=theme))
    before, after = float(q.before @ k.before), float(q.after @ k.after)
    st.caption(f"What this pair adds to q · k: {style.number(before)} before the turns, {style.number(after)} after.")
    st.caption(
        f"Check: the captured vectors are the ones before, turned by these angles; the largest error is "
        f"{style.number(max(q.error, k.error))}."
    )
