"""Asks for another run each time the browser has painted the last one: never faster than it can draw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

_mount = st.components.v2.component("gptviz_tick", js=(HERE / "tick.js").read_text(encoding="utf-8"))


def tick(*, key: str, on_tick: Callable[[], None]) -> None:
    """on_tick is called once for each time this is drawn, and should see to it that it is drawn again."""
    count = f"{key}.count"
    st.session_state[count] = st.session_state.get(count, 0) + 1
    _mount(key=key, data=st.session_state[count], on_tick_change=on_tick)
