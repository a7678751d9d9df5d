"""Reads a figure the way plotly.js does: from its JSON, typed arrays decoded, hover text resolved."""

import base64
import html
import json

import numpy as np
import plotly.graph_objects as go


def read(figure: go.Figure) -> dict:
    return json.loads(valid(figure).to_json())


def valid(figure: go.Figure) -> go.Figure:
    """The figure, once Plotly has checked every property and value: `style.figure` leaves that to the tests."""
    spec = json.loads(figure.to_json())
    go.Figure(spec)  # raises ValueError
    return figure


def array(spec) -> np.ndarray:
    """A typed array or a list of the JSON as numpy."""
    if not isinstance(spec, dict):
        return np.array(spec)
    flat = np.frombuffer(base64.b64decode(spec["bdata"]), np.dtype(spec["dtype"]).newbyteorder("<"))
    return flat.reshape([int(n) for n in str(spec["shape"]).split(",")]) if "shape" in spec else flat


def cells(figure: go.Figure) -> dict[tuple[int, int], float]:
    """(row, column) -> value of every cell that is sent with a number."""
    trace = read(figure)["data"][0]
    z, x, y = (array(trace[name]) for name in "zxy")
    if z.ndim == 2:
        return {(int(r), int(c)): float(z[i, j]) for i, r in enumerate(y) for j, c in enumerate(x)}
    return {(int(r), int(c)): float(v) for r, c, v in zip(y, x, z, strict=True) if not np.isnan(v)}


def ticks(figure: go.Figure, axis: str) -> list[str]:
    """What an axis shows at each position, entities decoded."""
    spec = read(figure)["layout"][f"{axis}axis"]
    return [html.unescape(spec["labelalias"][position]) for position in spec["categoryarray"]]


def hover(figure: go.Figure, row: int, column: int) -> str:
    """The hover text over a cell; its number in at most three significant figures."""
    trace = read(figure)["data"][0]
    value = cells(figure).get((row, column))
    assert trace["zhoverformat"] == ".3~g"
    text = trace["hovertemplate"].removesuffix("<extra></extra>")
    text = text.replace("%{x:d}", str(column)).replace("%{y:d}", str(row))
    text = text.replace("%{x}", ticks(figure, "x")[column]).replace("%{y}", ticks(figure, "y")[row])
    return text.replace("%{z}", trace["hovertemplatefallback"] if value is None else f"{value:.3g}".replace("-", "−"))
