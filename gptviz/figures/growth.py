"""How a quantity grows, as areas on top of each other: what stays, what grows in proportion, what as the square.

Knows no configuration: numbers come in as they are to be drawn, with the words that stand beside them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.sizing import pale, upright
from gptviz.figures.style import Theme

GROWTH_ROLES = {"constant": "residual", "linear": "feed_forward", "quadratic": "attention"}
PATTERNS = {"constant": "", "linear": "/", "quadratic": "x"}


def growth(
    at: Sequence[int],
    parts: Mapping[str, tuple[str, Sequence[float]]],
    *,
    x: str,
    y: str,
    unit: str,
    now: tuple[int, str],
    theme: Theme,
) -> go.Figure:
    """Areas on top of each other: parts maps "constant", "linear" or "quadratic" to a name and its values over `at`.

    now: the model's own place on the x axis, with its words.
    """
    areas = [
        go.Scatter(**_area(at, np.asarray(values, dtype=np.float64), kind, name, theme), meta=unit)
        for kind, (name, values) in parts.items()
    ]
    words = {"text": style.literal(now[1]), "showarrow": False, "xanchor": "left", "xshift": 6}
    marks = {  # in the layout at once: adding them to a figure takes three times as long
        "shapes": [upright(now[0], theme)],
        "annotations": [{"x": now[0], "y": 1, "yref": "paper", **words}],
    }
    return go.Figure(areas, layout=_growth_layout(x, y, unit, theme) | marks)


def _area(at: Sequence[int], values: np.ndarray, kind: str, name: str, theme: Theme) -> dict:
    role = GROWTH_ROLES[kind]
    return {
        "x": np.asarray(at, dtype=np.float64),
        "y": values,
        "name": style.literal(name),
        "stackgroup": "all",
        "mode": "lines",
        "line": {"color": style.colour(role, theme), "width": 2},
        "fillcolor": pale(role, theme, 6),
        "fillpattern": {"shape": PATTERNS[kind], "size": 8, "solidity": 0.15},
        "hovertemplate": f"{style.literal(name)}: %{{y:.3s}}%{{meta}}<extra></extra>",
    }


def _growth_layout(x: str, y: str, unit: str, theme: Theme) -> dict:
    return {
        "template": style.template(theme),
        "height": 320,
        "hovermode": "x unified",
        "margin": {"l": 64, "r": 24, "t": 56, "b": 48},
        "xaxis": {"title": {"text": x}, "tickformat": ",d", "hoverformat": ",d", "showline": True, "nticks": 6},
        "yaxis": {"title": {"text": y}, "ticksuffix": unit, "tickformat": "~s", "rangemode": "tozero", "nticks": 6},
        "legend": {"orientation": "h", "x": 0, "y": 1.04, "yanchor": "bottom"},
    }
