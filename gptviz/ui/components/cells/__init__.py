"""A table of tokens on coloured cells, of which one is chosen: its names stay in view as it scrolls."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from gptviz.ui.components.events import keep, take

HERE = Path(__file__).parent

_mount = st.components.v2.component(
    "gptviz_cells",
    css=(HERE / "cells.css").read_text(encoding="utf-8"),
    js=(HERE / "cells.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True, eq=False)
class Table:
    """text and values are (rows, columns) of strings: what a cell shows, and the number that hover gives with it.

    levels (rows, columns): the index of each cell's colour among `colours`, which run from the least to the most.
    measure says what the numbers are, low and high what the first and the last colour stand for.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    text: Sequence[Sequence[str]]
    values: Sequence[Sequence[str]]
    levels: np.ndarray
    colours: Sequence[str]
    measure: str
    low: str
    high: str

    def __post_init__(self) -> None:
        shape = len(self.rows), len(self.columns)
        for name in ("text", "values"):
            given = getattr(self, name)
            if len(given) != shape[0] or any(len(row) != shape[1] for row in given):
                raise ValueError(f"{name} must have {shape[0]} rows of {shape[1]} cells.")
        if self.levels.shape != shape or not np.issubdtype(self.levels.dtype, np.integer):
            raise ValueError(
                f"levels must be whole numbers of shape {shape}, not {self.levels.dtype} {self.levels.shape}."
            )
        if self.levels.size and not 0 <= self.levels.min() <= self.levels.max() < len(self.colours):
            raise ValueError(
                f"levels index {len(self.colours)} colours: {self.levels.min()} to {self.levels.max()} do not."
            )


def cells(
    table: Table,
    *,
    selected: tuple[int, int],
    key: str,
    height: int = 480,
    on_pick: Callable[[int, int], None] | None = None,
    alt: str = "",
) -> tuple[int, int] | None:
    """Draw the table; returns the cell (row, column) picked since the last run, once, by a click or the arrow keys.

    selected: the framed cell, for the page to set from the pick. height: beyond it the table scrolls.
    alt: what the table is, for those who cannot see it.
    """
    settled = f"{key}.settled"  # when the last pick that Python has seen was made, by the browser's clock

    def picked(pick: dict[str, Any]) -> None:
        st.session_state[settled] = pick["at"]
        if on_pick is not None:
            on_pick(int(pick["row"]), int(pick["column"]))

    options = {"selected": selected, "height": height, "alt": alt, "settled": st.session_state.get(settled)}
    _mount(key=key, data=encode(table, options), on_pick_change=keep(key, "pick", picked))
    pick = take(key, "pick")
    return pick and (int(pick["row"]), int(pick["column"]))


def encode(table: Table, options: dict[str, Any]) -> bytes:
    """One JSON document."""
    given = {name: value for name, value in vars(table).items() if name != "levels"}
    document = {**options, **given, "levels": table.levels.tolist()}
    return json.dumps(document, separators=(",", ":")).encode()
