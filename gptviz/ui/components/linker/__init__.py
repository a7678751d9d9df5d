"""Tokens in two columns, joined by the attention between them: hover shows one token's lines, a click pins it.

All of it happens in the browser: nothing is reported to Python. The prompt's chips are tinted along.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

HERE = Path(__file__).parent
FULL = 65535  # a weight of 1; 16 bits, so that the two digits that are written are right

_mount = st.components.v2.component(
    "gptviz_linker",
    css=(HERE / "linker.css").read_text(encoding="utf-8"),
    js=(HERE / "linker.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True)
class Links:
    """The attention of some heads over the same tokens, ready to send: see `pack`."""

    heads: tuple[int, ...]
    tokens: int
    triangle: bool  # rows end at the diagonal: the future is not sent
    data: bytes


def pack(patterns: np.ndarray, heads: Sequence[int], *, causal: bool) -> Links:
    """patterns (H, T query, T key) in 0..1, of the heads with these numbers."""
    if patterns.ndim != 3 or patterns.shape[0] != len(heads) or patterns.shape[1] != patterns.shape[2]:
        raise ValueError(f"patterns must be ({len(heads)}, T, T), not {patterns.shape}.")
    levels = np.rint(np.clip(patterns, 0, 1) * FULL).astype("<u2")
    rows = levels[:, np.tri(patterns.shape[1], dtype=bool)] if causal else levels
    return Links(tuple(heads), patterns.shape[1], causal, rows.tobytes())


def linker(
    links: Links,
    labels: Sequence[str],
    *,
    chosen: int,
    colours: Sequence[str],
    cut: float,
    faint: float | None,
    key: str,
    alt: str = "",
) -> None:
    """Draw the columns. chosen: the head that is shown first; colours: "#rrggbb" for each of links.heads.

    cut: weights below have neither line nor number. faint: those from here up are drawn while no token is chosen; None
    draws none of them. alt: what is drawn, for those who cannot see it.
    """
    options = {"chosen": chosen, "colours": list(colours), "cut": cut, "faint": faint, "alt": alt}
    _mount(key=key, data=encode(links, labels, options))


def encode(links: Links, labels: Sequence[str], options: dict[str, Any]) -> bytes:
    """The header's length (little-endian u32), the header (JSON), then the weights, row by row, head by head."""
    _check(links, labels, options)
    header = {**options, "heads": links.heads, "triangle": links.triangle, "labels": list(labels)}
    text = json.dumps(header, separators=(",", ":")).encode()
    return b"".join([struct.pack("<I", len(text)), text, links.data])


def _check(links: Links, labels: Sequence[str], options: dict[str, Any]) -> None:
    if len(labels) != links.tokens:
        raise ValueError(f"{len(labels)} labels for {links.tokens} tokens.")
    if options["chosen"] not in links.heads:
        raise ValueError(f"head {options['chosen']} is not among those sent, {links.heads}.")
    if len(options["colours"]) != len(links.heads):
        raise ValueError(f"{len(options['colours'])} colours for {len(links.heads)} heads.")
    if not all(re.fullmatch("#[0-9a-fA-F]{6}", colour) for colour in options["colours"]):
        raise ValueError(f"colours are written #rrggbb, not {options['colours']}.")
