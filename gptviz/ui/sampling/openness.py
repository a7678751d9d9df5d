"""How open each choice was along the text, and how surprising what came."""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.sampling import entropy_lines
from gptviz.ui import numbers, state
from gptviz.ui.badge import warn_unmasked
from gptviz.ui.components.plot import plot
from gptviz.ui.frame import follow
from gptviz.ui.sampling.settings import current
from gptviz.ui.selection import Selection


@st.cache_resource(show_spinner=False, max_entries=64)
def _entropies(variant: state.Variant, ids: tuple[int, ...], temperature: float) -> np.ndarray:
    from gptviz import analysis

    return analysis.entropies(state.trace(variant, ids).logits, temperature, numbers.vocabulary(variant.name))


def openness() -> None:
    st.subheader("Entropy along the text", anchor=False)
    st.caption(
        "Where the line is high, many tokens could come next; a diamond far above it is a token that surprised the "
        "model. Generated tokens are shaded."
    )
    follow("openness", _openness, sampled=True)
    with st.expander("Formula"):
        st.latex(r"H = -\sum_i p_i \log p_i,\qquad \mathrm{surprise}(x) = -\log p(x)")
        st.caption(
            "p at temperature 1, before any filter; the dotted line is at the temperature that is set. Entropy is the "
            "surprise to expect: [Shannon 1948](https://doi.org/10.1002/j.1538-7305.1948.tb01338.x)."
        )


def _openness(chosen: Selection) -> None:
    warn_unmasked(chosen)
    temperature = current().temperature
    raw = _entropies(chosen.variant, chosen.ids, 1.0)
    tempered = _entropies(chosen.variant, chosen.ids, temperature) if temperature != 1 else None
    surprise = numbers.predictions(chosen.variant, chosen.ids).loss
    figure = entropy_lines(
        raw, tempered, surprise, chosen.labels, theme=chosen.theme, generated=min(chosen.generated, len(raw) - 1)
    )
    plot(figure, key="entropy", alt="Entropy before every token and its surprise, in nats.")
    size = numbers.vocabulary(chosen.variant.name)
    st.caption(
        f"What comes next has an entropy of {style.number(float(raw[-1]), 'nats')}, as open as a fair choice among "
        f"{style.number(float(np.exp(raw[-1])))} tokens. Check: no entropy exceeds log {size:,} = "
        f"{style.number(float(np.log(size)), 'nats')}, that of a fair choice among all; the largest here is "
        f"{style.number(float(raw.max()), 'nats')}."
    )
