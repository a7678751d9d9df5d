"""The feed-forward layer as pictures: neurons by token, the activation's curve, how few they are.

Knows nothing of how the numbers came about.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme

CURVE_FROM = 4.0  # the curve is drawn at least from -4 to 4


def neuron_heatmap(
    values: np.ndarray,
    neurons: Sequence[int],
    labels: Sequence[str],
    *,
    theme: Theme,
    name: str,
    selected: tuple[int, int] | None = None,
) -> go.Figure:
    """Activations, a row a neuron. values (K, T); selected: (row, column) that is framed."""
    drawn = matrix.blanked(values, None)
    y = matrix.Axis(labels=[str(neuron) for neuron in neurons], title="neuron")
    x = matrix.Axis(labels=labels, title="token")
    scale = matrix.centred(drawn, style.diverging(theme), name)
    hover = "neuron %{y} at ‘%{x}’ (%{x:d}): %{z}"
    spec = matrix.draw(drawn, x, y, scale, theme=theme, hover=hover, blank="none", square=False, cell=16).to_dict()
    del spec["layout"]["width"]  # as wide as the page
    if selected is not None:
        spec["layout"]["shapes"] = [_frame(*selected, theme)]
    return style.figure(spec["data"], spec["layout"], theme)


def _frame(row: int, column: int, theme: Theme) -> dict[str, Any]:
    line = {"color": style.surface("text", theme), "width": 2}
    return {
        "type": "rect",
        "line": line,
        "x0": column - 0.5,
        "x1": column + 0.5,
        "y0": row - 0.5,
        "y1": row + 0.5,
    }


def activation_curve(
    pre: np.ndarray,
    value: np.ndarray,
    curve: tuple[np.ndarray, np.ndarray],
    *,
    theme: Theme,
    name: str,
    named: Sequence[int],
    selected: int | None = None,
    across: str = "pre-activation",
    up: str = "post-activation",
) -> go.Figure:
    """Every neuron on its activation's curve. pre, value (F,); curve (x, y); named: those whose number is printed."""
    neurons = np.arange(len(pre), dtype=np.uint16)
    line = {"color": style.surface("muted", theme), "width": 1.5}
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "name": name, "hoverinfo": "skip", "line": line, **_xy(*curve)},
        _dots(pre, value, neurons, theme, "all neurons", size=5, opacity=0.35),
        {
            **_dots(pre[list(named)], value[list(named)], neurons[list(named)], theme, "strongest", size=9),
            "mode": "markers+text",
            "text": [str(neuron) for neuron in named],
            "textposition": "top left",
            "textfont": {"family": style.MONOSPACE, "size": 11, "color": style.surface("text", theme)},
        },
    ]
    if selected is not None:
        ring = _dots(pre[[selected]], value[[selected]], neurons[[selected]], theme, f"neuron {selected}", size=16)
        traces.append({**ring, "marker": _ring(theme)})
    return style.figure(traces, _curve_layout(across, up), theme)


def curve_range(pre: np.ndarray) -> np.ndarray:
    """Where to draw a curve on which these lie: (201,)."""
    low, high = min(-CURVE_FROM, float(pre.min())), max(CURVE_FROM, float(pre.max()))
    margin = 0.05 * (high - low)
    return np.linspace(low - margin, high + margin, 201)


def _xy(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    return {"x": np.asarray(x, dtype=np.float32), "y": np.asarray(y, dtype=np.float32)}


def _dots(
    pre: np.ndarray, value: np.ndarray, neurons: np.ndarray, theme: Theme, name: str, *, size: int, opacity: float = 1
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        **_xy(pre, value),
        "customdata": neurons,
        "marker": {"size": size, "color": style.colour("feed_forward", theme), "opacity": opacity},
        "hovertemplate": "neuron %{customdata}: %{x:.3~g} becomes %{y:.3~g}<extra></extra>",
    }


def _ring(theme: Theme) -> dict[str, Any]:
    colour = style.surface("text", theme)
    return {"size": 16, "symbol": "circle-open", "color": colour, "line": {"width": 2, "color": colour}}


def _curve_layout(across: str, up: str) -> dict[str, Any]:
    return {
        "height": 400,
        "margin": {"l": 64, "r": 24, "t": 56, "b": 48},
        "xaxis": {"title": {"text": across}, "showline": True, "zeroline": True},
        "yaxis": {"title": {"text": up}, "showline": True, "zeroline": True},
        "showlegend": True,
    }


def sparsity_bars(shares: dict[str, np.ndarray], *, theme: Theme, selected: int) -> go.Figure:
    """Shares (L,) by name, a group of bars a layer; patterns tell them apart as well as colours."""
    layers = len(next(iter(shares.values())))
    colours = [style.colour(role, theme) for role in ("feed_forward", "residual", "logits")]
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": np.arange(layers, dtype=np.uint16),
            "y": 100 * np.asarray(values, dtype=np.float32),
            "marker": {"color": colour, "pattern": {"shape": shape, "size": 6, "solidity": 0.4}},
            "hovertemplate": f"layer %{{x}}: {name} %{{y:.3~g}}%<extra></extra>",
        }
        for (name, values), colour, shape in zip(shares.items(), colours, ("", "/", "x"), strict=False)
    ]
    ticks = {"tickmode": "linear", "dtick": max(1, layers // 12)} if layers < 200 else {}
    layout = {
        "height": 320,
        "barmode": "group",
        "bargap": 0.3,
        "margin": {"l": 64, "r": 24, "t": 72, "b": 48},
        "xaxis": {"title": {"text": "layer"}, "showline": True, **ticks},
        "yaxis": {"title": {"text": "share (%)"}, "range": [0, 100], "showline": True},
        "shapes": [band(selected, theme)],
        "showlegend": True,
    }
    return style.figure(traces, layout, theme)


def band(at: int, theme: Theme) -> dict[str, Any]:
    """The ground behind one place of an x axis."""
    edges = {"yref": "y domain", "y0": 0, "y1": 1, "x0": at - 0.5, "x1": at + 0.5}
    return {"type": "rect", **edges, "line": {"width": 0}, "fillcolor": style.surface("hatch", theme), "layer": "below"}
