"""Watch a model learn: a time-lapse of a run that has been, and a training that goes on."""

import streamlit as st

from gptviz.ui.route import open_page
from gptviz.ui.training import live, timelapse

VIEWS = {"Time-lapse": timelapse.show, "Live": live.show}

open_page("Training", "A model begins with random weights. Watch what its heads become, or train one of your own.")
view = st.segmented_control(
    "View",
    list(VIEWS),
    default="Time-lapse",
    required=True,
    key="training_view",
    label_visibility="collapsed",
    bind="query-params",
)
if view != "Live":
    live.notice()
VIEWS[view]()
