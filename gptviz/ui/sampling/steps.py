"""From logits to one token: every step of it for the most likely tokens, and where the draw fell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.sampling import interval
from gptviz.ui import numbers
from gptviz.ui.components.plot import plot
from gptviz.ui.frame import follow
from gptviz.ui.sampling.settings import Settings, current
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.sampling import NextTokenTable

SHOWN = 12  # tokens in the table
SEGMENTS = 40  # on the unit interval
OUT = "–"  # filtered out


def steps() -> None:
    st.subheader("From logits to one token", anchor=False)
    st.caption(
        "Each column is the one before it with one thing done. Open “Sampling settings” above and move a slider: the "
        "logits stay, and everything after them is computed again without a forward pass."
    )
    follow("steps", _steps, sampled=True)
    _formula()


def _steps(chosen: Selection) -> None:
    from gptviz import sampling

    settings, position = current(), len(chosen.whole)
    size = numbers.vocabulary(chosen.variant.name)
    every = sampling.next_token_table(chosen.run.logits[-1, :size], **settings.filters)
    draw = sampling.uniform(settings.seed, position)
    row = every.pick(draw)
    st.html(_table(chosen, every, settings, row))
    _say(chosen, every, settings, row, draw, position)
    if settings.temperature:
        _interval(chosen, every, row, draw)
    total = float(every.probs.double().sum())
    st.caption(
        f"Check: the probabilities of all {len(every.ids):,} tokens sum to 1; the error is "
        f"{style.number(abs(total - 1))}. {int(every.in_min_p.sum()):,} of them are left to draw from."
    )


def _table(chosen: Selection, every: NextTokenTable, settings: Settings, row: int) -> str:
    shown = list(range(min(SHOWN, len(every.ids))))
    shown += [row] if row not in shown else []
    labels = numbers.labels_of(chosen.variant.name, every.ids[shown].numpy())
    columns = _columns(every)
    starts = np.concatenate([[0], columns[-1].cumsum()])
    rows = [
        (
            f"{label}{' ▲' if at == 0 else ''}{' ◆' if at == row else ''}",
            style.number(float(every.logits[at])),
            style.number(float(every.scaled[at])),
            *(style.number(float(column[at])) if column[at] > 0 else OUT for column in columns),
            f"{starts[at]:.4f} to {starts[at + 1]:.4f}" if columns[-1][at] > 0 else OUT,
        )
        for at, label in zip(shown, labels, strict=True)
    ]
    if len(every.ids) > len(shown):
        rests = [float(column.sum() - column[shown].sum()) for column in columns]
        others = [style.number(max(rest, 0.0)) if rest > 1e-9 else OUT for rest in rests]
        rows.append((f"the other {len(every.ids) - len(shown):,}", "", "", *others, ""))
    return table(_head(settings), rows, theme=chosen.theme, strong=[shown.index(row)])


def _columns(every: NextTokenTable) -> list[np.ndarray]:
    """Shares (V,): softmax alone, after top-k, after top-p, and after min-p, which is the probability."""
    alone = every.scaled.double().softmax(0)
    return [column.double().numpy() for column in (alone, every.after_top_k, every.after_top_p, every.probs)]


def _head(settings: Settings) -> list[str]:
    named = (("top-k", settings.top_k), ("top-p", settings.top_p), ("min-p", settings.min_p))
    filters = [f"{name} off" if value is None else f"after {name} {style.number(value)}" for name, value in named]
    filters[-1] = f"{filters[-1]} = probability"
    tempered = f"÷ T = {style.number(settings.temperature)}" if settings.temperature else "T = 0: the largest alone"
    return ["Token", "Logit", tempered, "softmax", *filters, "its part of 0 to 1"]


def _say(chosen: Selection, every: NextTokenTable, settings: Settings, row: int, draw: float, position: int) -> None:
    sampled, likeliest = numbers.labels_of(chosen.variant.name, every.ids[[row, 0]].numpy())
    where = f"The draw for seed {settings.seed} at position {position} is {style.number(draw)}"
    if settings.temperature == 0:
        st.text(f"At temperature 0 there is nothing to draw: the most likely token, ‘{likeliest}’, is taken.")
    elif row == 0:
        st.text(f"{where}: it falls into the part of ‘{sampled}’, which is also the most likely token (▲ and ◆).")
    else:
        st.text(
            f"{where}: it falls into the part of ‘{sampled}’ ◆ (probability {style.number(float(every.probs[row]))}), "
            f"not into that of the most likely token, ‘{likeliest}’ ▲ ({style.number(float(every.probs[0]))})."
        )


def _interval(chosen: Selection, every: NextTokenTable, row: int, draw: float) -> None:
    kept = min(SEGMENTS, int(every.in_min_p.sum()))
    count = max(kept, row + 1)
    labels = numbers.labels_of(chosen.variant.name, every.ids[:count].numpy())
    probs = every.probs[:count].double().numpy()
    if row >= SEGMENTS:  # a draw far out: what lies between is one piece
        labels, probs = _gathered(labels, probs, row)
    figure = interval(labels, probs, theme=chosen.theme, sampled=min(row, SEGMENTS + 1), draw=draw)
    plot(figure, key="interval", alt="The tokens' shares laid out from 0 to 1, and where the draw fell.")


def _gathered(labels: list[str], probs: np.ndarray, row: int) -> tuple[list[str], np.ndarray]:
    """The first SEGMENTS, all that lie between them and the sampled one as one piece, and the sampled one."""
    between = probs[SEGMENTS:row].sum()
    shown = [*labels[:SEGMENTS], f"{row - SEGMENTS} tokens", labels[row]]
    return shown, np.concatenate([probs[:SEGMENTS], [between, probs[row]]])


def _formula() -> None:
    with st.expander("Formula"):
        st.latex(r"p_i = \frac{e^{x_i / T}}{\sum_{j \in K} e^{x_j / T}} \;\text{ for } i \in K")
        st.caption(
            "x are the logits, T the temperature, K the tokens that the filters keep, one after the other. Top-k "
            "keeps the k most likely ([Fan et al. 2018](https://arxiv.org/abs/1805.04833)); top-p the fewest that hold "
            "a share p of what top-k has left, which is the whole vocabulary where top-k is off "
            "([Holtzman et al. 2019](https://arxiv.org/abs/1904.09751)); min-p those with at least that share of the "
            "most likely ([Nguyen et al. 2024](https://arxiv.org/abs/2407.01082)). T = 0 stands for the limit of ever "
            "smaller ones: the most likely token is taken. The token drawn is the "
            "one in whose part of the unit interval a random number falls, which the seed and the position determine."
        )
