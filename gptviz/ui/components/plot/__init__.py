"""A Plotly figure that stays in place: redrawn in the same node. Zoom survives a rerun, and cells can be clicked."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.resources
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import streamlit as st

from gptviz.ui.components.events import keep, take
from gptviz.ui.components.plot.payload import encode

if TYPE_CHECKING:
    import plotly.graph_objects as go

HERE = Path(__file__).parent
STATIC = HERE.parents[3] / "static"  # beside app.py: what Streamlit serves as app/static/
DEFAULT_HEIGHT = 450  # plotly.js's own

_mount = st.components.v2.component(
    "gptviz_plot",
    css=(HERE / "plot.css").read_text(encoding="utf-8"),
    js=(HERE / "plot.js").read_text(encoding="utf-8"),
    isolate_styles=False,  # plotly.js puts its own style sheet into the document, out of a shadow root's reach
)


class Click(TypedDict):
    """The clicked point. A heatmap's cell has x = column and y = row, as on its axes."""

    x: Any
    y: Any
    z: Any
    customdata: Any
    curve: int  # which trace of the figure


def plot(
    figure: go.Figure,
    *,
    key: str,
    height: int | None = None,
    on_click: Callable[[Click], None] | Literal["rerun"] | None = None,
    alt: str = "",
) -> Click | None:
    """Draw the figure; returns the point clicked since the last run, once.

    on_click: None does not listen, "rerun" only returns the click, a function is called with it first.
    alt: the figure in one sentence, for those who cannot see it.
    Zoom is kept while `layout.uirevision` stays the same: change it when the axes mean something else.
    """
    then = on_click if callable(on_click) else None
    data = payload(figure, key=key, height=height, clickable=on_click is not None, alt=alt)
    _mount(key=key, data=data, on_click_change=keep(key, "click", then))
    return take(key, "click")


def payload(figure: go.Figure, *, key: str, height: int | None = None, clickable: bool = False, alt: str = "") -> bytes:
    """What `plot` sends: the player shows the same before that comes."""
    height = height or figure.layout.height or DEFAULT_HEIGHT
    options = {"key": key, "source": publish(), "height": height, "clickable": clickable, "alt": alt}
    return encode(figure, options)


@functools.cache
def publish(static: Path = STATIC) -> str:
    """Copy the installed plotly.js to where Streamlit serves it; its address, relative to the page."""
    name = f"plotly-{importlib.metadata.version('plotly')}.min.js"
    script = importlib.resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    if not (static / name).exists():
        _write(static / name, script)
    return f"app/static/{name}"


def _write(path: Path, content: bytes) -> None:
    """All or nothing: another server may be starting from the same folder."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
