"""The parts of a page that are redrawn on their own: what follows a change, without the controls around it.

A control that changes what is shown, but no other control, ends its callback with `redraw`. Streamlit draws every
widget of a rerun anew, a few milliseconds each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from gptviz.ui import choice
from gptviz.ui.switch import stay

# In the session: the parts that follow every change, and whether they follow the sampling settings, too. Those drawn
# so far, and all of them once the page is whole.
DRAWN, PARTS = "drawn parts", "parts"


def part(name: str, draw: Callable[[], None], *, follows: bool = True, sampled: bool = False) -> None:
    """Draw a part, here and now and at every redraw: at those that name it, where it does not follow every change.

    One that is sampled follows the sampling settings, too.
    """

    @functools.wraps(draw)
    def on_its_page() -> None:
        stay()
        choice.settle()
        draw()

    if follows:
        st.session_state[DRAWN][name] = sampled
    st.fragment(on_its_page, key=name)()


def begin() -> None:
    """A page is being drawn: until its end there are no parts to redraw."""
    st.session_state[DRAWN], st.session_state[PARTS] = {}, None


def end() -> None:
    """All parts have been drawn."""
    st.session_state[PARTS] = st.session_state[DRAWN]


def alone() -> bool:
    """Whether this run draws one part, and nothing else of the page."""
    context = get_script_run_ctx()
    return context is not None and len(context.fragment_ids_this_run or ()) == 1


def redraw(*parts: str) -> None:
    """The end of a callback: draw these parts again (none named: all that follow); the whole page where it has none."""
    every = st.session_state.get(PARTS)
    if every is not None:
        stay()
        st.rerun(parts or tuple(every))


def resample() -> None:
    """The end of a sampling setting's callback: draw again what depends on it."""
    redraw(*(name for name, sampled in (st.session_state.get(PARTS) or {}).items() if sampled))
