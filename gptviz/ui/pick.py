"""Choosing a layer, a head or a token of the prompt: the same on every page, under the same names in the address."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz import GPTConfig

LAST = -1  # whatever token is the last one: it moves on as the text grows


def pick_layer(config: GPTConfig, then: Callable[[], None] | None = None) -> int:
    """The layer, shared with the Attention page; `then` follows a choice."""
    return st.selectbox("Layer", range(config.n_layer), key="layer", bind="query-params", width=120, on_change=then)


def pick_head(config: GPTConfig, then: Callable[[], None] | None = None) -> int:
    """The head, shared with the Attention page; `then` follows a choice."""
    return st.selectbox("Head", range(config.n_head), key="head", bind="query-params", width=120, on_change=then)


def pick_position(chosen: Selection, label: str = "Token", key: str = "position", default: int = LAST) -> int:
    """A position of the prompt: `default` unless another is chosen."""
    size = len(chosen.ids)

    def words(at: int) -> str:
        return "the last token" if at == LAST else f"{at} {chosen.labels[at]}"

    options = [LAST, *range(size)]
    at = st.selectbox(
        label, options, options.index(default), key=key, bind="query-params", format_func=words, width=200
    )
    return size - 1 if at == LAST else at


def pick_window(label: str, key: str, length: int, most: int) -> int:
    """The first of the `most` that are drawn at a time: a choice only where not all fit."""
    if length <= most:
        return 0
    return st.selectbox(
        label,
        range(0, length, most),
        key=key,
        bind="query-params",
        format_func=lambda start: f"{start} to {min(start + most, length) - 1}",
        width=160,
    )
