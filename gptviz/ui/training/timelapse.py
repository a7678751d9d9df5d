"""The Training page's time-lapse: one prompt under every snapshot of a run, at the step that a slider chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures.style import number
from gptviz.training.lapse import Lapse, read_lapse
from gptviz.ui import live, state
from gptviz.ui.components.reel import reel
from gptviz.ui.components.scrubber import scrubber
from gptviz.ui.live import part, redraw
from gptviz.ui.markdown import literal
from gptviz.ui.table import table
from gptviz.ui.training.moments import Prompt, choose_prompt, moments_of, runs, version_of
from gptviz.ui.training.pictures import KINDS, Shown, chart, every

if TYPE_CHECKING:
    from gptviz.analysis.timelapse import Moment

INTERVAL = 0.6  # seconds between two steps of Play
STEP = "lapse step"  # in the session: the one that is shown
SCRUBBER = "scrubber"
ATTENTION, HEADS, REEL = "lapse attention", "lapse heads", "lapse reel"  # parts that follow other choices, too


def show() -> None:
    there = runs()
    if not there:
        _nothing_yet()
        return
    name = st.selectbox("Run", list(there), key="run", bind="query-params") if len(there) > 1 else next(iter(there))
    try:
        lapse = read_lapse(there[name])
        assert lapse is not None  # runs() lists what has some
        with st.spinner("Starting PyTorch: a few seconds, once for each start of the app."):
            state.import_torch()
        prompt = choose_prompt(str(there[name]), version_of(lapse), lapse)
        moments = moments_of(str(there[name]), version_of(lapse), prompt.ids, lapse, len(prompt.names))
    except GptvizError as error:
        st.error(literal(str(error)))
        return
    _draw(str(there[name]), lapse, prompt, moments)
    live.end()


def _nothing_yet() -> None:
    st.info(
        "There are no snapshots yet. Train a model under **Live** with “Keep snapshots for the time-lapse” on, or from "
        "the command line with `--snapshots ~/.gptviz/runs/timelapse/NAME`: the run then appears here."
    )


def _draw(folder: str, lapse: Lapse, prompt: Prompt, moments: list[Moment]) -> None:
    """Everything around the pictures once; the pictures again for every step."""

    def shown() -> Shown:
        chosen = st.session_state
        looked_at = dict(layer=chosen.lapse_layer, head=chosen.lapse_head, score=chosen.lapse_score)
        return Shown(lapse, prompt, moments, **looked_at, theme=state.theme())

    def at() -> int:
        return _chosen(lapse.steps)

    above = st.container()
    part("lapse facts", lambda: _facts(lapse.cards[at()], moments[at()]))
    curves = st.container()
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _choose_head(*moments[0].patterns.shape[:2])
        pattern = st.container()
    with right:
        following = st.container()
    _choose_score()
    with curves:
        _curves(lambda key: chart(key, shown(), at()))
    with pattern:
        part(ATTENTION, lambda: _attention(shown(), at()))
    with following:
        _following(lambda: chart("lapse_next", shown(), at()), lambda: _lens(prompt, moments[at()]))
    part(HEADS, lambda: _heads(shown(), at()))
    _formulas()
    part(REEL, lambda: reel(every(folder, version_of(lapse), shown()), key="reel", scrubber=SCRUBBER))
    with above:
        part("lapse slider", lambda: _steps(lapse.steps))


def _steps(steps: list[int]) -> None:
    words, at = [f"{step:,}" for step in steps], _chosen(steps)
    scrubber("Step", words, at, key=SCRUBBER, on_move=lambda moved: _move(steps[moved]), interval=INTERVAL)


def _formulas() -> None:
    with st.expander("Formula"):
        st.latex(r"\text{loss} = -\frac{1}{T} \sum_{t} \ln p(x_{t+1} \mid x_1, \dots, x_t)")
        st.caption(
            "The mean cross-entropy in nats: ln of the vocabulary’s size where the model knows nothing. The curve "
            "“training” is that of the batches as they were learned from, with dropout and with what windows repeat "
            "random tokens; “validation”, and both numbers above, are of whole stories without either, the same "
            "ones for every snapshot: kept from training, or as many of those it learns from."
        )
        st.latex(
            r"\text{previous token} = \frac{1}{T-1} \sum_{t>0} A_{t,\,t-1} \qquad "
            r"\text{induction} = \frac{1}{|R|} \sum_{t \in R} A_{t,\,r(t)+1}"
        )
        st.caption(
            "A is a head’s attention, R the positions whose token came before, at r(t). An induction head looks at "
            "what followed there, and needs an earlier head that tells each token what stood before it: "
            "[Olsson et al. 2022](https://arxiv.org/abs/2209.11895). The logit lens: "
            "[nostalgebraist 2020](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens)."
        )


def _move(step: int) -> None:
    st.session_state[STEP] = step
    st.query_params["step"] = str(step)
    redraw()


def _chosen(steps: list[int]) -> int:
    """Which of the steps: that of the session or of the link, else the last."""
    said = str(st.session_state.get(STEP, st.query_params.get("step", "")))
    names = [str(step) for step in steps]
    return names.index(said) if said in names else len(steps) - 1


def _facts(card: Mapping[str, Any], now: Moment) -> None:
    """One line of numbers, none of them anybody else's words."""
    words = [f"**Step {card['step']:,}**", f"{card['tokens_seen']:,} tokens seen"]
    for key, name in (("training", "training loss"), ("validation", "validation loss")):
        if key in card:
            words.append(f"{name} **{number(card[key]['nats_per_token'])}**")
    if np.isfinite(now.loss):
        words.append(f"on this prompt **{number(now.loss)}**")
    st.markdown(" · ".join(words) + " (nats per token)")


