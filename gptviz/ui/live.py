"""The parts of a page that follow every change: they are redrawn without the controls around them.

A control that changes what is shown, but no other control, ends its callback with `redraw`.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

PARTS = ("tokens", "next token", "page", "metronome")


def part(name: str, draw: Callable[[], None]) -> None:
    """Draw one of PARTS, here and now and at every redraw."""
    st.fragment(draw, key=name)()


def begin() -> None:
    """A page is being drawn: until its end there are no parts to redraw."""
    st.session_state["parts"] = False


def end() -> None:
    """All parts have been drawn."""
    st.session_state["parts"] = True


def redraw() -> None:
    """Draw the parts again, once this callback has returned, and nothing else; the whole page where it has none yet."""
    if st.session_state.get("parts"):
        st.rerun(PARTS)
