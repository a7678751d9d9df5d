"""The prompt as a strip of tokens, as HTML in which every token is inert text."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gptviz.figures import style
from gptviz.figures.style import Theme

Kind = Literal["prompt", "generated", "special"]
ROLE = {"prompt": "token", "generated": "generated", "special": "residual"}


@dataclass(frozen=True)
class Chip:
    """One token. `joined`: it goes on with the word of the chip before it."""

    label: str
    piece: bytes
    id: int
    kind: Kind
    joined: bool

    @property
    def classes(self) -> str:
        return f"chip {self.kind}{' joined' if self.joined else ''}"

    def hover(self, position: int) -> str:
        return f"position {position} · id {self.id} · bytes {self.piece.hex(' ').upper()} · {self.kind} token"


def chips(labels: Sequence[str], pieces: Sequence[bytes], ids: Sequence[int], kinds: Sequence[Kind]) -> list[Chip]:
    """A chip a token; the four sequences are as long as the input."""
    joined = [False] + [
        kinds[i - 1] != "special" and kinds[i] != "special" and _goes_on(pieces[i - 1], pieces[i])
        for i in range(1, len(ids))
    ]
    return [Chip(*chip) for chip in zip(labels, pieces, ids, kinds, joined, strict=True)]


def _goes_on(before: bytes, piece: bytes) -> bool:
    """Inside a word or a character: letters on both sides, or bytes beyond ASCII."""
    return _wordly(before[-1:]) and _wordly(piece[:1])


def _wordly(byte: bytes) -> bool:
    return byte.isalnum() or byte >= b"\x80"


def strip(row: Sequence[Chip], theme: Theme) -> str:
    """The chips in reading order; hover gives position, id and bytes."""
    spans = "".join(_span(position, chip) for position, chip in enumerate(row))
    return f'<style>{_css(theme)}</style><div class="gptviz-chips" role="list" aria-label="tokens">{spans}</div>'


def _span(position: int, chip: Chip) -> str:
    hover = html.escape(chip.hover(position), quote=True)
    return f'<span role="listitem" class="{chip.classes}" title="{hover}">{html.escape(chip.label)}</span>'


def _css(theme: Theme) -> str:
    kinds = "".join(_kind_css(kind, role, theme) for kind, role in ROLE.items())
    text = style.surface("text", theme)
    return (
        ".gptviz-chips{display:flex;flex-wrap:wrap;row-gap:6px;max-height:196px;overflow-y:auto;padding:2px}"
        f".gptviz-chips .chip{{font:13px/20px {style.MONOSPACE};color:{text};padding:1px 5px;margin-left:4px;"
        "border-radius:4px;border:1px solid;border-bottom-width:3px;"
        "white-space:pre;unicode-bidi:isolate;cursor:default}"
        ".gptviz-chips .chip.joined{margin-left:-1px;border-top-left-radius:0;border-bottom-left-radius:0}"
        ".gptviz-chips .chip:has(+.joined){border-top-right-radius:0;border-bottom-right-radius:0}"
        + kinds
        + _linked(text)
    )


def _linked(text: str) -> str:
    """What components/linker makes of the chips: one is chosen, the others are tinted by its attention."""
    return (
        ".gptviz-chips.linked .chip{cursor:pointer}"
        ".gptviz-chips.tinted .chip{background:var(--tint,transparent)}"
        ".gptviz-chips .chip.chosen,.gptviz-chips .chip:focus-visible"
        f"{{outline:2px solid {text};position:relative;z-index:1}}"
    )


def _kind_css(kind: str, role: str, theme: Theme) -> str:
    full, pale = style.colour(role, theme), style.ramp(role, theme)[3]
    line = "dashed" if kind == "special" else "solid"
    return f".gptviz-chips .{kind}{{border-color:{full};border-style:{line};background:{pale}}}"
