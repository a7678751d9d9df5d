"""Events from the browser, each handed over exactly once.

Streamlit gives a trigger value to one run only, and a newer event may stop that run before it reaches the
component. Its callback comes before all that is drawn: the value waits in the session until the component is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st


def _slot(key: str, event: str) -> str:
    return f"{key}.{event}.waiting"


def keep(key: str, event: str, then: Callable[[Any], None] | None = None) -> Callable[[], None]:
    """The callback to give the component: keeps the event's value for `take` and calls `then` with it."""

    def callback() -> None:
        if key not in st.session_state:  # another page has taken this one's place
            return
        value = st.session_state[key][event]
        st.session_state[_slot(key, event)] = value
        if then is not None:
            then(value)

    return callback


def take(key: str, event: str) -> Any:
    """The waiting value, once; None when nothing happened."""
    return st.session_state.pop(_slot(key, event), None)
