"""The next token: its distribution, the sampling settings, and the buttons that move along the text."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures.next_token import next_token_bars
from gptviz.figures.style import Theme
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.components.tick import tick
from gptviz.ui.live import part, redraw, resample
from gptviz.ui.numbers import vocabulary
from gptviz.ui.selection import Selection, select
from gptviz.ui.switch import stay

if TYPE_CHECKING:
    from gptviz import Step

LONGEST_PLAY = 400  # tokens
PACE = 9.0  # tokens a second that Play keeps: where the browser draws fewer, it skips some
MOST_AT_ONCE = 4  # between two drawings, so that Stop is never far behind
SHOWN_CANDIDATES = 7
STREAM = "played from"  # in the session: what Play's tokens come from, and where that stands


def next_token() -> None:
    controls, picture = st.columns([2, 3], gap="medium", border=True)
    with controls:
        st.markdown(
            "**Next token**", help="The draw for this seed and place falls on the token marked ◆: Step adds it."
        )
        _transport()
        _settings()
    with picture:
        part("next token", _bars, sampled=True)


def _settings() -> None:
    then: dict[str, Any] = dict(bind="query-params", on_change=resample)
    with st.expander("Sampling settings"):
        st.slider("Temperature", 0.0, 2.0, 0.8, 0.05, key="temperature", help="0: the likeliest token.", **then)
        st.number_input("Top-k", 0, None, 40, key="top_k", help="Keep this many tokens; 0 is off.", **then)
        st.slider("Top-p", 0.0, 1.0, 1.0, 0.01, key="top_p", help="Keep the fewest that hold p; 1: off.", **then)
        st.slider("Min-p", 0.0, 1.0, 0.0, 0.01, key="min_p", help="Keep p × the best's share; 0: off.", **then)
        st.number_input("Seed", 0, 2**31 - 1, 0, key="seed", help="Chooses the draws.", **then)


def settings() -> dict[str, Any]:
    """The sampling settings, as next_token_table takes them; 0 and the neutral ends switch a filter off."""
    chosen = st.session_state
    filters = dict(top_k=chosen.top_k or None, top_p=chosen.top_p if chosen.top_p < 1 else None)
    return dict(temperature=chosen.temperature, **filters, min_p=chosen.min_p or None)


def _upcoming(selection: Selection) -> Step:
    """The token that Step will add."""
    from gptviz import sampling

    size, seed = vocabulary(selection.variant.name), st.session_state.seed
    logits = selection.run.logits[-1, :size]
    return sampling.sample(logits, **settings(), seed=seed, position=len(selection.whole))


def _bars() -> None:
    try:
        selection = select()
    except GptvizError:  # said beside the tokens
        return
    if selection is None:
        return
    step = _upcoming(selection)
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


def _transport() -> None:
    playing, generated = st.session_state.playing, bool(st.session_state.generated)
    full = len(st.session_state.generated) >= LONGEST_PLAY
    with st.container(horizontal=True):
        _button("Step", "skip_next", playing, _step)
        _button("Play", "play_arrow", playing or full, _play, True)
        _button("Stop", "stop", not playing, _play, False)
        _button("Back", "undo", not generated, _back)
        _button("Reset", "restart_alt", not generated, state.forget_generated)
    if full:
        st.caption(f"{LONGEST_PLAY} tokens are as far as Play goes. Step still adds one; Reset starts again.")


def _button(label: str, icon: str, disabled: bool, then: Callable[..., None], *args: Any) -> None:
    st.button(label, icon=f":material/{icon}:", key=label.lower(), on_click=then, args=args, disabled=disabled)


def _append() -> int | None:
    """Add the token that is marked; None where there is nothing to add one to."""
    selection = select()
    if selection is None:
        return None
    token = _upcoming(selection).token
    st.session_state.generated += (token,)
    return token


def _step() -> None:
    _append()
    if 1 < len(st.session_state.generated) < LONGEST_PLAY:  # else other buttons come on or go off
        redraw()


def _back() -> None:
    played, st.session_state.playing = st.session_state.playing, False
    st.session_state.generated = st.session_state.generated[:-1]
    if st.session_state.generated and not played and len(st.session_state.generated) != LONGEST_PLAY - 1:
        redraw()


def _play(on: bool) -> None:
    st.session_state.playing = on
    if on:
        st.session_state.last_tick = time.monotonic(), 0.0
        _append()


def metronome() -> None:
    """While it plays, the browser asks for the next token each time it has painted the last."""
    part("metronome", _metronome)


def _metronome() -> None:
    if st.session_state.playing:
        tick(key="metronome", on_tick=_tick)
    else:
        st.session_state.pop(STREAM, None)  # its KV cache is as large as the text is long


def _tick() -> None:
    stay()
    if not st.session_state.playing:
        return
    st.session_state.playing = _generate(_due())
    if st.session_state.playing:
        redraw()
    st.rerun()


def _generate(count: int) -> bool:
    """Add so many tokens; whether there are more to come. What generates them is kept from tick to tick."""
    selection = select()
    if selection is None:
        return False
    here = selection.variant, settings(), st.session_state.seed
    then, whole, steps = st.session_state.get(STREAM, (None, None, None))
    if (then, whole) != (here, selection.whole):
        steps = _steps(selection)
    whole, bos = selection.whole, state.checkpoint(selection.variant.name).tokenizer.bos_id
    for step in itertools.islice(steps, count):
        whole += (step.token,)
        st.session_state.generated += (step.token,)
        if step.token == bos or len(st.session_state.generated) >= LONGEST_PLAY:
            return False
    st.session_state[STREAM] = here, whole, steps
    return True


def _steps(selection: Selection) -> Iterator[Step]:
    """What follows, with the KV cache of what came before."""
    import torch

    import gptviz

    model, ids, size = state.model(selection.variant), torch.tensor(selection.whole), vocabulary(selection.variant.name)
    return gptviz.generate(model, ids, LONGEST_PLAY, **settings(), seed=st.session_state.seed, size=size)


def _due() -> int:
    """How many tokens keep the pace, since the last tick: one, where the browser draws as fast."""
    then, owed = st.session_state.get("last_tick", (time.monotonic(), 0.0))
    now = time.monotonic()
    owed += (now - then) * PACE
    due = min(max(1, int(owed)), MOST_AT_ONCE)
    st.session_state.last_tick = now, min(max(0.0, owed - due), 1.0)
    return due
