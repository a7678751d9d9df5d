"""The residual stream as pictures: what stands in it, what is added to it, and who wrote a logit.

Knows nothing of how the numbers came about. L layers, T positions.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme

Order = Literal["size", "model"]
LONGEST = 24  # bars, in the order of size
ROLES = {"embed": "token", "pos": "position", "L": "attention", "attn": "attention", "mlp": "feed_forward"}


def stream_heatmap(
    values: np.ndarray,
    rows: Sequence[str],
    labels: Sequence[str],
    *,
    theme: Theme,
    name: str,
    role: str = "residual",
) -> go.Figure:
    """A length by place in the model and token: values (n, T), above 0. Colours are logarithmic.

    So the others stay readable beside a first token whose numbers are many times theirs.
    """
    shown = matrix.blanked(values, None)
    scale = matrix.decades(shown, style.ramp(role, theme), name)
    return _by_token(shown, rows, labels, scale, theme, name)


def cosine_heatmap(values: np.ndarray, rows: Sequence[str], labels: Sequence[str], *, theme: Theme) -> go.Figure:
    """Cosines (n, T): vermilion where what is added points along the stream, blue where against it."""
    scale = matrix.Scale(colours=style.diverging(theme), low=-1, high=1, title="cosine with the stream, −1 to 1")
    return _by_token(matrix.blanked(values, None), rows, labels, scale, theme, "cosine")


def _by_token(
    values: np.ndarray, rows: Sequence[str], labels: Sequence[str], scale: matrix.Scale, theme: Theme, name: str
) -> go.Figure:
    x, y = matrix.Axis(labels=labels, title="token"), matrix.Axis(labels=rows, title="")
    hover = f"%{{y}}, at ‘%{{x}}’ (%{{x:d}}): {name} %{{z}}"
    return matrix.draw(values, x, y, scale, theme=theme, hover=hover, blank="none", square=False, cell=24)


def attribution_bars(
    parts: Mapping[str, float], *, theme: Theme, order: Order = "size", logit: str = "logit"
) -> go.Figure:
    """What every part writes of one logit, and their sum as the last bar.

    size: the largest first, those beyond LONGEST summed; each bar starts at 0. model: in the order of the forward
    pass, each bar starting where the one before it ends; with many heads, those of a layer together.
    """
    shown = _largest(parts) if order == "size" else _in_order(parts)
    values = np.array([*shown.values(), sum(parts.values())])
    ends = np.cumsum(values[:-1])
    base = np.zeros(len(values)) if order == "size" else np.concatenate([[0], ends[:-1], [0]])
    names = [*shown, logit]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "base": base,
        "y": np.arange(len(names), dtype=np.uint16),
        "text": [style.number(float(value)) for value in values],
        "textposition": "outside",
        "textfont": {"family": style.MONOSPACE, "size": 11},
        "cliponaxis": False,
        "customdata": names,
        "hovertemplate": "%{customdata}: %{text}<extra></extra>",
        "marker": {"color": [style.colour(_role(name), theme) for name in shown] + [style.colour("logits", theme)]},
    }
    return style.figure([bars], _bar_layout(names, base, values, theme), theme)


def _role(name: str) -> str:
    return ROLES.get(re.sub(r"\W?\d.*", "", name), "residual")


def _largest(parts: Mapping[str, float]) -> dict[str, float]:
    order = sorted(parts, key=lambda name: -abs(parts[name]))
    kept = order if len(order) <= LONGEST else order[: LONGEST - 1]
    rest = order[len(kept) :]
    more = {f"the other {len(rest)}": sum(parts[name] for name in rest)} if rest else {}
    return {name: parts[name] for name in kept} | more


def _in_order(parts: Mapping[str, float]) -> dict[str, float]:
    """The heads of a layer together where there are too many for a bar each."""
    if len(parts) <= 2 * LONGEST:
        return dict(parts)
    merged: dict[str, float] = {}
    for name, value in parts.items():
        head = re.fullmatch(r"L(\d+)H\d+", name)
        shown = f"attn {head[1]}" if head else name
        merged[shown] = merged.get(shown, 0.0) + value
    return merged


def _bar_layout(names: list[str], base: np.ndarray, values: np.ndarray, theme: Theme) -> dict[str, Any]:
    low, high = min(0.0, float(np.minimum(base, base + values).min())), float(np.maximum(base, base + values).max())
    left, right = (share * (max(high, 0) - low or 1) for share in (0.36, 0.18))  # for the numbers beside the bars
    return {
        "height": 20 * len(names) + 72,
        "margin": {"l": 7 * max(map(len, names)) + 24, "r": 16, "t": 16, "b": 48},
        "bargap": 0.2,
        "showlegend": False,
        "xaxis": {
            "title": {"text": "share of the logit"},
            "range": [low - left if low < 0 else 0, max(high, 0) + right],
            "zeroline": True,
            "zerolinecolor": style.surface("line", theme),
        },
        "yaxis": {
            "range": [len(names) - 0.4, -0.6],
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "tickfont": {"family": style.MONOSPACE, "size": 11, "color": style.surface("text", theme)},
        },
    }
