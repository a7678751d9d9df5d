"""The vocabulary as a map in two or three dimensions, with the prompt's tokens on it.

Knows nothing of how the places came about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme

MOST_NAMES = 40  # printed beside their points; the others are named on hover


@dataclass(frozen=True)
class Places:
    """Tokens on the map: points (n, 3), and a label and an id for each."""

    points: np.ndarray
    labels: Sequence[str]
    ids: np.ndarray

    def named(self) -> list[list[Any]]:
        shown = [style.literal(style.shortened(label)) for label in self.labels]
        return [[label, id] for label, id in zip(shown, self.ids.tolist(), strict=True)]


def vocabulary_map(
    every: Places, prompt: Places, chosen: Places, *, theme: Theme, shares: np.ndarray, dimensions: int
) -> go.Figure:
    """The vocabulary in grey, the prompt's tokens named, the chosen one ringed. shares (3,): of the variance, per axis."""
    traces = [
        _points(every, "vocabulary", dimensions, marker=_small(theme)),
        _points(prompt, "in the prompt", dimensions, marker=_marked(theme), **_names(prompt, theme)),
        _points(chosen, "chosen", dimensions, marker=_ring(theme, dimensions)),
    ]
    titles = [f"component {at + 1}: {style.number(100 * float(share))}% of the variance" for at, share in enumerate(shares)]
    layout = {"height": 560, "showlegend": True, "legend": {"itemsizing": "constant"}}
    return style.figure(traces, layout | (_flat(titles) if dimensions == 2 else _deep(theme, shares)), theme)


def _points(places: Places, name: str, dimensions: int, **more: Any) -> dict[str, Any]:
    x, y, z = np.ascontiguousarray(places.points.T, dtype=np.float32)
    return {
        "type": "scatter" if dimensions == 2 else "scatter3d",
        "mode": "markers",
        "name": name,
        "x": x,
        "y": y,
        **({"z": z} if dimensions == 3 else {}),
        "customdata": places.named(),
        "hovertemplate": "‘%{customdata[0]}’ (id %{customdata[1]})<extra></extra>",
        **more,
    }


def _small(theme: Theme) -> dict[str, Any]:
    return {"size": 4, "color": style.colour("residual", theme), "opacity": 0.45}


def _marked(theme: Theme) -> dict[str, Any]:
    return {"size": 8, "color": style.colour("token", theme), "symbol": "diamond"}


def _ring(theme: Theme, dimensions: int) -> dict[str, Any]:
    line = {"width": 3, "color": style.colour("logits", theme)}
    if dimensions == 3:  # a line of circle-open in 3-D takes the marker's colour
        return {"size": 12, "symbol": "circle-open", "color": line["color"], "line": line}
    return {"size": 16, "symbol": "circle-open", "color": line["color"], "line": line}


def _names(prompt: Places, theme: Theme) -> dict[str, Any]:
    if not len(prompt.ids) or len(prompt.ids) > MOST_NAMES:
        return {}
    font = {"family": style.MONOSPACE, "size": 11, "color": style.surface("text", theme)}
    return {
        "mode": "markers+text",
        "text": [name for name, _ in prompt.named()],
        "textposition": "top center",
        "textfont": font,
    }


def _flat(titles: Sequence[str]) -> dict[str, Any]:
    axis = {"showline": True, "zeroline": True}
    return {
        "margin": {"l": 64, "r": 24, "t": 48, "b": 56},
        "xaxis": {**axis, "title": {"text": titles[0]}},
        "yaxis": {**axis, "title": {"text": titles[1]}, "scaleanchor": "x"},
    }


def _deep(theme: Theme, shares: np.ndarray) -> dict[str, Any]:
    line = style.surface("line", theme)
    axes = {
        f"{letter}axis": {
            "title": {"text": f"{at + 1}: {style.number(100 * float(shares[at]))}%", "font": {"size": 12}},
            "showbackground": False,
            "gridcolor": line,
            "zerolinecolor": line,
            "tickfont": {"size": 10},
            "nticks": 5,
        }
        for at, letter in enumerate("xyz")
    }
    return {"margin": {"l": 0, "r": 0, "t": 32, "b": 0}, "scene": {**axes, "aspectmode": "data"}}
