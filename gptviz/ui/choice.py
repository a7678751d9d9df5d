"""Choices made in a picture, for the controls that show them.

A callback that sets a control's value and asks for a redraw does so in a run of its own, after which the value counts
as old: the control would keep its look, and the address too. So it is set where the next run begins.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

CHOSEN = "chosen in a picture"  # in the session, from the click to the next drawing


def choose(**controls: Any) -> None:
    """For a callback: the controls, by their keys, and what they are to hold."""
    st.session_state.setdefault(CHOSEN, {}).update(controls)


def settle() -> None:
    """A run begins to draw: before any of those controls."""
    for control, value in st.session_state.pop(CHOSEN, {}).items():
        st.session_state[control] = value
