"""Going from page to page: what Streamlit would lose on the way, and where it would go astray."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, RerunException, get_script_run_ctx

from gptviz.ui.components.tick import tick

HERE = "drawn page"  # in the session: the page that is on screen
SETTLED = "settled"  # a second run has been
FIRST, REOPENED = "first page", "reopened"  # the page and the link that the session began with; another took its place


def arrive() -> None:
    """A page begins to be drawn."""
    _keep_link()
    st.session_state[HERE] = _page()


def stay() -> None:
    """Draw the page anew where this run is on its way back to the one before.

    A word of the page before (a tick of Play, a click) may reach the server after the switch. It names its own page,
    and Streamlit follows it there: away from what is on screen, with that page's controls forgotten.
    """
    here, context = st.session_state.get(HERE), get_script_run_ctx()
    if context and here not in (None, context.page_script_hash):
        raise RerunException(RerunData(query_string=context.query_string, page_script_hash=here))


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


def _page() -> str | None:
    context = get_script_run_ctx()
    return context.page_script_hash if context else None
