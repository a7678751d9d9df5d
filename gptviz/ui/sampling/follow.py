"""A part of the page that changes the text: the prompt and its buttons, which are no part of it, have to follow."""

from __future__ import annotations

import streamlit as st


def write(generated: tuple[int, ...], prompt: str | None = None) -> None:
    """The end of a callback: what was generated, and the typed text where that changes too. Draws the whole page."""
    if prompt is not None:
        st.session_state.prompt = prompt
    st.session_state.playing = False
    st.session_state.generated = generated
    st.rerun()


def go_on_with(tokens: tuple[int, ...]) -> None:
    """The same, for tokens that are added."""
    write(st.session_state.generated + tokens)
