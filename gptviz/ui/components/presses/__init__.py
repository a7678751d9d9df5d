"""How often a button was pressed: Streamlit makes one press of several that come before it has answered."""

from __future__ import annotations

import json
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


def presses(button: str) -> int:
    """For how many presses the button's callback was called, at least one; to be asked once in it."""
    told = (st.session_state.get(TOLD) or {}).get("counts") or {}
    if button not in told:
        return 1
    counted = st.session_state.setdefault(COUNTED, {})
    before, counted[button] = counted.get(button, 0), int(told[button])
    return min(max(1, counted[button] - before), MOST)
