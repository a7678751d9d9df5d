"""Shows what is to come, frame by frame, without asking Python; then tells how many frames it has shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import streamlit as st

HERE = Path(__file__).parent

_mount = st.components.v2.component("gptviz_player", js=(HERE / "player.js").read_text(encoding="utf-8"))


class Frame(NamedTuple):
    """One more token: its chip at the end of the prompt's, and what the page says and its plots show then."""

    label: str
    hover: str
    classes: str
    length: str  # how long the text is, in words
    pictures: Mapping[str, bytes]  # key of a plot -> the text that `plot` sends


def player(
    frames: Sequence[Frame | None],
    *,
    drawing: int,
    key: str,
    pace: float,
    address: str,
    on_shown: Callable[[], None],
) -> None:
    """Show the frames, at most `pace` a second; None shows nothing and takes no time.

    drawing: a number that no other has had. address: how the page's address names all that has been generated once
    they are shown, for one who reloads; empty where it names nothing. on_shown is called once for each drawing, when
    all frames have been shown, or fewer where a key or a click came in between. It should see to it that the page is
    drawn as the last of those, and this again.
    """
    plain = [frame and _plain(frame) for frame in frames]
    spec = {"drawing": drawing, "pace": pace, "address": address, "frames": plain}
    _mount(key=key, data=orjson.dumps(spec), on_shown_change=on_shown)


def shown(key: str, drawing: int) -> int:
    """How many frames of that drawing have been shown, as far as the browser has told."""
    said = (st.session_state.get(key) or {}).get("shown")  # nothing where another page has taken this one's place
    return max(0, int(said["frames"])) if said and said["drawing"] == drawing else 0


def _plain(frame: Frame) -> dict[str, Any]:
    return {**frame._asdict(), "pictures": {plot: text.decode() for plot, text in frame.pictures.items()}}
