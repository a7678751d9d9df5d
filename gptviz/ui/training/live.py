"""The Training page's live half: start a training, watch it, pause, resume and stop it. Needs no torch.

The training is a process of its own (gptviz.training.live), so that it goes on without this page.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures.style import number
from gptviz.figures.training import loss_curve
from gptviz.training.live import Live, Status
from gptviz.training.report import curves
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.markdown import literal
from gptviz.ui.training import form

POLL = 1.0  # seconds between two looks at a training that is going on
GOING_ON = ("running", "stopping")
ERROR = "training error"  # in the session: what the last button could not do
PHASES = {
    "running": "is going on",
    "stopping": "is being stopped and saved",
    "paused": "is paused",
    "finished": "has finished",
    "failed": "has failed",
}


def show() -> None:
    st.caption(
        "A server trains one model at a time, in a process of its own: it goes on when you leave this page or close "
        "the tab, and is here when you come back."
    )
    status = Live().status()
    if error := st.session_state.pop(ERROR, None):
        st.error(literal(error))
    if status.phase == "none":
        form.draw(_do)
        return
    phase = status.phase
    st.fragment(lambda: _watch(phase), run_every=POLL if phase in GOING_ON else None)()


def notice() -> None:
    """Where the page shows something else: that there is a training, and how it stands."""
    status = Live().status()
    if status.phase != "none":
        st.info(f"The training of {literal(status.name)} {PHASES[status.phase]}: see Live.")


def _watch(phase: str) -> None:
    """The training as it stands; the whole page again once it is no longer in the phase that the page was drawn in."""
    status = Live().status()
    if status.phase != phase:
        st.rerun()
    st.subheader(f"Training {PHASES[phase]}", anchor=False)
    st.text(f"{status.name}: learning from {status.text_name}")
    _progress(status)
    _buttons(phase)
    _outcome(status)
    if status.lines:
        _curve_and_samples(status)


def _progress(status: Status) -> None:
    st.progress(min(1.0, status.step / max(1, status.steps)), text=f"Step {status.step:,} of {status.steps:,}")
    if not status.lines:
        if status.phase == "running":
            st.caption("Starting PyTorch, reading the text, learning its vocabulary: some seconds.")
        return
    last = status.lines[-1]
    watched = [line["val_loss"] for line in status.lines if line["val_loss"] is not None]
    left = (status.steps - status.step) * last["tokens"] / status.step / last["tokens_per_second"]
    shown = [f"loss **{number(last['loss'])}**"]
    if watched:
        shown.append(f"on held-out text **{number(watched[-1])}**")
    shown += [f"{number(last['tokens_per_second'])} tokens/s", f"learning rate {number(last['learning_rate'])}"]
    shown.append(f"gradient norm {number(last['gradient_norm'])}")
    if status.phase == "running":
        shown.append(f"about {_duration(left)} left")
    st.markdown(" · ".join(shown))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _buttons(phase: str) -> None:
    live = Live()
    with st.container(horizontal=True):
        if phase in GOING_ON:
            stopping = phase == "stopping"
            _button(
                "Pause", "pause", live.pause, "Saves the state after this step; Resume goes on from there.", stopping
            )
            _button("Stop", "stop", live.stop, "Ends here and saves what was learned so far as a model.", stopping)
        elif phase in ("paused", "failed"):
            _button("Resume", "play_arrow", live.resume, "Goes on from the last save, exactly as if nothing had been.")
            _button("Save as it is", "save", live.stop, "Saves what was learned so far as a model.")
            _button("Discard", "delete", live.discard, "Forgets this training.")
        else:
            _button("Train another", "add", live.discard, "The model stays in the library.")


def _button(label: str, icon: str, then: Callable[[], None], hint: str, disabled: bool = False) -> None:
    key = "live_" + label.lower().replace(" ", "_")
    st.button(label, icon=f":material/{icon}:", key=key, on_click=_do, args=(then,), help=hint, disabled=disabled)


def _do(then: Callable[..., None], *args: Any) -> None:
    """A button's work: what can't be done is said where the page is drawn next."""
    try:
        then(*args)
    except GptvizError as error:
        st.session_state[ERROR] = str(error)


def _outcome(status: Status) -> None:
    if status.phase == "failed":
        st.error(literal(status.reason))
        kept = "The last save is kept: Resume goes on from there." if status.kept else "It had not saved anything yet."
        st.caption(kept)
    if status.phase == "finished" and status.out is not None:
        st.success(
            f"The model is in the library: choose {literal(status.name)} in the sidebar of any other page, "
            f"or take `gptviz.load({status.name!r})` in Python."
        )
        _results(status)


def _results(status: Status) -> None:
    try:
        card = json.loads((status.out / "card.json").read_text(encoding="utf-8")) if status.out else {}
    except (OSError, ValueError):
        st.warning("Its folder is not there any more.")
        return
    held_out, heads = card.get("held_out", {}), card.get("head_scores", {})
    words = [f"{card['steps']:,} steps, {card['tokens_seen']:,} tokens"]
    if held_out:
        words.append(f"held-out text: **{number(held_out['bits_per_byte'])}** bits per byte")
    for kind, name in (("previous_token", "best previous-token head"), ("induction", "best induction head")):
        if heads.get(kind, {}).get("score") is not None:
            words.append(f"{name}: {heads[kind]['head']}, {number(heads[kind]['score'])}")
    st.markdown(" · ".join(words))


def _curve_and_samples(status: Status) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Loss by step**")
        st.caption("How surprised the model is by the next token: on what it trains on, and on text kept from it.")
        figure = loss_curve(curves(status.lines), theme=state.theme())
        plot(figure, key="live_loss", alt="Training and held-out loss by step, as lines.")
    with right:
        st.markdown("**What it writes**")
        st.caption("From nothing but the first token, always with the same random draws, at temperature 0.8.")
        samples = [line for line in status.lines if "sample" in line]
        for line in reversed(samples[-4:]):
            st.text(f"Step {line['step']:,}: {' '.join(line['sample'].split()) or '(nothing)'}")
        if not samples:
            st.caption("Nothing yet.")
