"""What the model made of each token that came, and how sure it was before.

Knows nothing of how the numbers came about. T positions.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme

Measure = Literal["loss", "probability", "rank"]
AXES: dict[Measure, str] = {
    "loss": "loss in nats",
    "probability": "probability",
    "rank": "rank (1 is the most likely)",
}
_HOVER = (
    "‘%{customdata[0]}’ (%{customdata[1]}) came: probability %{customdata[2]}, loss %{customdata[3]}, "
    "rank %{customdata[4]}; most likely was ‘%{customdata[5]}’<extra></extra>"
)


def prediction_bars(
    probability: np.ndarray,
    rank: np.ndarray,
    labels: Sequence[str],
    best: Sequence[str],
    *,
    theme: Theme,
    measure: Measure = "loss",
    first: int = 1,
    generated: int = 0,
) -> go.Figure:
    """A bar for each token that came: probability and rank (n,) that it was given, best (n,) what was most likely.

    labels (n,): the tokens, at positions first, first + 1, ...; the last `generated` of them are striped.
    """
    loss = -np.log(np.maximum(probability.astype(np.float64), 1e-300))
    heights = {"loss": loss, "probability": probability, "rank": rank}[measure]
    drawn = np.arange(len(labels)) >= len(labels) - generated
    bars = {
        "type": "bar",
        "x": np.arange(len(labels), dtype=np.uint16),
        "y": np.asarray(heights, dtype=np.float32),
        "customdata": _told(labels, first, probability, loss, rank, best),
        "hovertemplate": _HOVER,
        "marker": {
            "color": [style.colour("generated" if here else "logits", theme) for here in drawn],
            "pattern": {"shape": ["/" if here else "" for here in drawn], "size": 6, "solidity": 0.4},
        },
    }
    return style.figure([bars], _layout(labels, AXES[measure], measure == "rank", rank), theme)


def _told(
    labels: Sequence[str],
    first: int,
    probability: np.ndarray,
    loss: np.ndarray,
    rank: np.ndarray,
    best: Sequence[str],
) -> list[list[str]]:
    return [
        [
            style.literal(label),
            str(first + at),
            style.number(float(probability[at])),
            style.number(float(loss[at]), "nats"),
            style.number(int(rank[at])),
            style.literal(best[at]),
        ]
        for at, label in enumerate(labels)
    ]


def token_axis(labels: Sequence[str]) -> dict[str, Any]:
    """An axis with a token a place: equal ones stay apart, and what does not fit is thinned out, again at each zoom."""
    positions = [str(at) for at in range(len(labels))]
    shown = [style.literal(style.shortened(label, 14)) for label in labels]
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": positions,
        "labelalias": dict(zip(positions, shown, strict=True)),
        "range": [-0.6, len(labels) - 0.4],
        "tickangle": -90,
        "tickfont": {"family": style.MONOSPACE, "size": 11},
        "showline": True,
    }


def _layout(labels: Sequence[str], title: str, log: bool, rank: np.ndarray) -> dict[str, Any]:
    top = float(np.log10(max(10, int(rank.max(initial=1))))) + 0.1
    y = {"type": "log", "range": [-0.05, top], "dtick": 1} if log else {"rangemode": "tozero", "nticks": 6}
    return {
        "height": 320,
        "margin": {"l": 64, "r": 16, "t": 16, "b": 96},
        "bargap": 0.2,
        "showlegend": False,
        "xaxis": {**token_axis(labels), "title": {"text": "the token that came"}},
        "yaxis": {"title": {"text": title}, "showgrid": True, **y},
    }
