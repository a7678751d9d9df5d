"""What every page shares: the model and its toggles, the prompt, the next token; and what it all selects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures.style import number
from gptviz.ui import live, state
from gptviz.ui.badge import badge
from gptviz.ui.card import validation
from gptviz.ui.live import part
from gptviz.ui.markdown import literal
from gptviz.ui.play import Ahead, metronome
from gptviz.ui.prompt import prompt_box, show_tokens
from gptviz.ui.route import open_page
from gptviz.ui.selection import COUNTERPART, SWAPPED, Selection, select
from gptviz.ui.transport import follow_text, next_token

if TYPE_CHECKING:
    from gptviz import GPTConfig

__all__ = ["Selection", "follow", "frame", "page"]

ENCODINGS = ("learned", "sinusoidal", "rotary", "alibi", "none")


def frame(title: str, sentence: str, body: Callable[[], None], ahead: Ahead | None = None) -> None:
    """Draw the shared controls, and below them the page's own; what follows them, the body puts in parts: `follow`.

    ahead: what plots of the body's show of a text: Play has the browser draw them token by token.
    """
    open_page(title, sentence)
    state.start()
    with st.spinner("Starting PyTorch: a few seconds, once for each start of the app."):
        state.import_torch()
    try:
        _sidebar()
        prompt_box()
    except GptvizError as error:  # the controls above stay, to choose otherwise
        st.error(literal(str(error)))
        st.stop()
    state.see("model", "prompt")
    part("tokens", _tokens)
    next_token()
    body()
    metronome(ahead)
    live.end()


def _tokens() -> None:
    """What the model sees, and what is to be said of it."""
    try:
        selection = select()
        show_tokens(selection)
        if selection is not None:
            badge(selection)
    except GptvizError as error:
        st.error(literal(str(error)))


def follow(name: str, draw: Callable[[Selection], None], *, sampled: bool = False) -> None:
    """A part of the page: drawn from what is selected, here and now and whenever that changes.

    One that is sampled is drawn from the sampling settings, too.
    """

    @functools.wraps(draw)
    def drawn() -> None:
        try:
            selection = select()
        except GptvizError:  # said above, beside the tokens
            return
        if selection is None:
            return
        try:
            draw(selection)
        except GptvizError as error:
            st.error(literal(str(error)))

    part(name, drawn, sampled=sampled)


def page(draw: Callable[[Selection], None]) -> Callable[[], None]:
    """The body of a page that is one part."""
    return lambda: follow("page", draw)


def _names() -> list[str]:
    import gptviz
    from gptviz import library

    names = sorted([*gptviz.bundled(), *library.added()], key=lambda name: name != library.default())
    if not names:
        st.error("There is no model in checkpoints/. Train one: `python -m gptviz.training --help` says how.")
        st.stop()
    return names


def _sidebar() -> None:
    with st.sidebar:
        name = st.selectbox("Model", _names(), key="model", bind="query-params", on_change=_forget_toggles)
        with st.spinner(f"Reading {literal(name)}."):
            config = state.checkpoint(name).model.config
        st.toggle(
            "Causal mask",
            value=config.causal,
            key="causal",
            bind="query-params",
            on_change=follow_text,
            help="On, a token sees itself and what came before. Off, it sees the future too: prediction is cheating.",
        )
        st.selectbox(
            "Positional encoding",
            ENCODINGS,
            index=ENCODINGS.index(config.pos_encoding),
            key="encoding",
            bind="query-params",
            on_change=follow_text,
            help="How the model is told where a token stands. Another one is swapped in: the weights never saw it.",
        )
        st.caption(f"Trained: {config.pos_encoding}, mask {'on' if config.causal else 'off'}.")
        if state.has_counterparts(name):
            st.radio(
                "Another mask or encoding is",
                [SWAPPED, COUNTERPART],
                key="other",
                bind="query-params",
                on_change=follow_text,
                help="Swapped in place, the weights never saw it. The counterpart is a model that was trained with it.",
            )
        _describe(name, config)


def _forget_toggles() -> None:
    """Another model begins as it was trained, with nothing generated yet."""
    if not state.changed("model"):
        return
    for key in ("other", "bos", "layer", "head", "cell"):
        st.session_state.pop(key, None)
    config = state.checkpoint(st.session_state.model).model.config
    st.session_state.causal, st.session_state.encoding = config.causal, config.pos_encoding
    state.forget_generated()


def _describe(name: str, config: GPTConfig) -> None:
    from gptviz import sizing
    from gptviz.library import many

    heads = f"{many(config.n_layer, 'layer')} × {many(config.n_head, 'head')}"
    st.caption(
        f"{number(sizing.n_params(config))} parameters: {heads}, n_embd (d_model) {config.n_embd}, "
        f"vocabulary {config.vocab_size:,}, context {config.block_size:,} tokens."
    )
    if words := validation(state.checkpoint(name).card, config):
        st.caption(f"Validation: {words}.")
