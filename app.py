"""gptviz: `streamlit run app.py`. Lists the pages; each of them draws itself."""

import os

import streamlit as st

from gptviz.ui.switch import settle

# Threads of torch that wait for one another leave the core to the browser meanwhile: said before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

st.set_page_config(page_title="gptviz", page_icon="gptviz/ui/icon.svg", layout="wide")

PAGES = [
    st.Page("pages/overview.py", title="Overview", icon=":material/account_tree:", default=True),
    st.Page("pages/embeddings.py", title="Embeddings", icon=":material/scatter_plot:"),
    st.Page("pages/attention.py", title="Attention", icon=":material/grid_view:"),
    st.Page("pages/feed_forward.py", title="Feed-forward", icon=":material/grain:"),
    st.Page("pages/residual_stream.py", title="Residual stream", icon=":material/timeline:"),
    st.Page("pages/sampling.py", title="Sampling", icon=":material/casino:"),
    st.Page("pages/training.py", title="Training", icon=":material/model_training:"),
    st.Page("pages/sizing.py", title="Sizing", icon=":material/straighten:"),
    st.Page("pages/models.py", title="Models", icon=":material/deployed_code:"),
]
st.navigation(PAGES).run()
settle()
