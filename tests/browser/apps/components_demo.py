"""Both components on one page, with sizes from the URL: ?layers=4&heads=4."""

import html
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.ui.components.plot import plot, publish
from gptviz.ui.components.tiles import MASKED, Row, Tile, tiles

HOSTILE = "<img src=x onerror=alert(1)>"
MARKDOWN = "$5 **x**"
BLUE = {"light": ("#ffffff", "#9ac4e2", "#0072b2"), "dark": ("#13161b", "#0b4f78", "#5cb8f0")}

publish(Path(__file__).parent / "static")
st.set_page_config(layout="wide")
st.html("<style>.stMainBlockContainer { padding: 3rem 1rem }</style>")
layers, heads = (int(st.query_params.get(name, 4)) for name in ("layers", "heads"))
blue = BLUE[st.context.theme.type or "light"]
run = st.session_state.setdefault("run", 0)
selected = st.session_state.setdefault("selected", "L0H0")


def choose(tile: str) -> None:
    st.session_state.selected = tile
    st.session_state.calls = st.session_state.get("calls", 0) + 1


def advance() -> None:
    st.session_state.run += 1


def pattern(seed: int, size: int) -> np.ndarray:
    """Causal rows that sum to 1, (size, size) float32."""
    scores = np.random.default_rng(seed).normal(size=(size, size)) * 2
    weights = np.tril(np.exp(scores))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def thumbnail(weights: np.ndarray) -> np.ndarray:
    pixels = np.round(weights / weights.max() * 254).astype(np.uint8)
    pixels[np.triu_indices(len(weights), 1)] = MASKED
    return pixels


def head(layer: int, head: int) -> Tile:
    weights = pattern(layer * heads + head + run, 64)
    return Tile(
        id=f"L{layer}H{head}",
        title=HOSTILE if (layer, head) == (0, 1) else f"Layer {layer}, head {head}",
        pixels=thumbnail(weights),
        ramp="blue",
        hover=f"{MARKDOWN}\nstrongest {weights.max():.2f}",
        label=f"L{layer}H{head}",
        detail=MARKDOWN if head == 1 else f"prev {np.diag(weights, -1).mean():.2f}",
    )


def heatmap() -> go.Figure:
    weights = pattern(run, 128)
    weights[np.triu_indices(128, 1)] = np.nan
    colours = [[at / (len(blue) - 1), colour] for at, colour in enumerate(blue)]
    figure = go.Figure(go.Heatmap(z=weights, colorscale=colours, zmin=0, zmax=1))
    figure.update_yaxes(autorange="reversed", title="query")
    figure.update_xaxes(title="key")
    return figure.update_layout(template="none", margin={"l": 48, "r": 8, "t": 8, "b": 40})


def bars() -> go.Figure:
    words = [HOSTILE, MARKDOWN]
    ticks = [html.escape(word, quote=False) for word in words]
    figure = go.Figure(go.Bar(x=[0, 1], y=[2, 1], customdata=words, marker={"color": blue[-1]}))
    figure.update_xaxes(tickvals=[0, 1], ticktext=ticks)
    return figure.update_layout(template="none", margin={"l": 48, "r": 8, "t": 8, "b": 40})


def choose_bar(click: dict) -> None:
    st.session_state.bar = click["customdata"]


st.button("Next", on_click=advance)
st.button("Choose L1H1", on_click=choose, args=["L1H1"])
clicked = plot(heatmap(), key="heatmap", height=400, on_click="rerun", alt=f"heatmap of run {run}")
rows = [Row(f"Layer {i}", f"{MARKDOWN} run {run}", [head(i, j) for j in range(heads)]) for i in range(layers)]
picked = tiles(rows, ramps={"blue": blue}, selected=selected, key="tiles", on_pick=choose, alt="all heads")
plot(bars(), key="bars", height=200, on_click=choose_bar, alt="two bars")
seen = st.session_state.setdefault("seen", {"clicks": [], "picks": []})
seen["clicks"] += [clicked] if clicked else []
seen["picks"] += [picked] if picked else []
st.code(f"run={run} calls={st.session_state.get('calls', 0)} picks={seen['picks']}")
st.code(f"clicks={[(c['y'], c['x']) for c in seen['clicks']]}")
st.code(f"bar={st.session_state.get('bar')}")
