"""All heads, one head, and the stages by which its pattern comes about."""

import streamlit as st

from gptviz.ui.attention.circuits import circuits
from gptviz.ui.attention.heads import choose_head, grid, head_scores
from gptviz.ui.attention.linker import linker_section
from gptviz.ui.attention.one_head import one_head
from gptviz.ui.frame import Selection, frame


def draw(chosen: Selection) -> None:
    left, right = st.columns([1, 2], gap="medium")
    with right:
        st.subheader("One head", anchor=False)
        layer, head = choose_head(chosen)
        one_head(chosen, layer, head)
    with left:
        st.subheader("All heads", anchor=False)
        st.caption("Row: query, column: key. Click a head, or move with the arrow keys.")
        grid(chosen, (layer, head))
    linker_section(chosen, layer, head)
    head_scores(chosen, (layer, head))
    circuits(chosen, layer, head)


frame("Attention", "Every token asks (query), every token answers (key): who looks at whom, in every head.", draw)
