"""How every page begins: through app.py, with its title, in a column as wide as figures need."""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from gptviz.ui import live
from gptviz.ui.switch import arrive

LAYOUT = (  # Streamlit leaves wide margins; tables and figures need the room
    "<style>.stMainBlockContainer{max-width:1400px;padding:3rem 2rem 4rem}"
    ".stButtonGroup button[aria-checked=true]{color:inherit!important}"  # in the theme's own colour it is hard to read
    "@media(max-width:640px){.stMainBlockContainer{padding:3rem 1rem 4rem}}</style>"
)


def open_page(title: str, sentence: str) -> None:
    """The page's title and, below it, what it shows in one sentence."""
    by_way_of_app()
    arrive()
    live.begin()
    st.html(LAYOUT)
    st.title(title, anchor=False)
    st.caption(sentence)


def by_way_of_app() -> None:
    """Start over through app.py where Streamlit ran a page on its own.

    Beside a folder called pages/, a server runs its first deep link without app.py, under a menu of file names, until
    st.navigation has run once. There is no setting for it.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
