"""The roofline: how many operations a second a device can do at so many operations a byte.

Knows no model. Williams et al. 2009: https://doi.org/10.1145/1498765.1498785
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.sizing import UNMEASURED
from gptviz.figures.style import Theme


@dataclass(frozen=True, kw_only=True)
class Point:
    """One workload: intensity (FLOP a byte), speed (FLOP a second), its name and what hover says."""

    name: str
    intensity: float
    speed: float
    hover: str


def roofline(
    points: Sequence[Point], line: Sequence[Point], *, flops: float, bandwidth: float, theme: Theme
) -> go.Figure:
    """points: each with a mark and its name; line: decoding at growing batch sizes. flops and bandwidth a second."""
    ridge = flops / bandwidth
    seen = [point.intensity for point in (*points, *line)]
    low, high = min([*seen, ridge / 10]) / 2, max([*seen, ridge * 10]) * 2
    traces = [_roof(np.array([low, ridge, high]), flops, bandwidth, theme)]
    traces += [_line(line, theme)] if line else []
    marks = zip(points, ("token", "logits"), ("circle", "diamond"), strict=False)
    traces += [_point(point, role, symbol, theme) for point, role, symbol in marks]
    return style.figure(traces, _layout() | {"annotations": [_ridge(ridge, flops)]}, theme)


def _roof(at: np.ndarray, flops: float, bandwidth: float, theme: Theme) -> dict:
    return {
        "type": "scatter",
        "x": at,
        "y": np.minimum(flops, at * bandwidth),
        "mode": "lines",
        "line": {"color": style.surface("text", theme), "width": 2},
        "name": "roof",
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _ridge(ridge: float, flops: float) -> dict:
    words = f"ridge: {style.number(ridge)} FLOP/B"
    return {"x": np.log10(ridge), "y": np.log10(flops), "text": words, "ay": -28, "ax": 0, "arrowwidth": 1}


def _line(points: Sequence[Point], theme: Theme) -> dict:
    return {
        "type": "scatter",
        "x": [point.intensity for point in points],
        "y": [point.speed for point in points],
        "mode": "lines+markers",
        "line": {"color": style.colour("logits", theme), "width": 1, "dash": "dot"},
        "marker": {"size": 6, "symbol": "diamond-open"},
        "name": "decode, larger batches",
        "customdata": [point.hover for point in points],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _point(point: Point, role: str, symbol: str, theme: Theme) -> dict:
    return {
        "type": "scatter",
        "x": [point.intensity],
        "y": [point.speed],
        "mode": "markers",
        "marker": {"size": 14, "symbol": symbol, "color": style.colour(role, theme)},
        "name": point.name,
        "customdata": [point.hover],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _layout() -> dict:
    axis = {"type": "log", "dtick": 1, "showline": True, "exponentformat": "SI", **UNMEASURED}
    return {
        "height": 380,
        "margin": {"l": 80, "r": 24, "t": 56, "b": 48},
        "xaxis": {**axis, "title": {"text": "intensity, FLOP a byte"}},
        "yaxis": {**axis, "title": {"text": "FLOP/s at best"}},
    }
