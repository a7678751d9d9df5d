"""The way every visit takes: through app.py."""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager


def by_way_of_app() -> None:
    """Start over through app.py where Streamlit ran a page on its own.

    Beside a folder called pages/, a server runs its first deep link without app.py, under a menu of file names, until
    st.navigation has run once. There is no setting for it.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
