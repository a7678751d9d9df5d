"""Sizing: parameters, memory and operations from a configuration alone. Imports no torch."""

import streamlit as st

from gptviz.ui.route import by_way_of_app
from gptviz.ui.sizing import text

by_way_of_app()
st.html(text.WIDE)
st.title("Sizing", anchor=False)
st.caption("How big is it, does it fit, what does it cost? Worked out from the configuration; no weights are needed.")

from gptviz.ui.sizing import controls, parts, redraw  # noqa: E402 - the title is on the screen before they are read

redraw.begin()
with st.sidebar:
    controls.draw_editor()
controls.draw_workload()
parts.headline()
controls.draw_view()
parts.options()
parts.view()
parts.formula()
redraw.end()
