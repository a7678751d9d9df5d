"""Watch a model learn: a time-lapse of a run that has been, and a training that goes on."""

import streamlit as st

from gptviz.ui.frame import LAYOUT
from gptviz.ui.route import by_way_of_app
from gptviz.ui.training import live, timelapse

VIEWS = {"Time-lapse": timelapse.show, "Live": live.show}

by_way_of_app()
st.html(f"<style>{LAYOUT}</style>")
st.title("Training", anchor=False)
st.caption("A model begins with random weights. Watch what its heads become, or train one of your own.")
view = st.segmented_control(
    "View",
    list(VIEWS),
    default="Time-lapse",
    required=True,
    key="training_view",
    label_visibility="collapsed",
    bind="query-params",
)
VIEWS[view]()
