"""All heads, one head, and the stages by which its pattern comes about."""

import streamlit as st

from gptviz.ui.attention import heads, linker
from gptviz.ui.attention.circuits import ask_for_circuits, circuits
from gptviz.ui.attention.one_head import ahead_of_play, one_head
from gptviz.ui.frame import Selection, follow, frame
from gptviz.ui.live import part


def all_and_one(chosen: Selection) -> None:
    left, right = st.columns([1, 2], gap="medium")
    with left:
        st.subheader("All heads", anchor=False)
        st.caption("Row: query, column: key. Click a head, or move with the arrow keys.")
        heads.grid(chosen, heads.chosen_head())
    with right:
        st.subheader("One head", anchor=False)
        one_head(chosen, *heads.chosen_head())


def body() -> None:
    part(heads.CHOICE, heads.choice, follows=False)
    follow(heads.GRID, all_and_one)
    st.subheader(linker.TITLE, anchor=False)
    st.caption(linker.SENTENCE)
    follow("linker", linker.linker_section)
    heads.choose_score()
    follow(heads.SCORE, heads.head_scores)
    ask_for_circuits()
    follow("circuits", circuits)


frame(
    "Attention",
    "Every token asks (query), every token answers (key): who looks at whom, in every head.",
    body,
    ahead=ahead_of_play,
)
