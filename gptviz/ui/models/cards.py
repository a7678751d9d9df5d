"""The library as cards: what each model is, where it came from, how good it is. Needs no torch."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import streamlit as st

from gptviz import library, sizing
from gptviz.config import GPTConfig
from gptviz.errors import GptvizError
from gptviz.figures.style import number
from gptviz.ui.card import is_number, validation
from gptviz.ui.markdown import literal

CSS = (
    "<style>h3.gptviz-model{margin:0;padding:0;font-size:1.125rem;overflow-wrap:anywhere}"
    "h3.gptviz-model small{margin-left:.75rem;font-size:.8125rem;font-weight:400;opacity:.7}"
    "dl.gptviz-facts{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}"
    "dl.gptviz-facts{margin:0;padding:0;font-size:.875rem}dl.gptviz-facts dt{opacity:.7}"
    "dl.gptviz-facts dt,dl.gptviz-facts dd{margin:0;padding:0}"
    "dl.gptviz-facts dd{overflow-wrap:anywhere}</style>"
)


def cards() -> None:
    """A card a model, two beside each other, the one that comes first marked."""
    entries = library.entries()
    first = library.default() or next((entry.name for entry in entries), None)
    columns = st.columns(2)
    for number_, entry in enumerate(entries):
        with columns[number_ % 2], st.container(border=True, key=f"card-{number_}"):
            _card(entry, entry.name == first)


def _card(entry: library.Entry, is_first: bool) -> None:
    marks = ["added here" if entry.added else "comes with gptviz", *(["comes first"] if is_first else [])]
    st.html(f"{CSS}<h3 class='gptviz-model'>{html.escape(entry.name)}<small>{' · '.join(marks)}</small></h3>")
    if entry.config is None:
        st.error(literal(f"Its folder can't be read: {entry.fault}"))
    else:
        st.html(_list(_facts(entry.config, entry.card)))
    _buttons(entry, is_first)


def _facts(config: GPTConfig, card: Mapping[str, Any]) -> dict[str, str]:
    """What a card says, in its order; what nobody noted is left out."""
    said = {
        "Parameters": f"{sizing.n_params(config):,}",
        "Architecture": library.in_words(config),
        "Training": _training(card),
        "Validation": validation(card, config),
        "Texts": _words(card, "text", "source"),
        "Licence": _words(card, "licence"),
        "Origin": _words(card, "origin"),
    }
    return {name: text for name, text in said.items() if text}


def _list(facts: Mapping[str, str]) -> str:
    """Text comes from a file, so every word of it is escaped."""
    rows = "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in facts.items())
    return f"<dl class='gptviz-facts'>{rows}</dl>"


def _words(card: Mapping[str, Any], *names: str) -> str:
    return ", ".join(str(card[name])[:200] for name in names if isinstance(card.get(name), str) and card[name])


def _training(card: Mapping[str, Any]) -> str:
    counted = [(card.get("steps"), "steps"), (card.get("tokens_seen"), "tokens"), (card.get("wall_minutes"), "minutes")]
    shown = [f"{number(value)} {unit}" for value, unit in counted if is_number(value)]
    return ", ".join([*shown, *filter(None, [_words(card, "date")])])


def _buttons(entry: library.Entry, is_first: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Let it come first",
            key=f"first {entry.name}",
            disabled=is_first or entry.config is None,
            help="The model that pages open with, on this machine.",
            on_click=_set_first,
            args=(entry.name,),
        )
        if entry.added:
            with st.popover("Remove"):
                st.text(f"Delete {entry.name} from this machine?")
                st.button("Delete", key=f"remove {entry.name}", type="primary", on_click=_remove, args=(entry.name,))


def _set_first(name: str) -> None:
    try:
        library.set_default(name)
    except (GptvizError, OSError) as error:
        st.session_state.models_said = str(error)


def _remove(name: str) -> None:
    try:
        library.remove(name)
    except (GptvizError, OSError) as error:
        st.session_state.models_said = str(error)
        return
    st.cache_resource.clear()  # what was computed goes by the model's name, and another may get it
    st.cache_data.clear()
