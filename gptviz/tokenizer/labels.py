"""How a token's bytes are shown to a person."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence


def label(piece: bytes) -> str:
    """One token's bytes as readable text: b" a\\n" -> "·a⏎", b"\\xf0\\x9f" -> "F0 9F"."""
    text = piece.decode("utf-8", "surrogateescape")  # a byte that is no UTF-8 becomes U+DC80 + byte - 128
    runs: Sequence[str] = re.findall(r"[\udc80-\udcff]+|[^\udc80-\udcff]+", text)
    return " ".join(_hexadecimal(run) if "\udc80" <= run[0] <= "\udcff" else _visible(run) for run in runs)


def _hexadecimal(run: str) -> str:
    return " ".join(f"{ord(char) - 0xDC00:02X}" for char in run)


_SIGNS = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍", "\x7f": "␡"}


def _visible(run: str) -> str:
    shown = "".join(_sign(char) for char in run)
    return "◌" + shown if unicodedata.combining(run[0]) else shown


def _sign(char: str) -> str:
    if char in _SIGNS:
        return _SIGNS[char]
    if ord(char) < 0x20:
        return chr(0x2400 + ord(char))  # the control pictures
    unseen = unicodedata.category(char) in {"Cc", "Cf", "Cn", "Co", "Zs", "Zl", "Zp"}
    return f"U+{ord(char):04X}" if unseen else char
