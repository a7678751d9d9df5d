"""The next token's distribution as bars.

Knows nothing of logits, temperature or filters: probabilities come in as they are to be shown.
"""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme

MOST_LIKELY, SAMPLED = "▲", "◆"


def next_token_bars(
    labels: Sequence[str],
    probabilities: np.ndarray,
    *,
    theme: Theme,
    sampled: int | None = None,
    argmax: int = 0,
    draw: float | None = None,
    measured: str = "probability",
) -> go.Figure:
    """A bar a candidate, the most probable on top. labels and probabilities (K,).

    sampled and argmax are indices into both: the token that was drawn and the most likely one,
    each with a mark that the axis explains. draw is the random number in 0..1 that chose. measured names the axis.
    """
    order = np.argsort(-np.asarray(probabilities), kind="stable")
    marks = [_mark(at, sampled, argmax) for at in order]
    shown = [style.literal(style.shortened(labels[at])) for at in order]
    numbers = [style.number(float(probabilities[at])) for at in order]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": np.asarray(probabilities, dtype=np.float64)[order],
        "y": np.arange(len(order), dtype=np.uint8 if len(order) < 256 else np.uint16),
        "text": [f"{value}  {mark}".rstrip() for value, mark in zip(numbers, marks, strict=True)],
        "textposition": "outside",
        "textfont": {"family": style.MONOSPACE, "size": 12},
        "cliponaxis": False,
        "customdata": [list(row) for row in zip(shown, numbers, marks, strict=True)],
        "hovertemplate": "‘%{customdata[0]}’: %{customdata[1]} %{customdata[2]}<extra></extra>",
        "marker": _bars([at == sampled for at in order], theme),
    }
    return style.figure([bars], _layout(shown, _legend(measured, sampled, draw), theme), theme)


def _mark(at: int, sampled: int | None, argmax: int) -> str:
    return (MOST_LIKELY if at == argmax else "") + (SAMPLED if at == sampled else "")


def _legend(measured: str, sampled: int | None, draw: float | None) -> str:
    """What the marks mean, under the axis: lines short enough for a telephone."""
    drawn = "" if draw is None else f" by the draw {style.number(draw)}"
    lines = [measured, f"{MOST_LIKELY} most likely", *([] if sampled is None else [f"{SAMPLED} sampled{drawn}"])]
    return "<br>".join(lines)


def _bars(sampled: list[bool], theme: Theme) -> dict:
    """The sampled bar is striped and outlined as well as coloured."""
    generated = style.colour("generated", theme)
    return {
        "color": [generated if here else style.colour("logits", theme) for here in sampled],
        "line": {"width": [2 if here else 0 for here in sampled], "color": generated},
        "pattern": {"shape": ["/" if here else "" for here in sampled], "size": 6, "solidity": 0.4},
    }


def _layout(shown: list[str], legend: str, theme: Theme) -> dict:
    return {
        "height": 24 * len(shown) + 112,
        "margin": {"l": 7 * max(map(len, shown)) + 24, "r": 104, "t": 32, "b": 80},
        "bargap": 0.25,
        "showlegend": False,
        "xaxis": {"title": {"text": legend}, "automargin": False, "rangemode": "tozero", "nticks": 4, "showline": True},
        "yaxis": {
            "automargin": False,
            "autorange": "reversed",
            "tickvals": list(range(len(shown))),
            "ticktext": shown,
            "ticklabelstandoff": 4,
            "tickfont": {"family": style.MONOSPACE, "size": 12, "color": style.surface("text", theme)},
        },
    }
