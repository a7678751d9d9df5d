"""From the distribution to a draw and on: the unit interval, the tree of ways on, entropy, and how fast tokens come.

Knows nothing of logits: shares come in as they are to be shown.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.prediction import token_axis
from gptviz.figures.style import Theme

_SHARE = "‘%{customdata[0]}’: %{customdata[1]}, from %{customdata[2]} to %{customdata[3]}<extra></extra>"
_WAY = "‘%{customdata[1]}’: %{customdata[2]} after what stands before it, %{customdata[3]} in all<extra></extra>"


def interval(labels: Sequence[str], probabilities: np.ndarray, *, theme: Theme, sampled: int, draw: float) -> go.Figure:
    """The unit interval, cut into the tokens' shares: labels and probabilities (K,), the largest first, and the draw.

    sampled: the index of the token in whose share the draw falls.
    """
    shares = np.asarray(probabilities, dtype=np.float64)
    starts = np.concatenate([[0], np.cumsum(shares)[:-1]])
    told = [
        [
            style.literal(label),
            style.number(float(share)),
            style.number(float(start)),
            style.number(float(start + share)),
        ]
        for label, share, start in zip(labels, shares, starts, strict=True)
    ]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": shares,
        "base": starts,
        "y": np.zeros(len(shares), np.uint8),
        "width": 0.9,
        "text": [style.literal(style.shortened(label, 14)) for label in labels],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "textfont": {"family": style.MONOSPACE, "size": 12, "color": style.surface("text", theme)},
        "customdata": told,
        "hovertemplate": _SHARE,
        "marker": _segments(len(shares), sampled, theme),
    }
    return style.figure([bars], _interval_layout(draw, theme), theme)


def _segments(count: int, sampled: int, theme: Theme) -> dict[str, Any]:
    tints = style.tint("logits", theme)
    colours = [tints[5] if at % 2 else tints[8] for at in range(count)]
    colours[sampled] = style.ramp("generated", theme)[11]
    line = {"color": style.surface("background", theme), "width": 1}
    return {
        "color": colours,
        "line": line,
        "pattern": {"shape": ["/" if at == sampled else "" for at in range(count)], "size": 8, "solidity": 0.15},
    }


def _interval_layout(draw: float, theme: Theme) -> dict[str, Any]:
    text = style.surface("text", theme)
    line = {"type": "line", "x0": draw, "x1": draw, "y0": -0.5, "y1": 0.62, "line": {"color": text, "width": 2}}
    anchor = "left" if draw < 0.1 else "right" if draw > 0.9 else "center"
    note = {"x": draw, "y": 0.64, "text": f"◆ draw {style.number(draw)}", "showarrow": False, "yanchor": "bottom"}
    return {
        "height": 136,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 32},
        "showlegend": False,
        "uniformtext": {"mode": "hide", "minsize": 10},
        "xaxis": {"range": [0, 1], "tickvals": [0, 0.25, 0.5, 0.75, 1], "showline": True},
        "yaxis": {"visible": False, "range": [-0.5, 1.1]},
        "shapes": [line],
        "annotations": [{**note, "xanchor": anchor, "font": {"color": text, "size": 12}}],
    }


def branches(
    starts: np.ndarray,
    joint: np.ndarray,
    depth: np.ndarray,
    labels: Sequence[str],
    paths: Sequence[str],
    prob: np.ndarray,
    *,
    theme: Theme,
    ids: Sequence[str] | None = None,
) -> go.Figure:
    """The ways on as a tree, to be read from left to right: as high as a way is likely. All (n,).

    starts and joint: where a branch's share of the unit interval begins, and how large it is; depth from 1.
    labels: the branches' tokens; paths: the whole way as text; prob: given the way before. ids: what a click gives.
    """
    tints = style.tint("logits", theme)
    shades = [tints[round(float(share) * (len(tints) - 1))] for share in prob]
    told = zip(ids or paths, map(style.literal, paths), map(_number, prob), map(_number, joint), strict=True)
    bars = {
        "type": "bar",
        "x": np.asarray(depth, np.uint8),
        "y": np.asarray(joint, np.float64),
        "base": np.asarray(starts, np.float64),
        "width": 0.98,
        "text": [
            f"{style.literal(style.shortened(label, 14))} {_number(share)}"
            for label, share in zip(labels, prob, strict=True)
        ],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "constraintext": "inside",
        "textfont": {"family": style.MONOSPACE, "size": 12, "color": style.surface("text", theme)},
        "customdata": [list(row) for row in told],
        "hovertemplate": _WAY,
        "marker": {"color": shades, "line": {"color": style.surface("background", theme), "width": 1.5}},
    }
    return style.figure([bars], _tree_layout(int(max(depth, default=1)), theme), theme)


def _number(x: float) -> str:
    return style.number(float(x))


def _tree_layout(deepest: int, theme: Theme) -> dict[str, Any]:
    return {
        "height": 420,
        "margin": {"l": 56, "r": 8, "t": 8, "b": 48},
        "bargap": 0,
        "showlegend": False,
        "uniformtext": {"mode": "hide", "minsize": 10},
        "xaxis": {
            "title": {"text": "tokens from here"},
            "tickvals": list(range(1, deepest + 1)),
            "ticktext": [f"+{at}" for at in range(1, deepest + 1)],
            "range": [0.5, deepest + 0.5],
        },
        "yaxis": {"title": {"text": "probability"}, "range": [1, 0], "nticks": 6},
    }


def entropy_lines(
    entropy: np.ndarray,
    tempered: np.ndarray | None,
    surprise: np.ndarray,
    labels: Sequence[str],
    *,
    theme: Theme,
    generated: int = 0,
) -> go.Figure:
    """How open the choice was before each token, and how surprising the token was: nats, by token.

    entropy, tempered (T,): of the model's distribution after position t, and of the one at the sampling temperature;
    surprise (T - 1,): -log p of the token at position t + 1. labels (T,): the tokens; the last `generated` are shaded.
    """
    named = [*(style.literal(label) for label in labels[1:]), "what comes next"]
    at = np.arange(len(named), dtype=np.uint16)
    muted, full = style.surface("muted", theme), style.colour("logits", theme)
    lines = [_line("entropy before it", at, entropy, named, {"color": full, "width": 2})]
    if tempered is not None:
        lines.append(_line("at this temperature", at, tempered, named, {"color": full, "width": 2, "dash": "dot"}))
    marks = {"symbol": "diamond", "size": 7, "color": muted}
    hover = "‘%{customdata}’ came: surprise %{y:.3g} nats<extra></extra>"
    came = {"type": "scatter", "mode": "markers", "name": "surprise at the token", "x": at[:-1], "marker": marks}
    lines.append({**came, "y": np.asarray(surprise, np.float32), "customdata": named[:-1], "hovertemplate": hover})
    return style.figure(lines, _entropy_layout([*labels[1:], "next"], generated, theme), theme)


def _line(name: str, at: np.ndarray, y: np.ndarray, named: list[str], line: dict[str, Any]) -> dict[str, Any]:
    hover = f"before ‘%{{customdata}}’: {name.removesuffix(' before it')} %{{y:.3g}} nats<extra></extra>"
    values = {"x": at, "y": np.asarray(y, np.float32), "customdata": named, "hovertemplate": hover}
    return {"type": "scatter", "mode": "lines+markers", "name": name, "line": line, "marker": {"size": 4}, **values}


def _entropy_layout(labels: Sequence[str], generated: int, theme: Theme) -> dict[str, Any]:
    count = len(labels)
    shade = {
        "type": "rect",
        "yref": "y domain",
        "x0": count - 1.5 - generated,
        "x1": count - 1.5,
        "y0": 0,
        "y1": 1,
        "fillcolor": style.ramp("generated", theme)[3],
        "line": {"width": 0},
        "layer": "below",
    }
    return {
        "height": 320,
        "margin": {"l": 64, "r": 16, "t": 40, "b": 96},
        "shapes": [shade] if generated else [],
        "xaxis": token_axis(labels),
        "yaxis": {"title": {"text": "nats"}, "rangemode": "tozero", "nticks": 6, "showgrid": True},
    }


def speed_lines(cached: np.ndarray, full: np.ndarray, *, theme: Theme, first: int) -> go.Figure:
    """Milliseconds that each token took, with the KV cache and without: (n,) each; first: the length before them."""
    at = np.arange(first, first + len(cached), dtype=np.uint16)
    kinds = (("with the KV cache", cached, "generated", "solid"), ("without", full, "residual", "dash"))
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": at,
            "y": np.asarray(values, np.float32),
            "line": {"color": style.colour(role, theme), "dash": dash, "width": 2},
            "hovertemplate": f"{name}, after %{{x}} tokens: %{{y:.3g}} ms<extra></extra>",
        }
        for name, values, role, dash in kinds
    ]
    layout = {
        "height": 280,
        "margin": {"l": 64, "r": 16, "t": 40, "b": 48},
        "xaxis": {"title": {"text": "tokens before it"}, "showline": True, "nticks": 8},
        "yaxis": {"title": {"text": "ms for the token"}, "rangemode": "tozero", "nticks": 6, "showgrid": True},
    }
    return style.figure(lines, layout, theme)
