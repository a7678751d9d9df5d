"""Tokens as horizontal bars: a label on the left, a number behind each bar.

Knows nothing of what the numbers mean.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme


def token_bars(
    labels: Sequence[str],
    values: np.ndarray,
    *,
    theme: Theme,
    texts: Sequence[str],
    hovers: Sequence[str],
    colours: str | list[str],
    axis: dict[str, Any],
) -> go.Figure:
    """A bar a token, the first on top. values (K,); texts stand behind the bars; hovers follow the token's label."""
    shown = [style.literal(style.shortened(label)) for label in labels]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": np.asarray(values, dtype=np.float32),
        "y": np.arange(len(shown), dtype=np.uint8),
        "text": list(texts),
        "textposition": "outside",
        "textfont": {"family": style.MONOSPACE, "size": 12},
        "cliponaxis": False,
        "customdata": [list(row) for row in zip(shown, hovers, strict=True)],
        "hovertemplate": "‘%{customdata[0]}’: %{customdata[1]}<extra></extra>",
        "marker": {"color": colours},
    }
    return style.figure([bars], _layout(shown, max(map(len, texts), default=0), axis), theme)


def _layout(shown: Sequence[str], widest: int, axis: dict[str, Any]) -> dict[str, Any]:
    """widest: characters of the longest number, which needs its room on the right."""
    return {
        "height": 24 * max(1, len(shown)) + 80,
        "margin": {"l": 7 * max(map(len, shown), default=1) + 24, "r": 8 * widest, "t": 16, "b": 48},
        "bargap": 0.25,
        "showlegend": False,
        "xaxis": {"nticks": 5, "showline": True, **axis},
        "yaxis": {
            "autorange": "reversed",
            "tickvals": list(range(len(shown))),
            "ticktext": list(shown),
            "ticklabelstandoff": 4,
            "tickfont": {"family": style.MONOSPACE, "size": 12},
        },
    }
