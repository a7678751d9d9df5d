"""A matrix as a heatmap: labelled axes, blanks, a colour bar that states its range, true hover.

What the other modules share. Knows layout and payload, not what a matrix means.

Three choices carry it. The axes are category axes whose categories are "0", "1", ...: equal
labels stay apart, and Plotly thins the labels to what fits, again at every zoom. Labels are a
`labelalias`, which hover resolves too: `%{x}` is the token and `%{x:d}` its position, so that no
string is sent per cell. Blank cells are not sent at all, and a hatched image shows through.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from gptviz.figures import style
from gptviz.figures.style import Theme

MOST_EXACT = 256 * 256  # cells: of a larger matrix every number is drawn as the nearest of 255
_CHARACTER = 7  # pixels, of the monospace tick labels
_TICK_SIZE = 11


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One side of a matrix: a label a cell, shown as it is written, and the axis's title."""

    labels: Sequence[str]
    title: str

    def shown(self) -> list[str]:
        return [style.literal(style.shortened(label)) for label in self.labels]

    def width(self) -> int:
        """Pixels that the longest label takes."""
        return _CHARACTER * max(len(style.shortened(label)) for label in self.labels)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Colours over low..high, and the words beside the colour bar. Logarithmic where `log`."""

    colours: list[str]
    low: float
    high: float
    title: str
    log: bool = False

    def steps(self) -> np.ndarray:
        """255 numbers from one end to the other: with equal ratios where it is logarithmic, else closest around 0."""
        if self.log:
            return np.append(0, np.geomspace(self.low, self.high, 254)).astype(np.float32)
        even = np.linspace(0 if self.low == 0 else -1, 1, 255)
        return (np.sign(even) * even**2 * self.high).astype(np.float32)


def peak(values: np.ndarray) -> float:
    """The largest number in sight, or 1 where there is none above zero."""
    largest = float(np.max(values, where=np.isfinite(values), initial=0))
    return largest if largest > 0 else 1.0


def upwards(values: np.ndarray, colours: list[str], title: str) -> Scale:
    """From 0 to the maximum."""
    high = peak(values)
    return Scale(colours=colours, low=0, high=high, title=f"{title}, 0 to {style.number(high)}")


def centred(values: np.ndarray, colours: list[str], title: str) -> Scale:
    """As far below 0 as above."""
    high = peak(np.abs(values))
    ends = f"{style.number(-high)} to {style.number(high)}"
    return Scale(colours=colours, low=-high, high=high, title=f"{title}, {ends}")


def decades(values: np.ndarray, colours: list[str], title: str) -> Scale:
    """Logarithmic, from the decade of the smallest positive number to the maximum."""
    high = peak(values)
    least = float(np.min(values, where=np.isfinite(values) & (values > 0), initial=high))
    low = float(10 ** np.floor(np.log10(least)))
    low = low if low < high else high / 10
    words = f"{title}, log scale, {style.number(low)} to {style.number(high)}"
    return Scale(colours=colours, low=low, high=high, title=words, log=True)


def blanked(values: np.ndarray, masked: np.ndarray | None) -> np.ndarray:
    """float32 copy with NaN wherever there is no number to draw: masked, NaN or infinite."""
    drawn = np.array(values, dtype=np.float32)
    drawn[~np.isfinite(drawn)] = np.nan
    if masked is not None:
        drawn[np.asarray(masked, dtype=bool)] = np.nan
    return drawn


def draw(
    values: np.ndarray,
    x: Axis,
    y: Axis,
    scale: Scale,
    *,
    theme: Theme,
    hover: str,
    blank: str,
    title: str = "",
    square: bool = True,
    cell: int = 28,
    more: dict[str, Any] | None = None,
) -> go.Figure:
    """values (len(y), len(x)), NaN where blank; row 0 on top. `blank` is what hover calls a gap.

    `hover` is a template over %{x}, %{x:d}, %{y}, %{y:d} and %{z}; `more` are properties of the heatmap besides.
    Beyond MOST_EXACT cells the numbers are rounded to `scale.steps()`, and hover says so.
    """
    if values.shape != (len(y.labels), len(x.labels)):
        raise ValueError(f"A matrix of shape {values.shape} has {len(y.labels)} row and {len(x.labels)} column labels.")
    words = {"hovertemplate": f"{hover}<extra></extra>", "hovertemplatefallback": blank}
    exact = values.size <= MOST_EXACT
    drawn = _cells(values) if exact else _rounded(values, scale.steps(), hover)
    cells = {"type": "heatmap", **_coloured(scale), **words, **drawn, **(more or {})}
    size = _side(len(x.labels), cell), _side(len(y.labels), cell)
    layout = _layout(x, y, size, title)
    blank_cells = np.isnan(values)
    bare = blank_cells.all(0).any() or blank_cells.all(1).any()  # plotly.js would show a part of it as it grows
    if square and not bare:
        layout["yaxis"]["scaleanchor"] = "x"
    if blank_cells.any():
        layout["images"] = [_hatch(size, theme)]
    return style.figure([cells, _colour_bar_carrier(scale)], layout, theme)


def _cells(values: np.ndarray) -> dict:
    """The whole grid; or, with gaps, its numbers as columns: smaller, and hover can tell a gap."""
    row, column = np.nonzero(~np.isnan(values))
    if len(row) == values.size:
        y, x = (_compact(np.arange(length)) for length in values.shape)
        return {"x": x, "y": y, "z": values}
    rows, columns = _bare_lines(row, column, values.shape)
    z = np.append(values[row, column], np.full(len(rows), np.nan, np.float32))
    return {"x": _compact(np.append(column, columns)), "y": _compact(np.append(row, rows)), "z": z}


def _rounded(values: np.ndarray, steps: np.ndarray, hover: str) -> dict:
    """The whole grid, each number the nearest step: a byte will do to send it. Two digits are more than it has."""
    steps = np.append(steps[:-1], max(steps[-1], peak(values))).astype(
        np.float32
    )  # what lies beyond the colours keeps its number
    between = (steps[1:] + steps[:-1]) / 2
    nearest = steps[np.searchsorted(between, np.nan_to_num(values))]
    y, x = (_compact(np.arange(length)) for length in values.shape)
    return {
        "x": x,
        "y": y,
        "z": np.where(np.isnan(values), np.float32(np.nan), nearest),
        "meta": {"steps": steps},
        "zhoverformat": ",.2~r",
        "hovertemplate": f"{hover.replace('%{z}', '≈ %{z}')}<extra></extra>",
        "hoverongaps": False,
    }


def numbers(values: np.ndarray) -> np.ndarray:
    """`z` of the figure that `draw` makes of these values."""
    z: np.ndarray = _cells(values)["z"]
    return z


def _compact(index: np.ndarray) -> np.ndarray:
    """One byte each where they fit, two where not."""
    return index.astype(np.uint8 if index.max(initial=0) < 256 else np.uint16)


def _bare_lines(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(2, n): a cell beyond the edge for each line without a number, or Plotly would close ranks."""
    rows = np.setdiff1d(np.arange(shape[0]), row)
    columns = np.setdiff1d(np.arange(shape[1]), column)
    beyond_right = np.stack([rows, np.full_like(rows, shape[1])])
    beyond_bottom = np.stack([np.full_like(columns, shape[0]), columns])
    return np.concatenate([beyond_right, beyond_bottom], axis=1)


