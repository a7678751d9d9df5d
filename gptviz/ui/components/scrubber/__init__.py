"""A slider that is followed while it is dragged, and that plays. It asks for one place at a time.

Streamlit's own slider tells where it is only once it is let go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from gptviz.ui.components.events import keep

HERE = Path(__file__).parent

_mount = st.components.v2.component(
    "gptviz_scrubber",
    css=(HERE / "scrubber.css").read_text(encoding="utf-8"),
    js=(HERE / "scrubber.js").read_text(encoding="utf-8"),
)


def scrubber(
    label: str, words: Sequence[str], at: int, *, key: str, on_move: Callable[[int], None], interval: float = 0.6
) -> None:
    """Draw it at place `at` of len(words), each called by its words; `on_move` is called with another place.

    Call it last in a run: it takes that as the sign that everything else has been drawn, and asks for the next.
    interval: seconds between two places of Play.
    """
    drawing = f"{key}.drawing"
    st.session_state[drawing] = st.session_state.get(drawing, 0) + 1
    known = {"key": key, "label": label, "words": list(words), "at": at, "interval": interval}
    data = json.dumps(known | {"drawing": st.session_state[drawing]}).encode()
    _mount(key=key, data=data, on_move_change=keep(key, "move", on_move))
