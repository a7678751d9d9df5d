"""Tables as HTML in which every cell is inert text: words to the left, numbers to the right."""

from __future__ import annotations

import html
from collections.abc import Sequence

from gptviz.figures import style
from gptviz.figures.style import Theme


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    theme: Theme,
    indented: Sequence[int] = (),
    strong: Sequence[int] = (),
) -> str:
    """head and rows have the same length; `indented` and `strong` are row numbers."""
    body = "".join(_row(row, _class(at, indented, strong)) for at, row in enumerate(rows))
    titles = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in head)
    return (
        f"<style>{_css(theme)}</style><div class='gptviz-table' tabindex='0'>"
        f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _class(at: int, indented: Sequence[int], strong: Sequence[int]) -> str:
    return " ".join(name for name, rows in (("indented", indented), ("strong", strong)) if at in rows)


def _row(cells: Sequence[str], kind: str) -> str:
    first, *rest = map(html.escape, cells)
    numbers = "".join(f"<td>{cell}</td>" for cell in rest)
    return f'<tr class="{kind}"><th scope="row">{first}</th>{numbers}</tr>'


def _css(theme: Theme) -> str:
    line, muted, text = (style.surface(name, theme) for name in ("line", "muted", "text"))
    return (
        ".gptviz-table{overflow-x:auto}"
        f".gptviz-table table{{border-collapse:collapse;width:100%;font-size:14px;line-height:24px;color:{text}}}"
        f".gptviz-table th,.gptviz-table td{{padding:2px 8px;border-bottom:1px solid {line};font-weight:400}}"
        f".gptviz-table td{{text-align:right;font-family:{style.MONOSPACE};font-size:13px;white-space:nowrap}}"
        f".gptviz-table thead th{{color:{muted};text-align:right;font-size:13px;white-space:nowrap}}"
        ".gptviz-table th:first-child{text-align:left;padding-left:0}"
        ".gptviz-table .indented th:first-child{padding-left:16px}"
        ".gptviz-table .strong th,.gptviz-table .strong td{font-weight:600}"
    )
