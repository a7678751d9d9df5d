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
SIDE = 256  # pixels of the pictures that stand side by side


def thinned(length: int, most: int = MOST_CELLS) -> np.ndarray:
    """At most `most` of 0 .. length - 1, the same step between all: (n,)."""
    return np.arange(0, length, max(1, -(-length // most)))


def in_pairs(length: int, most: int = MOST_CELLS) -> np.ndarray:
    """Like `thinned`, but of pairs of neighbours, such as a sine and its cosine: (n,)."""
    if length <= most:
        return np.arange(length)
    firsts = 2 * thinned(-(-length // 2), most // 2)
    pairs = np.stack([firsts, firsts + 1], axis=1).ravel()
    return pairs[pairs < length]


def position_table(values: np.ndarray, *, theme: Theme, columns: str, unit: str, first: int = 0) -> go.Figure:
    """A row a position, row 0 on top. values (P, n), positions from `first` on; columns: what a column is called.

    Columns are thinned where there are many. Rows must not be: a fast wave would pass for a slow one.
    """
    across = in_pairs(values.shape[1])
    drawn = matrix.blanked(values[:, across], None)
    x, y = _numbered(across, columns), _numbered(np.arange(first, first + len(values)), "position")
    scale = matrix.centred(drawn, style.diverging(theme), unit)
    hover = f"position %{{y}}, {columns} %{{x}}: %{{z}}"
    cell = max(1, SIDE // len(values))
    return matrix.draw(drawn, x, y, scale, theme=theme, hover=hover, blank="none", square=False, cell=cell)


def similarity_matrix(values: np.ndarray, *, theme: Theme, title: str) -> go.Figure:
    """How alike two positions are: values (P, P), -1 to 1, thinned where it is large."""
    at = thinned(len(values), MOST_CELLS // 2)
    drawn = matrix.blanked(values[np.ix_(at, at)], None)
    x, y = _numbered(at, "position"), _numbered(at, "position")
    scale = matrix.Scale(colours=style.diverging(theme), low=-1, high=1, title=f"{title}, −1 to 1")
    hover = "positions %{y} and %{x}: %{z}"
    return matrix.draw(drawn, x, y, scale, theme=theme, hover=hover, blank="none", cell=max(1, SIDE // len(at)))


def _numbered(at: np.ndarray, title: str) -> matrix.Axis:
    return matrix.Axis(labels=[str(number) for number in at], title=title)


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
    longest = max(float(np.hypot(*arrow.before)) for arrow in arrows) or 1.0
    traces = [trace for at, arrow in enumerate(arrows) for trace in _turn(arrow, theme, (0.3 + 0.1 * at) * longest)]
    reach = 1.15 * longest
    axis = {"range": [-reach, reach], "zeroline": True, "zerolinecolor": style.surface("line", theme), "nticks": 5}
    layout = {
        "height": 440,
        "margin": {"l": 64, "r": 24, "t": 64, "b": 48},
        "xaxis": {**axis, "title": {"text": f"dimension {dimensions[0]}"}, "constrain": "domain"},
        "yaxis": {**axis, "title": {"text": f"dimension {dimensions[1]}"}, "scaleanchor": "x", "constrain": "domain"},
        "showlegend": True,
    }
    return style.figure(traces, layout, theme)


def _turn(arrow: Arrow, theme: Theme, radius: float) -> list[dict[str, Any]]:
    name, degrees = style.literal(arrow.name), style.number(float(np.degrees(arrow.angle)))
    start = float(np.arctan2(arrow.before[1], arrow.before[0]))
    # The remainder of whole turns: an arc of more than one would cover itself.
    swept = start + np.linspace(0, arrow.angle % (2 * np.pi), 64)
    arc = radius * np.stack([np.cos(swept), np.sin(swept)])
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
        "marker": {
            "symbol": "arrow",
            "angleref": "previous",
            "size": [0, 14],
            "opacity": 1,  # markers of several sizes would be see-through
            "color": line["color"],
            "line": {"width": 0},
        },
        "hovertemplate": f"{name}: (%{{x:.3~g}}, %{{y:.3~g}})<extra></extra>",
    }


MOST_LINES = 16  # labels of more would run into each other


def alibi_lines(slopes: np.ndarray, bias: np.ndarray, *, theme: Theme) -> go.Figure:
    """What is added to a score by distance, a line a head. slopes (H,), bias (H, P); dashes tell neighbours apart."""
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
