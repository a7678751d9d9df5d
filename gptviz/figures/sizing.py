"""Sizes drawn: where the parameters are, and what fits where.

Knows no configuration: numbers come in as they are to be drawn, with the words that stand beside them.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme

# What a component or a share of memory is drawn in.
COMPONENT_ROLES = {
    "Token embedding": "token",
    "Position embedding": "position",
    "Attention": "attention",
    "Feed-forward": "feed_forward",
    "Norms": "residual",
    "Unembedding": "logits",
}
MEMORY_ROLES = {
    "Weights": "token",
    "Gradients": "position",
    "Optimizer": "logits",
    "KV cache": "attention",
    "Activations": "feed_forward",
}
NAMES = 140  # pixels for the names to the left of bars

# Of an axis whose labels are known to fit: plotly.js measures none of them, which is half of the time it draws.
UNMEASURED = {"automargin": False, "tickangle": 0, "ticklabeloverflow": "allow"}
MOST_SHARE = 1.25  # of a memory: what is drawn of a need that goes beyond it


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A rectangle of the treemap. parent: the id it lies in, "" for none; role: of its colour; text: its number."""

    id: str
    label: str
    parent: str
    value: float
    text: str
    role: str


def parameter_treemap(tiles: Sequence[Tile], *, theme: Theme) -> go.Figure:
    """Areas in proportion to the numbers of parameters; a tile's children add up to it."""
    trace = {
        "type": "treemap",
        "ids": [tile.id for tile in tiles],
        "labels": [style.literal(tile.label) for tile in tiles],
        "parents": [tile.parent for tile in tiles],
        "values": [float(tile.value) for tile in tiles],  # exact integers may be longer than JSON's
        "text": [tile.text for tile in tiles],
        "branchvalues": "total",
        "sort": False,
        "tiling": {"packing": "squarify", "pad": 2},
        "marker": {"colors": [pale(tile.role, theme) for tile in tiles], "line": _outline(tiles, theme)},
        "textinfo": "label+text",
        "hovertemplate": "%{label}: %{text}, %{percentRoot:.1%} of all<extra></extra>",
        "pathbar": {"visible": False},
        "root": {"color": "rgba(0,0,0,0)"},
    }
    layout = {
        "height": 360,
        "margin": {"l": 0, "r": 0, "t": 8, "b": 8},
        "uniformtext": {"minsize": 11, "mode": "hide"},  # what would not be readable is left to hover
    }
    return style.figure([trace], layout, theme)


@functools.cache
def pale(role: str, theme: Theme, step: int = 4) -> str:
    """Light enough for text to be read on it."""
    return style.tint(role, theme)[step]


def _outline(tiles: Sequence[Tile], theme: Theme) -> dict:
    return {"width": 1.5, "color": [style.colour(tile.role, theme) for tile in tiles]}


def fit_bars(
    sizes: Mapping[str, float], parts: Mapping[str, float], verdicts: Sequence[str], *, theme: Theme
) -> go.Figure:
    """A bar a memory size (bytes), of the shares of it that the parts (bytes) take; the line is its end.

    verdicts: what is written under each name, such as "fits". A bar that goes beyond 125 % is cut there.
    """
    names = [f"{style.literal(name)}<br>{style.literal(words)}" for name, words in zip(sizes, verdicts, strict=True)]
    traces, start = [], np.zeros(len(sizes))
    for name, size in parts.items():
        share = float(size) / np.array(list(sizes.values()), dtype=np.float64)
        drawn = np.clip(np.minimum(start + share, MOST_SHARE) - start, 0, None)
        traces.append(_part(name, drawn, share, theme))
        start = start + share
    return style.figure(traces, _bars_layout(names, 44, theme) | _fit_layout(theme), theme)


def upright(x: float, theme: Theme) -> dict:
    """A dotted line over the whole height."""
    line = {"color": style.surface("text", theme), "width": 1.5, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _part(name: str, drawn: np.ndarray, share: np.ndarray, theme: Theme) -> dict:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": drawn,
        "y": np.arange(len(drawn), dtype=np.uint8),
        "marker": {"color": style.colour(MEMORY_ROLES[name], theme)},
        "customdata": [f"{100 * value:.3g}" for value in share],
        "hovertemplate": f"{name}: %{{customdata}} % of it<extra></extra>",
    }


def _fit_layout(theme: Theme) -> dict:
    return {
        "margin": {"l": NAMES, "r": 8, "t": 40, "b": 48},
        "xaxis": {
            "title": {"text": "share of the memory"},
            "range": [0, MOST_SHARE],
            "tickvals": [0, 0.5, 1],
            "tickformat": ".0%",
            **UNMEASURED,
        },
        "shapes": [upright(1, theme)],
    }


def component_bars(models: Mapping[str, Mapping[str, float]], *, theme: Theme) -> go.Figure:
    """Two or more models: a bar each, of its parameters by component, on one scale."""
    names = [style.literal(style.shortened(name)) for name in models]
    every = {kind: [float(counts.get(kind, 0)) for counts in models.values()] for kind in COMPONENT_ROLES}
    traces = [_component(kind, values, theme) for kind, values in every.items() if any(values)]
    return style.figure(traces, _bars_layout(names, 48, theme) | _component_layout(), theme)


def _component(name: str, values: Sequence[float], theme: Theme) -> dict:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": np.array(values, dtype=np.float64),
        "y": np.arange(len(values), dtype=np.uint8),
        "marker": {"color": style.colour(COMPONENT_ROLES[name], theme)},
        "hovertemplate": f"{name}: %{{x:.3s}}<extra></extra>",
    }


def _component_layout() -> dict:
    return {
        "margin": {"l": NAMES, "r": 24, "t": 64, "b": 48},
        "xaxis": {"title": {"text": "parameters"}, "tickformat": "~s", "nticks": 6, **UNMEASURED},
    }


def _bars_layout(names: Sequence[str], each: int, theme: Theme) -> dict:
    """Horizontal bars on top of each other, with their names to the left of them; margins are still to be given."""
    return {
        "barmode": "stack",
        "legend": {"traceorder": "normal", "maxheight": 160},  # in one column on a phone
        "bargap": 0.35,
        "height": each * len(names) + 136,
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(range(len(names))),
            "ticktext": list(names),
            "tickfont": {"size": 12, "color": style.surface("text", theme)},
            "ticklabelstandoff": 4,
            **UNMEASURED,
        },
    }
