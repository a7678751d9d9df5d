"""The next token: its distribution, the sampling settings, and the buttons that move along the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures.next_token import next_token_bars
from gptviz.figures.style import Theme
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz import Step

PLAY_INTERVAL = 0.05  # seconds between the end of one repaint and the next token
LONGEST_PLAY = 400  # tokens
SHOWN_CANDIDATES = 7


def next_token(selection: Selection) -> None:
    controls, picture = st.columns([2, 3], gap="medium", border=True)
    with controls:
        st.markdown(
            "**Next token**", help="The draw for this seed and place falls on the token marked ◆: Step adds it."
        )
        buttons = st.container()
        settings = _settings()
    step = _upcoming(selection, settings)
    with buttons:
        _transport(step)
    with picture:
        _bars(selection, step)


def _settings() -> dict[str, Any]:
    """The sampling settings, as next_token_table takes them; 0 and the neutral ends switch a filter off."""
    with st.expander("Sampling settings"):
        temperature = st.slider(
            "Temperature",
            0.0,
            2.0,
            0.8,
            0.05,
            key="temperature",
            bind="query-params",
            help="0: the likeliest token.",
        )
        top_k = st.number_input(
            "Top-k", 0, None, 40, key="top_k", bind="query-params", help="Keep this many tokens; 0 is off."
        )
        top_p = st.slider(
            "Top-p",
            0.0,
            1.0,
            1.0,
            0.01,
            key="top_p",
            bind="query-params",
            help="Keep the fewest that hold p; 1: off.",
        )
        min_p = st.slider(
            "Min-p",
            0.0,
            1.0,
            0.0,
            0.01,
            key="min_p",
            bind="query-params",
            help="Keep p × the best's share; 0: off.",
        )
        st.number_input("Seed", 0, 2**31 - 1, 0, key="seed", bind="query-params", help="Chooses the draws.")
    return dict(temperature=temperature, top_k=top_k or None, top_p=top_p if top_p < 1 else None, min_p=min_p or None)


def _upcoming(selection: Selection, settings: dict[str, Any]) -> Step:
    """The token that Step will add."""
    from gptviz import sampling

    seed = st.session_state.seed
    typed = len(st.session_state.last_typed[selection.variant.name])
    position = typed + len(st.session_state.generated)
    size = len(state.checkpoint(selection.variant.name).tokenizer)  # rows of W_U beyond are padding, no tokens
    return sampling.sample(selection.run.logits[-1, :size], **settings, seed=seed, position=position)


def _bars(selection: Selection, step: Step) -> None:
    tokenizer = state.checkpoint(selection.variant.name).tokenizer
    shown = step.probs.argsort(descending=True, stable=True)[:SHOWN_CANDIDATES].tolist()
    shown += [step.token] if step.token not in shown else []
    labels, shares = tuple(tokenizer.labels(shown)), tuple(step.probs[shown].tolist())
    figure = _figure(labels, shares, selection.theme, shown.index(step.token), step.draw)
    plot(figure, key="next_token", alt="The most likely next tokens and their probabilities, as bars.")


@st.cache_resource(show_spinner=False, max_entries=64)
def _figure(labels: tuple[str, ...], shares: tuple[float, ...], theme: Theme, sampled: int, draw: float) -> go.Figure:
    """Built once for what it shows: most reruns leave the next token as it was."""
    return next_token_bars(labels, np.array(shares), theme=theme, sampled=sampled, argmax=0, draw=draw)


def _transport(step: Step) -> None:
    playing, generated = st.session_state.playing, bool(st.session_state.generated)
    full = len(st.session_state.generated) >= LONGEST_PLAY
    with st.container(horizontal=True):
        _button("Step", "skip_next", playing, _append, step.token)
        _button("Play", "play_arrow", playing or full, _play, True)
        _button("Stop", "stop", not playing, _play, False)
        _button("Back", "undo", not generated, _back)
        _button("Reset", "restart_alt", not generated, state.forget_generated)
    if full:
        st.caption(f"{LONGEST_PLAY} tokens are as far as Play goes. Step still adds one; Reset starts again.")
    _ticker(step, playing)


def _button(label: str, icon: str, disabled: bool, then: Callable[..., None], *args: Any) -> None:
    st.button(label, icon=f":material/{icon}:", key=label.lower(), on_click=then, args=args, disabled=disabled)


def _append(token: int) -> None:
    st.session_state.generated += (token,)


def _back() -> None:
    st.session_state.playing = False
    st.session_state.generated = st.session_state.generated[:-1]


def _play(on: bool) -> None:
    st.session_state.playing = on


def _ticker(step: Step, playing: bool) -> None:
    """The browser asks for the next token once it has painted the last: each tick adds one and redraws the page.

    It is there when nothing plays too, without a timer, so that a tick on its way when Stop is pressed finds it.
    """
    st.session_state["drawing"] = drawing = st.session_state.get("drawing", 0) + 1
    st.fragment(_tick, run_every=PLAY_INTERVAL if playing else None)(step.token, drawing)


def _tick(token: int, drawing: int) -> None:
    if st.session_state.get("drawn") != drawing:  # called by the page itself, not by a tick
        st.session_state["drawn"] = drawing
        return
    if not st.session_state.playing:
        return
    _append(token)
    bos = state.checkpoint(st.session_state.model).tokenizer.bos_id
    if token == bos or len(st.session_state.generated) >= LONGEST_PLAY:
        st.session_state.playing = False
    st.rerun()
