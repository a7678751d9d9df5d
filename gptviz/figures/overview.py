"""The whole forward pass at a glance: norms of the residual stream.

Thumbnails of heads are pixels, not figures: see `pixels`.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme


def residual_norms(
    norms: np.ndarray,
    labels: Sequence[str],
    *,
    theme: Theme,
    halves: bool = False,
    scale: Literal["max", "log"] = "max",
) -> go.Figure:
    """Length of the residual vector by depth and token. norms (L + 1, T), the embedding on top.

    halves: norms (2 L + 1, T), after each attention and each feed-forward. scale "log" keeps the
    others readable beside a first token whose norm is many times theirs.
    """
    values = matrix.blanked(norms, None)
    spread = matrix.decades if scale == "log" else matrix.upwards
    chosen = spread(values, style.ramp("residual", theme), "norm")
    x = matrix.Axis(labels=labels, title="token")
    y = matrix.Axis(labels=_depths(len(values), halves), title="residual stream after")
    hover = "‘%{x}’ (%{x:d}) after %{y}: norm %{z}"
    return matrix.draw(values, x, y, chosen, theme=theme, hover=hover, blank="none", square=False)


def _depths(rows: int, halves: bool) -> list[str]:
    if halves:
        return ["embed", *(f"{part} {i}" for i in range(rows // 2) for part in ("attn", "mlp"))]
    return ["embed", *(f"block {i}" for i in range(rows - 1))]
