"""The time-lapse's charts: what each shows of one snapshot, and all of them sent ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures.attention import attention_heatmap, head_score_heatmap
from gptviz.figures.next_token import next_token_bars
from gptviz.figures.style import Theme
from gptviz.figures.training import loss_curve, score_curve
from gptviz.training.lapse import Lapse
from gptviz.ui.components.plot import payload, plot
from gptviz.ui.training.moments import Prompt

if TYPE_CHECKING:
    from gptviz.analysis.timelapse import Moment

CANDIDATES = 7
WIDEST = 560  # pixels, of the attention matrix
KINDS = {
    "previous_token": "previous token",
    "induction": "induction",
    "duplicate_token": "duplicate token",
    "first_token": "first token",
    "self": "self",
}


@dataclass(frozen=True)
class Shown:
    """One prompt under every snapshot of a run, and what is looked at."""

    lapse: Lapse
    prompt: Prompt
    moments: list[Moment]
    layer: int
    head: int
    score: str  # one of KINDS
    theme: Theme

    @property
    def measured(self) -> bool:
        """Whether the prompt has a place for the score."""
        return not np.isnan(self.moments[0].scores[self.score]).all()


def loss(shown: Shown, at: int) -> tuple[go.Figure, str]:
    figure = loss_curve(shown.lapse.losses(), theme=shown.theme, marker=shown.lapse.steps[at], log=True)
    return figure, "Training and validation loss by step, with a marker at the step shown."


def scores(shown: Shown, at: int) -> tuple[go.Figure, str]:
    figure = score_curve(shown.lapse.scores(), theme=shown.theme, marker=shown.lapse.steps[at])
    return figure, "Best previous-token and induction score by step, with a marker."


def attention(shown: Shown, at: int) -> tuple[go.Figure, str]:
    pattern = shown.moments[at].patterns[shown.layer, shown.head]
    hidden = np.triu(np.ones_like(pattern, dtype=bool), 1) & (pattern == 0)
    figure = attention_heatmap(pattern, shown.prompt.labels, theme=shown.theme, masked=hidden)
    beyond = max(0, figure.layout.width - WIDEST)
    size = {"width": figure.layout.width - beyond, "height": figure.layout.height - beyond}
    figure.layout.update({**size, "uirevision": str(len(shown.prompt.ids))})
    return figure, f"Layer {shown.layer}, head {shown.head}: attention of every query to every key."


def next_token(shown: Shown, at: int) -> tuple[go.Figure, str]:
    probs = shown.moments[at].probs
    best = np.argsort(-probs, kind="stable")[:CANDIDATES]
    figure = next_token_bars([shown.prompt.names[i] for i in best], probs[best], theme=shown.theme)
    return figure, "The most likely next tokens and their probabilities, as bars."


def heads(shown: Shown, at: int) -> tuple[go.Figure, str]:
    values, cell = shown.moments[at].scores[shown.score], (shown.layer, shown.head)
    figure = head_score_heatmap(values, theme=shown.theme, name=KINDS[shown.score], selected=cell)
    return figure, f"{KINDS[shown.score]} score of every head."


# What each chart is called in the page, in its order.
CHARTS: dict[str, Callable[[Shown, int], tuple[go.Figure, str]]] = {
    "lapse_loss": loss,
    "lapse_scores": scores,
    "lapse_attention": attention,
    "lapse_next": next_token,
    "lapse_heads": heads,
}


def chart(key: str, shown: Shown, at: int) -> None:
    figure, alt = CHARTS[key](shown, at)
    plot(figure, key=key, alt=alt)


def every(folder: str, version: float, shown: Shown) -> list[dict[str, bytes]]:
    """For each snapshot, what `chart` sends."""
    return _every(folder, version, shown.prompt.ids, shown.layer, shown.head, shown.score, shown.theme, shown)


@st.cache_resource(show_spinner=False, max_entries=12)
def _every(
    folder: str,
    version: float,
    ids: tuple[int, ...],
    layer: int,
    head: int,
    score: str,
    theme: Theme,
    _shown: Shown,
) -> list[dict[str, bytes]]:
    kept = {key: draw for key, draw in CHARTS.items() if key != "lapse_heads" or _shown.measured}
    return [
        {key: payload(figure, key=key, alt=alt) for key, draw in kept.items() for figure, alt in [draw(_shown, at)]}
        for at in range(len(_shown.moments))
    ]
