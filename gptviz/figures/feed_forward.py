"""The feed-forward layer as pictures: neurons by token, the activation's curve, sparsity, one neuron, what it writes.

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
    figure = matrix.draw(drawn, x, y, scale, theme=theme, hover=hover, blank="none", square=False, cell=16)
    if selected is not None:
        figure.update_layout(shapes=[_frame(*selected, theme)])
    return figure


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
    """Every neuron on its activation's curve. pre and value (F,); curve (x, y); named: neurons whose number is printed."""
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
    band = {"type": "rect", "yref": "y domain", "y0": 0, "y1": 1, "x0": selected - 0.5, "x1": selected + 0.5}
    layout = {
        "height": 320,
        "barmode": "group",
        "bargap": 0.3,
        "margin": {"l": 64, "r": 24, "t": 72, "b": 48},
        "xaxis": {"title": {"text": "layer"}, "showline": True, **ticks},
        "yaxis": {"title": {"text": "share (%)"}, "range": [0, 100], "showline": True},
        "shapes": [{**band, "line": {"width": 0}, "fillcolor": style.surface("raised", theme), "layer": "below"}],
        "showlegend": True,
    }
    return style.figure(traces, layout, theme)


def neuron_along_prompt(
    lines: dict[str, np.ndarray], labels: Sequence[str], *, theme: Theme, selected: int
) -> go.Figure:
    """One neuron at every token. lines: name -> (T,); the first as bars, the others as marks; selected: a token."""
    at = np.arange(len(labels), dtype=np.uint16)
    names = list(lines)
    bars = {
        "type": "bar",
        "name": names[0],
        "x": at,
        "y": np.asarray(lines[names[0]], dtype=np.float32),
        "marker": {
            "color": style.colour("feed_forward", theme),
            "line": {"width": [2 if i == selected else 0 for i in at.tolist()], "color": style.surface("text", theme)},
        },
    }
    marks = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": at,
            "y": np.asarray(lines[name], dtype=np.float32),
            "marker": {"symbol": symbol, "size": 7, "color": style.surface("muted", theme), "line": {"width": 2}},
        }
        for name, symbol in zip(names[1:], ("line-ew-open", "x-thin-open", "circle-open"), strict=False)
    ]
    hover = "‘%{x}’ (%{x:d}): %{y:.3~g}"
    traces = [{**trace, "hovertemplate": f"{hover}<extra>{trace['name']}</extra>"} for trace in (bars, *marks)]
    return style.figure(traces, _along_layout(labels), theme)


def _along_layout(labels: Sequence[str]) -> dict[str, Any]:
    axis = matrix.Axis(labels=labels, title="token")
    positions = [str(at) for at in range(len(labels))]
    upright = axis.width() * len(labels) > 520
    return {
        "height": 280 + (axis.width() if upright else 0),
        "bargap": 0.25,
        "margin": {"l": 64, "r": 24, "t": 48, "b": 48},
        "xaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": positions,
            "labelalias": dict(zip(positions, axis.shown(), strict=True)),
            "range": [-0.5, len(labels) - 0.5],
            "tickangle": -90 if upright else 0,
            "tickfont": {"family": style.MONOSPACE, "size": 11},
            "showline": True,
        },
        "yaxis": {"title": {"text": "activation"}, "showline": True, "zeroline": True},
        "showlegend": True,
    }


def written_bars(labels: Sequence[str], values: np.ndarray, *, theme: Theme) -> go.Figure:
    """What a neuron does to tokens' logits, the most promoted on top, the most suppressed below. labels, values (K,)."""
    shown = [style.literal(style.shortened(label)) for label in labels]
    numbers = [style.number(float(value)) for value in values]
    up, down = style.colour("feed_forward", theme), style.colour("attention", theme)
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": np.asarray(values, dtype=np.float32),
        "y": np.arange(len(shown), dtype=np.uint8),
        "text": numbers,
        "textposition": "outside",
        "textfont": {"family": style.MONOSPACE, "size": 12},
        "cliponaxis": False,
        "customdata": [list(row) for row in zip(shown, numbers, strict=True)],
        "hovertemplate": "‘%{customdata[0]}’: %{customdata[1]}<extra></extra>",
        "marker": {"color": [up if value > 0 else down for value in values]},
    }
    layout = {
        "height": 22 * len(shown) + 80,
        "margin": {"l": 7 * max(map(len, shown), default=1) + 24, "r": 72, "t": 16, "b": 48},
        "bargap": 0.25,
        "showlegend": False,
        "xaxis": {"title": {"text": "logit per unit of activation"}, "zeroline": True, "nticks": 5, "showline": True},
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(range(len(shown))),
            "ticktext": shown,
            "ticklabelstandoff": 4,
            "tickfont": {"family": style.MONOSPACE, "size": 12},
        },
    }
    return style.figure([bars], layout, theme)
