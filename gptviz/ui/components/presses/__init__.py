"""How often a button was pressed: Streamlit makes one press of several that come before it has answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent
MOST = 50  # presses that one call can stand for
TOLD = "presses"
COUNTED = "presses counted"  # in the session: key of a button -> its presses so far

_mount = st.components.v2.component("gptviz_presses", js=(HERE / "presses.js").read_text(encoding="utf-8"))


def count_presses(*buttons: str) -> None:
    """Count those of these buttons, named by their keys; draw it once on a page, outside its parts."""
    _mount(key=TOLD, data=json.dumps(buttons).encode())


def presses(button: str) -> Iterator[None]:
    """Once for each press that the button's callback is called for, at least once.

    A press counts when its turn is over: the callback may be cut off, and then the next one makes up for it.
    """
    told = (st.session_state.get(TOLD) or {}).get("counts") or {}
    if button not in told:
        yield
        return
    counted, now = st.session_state.setdefault(COUNTED, {}), int(told[button])
    for press in range(max(now - MOST, min(counted.get(button, 0), now - 1)), now):
        yield
        counted[button] = press + 1
