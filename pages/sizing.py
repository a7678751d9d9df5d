"""Sizing: parameters, memory and operations from a configuration alone. Imports no torch."""

import streamlit as st

from gptviz.ui.route import by_way_of_app
from gptviz.ui.sizing import controls, trends, views

VIEWS = {
    "Parameters": views.parameters,
    "Memory": views.memory,
    "Operations": views.compute,
    "Growth": trends.growth,
    "Compare": trends.compare,
}

by_way_of_app()
st.title("Sizing")
st.markdown("How big is it, does it fit, what does it cost? Worked out from the configuration; no weights are needed.")
chosen = controls.choose()
views.headline(chosen)
view = st.segmented_control(
    "View",
    list(VIEWS),
    default="Parameters",
    required=True,
    key="view",
    label_visibility="collapsed",
    bind="query-params",
)
VIEWS[view](chosen)
