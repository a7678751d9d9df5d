"""What a scrubber's places look like, sent ahead: the charts follow the hand without asking Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent
MOST = 2_000_000  # bytes: what is larger is not sent ahead

_mount = st.components.v2.component("gptviz_reel", js=(HERE / "reel.js").read_text(encoding="utf-8"))


def reel(places: Sequence[Mapping[str, bytes]], *, key: str, scrubber: str) -> None:
    """places: for each place of that scrubber, key of a plot -> the text that `plot` sends for it.

    The same again costs nothing: Streamlit sends a message that the browser has only once.
    """
    size = sum(len(text) for place in places for text in place.values())
    plain = any(b"\0" in text for place in places for text in place.values())  # numbers in bytes, of large charts
    shown = [] if size > MOST or plain else places
    texts = [{plot: text.decode() for plot, text in place.items()} for place in shown]
    _mount(key=key, data=json.dumps({"scrubber": scrubber, "places": texts}, ensure_ascii=False).encode())
