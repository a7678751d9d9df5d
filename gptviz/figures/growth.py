"""How a quantity grows, as areas on top of each other: what stays, what grows in proportion, what as the square.

Knows no configuration: numbers come in as they are to be drawn, with the words that stand beside them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.sizing import UNMEASURED, pale, upright
from gptviz.figures.style import Theme

GROWTH_ROLES = {"constant": "residual", "linear": "feed_forward", "quadratic": "attention"}
PATTERNS = {"constant": "", "linear": "/", "quadratic": "x"}


def growth(
    at: Sequence[int],
    parts: Mapping[str, tuple[str, Sequence[float]]],
    *,
    x: str,
    unit: str,
    now: tuple[int, str],
    theme: Theme,
) -> go.Figure:
    """Areas on top of each other: parts maps "constant", "linear" or "quadratic" to a name and its values over `at`.

    unit: of the values; what they are, a heading says. now: the model's own place on the x axis, with its words.
    """
    areas = [_area(at, values, kind, name, theme) for kind, (name, values) in parts.items()]
    words = {"text": style.literal(now[1]), "showarrow": False, "xanchor": "left", "xshift": 6}
    marks = {
        "shapes": [upright(now[0], theme)],
        "annotations": [{"x": now[0], "y": 1, "yref": "paper", **words}],
    }
    return style.figure([{**area, "meta": unit} for area in areas], _growth_layout(x, unit) | marks, theme)


def _area(at: Sequence[int], values: Sequence[float], kind: str, name: str, theme: Theme) -> dict:
    role = GROWTH_ROLES[kind]
    return {
        "type": "scatter",
        "x": np.asarray(at, dtype=np.float64),
        "y": np.asarray(values, dtype=np.float64),
        "name": style.literal(name),
        "stackgroup": "all",
        "mode": "lines",
        "line": {"color": style.colour(role, theme), "width": 2},
        "fillcolor": pale(role, theme, 6),
        "fillpattern": {"shape": PATTERNS[kind], "size": 8, "solidity": 0.15},
        "hovertemplate": f"{style.literal(name)}: %{{y:.3s}}%{{meta}}<extra></extra>",
    }


def _growth_layout(x: str, unit: str) -> dict:
    axis = {"nticks": 6, **UNMEASURED}
    return {
        "height": 320,
        "hovermode": "x unified",
        "margin": {"l": 80, "r": 24, "t": 56, "b": 48},
        "xaxis": {**axis, "title": {"text": x}, "tickformat": ",d", "hoverformat": ",d", "showline": True},
        "yaxis": {**axis, "ticksuffix": unit, "tickformat": "~s", "rangemode": "tozero"},
        "legend": {"orientation": "h", "x": 0, "y": 1.04, "yanchor": "bottom"},
    }
