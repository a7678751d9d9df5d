"""Embeddings as pictures: token rows, position rows and their sum; a token's nearest neighbours.

Knows nothing of how the numbers came about. A row a token, row 0 on top.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.bars import token_bars
from gptviz.figures.style import Theme

PANEL, GAP = 200, 32  # pixels: the width of a panel, and the room between two


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
    spans, width = _spans(len(values))
    traces = [_panel(at, panel, first) for at, panel in enumerate(values)]
    axes = {name: axis for at in range(len(values)) for name, axis in _axes(at, spans[at], labels, values[at], first)}
    titles = [_title(text, spans[at][0]) for at, text in enumerate(panels)]
    between = [
        _sign(sign, (left[1] + right[0]) / 2, theme)
        for sign, (left, right) in zip(signs, itertools.pairwise(spans), strict=False)
    ]
    left = matrix.Axis(labels=labels, title="token").width() + 40
    layout = {
        "width": width + left + 88,
        "height": int(np.clip(20 * len(labels), 96, 560)) + 88,
        "margin": {"l": left, "r": 88, "t": 40, "b": 48},
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
    at: int, span: tuple[float, float], labels: Sequence[str], values: np.ndarray, first: int
) -> list[tuple[str, dict[str, Any]]]:
    suffix = str(at + 1) if at else ""
    positions = [str(row) for row in range(len(labels))]
    x = {
        "domain": list(span),
        "anchor": f"y{suffix}",
        "title": {"text": "dimension"},
        "range": [first - 0.5, first + values.shape[1] - 0.5],
        "nticks": 5,
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


def _spans(count: int) -> tuple[list[tuple[float, float]], int]:
    """Where each panel begins and ends, as shares of the width, and the width in pixels. One alone is wider."""
    panel = PANEL if count > 1 else 2 * PANEL
    width = count * (panel + GAP) - GAP
    starts = [at * (panel + GAP) for at in range(count)]
    return [(start / width, (start + panel) / width) for start in starts], width


def _title(text: str, start: float) -> dict[str, Any]:
    where = {"x": start, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {"text": style.literal(text), "showarrow": False, "yshift": 4, "font": {"size": 13}, **where}


def _sign(sign: str, middle: float, theme: Theme) -> dict[str, Any]:
    font = {"size": 18, "color": style.surface("muted", theme)}
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
    numbers = [(style.number(float(a)), style.number(float(b))) for a, b in zip(cosine, norms, strict=True)]
    return token_bars(
        labels,
        cosine,
        theme=theme,
        texts=[f"{alike}   ‖{length}‖" for alike, length in numbers],
        hovers=[f"cosine {alike}, norm {length}" for alike, length in numbers],
        colours=style.colour("token", theme),
        axis={"title": {"text": "cosine   ‖norm of the vector‖"}, "rangemode": "tozero"},
    )
