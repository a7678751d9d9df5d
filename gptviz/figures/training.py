"""Learning as lines: the loss by step, and what the heads have become by step, with a marker at the step shown.

Knows no model: numbers come in as pairs.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme

Pairs = Sequence[Sequence[float]]  # (step, value)

# Name -> role, dash, and the shape of its points: a line is known without its colour.
LOSSES = {"training": ("residual", "solid", "circle"), "validation": ("logits", "dash", "diamond")}
SCORES = {"previous token": ("attention", "solid", "circle"), "induction": ("feed_forward", "dash", "diamond")}
FEW = 40  # points up to which each is drawn


def loss_curve(curves: Mapping[str, Pairs], *, theme: Theme, marker: int | None = None, log: bool = False) -> go.Figure:
    """curves: (step, nats per token) by the name "training" or "validation". log: steps on a logarithmic axis.

    marker: the step to point at.
    """
    drawn = {name: pairs for name, pairs in curves.items() if len(pairs)}
    lines = [_line(pairs, name, LOSSES[name], "nats", theme, log) for name, pairs in drawn.items()]
    return _figure(lines, "loss (nats per token)", drawn, theme, marker, log)


def score_curve(curves: Mapping[str, Pairs], *, theme: Theme, marker: int | None = None, log: bool = True) -> go.Figure:
    """curves: (step, score of the best head) by the name "previous token" or "induction"."""
    lines = [_line(pairs, name, SCORES[name], "", theme, log) for name, pairs in curves.items()]
    return _figure(lines, "score of the best head", curves, theme, marker, log, range=[-0.03, 1.03])


def _line(pairs: Pairs, name: str, look: tuple[str, str, str], unit: str, theme: Theme, log: bool) -> dict:
    role, dash, symbol = look
    step, value = np.asarray(pairs, dtype=np.float32).T
    colour = style.colour(role, theme)
    return {
        "type": "scatter",
        "x": _shown(step, log),
        "y": value,
        "customdata": step.astype(np.int32),
        "name": name,
        "mode": "lines+markers" if len(step) <= FEW else "lines",
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"color": colour, "size": 6, "symbol": symbol},
        "hovertemplate": f"{name}, step %{{customdata:,d}}: %{{y:.3~g}} {unit}<extra></extra>",
    }


def _shown(step: np.ndarray, log: bool) -> np.ndarray:
    """A logarithmic axis has no 0: the start stands at a half."""
    return np.maximum(step, 0.5).astype(np.float32) if log else step


def _figure(
    lines: list[dict],
    title: str,
    curves: Mapping[str, Pairs],
    theme: Theme,
    marker: int | None,
    log: bool,
    **y: object,
) -> go.Figure:
    steps = [pair[0] for pairs in curves.values() for pair in pairs]
    layout = {
        "height": 300,
        "margin": {"l": 56, "r": 16, "t": 48, "b": 48},
        "legend": {"x": 0, "y": 1.06, "yanchor": "bottom"},
        "showlegend": len(curves) > 1,
        "uirevision": title,
        "xaxis": {"title": {"text": "step" + (" (log scale)" if log else "")}, "showline": True, **_ticks(steps, log)},
        "yaxis": {"title": {"text": title}, "showline": True, "nticks": 6, **y},
    }
    return style.figure(lines, layout | _marked(marker, max(steps, default=1), theme, log), theme)


def _ticks(steps: Sequence[float], log: bool) -> dict:
    if not log:
        return {"type": "linear", "rangemode": "tozero", "tickformat": ",d", "nticks": 6}
    decades = [10**power for power in range(6) if 10**power <= max(steps, default=1)]
    at, words = [0.5, *decades], ["0", *(f"{decade:,}" for decade in decades)]
    end = np.log10(max(max(steps, default=1), 1) * 1.15)
    return {"type": "log", "tickvals": at, "ticktext": words, "range": [float(np.log10(0.42)), float(end)]}


def _marked(marker: int | None, last: float, theme: Theme, log: bool) -> dict:
    """A line through the step that is shown, with the step's number."""
    if marker is None:
        return {}
    at = max(marker, 0.5) if log else float(marker)
    line = {"color": style.surface("text", theme), "width": 1.5, "dash": "dot"}
    shape = {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": line}
    words = {
        "x": float(np.log10(at)) if log else at,  # Plotly wants an annotation's place on a log axis as a power
        "xanchor": "right" if at > last / 2 else "left" if at < 1 else "center",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "text": f"step {marker:,}",
        "showarrow": False,
        "font": {"size": 12},
    }
    return {"shapes": [shape], "annotations": [words]}
