"""Attention as pictures: one head's pattern, the stages that lead to it, scores of all heads.

Knows nothing of how the numbers came about. Everywhere row = query, column = key, row 0 on top.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme

KEY, QUERY = "key (attended to)", "query (attending)"
HOVER = "‘%{y}’ (%{y:d}) attends to ‘%{x}’ (%{x:d}): %{z}"
LOG_FLOOR = 1e-4  # weights below are drawn as the background

Weights = Literal["0-1", "max", "log"]


def attention_heatmap(
    pattern: np.ndarray,
    labels: Sequence[str],
    *,
    theme: Theme,
    scale: Weights = "0-1",
    masked: np.ndarray | None = None,
    of: str = "",
    blank: str = "masked",
) -> go.Figure:
    """One head's attention weights. pattern (T, T), rows sum to 1; masked (T, T) bool: left blank, as `blank` says.

    of: what they are shares of, where that is not all of the query's attention.

    scale: colours run over 0 to 1, 0 to this head's maximum, or the decades from 0.0001 to 1. A row that sees one key
    alone gives it 1, whatever the head does: it is no maximum.
    """
    values = matrix.blanked(pattern, masked)
    x, y = _tokens(labels)
    colours = _weights(values, scale, theme, of)
    hover = f"{HOVER} of {of}" if of else HOVER
    return matrix.draw(values, x, y, colours, theme=theme, hover=hover, blank=blank)


def attention_values(pattern: np.ndarray, masked: np.ndarray | None = None) -> np.ndarray:
    """`z` of one head's heatmap: all that differs from that of another head under the same mask, on a scale up to 1."""
    return matrix.numbers(matrix.blanked(pattern, masked))


def stage_heatmap(
    scores: np.ndarray,
    labels: Sequence[str],
    *,
    theme: Theme,
    title: str,
    kind: Literal["diverging", "sequential"] = "diverging",
    masked: np.ndarray | None = None,
) -> go.Figure:
    """One stage of a head. scores (T, T): raw, scaled, biased or masked scores, or the softmax.

    diverging is centred on 0; sequential runs from 0 to the maximum. Cells at -inf are masked.
    """
    values = matrix.blanked(scores, masked)
    if kind == "diverging":
        scale = matrix.centred(values, style.diverging(theme), "value")
    else:
        scale = matrix.upwards(values, style.ramp("attention", theme), "value")
    x, y = _tokens(labels)
    return matrix.draw(values, x, y, scale, theme=theme, hover=HOVER, blank="masked: −∞", title=title)


def vectors_heatmap(rows: np.ndarray, labels: Sequence[str], *, theme: Theme, title: str) -> go.Figure:
    """A row a token: rows (T, n), such as the values that a head has mixed; title is the unit's letter."""
    values = matrix.blanked(rows, None)
    y = matrix.Axis(labels=labels, title="token")
    x = matrix.Axis(labels=[str(at) for at in range(rows.shape[1])], title="dimension")
    scale = matrix.centred(values, style.diverging(theme), title)
    hover = f"‘%{{y}}’ (%{{y:d}}), dimension %{{x}}: {title} = %{{z}}"
    return matrix.draw(values, x, y, scale, theme=theme, hover=hover, blank="none", square=False)


def head_score_heatmap(
    scores: np.ndarray,
    *,
    theme: Theme,
    name: str,
    digits: int = 2,
    selected: tuple[int, int] | None = None,
) -> go.Figure:
    """One score of every head, printed in its cell. scores (L, H); selected (layer, head) is framed.

    Colours run from 0 to 1 where the scores do, else to their maximum.
    """
    values = matrix.blanked(scores, None)
    y, x = (_numbered(n, title) for n, title in zip(values.shape, ("layer", "head"), strict=True))
    within = np.append(values, 1)  # a score of 1 keeps its colour from prompt to prompt
    scale = matrix.upwards(within, style.tint("attention", theme), name)
    hover = f"layer %{{y}}, head %{{x}}: {style.literal(name)} %{{z}}"
    printed = {"texttemplate": f"%{{z:.{digits}f}}", "textfont": {"size": 12, "color": style.surface("text", theme)}}
    figure = matrix.draw(values, x, y, scale, theme=theme, hover=hover, blank="none", cell=44, more=printed)
    return figure.update_layout(shapes=[_frame(selected, theme)]) if selected else figure


def _tokens(labels: Sequence[str]) -> tuple[matrix.Axis, matrix.Axis]:
    return matrix.Axis(labels=labels, title=KEY), matrix.Axis(labels=labels, title=QUERY)


def _numbered(n: int, title: str) -> matrix.Axis:
    return matrix.Axis(labels=[str(at) for at in range(n)], title=title)


def _weights(values: np.ndarray, scale: Weights, theme: Theme, of: str) -> matrix.Scale:
    """Every scale is written out: a colour means nothing without its range."""
    chosen = values[(~np.isnan(values)).sum(1) > 1]  # rows that had a choice
    most = matrix.peak(chosen if chosen.size else values)
    low, high, words = {
        "0-1": (0, 1, "0 to 1"),
        "max": (0, most, f"0 to {style.number(most)} (this head’s maximum)"),
        "log": (LOG_FLOOR, 1, "log scale, 10⁻⁴ to 1"),
    }[scale]
    colours, title = style.ramp("attention", theme), f"{f'share of {of}' if of else 'attention weight'}, {words}"
    return matrix.Scale(colours=colours, low=low, high=high, title=title, log=scale == "log")


def _frame(cell: tuple[int, int], theme: Theme) -> dict:
    layer, head = cell
    line = {"color": style.surface("text", theme), "width": 3}
    edges = {"x0": head - 0.5, "x1": head + 0.5, "y0": layer - 0.5, "y1": layer + 0.5}
    return {"type": "rect", "line": line, **edges}
