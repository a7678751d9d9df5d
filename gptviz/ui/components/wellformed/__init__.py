"""Keeps typed and pasted text well formed: half of a surrogate pair becomes U+FFFD in the browser.

Streamlit's messages are UTF-8, which cannot hold it: the server would drop the message, and the prompt with it.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "gptviz_wellformed", js=(Path(__file__).parent / "wellformed.js").read_text(encoding="utf-8"), isolate_styles=False
)


def keep_text_well_formed() -> None:
    """Put the guard on the page; it shows nothing."""
    _mount(key="wellformed", height=1)
