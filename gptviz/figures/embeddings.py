"""Embeddings as pictures: token rows, position rows and their sum; a token's nearest neighbours.

Knows nothing of how the numbers came about. A row a token, row 0 on top.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme

PANEL, GAP = 312, 40  # pixels: the width of a panel, and the room between two


def vector_panels(
    panels: dict[str, np.ndarray],
    labels: Sequence[str],
    *,
    theme: Theme,
    first: int = 0,
    signs: Sequence[str] = ("+", "="),
) -> go.Figure:
    """Vectors side by side on one scale, `signs` between them. panels: title -> (T, D), dimensions from `first` on."""
    values = [np.asarray(panel, dtype=np.float32) for panel in panels.values()]
    width = len(values) * PANEL + (len(values) - 1) * GAP
    traces = [_panel(at, panel, first) for at, panel in enumerate(values)]
    axes = {name: axis for at in range(len(values)) for name, axis in _axes(at, width, labels, values[at], first)}
    titles = [_title(text, at, width) for at, text in enumerate(panels)]
    between = [_sign(sign, at, width, theme) for at, sign in zip(range(len(values) - 1), signs, strict=False)]
    rows = matrix.Axis(labels=labels, title="token")
    left = rows.width() + 56
    layout = {
        "width": width + left + 104,
        "height": int(np.clip(20 * len(labels), 96, 560)) + 88,
        "margin": {"l": left, "r": 104, "t": 40, "b": 48},
        "annotations": titles + between,
        "coloraxis": _colours(values, theme),
        **axes,
    }
    return style.figure(traces, layout, theme)


def _panel(at: int, values: np.ndarray, first: int) -> dict[str, Any]:
    suffix = str(at + 1) if at else ""
    return {
        "type": "heatmap",
        "z": values,
        "x": np.arange(first, first + values.shape[1], dtype=np.uint16),
        "y": np.arange(len(values), dtype=np.uint16),
        "xaxis": f"x{suffix}",
        "yaxis": f"y{suffix}",
        "coloraxis": "coloraxis",
        "zhoverformat": ".3~g",
        "hovertemplate": "‘%{y}’ (%{y:d}), dimension %{x}: %{z}<extra></extra>",
    }


def _axes(
    at: int, width: int, labels: Sequence[str], values: np.ndarray, first: int
) -> list[tuple[str, dict[str, Any]]]:
    suffix = str(at + 1) if at else ""
    start, end = _span(at, width)
    positions = [str(row) for row in range(len(labels))]
    x = {
        "domain": [start, end],
        "anchor": f"y{suffix}",
        "title": {"text": "dimension"},
        "range": [first - 0.5, first + values.shape[1] - 0.5],
        "nticks": 8,
        "showline": True,
        "mirror": True,
    }
    y = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": positions,
        "labelalias": dict(zip(positions, matrix.Axis(labels=labels, title="").shown(), strict=True)),
        "range": [len(labels) - 0.5, -0.5],
        "anchor": f"x{suffix}",
        "showticklabels": at == 0,
        "showline": True,
        "mirror": True,
        "tickfont": {"family": style.MONOSPACE, "size": 11},
        "ticklabelstandoff": 4,
        **({"matches": "y"} if at else {"title": {"text": "token"}}),
    }
    return [(f"xaxis{suffix}", x), (f"yaxis{suffix}", y)]


def _span(at: int, width: int) -> tuple[float, float]:
    start = at * (PANEL + GAP)
    return start / width, min(1, (start + PANEL) / width)


def _title(text: str, at: int, width: int) -> dict[str, Any]:
    start, _ = _span(at, width)
    where = {"x": start, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {"text": style.literal(text), "showarrow": False, "yshift": 4, "font": {"size": 13}, **where}


def _sign(sign: str, at: int, width: int, theme: Theme) -> dict[str, Any]:
    middle = (_span(at, width)[1] + _span(at + 1, width)[0]) / 2
    font = {"size": 22, "color": style.surface("muted", theme)}
    return {"text": sign, "showarrow": False, "font": font, "x": middle, "y": 0.5, "xref": "paper", "yref": "paper"}


def _colours(values: Sequence[np.ndarray], theme: Theme) -> dict[str, Any]:
    """One scale for all panels, so that what is added can be compared."""
    high = max(matrix.peak(np.abs(panel)) for panel in values)
    ticks = np.linspace(-high, high, 5)
    return {
        "colorscale": style.colorscale(style.diverging(theme)),
        "cmin": -high,
        "cmax": high,
        "colorbar": {
            "thickness": 12,
            "outlinewidth": 0,
            "len": 1,
            "ypad": 0,
            "xpad": 16,
            "tickvals": ticks.tolist(),
            "ticktext": [f"{style.number(float(value))}\u00a0\u00a0" for value in ticks],
            "tickfont": {"size": 11},
            "title": {
                "text": f"value, {style.number(-high)} to {style.number(high)}",
                "side": "right",
                "font": {"size": 12},
            },
        },
    }


def neighbour_bars(labels: Sequence[str], cosine: np.ndarray, norms: np.ndarray, *, theme: Theme) -> go.Figure:
    """A bar a token, the nearest on top: cosine (K,) as its length, the norm (K,) of its vector beside it."""
    shown = [style.literal(style.shortened(label)) for label in labels]
    numbers = [style.number(float(value)) for value in cosine]
    lengths = [style.number(float(value)) for value in norms]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": np.asarray(cosine, dtype=np.float32),
        "y": np.arange(len(shown), dtype=np.uint8),
        "text": [f"{value}   ‖{length}‖" for value, length in zip(numbers, lengths, strict=True)],
        "textposition": "outside",
        "textfont": {"family": style.MONOSPACE, "size": 12},
        "cliponaxis": False,
        "customdata": [list(row) for row in zip(shown, numbers, lengths, strict=True)],
        "hovertemplate": "‘%{customdata[0]}’: cosine %{customdata[1]}, norm %{customdata[2]}<extra></extra>",
        "marker": {"color": style.colour("token", theme)},
    }
    return style.figure([bars], _bar_layout(shown, "cosine   ‖norm of the vector‖"), theme)


def _bar_layout(shown: Sequence[str], title: str) -> dict[str, Any]:
    return {
        "height": 24 * max(1, len(shown)) + 80,
        "margin": {"l": 7 * max(map(len, shown), default=1) + 24, "r": 120, "t": 16, "b": 48},
        "bargap": 0.25,
        "showlegend": False,
        "xaxis": {"title": {"text": title}, "rangemode": "tozero", "nticks": 5, "showline": True},
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(range(len(shown))),
            "ticktext": list(shown),
            "ticklabelstandoff": 4,
            "tickfont": {"family": style.MONOSPACE, "size": 12},
        },
    }
