"""Sizing: parameters, memory and operations from a configuration alone. Imports no torch."""

import streamlit as st

from gptviz.ui import live
from gptviz.ui.route import open_page

open_page(
    "Sizing",
    "How big is it, does it fit, what does it cost? Worked out from the configuration; no weights are needed.",
)

from gptviz.ui.sizing import controls, parts  # noqa: E402 - the title is on the screen before they are read

with st.sidebar:
    controls.draw_editor()
controls.draw_workload()
parts.headline()
controls.draw_view()
parts.options()
parts.view()
parts.formula()
live.end()
