"""Numbers and sections of the Sizing page as HTML: one element each, quick to send and to draw. All of it inert."""

from __future__ import annotations

import html
from collections.abc import Mapping

CSS = (
    ".gptviz-numbers.gptviz-numbers{display:flex;flex-wrap:wrap;gap:16px 24px;margin:0;padding:0}"
    ".gptviz-numbers div{display:flex;flex-direction:column}"
    ".gptviz-numbers.gptviz-numbers dt{font-size:14px;line-height:20px;font-weight:400;margin:0}"
    ".gptviz-numbers.gptviz-numbers dd{margin:0}"
    ".gptviz-numbers dd.number{font-size:20px;line-height:28px;font-weight:600;font-variant-numeric:tabular-nums}"
    ".gptviz-numbers dd.meaning{font-size:12px;line-height:16px;opacity:.75}"
    ".gptviz-section h3{font-size:1.125rem;font-weight:600;line-height:1.4;margin:0;padding:8px 0 4px}"
    ".gptviz-section p{font-size:14px;line-height:20px;margin:0 0 8px;opacity:.75}"
)


def numbers(named: Mapping[str, tuple[str, str]]) -> str:
    """label -> number and meaning, side by side."""
    return f"<style>{CSS}</style><dl class='gptviz-numbers'>{''.join(_number(*one) for one in named.items())}</dl>"


def _number(label: str, said: tuple[str, str]) -> str:
    number, meaning = map(html.escape, said)
    return f'<div><dt>{html.escape(label)}</dt><dd class="number">{number}</dd><dd class="meaning">{meaning}</dd></div>'


def section(title: str, *sentences: str, table: str = "") -> str:
    """A heading, what is to be seen, and a table that is HTML already."""
    lines = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)
    return f"<style>{CSS}</style><div class='gptviz-section'><h3>{html.escape(title)}</h3>{lines}{table}</div>"
