"""The KV cache on and off, timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from gptviz.figures import style
from gptviz.figures.sampling import speed_lines
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.frame import follow
from gptviz.ui.sampling.settings import Settings, current
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.generation import Speed

TOKENS, REPEATS = 48, 3
FEWEST = 4


def pace() -> None:
    st.subheader("The KV cache", anchor=False)
    st.caption(
        "Keys and values of the tokens before do not change under a causal mask, so they can be kept: then a new token "
        "costs one position's work instead of the whole text's."
    )
    follow("pace", _pace)


def _pace(chosen: Selection) -> None:
    count = min(TOKENS, chosen.config.block_size - len(chosen.ids))
    reason = _reason(chosen, count)
    asked = st.button("Measure", icon=":material/timer:", key="measure_speed", disabled=bool(reason), help=reason)
    if reason:
        st.caption(reason)
    elif asked:
        with st.spinner(f"Generating {count} tokens, {REPEATS} times with the cache and {REPEATS} times without."):
            st.session_state["paced"] = chosen.variant, len(chosen.ids), _measure(chosen, current(), count)
    paced = st.session_state.get("paced")
    if paced is not None and paced[0] == chosen.variant:
        _shown(chosen, paced[1], *paced[2])
    with st.expander("Formula"):
        st.latex(r"\text{without: } O(T)\ \text{positions a token},\qquad \text{with: } 1")
        st.caption(
            "The cache holds 2 × layers × K/V heads × d_head numbers a token: "
            f"{2 * chosen.config.n_layer * chosen.config.n_kv_head * chosen.config.d_head:,} here; the Sizing page "
            "counts them in bytes. Decoding one token at a time: [Shazeer 2019](https://arxiv.org/abs/1911.02150)."
        )


def _reason(chosen: Selection, count: int) -> str | None:
    """Why it can't be measured here."""
    if not chosen.variant.causal:
        return "Without the causal mask a new token changes the keys and values before it: there is nothing to keep."
    if count < FEWEST:
        return (
            f"The text fills the context of {chosen.config.block_size:,} tokens. From there on the window moves and "
            "every position's place with it, so nothing can be kept: shorten the prompt to measure."
        )
    return None


def _measure(chosen: Selection, settings: Settings, count: int) -> tuple[Speed, Speed]:
    import torch

    from gptviz import generation

    ids = torch.tensor(chosen.whole)
    return generation.cache_and_none(
        state.model(chosen.variant), ids, count, repeats=REPEATS, seed=settings.seed, **settings.filters
    )


def _shown(chosen: Selection, first: int, fast: Speed, slow: Speed) -> None:
    rows = [
        (name, style.number(speed.per_second), style.number(1000 * float(speed.seconds.mean())))
        for name, speed in (("with the KV cache", fast), ("without", slow))
    ]
    st.html(table(["", "tokens/s", "ms a token"], rows, theme=chosen.theme))
    ratio = fast.per_second / slow.per_second
    st.text(
        f"{len(fast.tokens)} tokens after {first}, {REPEATS} times each in turns, each token's median time: "
        f"{style.number(ratio)} times as fast with the cache. "
        f"Check: {_compared(fast, slow)}"
    )
    figure = speed_lines(1000 * fast.seconds, 1000 * slow.seconds, theme=chosen.theme, first=first)
    plot(figure, key="speed", alt="Milliseconds for every token, with the KV cache and without.")


def _compared(fast: Speed, slow: Speed) -> str:
    pairs = enumerate(zip(fast.tokens, slow.tokens, strict=True))
    differ = next((at for at, (one, other) in pairs if one != other), None)
    if differ is None:
        return "both gave exactly the same tokens."
    return f"they differ from token {differ + 1} on: rounding tipped a draw that fell on an edge."
