"""Positional encodings as pictures: a table, its similarities, one rotation, ALiBi's lines.

Knows nothing of how the numbers came about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme

MOST_CELLS = 128  # a side; a larger table is drawn with cells left out between, never averaged


def thinned(length: int, most: int = MOST_CELLS) -> np.ndarray:
    """At most `most` of 0 .. length - 1, the same step between all: (n,)."""
    return np.arange(0, length, max(1, -(-length // most)))


def position_table(
    values: np.ndarray, *, theme: Theme, columns: str, unit: str, highlighted: int | None = None
) -> go.Figure:
    """One row a position, row 0 on top. values (P, n), thinned where it is large; columns: what a column is called.

    highlighted: how many positions the prompt takes, marked by a line below the last.
    """
    down, across = thinned(values.shape[0]), thinned(values.shape[1])
    drawn = matrix.blanked(values[np.ix_(down, across)], None)
    x, y = _numbered(across, columns), _numbered(down, "position")
    scale = matrix.centred(drawn, style.diverging(theme), unit)
    hover = f"position %{{y}}, {columns} %{{x}}: %{{z}}"
    figure = matrix.draw(drawn, x, y, scale, theme=theme, hover=hover, blank="none", square=False, cell=4)
    if highlighted is not None and highlighted < len(values):
        step = down[1] - down[0] if len(down) > 1 else 1
        figure.update_layout(shapes=[_line_below(highlighted / step, theme)])
    return figure


def similarity_matrix(values: np.ndarray, *, theme: Theme, title: str) -> go.Figure:
    """How alike two positions are: values (P, P), -1 to 1, thinned where it is large."""
    at = thinned(len(values), 96)
    drawn = matrix.blanked(values[np.ix_(at, at)], None)
    x, y = _numbered(at, "position"), _numbered(at, "position")
    scale = matrix.Scale(colours=style.diverging(theme), low=-1, high=1, title=f"{title}, −1 to 1")
    hover = "positions %{y} and %{x}: %{z}"
    return matrix.draw(drawn, x, y, scale, theme=theme, hover=hover, blank="none", cell=4)


def _numbered(at: np.ndarray, title: str) -> matrix.Axis:
    return matrix.Axis(labels=[str(number) for number in at], title=title)


def _line_below(row: float, theme: Theme) -> dict[str, Any]:
    line = {"color": style.surface("text", theme), "width": 1, "dash": "dot"}
    edges = {"x0": 0, "x1": 1, "xref": "x domain", "y0": row - 0.5, "y1": row - 0.5}
    return {"type": "line", "line": line, **edges}


@dataclass(frozen=True)
class Arrow:
    """One pair of dimensions before and after its turn, (2,) each; the angle in radians."""

    name: str
    before: np.ndarray
    after: np.ndarray
    angle: float
    role: str


def rotation_plane(arrows: Sequence[Arrow], *, theme: Theme, dimensions: tuple[int, int]) -> go.Figure:
    """Pairs as arrows in their plane: dotted before, solid after the turn, an arc from one to the other."""
    reach = 1.15 * max(float(np.hypot(*arrow.before)) for arrow in arrows) or 1.0
    traces = [trace for at, arrow in enumerate(arrows) for trace in _turn(arrow, theme, 0.45 + 0.2 * at)]
    axis = {"range": [-reach, reach], "zeroline": True, "zerolinecolor": style.surface("line", theme), "nticks": 5}
    layout = {
        "height": 440,
        "margin": {"l": 64, "r": 24, "t": 64, "b": 48},
        "xaxis": {**axis, "title": {"text": f"dimension {dimensions[0]}"}, "constrain": "domain"},
        "yaxis": {**axis, "title": {"text": f"dimension {dimensions[1]}"}, "scaleanchor": "x", "constrain": "domain"},
        "showlegend": True,
    }
    return style.figure(traces, layout, theme)


def _turn(arrow: Arrow, theme: Theme, inside: float) -> list[dict[str, Any]]:
    name, degrees = style.literal(arrow.name), style.number(float(np.degrees(arrow.angle)))
    start = float(np.arctan2(arrow.before[1], arrow.before[0]))
    # The remainder of whole turns: an arc of more than one would cover itself.
    swept = start + np.linspace(0, arrow.angle % (2 * np.pi), 64)
    arc = inside * float(np.hypot(*arrow.before)) * np.stack([np.cos(swept), np.sin(swept)])
    line = {"color": style.colour(arrow.role, theme)}
    return [
        _vector(arrow.before, f"{name} before", {**line, "width": 2, "dash": "dot"}),
        _vector(arrow.after, f"{name} after", {**line, "width": 3}),
        {
            "type": "scatter",
            "mode": "lines",
            "x": arc[0].astype(np.float32),
            "y": arc[1].astype(np.float32),
            "line": {**line, "width": 1},
            "hovertemplate": f"{name} turned by {degrees}°<extra></extra>",
            "showlegend": False,
        },
    ]


def _vector(end: np.ndarray, name: str, line: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": np.array([0, end[0]], np.float32),
        "y": np.array([0, end[1]], np.float32),
        "line": line,
        "marker": {"symbol": "arrow", "angleref": "previous", "size": [0, 14], "color": line["color"]},
        "hovertemplate": f"{name}: (%{{x:.3~g}}, %{{y:.3~g}})<extra></extra>",
    }


MOST_LINES = 16  # labels of more would run into each other


def alibi_lines(slopes: np.ndarray, bias: np.ndarray, *, theme: Theme) -> go.Figure:
    """What is added to a score at each distance, a line a head. slopes (H,), bias (H, P); dashes tell neighbours apart."""
    colours, dashes = style.head_colours(len(slopes)), ("solid", "dash", "dot", "dashdot")
    heads = np.arange(len(slopes)) if len(slopes) <= MOST_LINES else thinned(len(slopes), MOST_LINES)
    distance = np.arange(bias.shape[1], dtype=np.float32)
    traces = [
        {
            "type": "scatter",
            "mode": "lines" if bias.shape[1] > 1 else "markers",
            "name": f"head {head}: m = {style.number(float(slopes[head]))}",
            "x": distance,
            "y": bias[head].astype(np.float32),
            "line": {"color": colours[head], "width": 2, "dash": dashes[head % len(dashes)]},
            "hovertemplate": f"head {head}, %{{x}} tokens away: %{{y:.3~g}}<extra></extra>",
        }
        for head in heads.tolist()
    ]
    layout = {
        "height": 400,
        "margin": {"l": 64, "r": 24, "t": 64, "b": 48},
        "xaxis": {"title": {"text": "distance |i − j| (tokens)"}, "showline": True},
        "yaxis": {"title": {"text": "added to the score"}, "showline": True},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "showlegend": True,
    }
    return style.figure(traces, layout, theme)
