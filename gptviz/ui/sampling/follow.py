"""A part of the page that changes the text: the prompt and its buttons, which are no part of it, have to follow."""

from __future__ import annotations

import streamlit as st

_WAITING = "text changed by the page"


def write(generated: tuple[int, ...], prompt: str | None = None) -> None:
    """To be called in a callback: what was generated, and the typed text where that changes too."""
    if prompt is not None:
        st.session_state.prompt = prompt
    st.session_state.playing = False
    st.session_state.generated = generated
    st.session_state[_WAITING] = True


def go_on_with(tokens: tuple[int, ...]) -> None:
    """The same, for tokens that are added."""
    write(st.session_state.generated + tokens)


def follow() -> None:
    """Draw the whole page anew where such a callback has been, as the click has drawn its own part alone."""
    if st.session_state.pop(_WAITING, False):
        st.rerun()
