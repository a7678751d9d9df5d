"""What the next pick of a tile would draw, sent ahead: a chart that follows it is redrawn without asking Python."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import streamlit as st

HERE = Path(__file__).parent
MOST = 160_000  # bytes: what is beyond is not sent ahead

_mount = st.components.v2.component("gptviz_ahead", js=(HERE / "ahead.js").read_text(encoding="utf-8"))


def fitting(nbytes: int) -> int:
    """How many arrays of so many bytes are sent ahead: none of long prompts."""
    return MOST * 3 // 4 // max(1, nbytes)  # base64 adds a third


def ahead(values: Mapping[str, np.ndarray], alts: Mapping[str, str], *, key: str, tiles: str, plot: str) -> None:
    """values: tile id -> what `z` of the plot's first trace becomes when it is picked, in the order of their use.

    alts: tile id -> the plot's `alt` then. All else in the figure must be the same for every id. tiles, plot: the keys
    of those components. The same values again cost nothing: Streamlit sends a message that the browser has only once.
    """
    entries, size = {}, 0
    for id, z in values.items():
        text = base64.b64encode(np.ascontiguousarray(z).tobytes()).decode()
        size += len(text)
        if size > MOST:
            break
        entries[id] = {"z": text, "alt": alts[id]}
    _mount(key=key, data=json.dumps({"tiles": tiles, "plot": plot, "entries": entries}).encode())
