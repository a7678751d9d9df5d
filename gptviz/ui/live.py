"""The parts of a page that are redrawn on their own: what follows a change, without the controls around it.

A control that changes what is shown, but no other control, ends its callback with `redraw`. Streamlit draws every
widget of a rerun anew, a few milliseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

PARTS = ("tokens", "next token", "page", "metronome")  # of the frame, in the order in which they are drawn


def part(name: str, draw: Callable[[], None]) -> None:
    """Draw a part, here and now and at every redraw that names it."""
    st.fragment(draw, key=name)()


def begin() -> None:
    """A page is being drawn: until its end there are no parts to redraw."""
    st.session_state["parts"] = False


def end() -> None:
    """All parts have been drawn."""
    st.session_state["parts"] = True


def redraw(parts: Sequence[str] = PARTS) -> None:
    """The end of a callback: draw these parts again, and nothing else; the whole page where it has none yet."""
    if st.session_state.get("parts"):
        st.rerun(parts)
