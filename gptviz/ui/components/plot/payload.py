"""A figure as bytes: one JSON document, and behind it what is too large for text.

Small arrays travel inside as base64, in plotly.js's own form. Large ones follow the document and a zero byte, which no
JSON holds, and stand in it as {"behind": [start, length], ...}; plot.js puts them back.
"""

from __future__ import annotations

import base64
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

if TYPE_CHECKING:
    import plotly.graph_objects as go

TYPED = {"<f4", "<f8", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4"}  # what plotly.js reads from base64
LARGE = 256 * 1024  # bytes: what is larger goes behind
BLANK = 255  # the code of a cell without a number


def encode(figure: go.Figure, options: dict[str, Any]) -> bytes:
    """The figure and the component's options (float16 arrays become lists: pass float32).

    What `figure.to_json` writes, without the two copies that it makes of the whole figure.
    """
    behind: list[bytes] = []
    spec = {"data": [_stepped(trace, behind) for trace in figure._data], "layout": figure._layout}
    write = functools.partial(_plain, behind=behind)
    text = orjson.dumps({"options": options, "figure": spec}, default=write, option=orjson.OPT_NON_STR_KEYS)
    return b"".join([text, b"\0", *behind]) if behind else text


def _stepped(trace: dict[str, Any], behind: list[bytes]) -> dict[str, Any]:
    """A matrix whose numbers are all among `meta["steps"]`, at most 255 in ascending order: a byte each will do."""
    meta = trace.get("meta")
    steps = meta.get("steps") if isinstance(meta, dict) else None
    if steps is None:
        return trace
    codes = np.where(np.isnan(trace["z"]), BLANK, np.searchsorted(steps, trace["z"])).astype(np.uint8)
    lengths = _lengths(codes != BLANK)
    seen = codes[np.arange(codes.shape[1]) < lengths[:, None]]
    where = _put(behind, lengths.astype(np.uint16).tobytes() + seen.tobytes())
    z = {"shape": list(codes.shape), "steps": steps.tolist(), "behind": where}
    return {**{name: value for name, value in trace.items() if name != "meta"}, "z": z}


def _lengths(seen: np.ndarray) -> np.ndarray:
    """How much of each row there is to send: up to its last number. The future of a causal head is not."""
    return np.where(seen.any(axis=1), seen.shape[1] - seen[:, ::-1].argmax(axis=1), 0)


def _plain(value: Any, behind: list[bytes]) -> Any:
    """A numpy value in the form that plot.js or plotly.js reads."""
    if isinstance(value, np.ndarray):
        return _typed(value, behind)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"A figure can't hold a {type(value).__name__}.")


def _typed(array: np.ndarray, behind: list[bytes]) -> Any:
    if array.dtype == np.int64 and array.size and np.abs(array).max() < 2**31:  # which JavaScript's arrays lack
        array = array.astype(np.int32)
    if array.dtype.str not in TYPED:
        return array.tolist()
    spec: dict[str, Any] = {"dtype": array.dtype.str[1:]}
    if array.ndim > 1:
        spec["shape"] = ", ".join(map(str, array.shape))
    if array.nbytes > LARGE:
        return spec | {"behind": _put(behind, array.tobytes())}
    return spec | {"bdata": base64.b64encode(array.tobytes()).decode()}


def _put(behind: list[bytes], content: bytes) -> list[int]:
    """Where it starts, from the zero byte on, and how long it is."""
    start = sum(map(len, behind))
    behind.append(content)
    return [start, len(content)]
