"""One matrix of more cells than pixels: a causal head of 1,200 tokens that looks at itself, and once far back."""

from pathlib import Path

import numpy as np
import streamlit as st

from gptviz.figures.attention import attention_heatmap
from gptviz.ui.components.plot import plot, publish

SIZE, QUERY, KEY = 1200, 901, 302
publish(Path(__file__).parent / "static")
pattern = np.zeros((SIZE, SIZE), np.float32)
pattern[QUERY, KEY] = 0.4137
figure = attention_heatmap(
    pattern, ["a"] * SIZE, theme=st.context.theme.type or "light", masked=np.triu(np.ones((SIZE, SIZE), bool), 1)
)
clicked = plot(figure, key="large", on_click="rerun", alt="a head")
st.code(f"clicked={clicked and (clicked['y'], clicked['x'])}")
