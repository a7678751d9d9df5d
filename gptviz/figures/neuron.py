"""One neuron as pictures: its activation along the prompt, and the tokens that it promotes and suppresses.

Knows nothing of how the numbers came about.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.bars import token_bars
from gptviz.figures.feed_forward import band
from gptviz.figures.style import Theme


def neuron_along_prompt(
    lines: dict[str, np.ndarray], labels: Sequence[str], *, theme: Theme, selected: int
) -> go.Figure:
    """One neuron at every token. lines: name -> (T,); the first as bars, the others as marks; selected: a token."""
    at = np.arange(len(labels), dtype=np.uint16)
    names = list(lines)
    bars = {
        "type": "bar",
        "name": names[0],
        "x": at,
        "y": np.asarray(lines[names[0]], dtype=np.float32),
        "marker": {"color": style.colour("feed_forward", theme)},
    }
    marks = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": at,
            "y": np.asarray(lines[name], dtype=np.float32),
            "marker": {"symbol": symbol, "size": 7, "color": style.surface("muted", theme), "line": {"width": 2}},
        }
        for name, symbol in zip(names[1:], ("line-ew-open", "x-thin-open", "circle-open"), strict=False)
    ]
    hover = "‘%{x}’ (%{x:d}): %{y:.3~g}"
    traces = [{**trace, "hovertemplate": f"{hover}<extra>{trace['name']}</extra>"} for trace in (bars, *marks)]
    return style.figure(traces, {**_along_layout(labels), "shapes": [band(selected, theme)]}, theme)


def _along_layout(labels: Sequence[str]) -> dict[str, Any]:
    axis = matrix.Axis(labels=labels, title="token")
    positions = [str(at) for at in range(len(labels))]
    upright = axis.width() * len(labels) > 520
    return {
        "height": 280 + (axis.width() if upright else 0),
        "bargap": 0.25,
        "margin": {"l": 64, "r": 24, "t": 48, "b": 48},
        "xaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": positions,
            "labelalias": dict(zip(positions, axis.shown(), strict=True)),
            "range": [-0.5, len(labels) - 0.5],
            "tickangle": -90 if upright else 0,
            "tickfont": {"family": style.MONOSPACE, "size": 11},
            "showline": True,
        },
        "yaxis": {"title": {"text": "activation"}, "showline": True, "zeroline": True},
        "showlegend": True,
    }


def written_bars(labels: Sequence[str], values: np.ndarray, *, theme: Theme) -> go.Figure:
    """What a neuron does to tokens' logits, the most promoted on top. labels and values (K,)."""
    numbers = [style.number(float(value)) for value in values]
    up, down = style.colour("feed_forward", theme), style.colour("attention", theme)
    reach = 1.8 * matrix.peak(np.abs(values))  # room for the numbers beyond the bars, on either side
    return token_bars(
        labels,
        values,
        theme=theme,
        texts=numbers,
        hovers=numbers,
        colours=[up if value > 0 else down for value in values],
        axis={"title": {"text": "logit per unit of activation"}, "range": [-reach, reach], "zeroline": True},
    )
