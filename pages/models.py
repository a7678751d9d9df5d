"""Models: what is there, where it came from; add one, remove one."""

import streamlit as st

from gptviz.ui.route import by_way_of_app
from gptviz.ui.sizing import text

by_way_of_app()
st.html(text.WIDE)
st.title("Models", anchor=False)
st.caption("Every page shows any of these. Add your own: it is checked first, and what can't be read says why.")

from gptviz.ui.models import adding, cards  # noqa: E402 - the title is on the screen before they are read

cards.cards()
st.header("Add a model", anchor=False)
adding.add_form()
