"""The QK and OV circuits of a head as pictures: a row and a column for each different token.

Knows nothing of how the numbers came about.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme

CELL = 22  # pixels
FEW, NARROW, WIDE = 15, 440, 640  # pixels of a figure with at most FEW tokens, and of others: two stand side by side
UNUSED = 24  # pixels to the left of the axis’s title


def qk_heatmap(scores: np.ndarray, labels: Sequence[str], *, theme: Theme) -> go.Figure:
    """What each query token (row) would give to each key token (column), less the row's mean: (n, n)."""
    axes = matrix.Axis(labels=labels, title="key"), matrix.Axis(labels=labels, title="query")
    return _draw(scores, axes, "score", "query ‘%{y}’, key ‘%{x}’: %{z}", theme)


def ov_heatmap(logits: np.ndarray, labels: Sequence[str], *, theme: Theme) -> go.Figure:
    """How far attention to each source token (row) moves each output token's logit (column): (n, n)."""
    axes = matrix.Axis(labels=labels, title="output"), matrix.Axis(labels=labels, title="attended to")
    return _draw(logits, axes, "logit × σ", "attention to ‘%{y}’ moves ‘%{x}’ by %{z}", theme)


def _draw(values: np.ndarray, axes: tuple[matrix.Axis, matrix.Axis], unit: str, hover: str, theme: Theme) -> go.Figure:
    drawn = matrix.blanked(values, None)
    scale = matrix.centred(drawn, style.diverging(theme), unit)
    figure = matrix.draw(drawn, *axes, scale, theme=theme, hover=hover, blank="no number", cell=CELL)
    width, height, left = figure.layout.width - UNUSED, figure.layout.height, figure.layout.margin.l - UNUSED
    beyond = max(0, width - (NARROW if len(values) <= FEW else WIDE))  # off both sides: it stays square
    return figure.update_layout(width=width - beyond, height=height - beyond, margin_l=left)
