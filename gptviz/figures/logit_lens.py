"""The logit lens as a table: a row a position, a column a layer, in each cell what would be predicted there.

The page draws it as cells that can be clicked (gptviz.ui.components.cells); `lens_table` is the same as a Plotly
figure, for a notebook or a file. Knows nothing of how the numbers came about. L layers, T positions.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import matrix, style
from gptviz.figures.style import Theme

Measure = Literal["probability", "rank", "entropy", "kl"]
WORDS: dict[Measure, str] = {
    "probability": "probability",
    "rank": "rank of the final token",
    "entropy": "entropy in nats",
    "kl": "KL to the final distribution in nats",
}
ROW, COLUMN = 24, 76  # pixels
_CHARACTERS = 9  # of a token, in a cell


def layer_names(columns: int) -> list[str]:
    """Of the streams: what enters block 0, then what leaves each block."""
    return ["embed", *(f"block {layer}" for layer in range(columns - 1))]


def lens_scale(values: np.ndarray, measure: Measure, theme: Theme) -> matrix.Scale:
    """The colours of a measure: as far as text can be read on them."""
    colours, title = style.tint("logits", theme), WORDS[measure]
    if measure == "probability":
        return matrix.Scale(colours=colours, low=0, high=1, title=title)
    if measure == "rank":
        return matrix.Scale(colours=colours, low=1, high=max(10.0, matrix.peak(values)), title=title, log=True)
    return matrix.Scale(colours=colours, low=0, high=matrix.peak(values), title=title)


def lens_levels(values: np.ndarray, scale: matrix.Scale) -> np.ndarray:
    """The index of each value's colour in the scale: uint8 of the same shape."""
    low, high = np.log([scale.low, scale.high]) if scale.log else (scale.low, scale.high)
    at = np.log(np.maximum(values, scale.low)) if scale.log else np.asarray(values, np.float64)
    share = np.clip((at - low) / (high - low), 0, 1)
    return np.rint(share * (len(scale.colours) - 1)).astype(np.uint8)


def lens_table(
    values: np.ndarray,
    predicted: Sequence[Sequence[str]],
    labels: Sequence[str],
    *,
    measure: Measure,
    theme: Theme,
) -> go.Figure:
    """values (T, L + 1) of the measure, and the most likely token in each of the cells, as text; labels (T,)."""
    shown = matrix.blanked(values, None)
    x = matrix.Axis(labels=layer_names(shown.shape[1]), title="after")
    y = matrix.Axis(labels=labels, title="at position")
    hover = f"after %{{x}}, at ‘%{{y}}’ (%{{y:d}}): ‘%{{text}}’, {WORDS[measure]} %{{z}}"
    printed, scale = _printed(predicted, theme), lens_scale(shown, measure, theme)
    figure = matrix.draw(shown, x, y, scale, theme=theme, hover=hover, blank="none", square=False, more=printed)
    margin, (rows, columns) = figure.layout.margin, shown.shape
    size = {"width": columns * COLUMN + margin.l + margin.r, "height": rows * ROW + 112}
    return figure.update_layout(**size, margin={"t": 64, "b": 48}, xaxis={"side": "top", "tickangle": 0})


def _printed(predicted: Sequence[Sequence[str]], theme: Theme) -> dict[str, Any]:
    text = [[style.literal(style.shortened(token, _CHARACTERS)) for token in row] for row in predicted]
    font = {"family": style.MONOSPACE, "size": 12, "color": style.surface("text", theme)}
    return {"text": text, "texttemplate": "%{text}", "textfont": font}
