"""gptviz: `streamlit run app.py`. Lists the pages; each of them draws itself."""

import streamlit as st

st.set_page_config(page_title="gptviz", page_icon="gptviz/ui/icon.svg", layout="wide")

PAGES = [
    st.Page("pages/overview.py", title="Overview", icon=":material/account_tree:", default=True),
    st.Page("pages/attention.py", title="Attention", icon=":material/grid_view:"),
    st.Page("pages/sizing.py", title="Sizing", icon=":material/straighten:"),
]
st.navigation(PAGES).run()