def _curves(draw: Callable[[str], None]) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**How wrong it is**")
        st.caption("Loss by step. It falls in stretches: first how frequent tokens are, then what follows what.")
        part("lapse losses", lambda: draw("lapse_loss"))
    with right:
        st.markdown("**Which heads have formed**")
        st.caption("The best head’s score on random tokens that come twice. Induction builds on a previous-token head.")
        part("lapse scores", lambda: draw("lapse_scores"))


def _choose_head(layers: int, heads: int) -> None:
    st.markdown("**One head’s attention**")
    then: dict[str, Any] = dict(bind="query-params", width=120, on_change=redraw, args=(ATTENTION, HEADS, REEL))
    with st.container(horizontal=True):
        st.selectbox("Layer", range(layers), key="lapse_layer", **then)
        st.selectbox("Head", range(heads), key="lapse_head", **then)


def _attention(shown: Shown, at: int) -> None:
    chart("lapse_attention", shown, at)
    error = float(np.abs(shown.moments[at].patterns[shown.layer, shown.head].sum(1) - 1).max())
    st.caption(f"Check: every row sums to 1; the largest error is {number(error)}.")


def _following(draw: Callable[[], None], lens: Callable[[], None]) -> None:
    st.markdown("**The next token**")
    st.caption("What the model expects after the prompt: the likeliest of the vocabulary, whose shares sum to 1.")
    part("lapse next", draw)
    st.markdown("**Logit lens**")
    st.caption("What would come next if the model ended after a layer: its stream, read by the final norm and W_U.")
    part("lapse lens", lens)


def _lens(prompt: Prompt, now: Moment) -> None:
    depths = ["embedding", *(f"block {layer}" for layer in range(len(now.lens_token) - 1))]
    rows = [
        (depth, prompt.names[token], number(float(share)))
        for depth, token, share in zip(depths, now.lens_token, now.lens_probability, strict=True)
    ]
    st.html(table(["after", "token", "probability"], rows, theme=state.theme()))
    st.caption(f"Check: the last row is the model’s own output; the largest error is {number(now.lens_error)}.")


def _choose_score() -> None:
    st.markdown("**What the heads do on this prompt**")
    st.selectbox(
        "Score",
        list(KINDS),
        key="lapse_score",
        bind="query-params",
        format_func=KINDS.__getitem__,
        width=220,
        on_change=redraw,
        args=(HEADS, REEL),
    )


def _heads(shown: Shown, at: int) -> None:
    if not shown.measured:
        st.info("This prompt has no place for it, so there is nothing to measure: it takes repeated words.")
        return
    st.caption("How much of each head’s attention goes there, mean over the positions that have such a token.")
    chart("lapse_heads", shown, at)