def _coloured(scale: Scale) -> dict:
    stops = style.colorscale(scale.colours)
    if scale.log:  # the values stay true, the stops move
        at = np.geomspace(scale.low, scale.high, len(stops)) / scale.high
        at[-1] = 1
        stops = [[0, scale.colours[0]], *map(list, zip(at.tolist(), scale.colours, strict=True))]
    return {
        "colorscale": stops,
        "zmin": 0 if scale.log else scale.low,
        "zmax": scale.high,
        "zhoverformat": ".3~g" if abs(scale.high) < 1000 else ",.3~r",
        "showscale": False,
    }


def _colour_bar_carrier(scale: Scale) -> dict:
    """On a point that is never drawn, so that it can run evenly where the colours do not."""
    low, high = np.log10([scale.low, scale.high]) if scale.log else (scale.low, scale.high)
    marker = {
        "color": [low],
        "colorscale": style.colorscale(scale.colours),
        "cmin": low,
        "cmax": high,
        "showscale": True,
        "colorbar": _colour_bar(scale, float(low), float(high)),
    }
    nothing = {"x": [None], "y": [None], "hoverinfo": "skip", "showlegend": False}
    return {"type": "scatter", "mode": "markers", "marker": marker, **nothing}


def _colour_bar(scale: Scale, low: float, high: float) -> dict:
    if scale.log:
        at = np.unique([*np.arange(np.ceil(low), np.floor(high) + 1), high])
        at = at if len(at) <= 7 else at[:: -(-len(at) // 7)]
    else:
        at = np.linspace(low, high, 5)
    return {
        "thickness": 12,
        "outlinewidth": 0,
        "len": 1,
        "ypad": 0,
        "xpad": 16,
        "tickvals": [float(v) for v in at],
        # No-break spaces: nothing else keeps the title clear of the labels.
        "ticktext": [f"{_power(v) if scale.log else style.number(float(v))}\u00a0\u00a0" for v in at],
        "tickfont": {"size": _TICK_SIZE},
        "title": {"text": style.literal(scale.title), "side": "right", "font": {"size": 12}},
    }


def _power(exponent: float) -> str:
    """`0.01`, and `10⁻⁴` without the factor that a whole power need not show."""
    return style.number(float(10**exponent)).removeprefix("1.00 × ")


def _layout(x: Axis, y: Axis, size: tuple[int, int], title: str) -> dict:
    """size: width and height of the matrix in pixels; the margins hold labels and colour bar."""
    upright = x.width() + _CHARACTER > size[0] / len(x.labels)
    left, right, top = y.width() + 56, 112, 56 if title else 32
    bottom = (x.width() if upright else 16) + 48
    return {
        "width": size[0] + left + right,
        "height": size[1] + top + bottom,
        "margin": {"l": left, "r": right, "t": top, "b": bottom},
        "title": {"text": style.literal(title), "y": 1, "yanchor": "top", "pad": {"t": 8}},
        "xaxis": {**_ticks(x), "autorange": True, "tickangle": -90 if upright else 0},
        "yaxis": {**_ticks(y), "autorange": "reversed"},
    }


def _side(cells: int, cell: int) -> int:
    """Pixels for so many cells: none below 240 or above 520."""
    return int(np.clip(cells * cell, 240, 520))


def _ticks(axis: Axis) -> dict:
    """The bounds say how far the axis goes: with a range of its own, a zoom would end when the matrix grows."""
    positions = [str(at) for at in range(len(axis.labels))]
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": positions,
        "labelalias": dict(zip(positions, axis.shown(), strict=True)),
        "minallowed": -0.5,
        "maxallowed": len(positions) - 0.5,
        "constrain": "domain",
        "automargin": False,  # the margins are known: plotly.js need not measure
        "showline": True,
        "mirror": True,
        "tickfont": {"family": style.MONOSPACE, "size": _TICK_SIZE},
        "ticklabelstandoff": 4,
        "title": {"text": axis.title},
    }


def _hatch(size: tuple[int, int], theme: Theme) -> dict:
    """An image behind the cells; it keeps its size while the matrix is zoomed."""
    stroke = style.surface("hatch", theme).replace("#", "%23")
    lines = "width='8' height='8' patternUnits='userSpaceOnUse' patternTransform='rotate(45)'"
    svg = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{size[0]}' height='{size[1]}'>"
        f"<pattern id='h' {lines}><path d='M4 0V8' stroke='{stroke}' stroke-width='2'/></pattern>"
        "<rect width='100%25' height='100%25' fill='url(%23h)'/></svg>"
    )
    where = {"xref": "x domain", "yref": "y domain", "x": 0, "y": 1, "sizex": 1, "sizey": 1}
    source = f"data:image/svg+xml;utf8,{svg}"
    return {"source": source, "layer": "below", "sizing": "stretch", **where}
