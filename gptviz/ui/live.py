"""The parts of a page that are redrawn on their own: what follows a change, without the controls around it.

A control that changes what is shown, but no other control, ends its callback with `redraw`. Streamlit draws every
widget of a rerun anew, a few milliseconds each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, RerunException, get_script_run_ctx

from gptviz.ui.components.tick import tick

DRAWN, PARTS = "drawn parts", "parts"  # in the session: those so far, and all of them once the page is whole


def part(name: str, draw: Callable[[], None], *, follows: bool = True) -> None:
    """Draw a part, here and now and at every redraw: at those that name it, where it does not follow every change."""

    @functools.wraps(draw)
    def on_its_page() -> None:
        stay()
        draw()

    if follows and name not in (so_far := st.session_state[DRAWN]):
        st.session_state[DRAWN] = (*so_far, name)
    st.fragment(on_its_page, key=name)()


def begin() -> None:
    """A page is being drawn: until its end there are no parts to redraw."""
    _keep_link()
    st.session_state[DRAWN], st.session_state[PARTS] = (), None
    st.session_state["drawn page"] = _page()


def stay() -> None:
    """Draw the page anew where this run is on its way back to the one before.

    A word of the page before (a tick of Play, a click) may reach the server after the switch. It names its own page,
    and Streamlit follows it there: away from what is on screen, with that page's controls forgotten.
    """
    drawn, context = st.session_state.get("drawn page"), get_script_run_ctx()
    if context and drawn not in (None, context.page_script_hash):
        raise RerunException(RerunData(query_string=context.query_string, page_script_hash=drawn))


def _page() -> str | None:
    context = get_script_run_ctx()
    return context.page_script_hash if context else None


def end() -> None:
    """All parts have been drawn."""
    st.session_state[PARTS] = st.session_state[DRAWN]


def redraw(*parts: str) -> None:
    """The end of a callback: draw these parts again (none named: all that follow); the whole page where it has none."""
    every = st.session_state.get(PARTS)
    if every is not None:
        stay()
        st.rerun(parts or every)


SETTLED = "settled"  # in the session: a second run has been
FIRST, REOPENED = "first page", "reopened"  # the page and the link that the session began with; another took its place


def _keep_link() -> None:
    """Open this page as the session's first one was opened, where that was left before it had settled."""
    page, context = _page(), get_script_run_ctx()
    first = st.session_state.setdefault(FIRST, (page, context.query_string if context else ""))
    if st.session_state.pop(REOPENED, False):
        st.query_params.from_dict(st.query_params.to_dict())  # which tells the browser's address, too
    if SETTLED in st.session_state or first[0] == page:
        return
    st.session_state.clear()
    st.session_state[FIRST], st.session_state[REOPENED] = (page, first[1]), True
    raise RerunException(RerunData(query_string=first[1], page_script_hash=page or ""))


def settle() -> None:
    """Have a session's second run made at once, of nothing.

    What the first one has set, the link's choices among them, Streamlit forgets at a switch of the page before that.
    """
    if SETTLED not in st.session_state:
        st.fragment(_settle, key=SETTLED)()


def _settle() -> None:
    stay()
    if SETTLED not in st.session_state:
        tick(key="settle", on_tick=_settled)


def _settled() -> None:
    st.session_state[SETTLED] = True
