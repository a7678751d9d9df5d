"""The next token: its distribution, the sampling settings, and the buttons that move along the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures.next_token import next_token_bars
from gptviz.figures.style import Theme
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.components.presses import count_presses, presses
from gptviz.ui.live import part, redraw, resample
from gptviz.ui.numbers import vocabulary
from gptviz.ui.played import hear
from gptviz.ui.selection import Selection, select

if TYPE_CHECKING:
    from gptviz import Step

LONGEST_PLAY = 400  # tokens
BUTTONS = "buttons as drawn"  # in the session
SHOWN_CANDIDATES = 7
NEUTRAL = dict(temperature=1.0, top_k=None, top_p=None, min_p=None)  # settings that leave the distribution as it is
KEY, ALT = "next_token", "The most likely next tokens and their probabilities, as bars."


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
    if selection is not None:
        plot(bars(selection), key=KEY, alt=ALT)


def bars(selection: Selection) -> go.Figure:
    """The likeliest of the next tokens, and which of them Step will add."""
    step = _upcoming(selection)
    tokenizer = state.checkpoint(selection.variant.name).tokenizer
    shown = step.logits.argsort(descending=True, stable=True)[:SHOWN_CANDIDATES].tolist()  # those filtered out as well
    shown += [step.token] if step.token not in shown else []
    labels, shares = tuple(tokenizer.labels(shown)), tuple(step.probs[shown].tolist())
    draw = step.draw if st.session_state.temperature else None  # at temperature 0 nothing is drawn
    measured = "probability" if settings() == NEUTRAL else "probability under the sampling settings"
    return _figure(labels, shares, selection.theme, shown.index(step.token), draw, measured)


@st.cache_resource(show_spinner=False, max_entries=64)
def _figure(
    labels: tuple[str, ...], shares: tuple[float, ...], theme: Theme, sampled: int, draw: float | None, measured: str
) -> go.Figure:
    """Built once for what it shows: most reruns leave the next token as it was."""
    return next_token_bars(labels, np.array(shares), theme=theme, sampled=sampled, draw=draw, measured=measured)


class Buttons(NamedTuple):
    """What the buttons depend on."""

    playing: bool
    generated: bool  # there is some
    full: bool  # as much as Play may write
    ready: bool  # there is something to go on from


def follow_text() -> None:
    """The end of a callback that changed the text, or what is made of it: draws the parts, or all for other buttons.

    What counts is what was drawn: a change before this one may have been cut off before it came to the buttons.
    """
    if not stale_buttons():
        redraw()


def stale_buttons() -> bool:
    """Whether the buttons on screen are those of before: what was to draw them was cut off."""
    return st.session_state.get(BUTTONS) != _buttons()


def _buttons() -> Buttons:
    try:
        ready = select() is not None
    except GptvizError:  # said beside the tokens
        ready = False
    generated = st.session_state.generated
    return Buttons(st.session_state.playing, bool(generated), len(generated) >= LONGEST_PLAY, ready)


def _transport() -> None:
    buttons = _buttons()
    playing, generated, full, ready = buttons
    with st.container(horizontal=True):
        _button("Step", "skip_next", playing or not ready)
        _button("Play", "play_arrow", playing or full or not ready)
        _button("Stop", "stop", not playing)
        _button("Back", "undo", not generated)
        _button("Reset", "restart_alt", not generated)
    count_presses(*PRESSED)
    if not ready:
        st.caption("There is no text that the model can go on from.")
    if full:
        st.caption(f"{LONGEST_PLAY} tokens are as far as Play goes. Step still adds one; Reset starts again.")
    st.session_state[BUTTONS] = buttons


def _button(label: str, icon: str, disabled: bool) -> None:
    key = label.lower()
    st.button(label, icon=f":material/{icon}:", key=key, on_click=_press, args=(key,), disabled=disabled)


def _press(button: str) -> None:
    """What was pressed since the last time, in its order."""
    for pressed in presses(button):
        PRESSED[pressed]()
    follow_text()


def _step() -> None:
    """Add the token that is marked, where there is something to add one to."""
    selection = select()
    if selection is not None:
        st.session_state.generated += (_upcoming(selection).token,)


def _play() -> None:
    st.session_state.playing = True
    _step()


def _stop() -> None:
    st.session_state.playing = False


def _back() -> None:
    hear()
    st.session_state.playing = False
    st.session_state.generated = st.session_state.generated[:-1]


PRESSED = {"step": _step, "play": _play, "stop": _stop, "back": _back, "reset": state.forget_generated}
