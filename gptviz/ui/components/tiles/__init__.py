"""Many small pictures at once: every head of every layer, or the stages of a forward pass."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from gptviz.ui.components.events import keep, take

HERE = Path(__file__).parent
MASKED = 255  # a pixel that is left out, not drawn as zero
FULL = 254  # a pixel in the ramp's last colour

_mount = st.components.v2.component(
    "gptviz_tiles",
    css=(HERE / "tiles.css").read_text(encoding="utf-8"),
    js=(HERE / "tiles.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True, eq=False)
class Tile:
    """One picture. pixels (h, w) uint8: 0 is the ramp's first colour, FULL its last, MASKED is left out.

    title and hover are read on hover and aloud; label and detail are lines under the picture.
    Larger than `tile_size` a picture is scaled down: pool it first, by maximum, so that a lone bright cell survives.
    """

    id: str
    title: str
    pixels: np.ndarray
    ramp: str
    hover: str = ""
    detail: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.pixels, np.ndarray) or self.pixels.dtype != np.uint8:
            raise TypeError(f"tile {self.id!r}: pixels must be a numpy uint8 array; scale to 0..{FULL} first.")
        if self.pixels.ndim != 2 or self.pixels.size == 0:
            raise ValueError(f"tile {self.id!r}: pixels must be (h, w) and not empty, not {self.pixels.shape}.")


@dataclass(frozen=True)
class Row:
    """Tiles side by side, such as the heads of a layer."""

    title: str
    caption: str
    tiles: Sequence[Tile]


def tiles(
    rows: Sequence[Row],
    *,
    ramps: Mapping[str, tuple[str, ...]],
    selected: str | None,
    key: str,
    tile_size: int = 96,
    arrows_pick: bool = True,
    on_pick: Callable[[str], None] | None = None,
    alt: str = "",
) -> str | None:
    """Draw the rows; returns the id picked since the last run, once.

    ramps: name -> "#rrggbb" from background to full. selected: the outlined tile, for the page to set from the pick.
    arrows_pick: arrow keys pick the tile they reach; otherwise they only move the focus, and Enter picks.
    alt: what the grid as a whole is, for those who cannot see it.
    """
    settled = f"{key}.settled"  # when the last pick that Python has seen was made, by the browser's clock

    def picked(pick: dict[str, Any]) -> None:
        st.session_state[settled] = pick["at"]
        if on_pick is not None:
            on_pick(pick["id"])

    options = {
        "key": key,
        "size": tile_size,
        "arrows": arrows_pick,
        "alt": alt,
        "settled": st.session_state.get(settled),
    }
    data = encode(rows, ramps, selected, options)
    _mount(key=key, data=data, on_pick_change=keep(key, "pick", picked))
    pick = take(key, "pick")
    return pick and pick["id"]


def encode(
    rows: Sequence[Row],
    ramps: Mapping[str, tuple[str, ...]],
    selected: str | None,
    options: Mapping[str, Any],
) -> bytes:
    """The header's length (little-endian u32), the header (JSON), then the pixels of every tile in order."""
    _check([tile for row in rows for tile in row.tiles], ramps)
    header = {**options, "selected": selected, "ramps": ramps, "rows": [_describe(row) for row in rows]}
    text = json.dumps(header, separators=(",", ":")).encode()
    pixels = [tile.pixels.tobytes() for row in rows for tile in row.tiles]
    return b"".join([struct.pack("<I", len(text)), text, *pixels])


def _check(every: Sequence[Tile], ramps: Mapping[str, tuple[str, ...]]) -> None:
    if len({tile.id for tile in every}) != len(every):
        raise ValueError("two tiles have the same id.")
    if unknown := {tile.ramp for tile in every} - set(ramps):
        raise ValueError(f"no colours for the ramp {min(unknown)!r}; there are {sorted(ramps)}.")
    for name, colours in ramps.items():
        if not colours or not all(re.fullmatch("#[0-9a-fA-F]{6}", colour) for colour in colours):
            raise ValueError(f"ramp {name!r}: colours are written #rrggbb, not {colours}.")


def _describe(row: Row) -> dict[str, Any]:
    return {"title": row.title, "caption": row.caption, "tiles": [_describe_tile(tile) for tile in row.tiles]}


def _describe_tile(tile: Tile) -> dict[str, Any]:
    height, width = tile.pixels.shape
    words = {"title": tile.title, "hover": tile.hover, "detail": tile.detail, "label": tile.label}
    return {"id": tile.id, "ramp": tile.ramp, "height": height, "width": width, **words}
