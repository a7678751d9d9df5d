"""Which buttons were pressed, in their order: Streamlit makes one press of several that come before it has answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent
MOST = 50  # presses that one call can stand for
TOLD = "presses"
HEARD = "presses heard"  # in the session

_mount = st.components.v2.component("gptviz_presses", js=(HERE / "presses.js").read_text(encoding="utf-8"))


@dataclass
class Heard:
    """How far the presses were answered."""

    number: int = 0  # of the last one
    answered: set[str] = field(default_factory=set)  # buttons whose own call is still to come


def count_presses(*buttons: str) -> None:
    """Count those of these buttons, named by their keys; draw it once on a page, outside its parts."""
    _mount(key=TOLD, data=json.dumps({"keys": buttons, "most": MOST}).encode())


def presses(button: str) -> Iterator[str]:
    """The buttons that were pressed since the last call, for the callback of one of them: one after another.

    Where several were pressed, the first callback answers for all, and those of the others find nothing to do.
    A press counts when its turn is over: the callback may be cut off, and then the next one makes up for it.
    """
    log = (st.session_state.get(TOLD) or {}).get("log") or []
    heard: Heard = st.session_state.setdefault(HEARD, Heard())
    waiting = [(number, pressed) for number, pressed in log if number > heard.number]
    if waiting:
        heard.answered = set()
        for number, pressed in waiting:
            yield pressed
            heard.number = number
            heard.answered.add(pressed)
    elif button not in heard.answered:  # the browser's word has not come along
        yield button
    heard.answered.discard(button)
