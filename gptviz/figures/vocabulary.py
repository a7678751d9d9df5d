"""The vocabulary as a map in two or three dimensions, with the prompt's tokens on it.

Knows nothing of how the places came about.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme

MOST_NAMES = 30  # printed beside their points; the others are named on hover


@dataclass(frozen=True)
class Places:
    """Tokens on the map: points (n, 3), and a label and an id for each."""

    points: np.ndarray
    labels: Sequence[str]
    ids: np.ndarray

    def named(self) -> np.ndarray:
        """(n, 2): what is shown of each label, and the id."""
        shown = [style.literal(style.shortened(label)) for label in self.labels]
        return np.array([shown, self.ids.tolist()], dtype=object).T


def vocabulary_map(
    every: Places, prompt: Places, chosen: Places, *, theme: Theme, shares: np.ndarray, dimensions: int
) -> go.Figure:
    """The vocabulary in grey, the prompt's tokens named, the chosen one ringed. shares (3,): of the variance."""
    traces = [
        _points(every, "vocabulary", dimensions, marker=_small(theme)),
        _points(prompt, "in the prompt", dimensions, marker=_marked(theme), **_names(prompt, theme, dimensions)),
        _points(chosen, "chosen", dimensions, marker=_ring(theme, dimensions)),
    ]
    titles = [
        f"component {at + 1}: {style.number(100 * float(share))}% of the variance" for at, share in enumerate(shares)
    ]
    layout = {"height": 480, "showlegend": True, "legend": {"itemsizing": "constant"}}
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


def _names(prompt: Places, theme: Theme, dimensions: int) -> dict[str, Any]:
    if not len(prompt.ids) or len(prompt.ids) > MOST_NAMES:
        return {}
    font = {"family": style.MONOSPACE, "size": 11, "color": style.surface("text", theme)}
    outward = prompt.points[:, :2] >= np.median(prompt.points[:, :2], axis=0)  # so that fewer names meet
    sides = [f"{'top' if up else 'bottom'} {'right' if right else 'left'}" for right, up in outward.tolist()]
    return {
        "mode": "markers+text",
        "text": [name if dimensions == 2 else _unescaped(name) for name in prompt.named()[:, 0]],
        "textposition": sides,
        "textfont": font,
    }


def _unescaped(name: str) -> str:
    """For a scene, whose text knows tags but no entities: a word joiner after every < keeps it from opening one."""
    return html.unescape(name).replace("<", "<\u2060")


def _flat(titles: Sequence[str]) -> dict[str, Any]:
    axis = {"showline": True, "zeroline": True}
    return {
        "margin": {"l": 64, "r": 24, "t": 48, "b": 56},
        "xaxis": {**axis, "title": {"text": titles[0]}, "constrain": "domain"},
        "yaxis": {**axis, "title": {"text": titles[1]}, "scaleanchor": "x", "constrain": "domain"},
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
