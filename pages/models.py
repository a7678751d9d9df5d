"""Models: what is there, where it came from; add one, remove one."""

import streamlit as st

from gptviz.ui.route import open_page

open_page(
    "Models",
    "Every page shows any of these. Add your own: it is checked first, and what can't be read says why.",
)

from gptviz.ui.models import adding, cards  # noqa: E402 - the title is on the screen before they are read

cards.cards()
st.header("Add a model", anchor=False)
adding.add_form()
