"""The linker beside a strip of chips, with sizes from the URL: ?tokens=12&heads=4."""

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.ui import chips
from gptviz.ui.components.linker import linker, pack

HOSTILE = ["<img src=x onerror=alert(1)>", "$5 **x**", "שלום", "a\u202eb", "</bdi><b>x</b>", "·the", "·the"]

st.set_page_config(layout="wide")
st.html("<style>.stMainBlockContainer { padding: 3rem 1rem }</style>")
heads = int(st.query_params.get("heads", 4))
causal = st.query_params.get("causal", "true") == "true"


def advance(by: int) -> None:
    st.session_state.tokens += by


def pattern(head: int, size: int) -> np.ndarray:
    """Rows that sum to 1, (size, size) float32."""
    weights = np.exp(np.random.default_rng(head).normal(size=(2048, 2048))[:size, :size])
    weights = np.tril(weights) if causal else weights
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


if "tokens" not in st.session_state:
    st.session_state.tokens = int(st.query_params.get("tokens", 12))
tokens = st.session_state.tokens
labels = [HOSTILE[at] if at < len(HOSTILE) else f"·t{at}" for at in range(tokens)]
row = chips.chips(labels, [b" a"] * tokens, range(tokens), ["prompt"] * tokens)
st.html(chips.strip(row, "light"))
st.button("More", on_click=advance, args=[1])
st.button("Fewer", on_click=advance, args=[-1])
chosen = st.selectbox("Head", range(heads), key="head")
if st.toggle("Linker", value=True):
    links = pack(np.stack([pattern(head, tokens) for head in range(heads)]), range(heads), causal=causal)
    faint = 0.05 if tokens <= 256 else None
    colours = style.head_colours(heads)
    linker(links, labels, chosen=chosen, colours=colours, cut=0.001, faint=faint, key="linker", alt=f"{tokens} tokens")
st.code(f"tokens={tokens} head={chosen}")
