"""What Play has shown, which counts as written from then on.

The player tells it in a state that goes along with every later message. It is looked up here before the text is read,
and not when it arrives: a callback is cut off, and lost, where a newer message comes in.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from gptviz.ui.components.player import shown

PLAYER = "metronome"
SHOWING = "what Play shows"  # in the session


class Showing(NamedTuple):
    """What the browser was given to show."""

    drawing: int  # of the player, by its number
    written: tuple[int, ...]  # what had been generated before
    tokens: tuple[int, ...]


def hear() -> None:
    """Put what has been shown into the text, once: it is then no longer what was written before."""
    showing: Showing | None = st.session_state.get(SHOWING)
    if showing is None or st.session_state.generated != showing.written:
        return
    if seen := showing.tokens[: shown(PLAYER, showing.drawing)]:
        st.session_state.generated = showing.written + seen
