"""Many continuations at once, a row of tokens each."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from gptviz.figures import style
from gptviz.ui import numbers, state
from gptviz.ui.frame import follow
from gptviz.ui.live import redraw
from gptviz.ui.sampling.follow import go_on_with
from gptviz.ui.sampling.settings import Settings, current
from gptviz.ui.selection import Selection, select

if TYPE_CHECKING:
    from gptviz.figures.style import Theme
    from gptviz.generation import Continuation

MOST, LONGEST = 16, 64


def texts() -> None:
    st.subheader("Many continuations", anchor=False)
    st.caption(
        "The same prompt with one seed after another, decoded together. The fuller a token's colour, the likelier it "
        "was when it was drawn; hover gives the number."
    )
    then: dict[str, Any] = dict(bind="query-params", width=120, on_change=redraw, args=("texts",))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input("How many", 1, MOST, 6, key="count", **then)
        st.number_input("Tokens each", 1, LONGEST, 16, key="length", **then)
        st.button("Sample continuations", icon=":material/format_list_bulleted:", key="sample_many", on_click=_ask)
    follow("texts", _texts, sampled=True)


def _wanted(chosen: Selection) -> tuple[state.Variant, tuple[int, ...], Settings, int, int]:
    return chosen.variant, chosen.whole, current(), int(st.session_state.count), int(st.session_state.length)


def _ask() -> None:
    chosen = select()
    if chosen is not None:
        st.session_state["continued"] = _wanted(chosen)
        redraw("texts")


def _texts(chosen: Selection) -> None:
    shown, wanted = st.session_state.get("continued"), _wanted(chosen)
    if shown is None or shown[0].name != chosen.variant.name:
        st.caption("Nothing sampled yet: it takes a forward pass for each token, so it waits for the button.")
        return
    drawn = _sampled(*shown)
    if shown != wanted:
        st.caption(
            f"Drawn earlier, for {'other settings' if shown[:2] == wanted[:2] else 'another prompt or model'}: "
            "press the button to sample again."
        )
    _rows(chosen, shown[1], shown[2], drawn)


@st.cache_resource(show_spinner="Sampling.", max_entries=16)
def _sampled(
    variant: state.Variant, ids: tuple[int, ...], settings: Settings, count: int, length: int
) -> list[Continuation]:
    import torch

    from gptviz import generation

    return generation.continuations(
        state.model(variant),
        torch.tensor(ids),
        count,
        length,
        **settings.filters,
        seed=settings.seed,
        size=numbers.vocabulary(variant.name),
    )


def _rows(chosen: Selection, ids: tuple[int, ...], settings: Settings, drawn: Sequence[Continuation]) -> None:
    tokenizer = state.checkpoint(chosen.variant.name).tokenizer
    now = ids == chosen.whole
    for text in drawn:
        words, take = st.columns([6, 1], vertical_alignment="center")
        with words:
            st.html(strip(tokenizer.labels(text.tokens), text.probs, text.seed, text.nats, chosen.theme))
        take.button(
            "Go on with it",
            key=f"take {text.seed}",
            on_click=go_on_with,
            args=(text.tokens,),
            disabled=not now,
            help=None if now else "The prompt has changed since.",
            width="stretch",
        )
    different = len({text.tokens for text in drawn})
    likeliest = min(drawn, key=lambda text: text.nats)
    st.text(
        f"{different} of {len(drawn)} differ ({settings}). The one of seed {likeliest.seed} surprises the model least: "
        f"{style.number(likeliest.nats, 'nats')} in all, at temperature 1 and without filters."
    )


def strip(labels: Sequence[str], probs: Sequence[float], seed: int, nats: float, theme: Theme) -> str:
    """One continuation as HTML in which every token is inert text."""
    tints = style.tint("generated", theme)
    spans = "".join(
        f'<span class="token" style="background:{tints[round(prob * (len(tints) - 1))]}" '
        f'title="{html.escape(style.number(prob), quote=True)}">{html.escape(label)}</span>'
        for label, prob in zip(labels, probs, strict=True)
    )
    head = f'<span class="seed">seed {seed} · {style.number(nats, "nats")}</span>'
    return f'<style>{_css(theme)}</style><div class="gptviz-text">{head}{spans}</div>'


def _css(theme: Theme) -> str:
    text, muted = (style.surface(name, theme) for name in ("text", "muted"))
    return (
        ".gptviz-text{display:flex;flex-wrap:wrap;align-items:center;row-gap:4px}"
        f".gptviz-text .seed{{flex:none;width:152px;font-size:12px;color:{muted}}}"
        f".gptviz-text .token{{font:13px/20px {style.MONOSPACE};color:{text};padding:0 2px;"
        "white-space:pre;unicode-bidi:isolate;cursor:default}"
    )
