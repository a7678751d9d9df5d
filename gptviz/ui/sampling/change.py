"""Another token in the middle of the text, and on from there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from gptviz.figures import style
from gptviz.ui import numbers, state
from gptviz.ui.badge import warn_unmasked
from gptviz.ui.frame import follow
from gptviz.ui.pick import LAST
from gptviz.ui.sampling.follow import write
from gptviz.ui.sampling.settings import typed_ids
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

CHOICES = 40
SHOWN = 8
MOST_TRIES = 200
MINE = " (stands there)"
_FAILED = "change failed"


class Foretold(NamedTuple):
    """What the model would have put in a place: the most likely tokens, and the one that stands there."""

    ids: list[int]
    labels: list[str]
    probs: list[float]  # at temperature 1, before any filter
    words: list[str]  # rank, label and probability in one
    mine: int  # the rank of the token that stands there, from 0
    mine_prob: float


def change() -> None:
    st.subheader("Change a token and go on from there", anchor=False)
    st.caption("Choose a token, see what the model would have put there, and put another one in its place.")
    follow("change", _section)


def _section(chosen: Selection) -> None:
    if len(chosen.ids) < 2:
        st.info("Nothing stands before the only token, so nothing else was foretold in its place: type more first.")
        return
    warn_unmasked(chosen)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        at = _pick(chosen)
        foretold = _foretold(chosen.variant, chosen.ids, at)
        token = _instead(foretold)
        keep = st.toggle(
            "Keep what follows",
            key="keep_rest",
            bind="query-params",
            help="Off, the text ends with the new token, and Step or Play go on from there.",
        )
        st.button(
            "Change it",
            icon=":material/edit:",
            key="change",
            type="primary",
            on_click=_change,
            args=(chosen, at, token, keep),
        )
        if st.session_state.pop(_FAILED, False):
            st.error("What stands before it can't be written as a text that is split the same way.")
    with right:
        _table(chosen, at, foretold)


def _pick(chosen: Selection) -> int:
    """A position that something stands before: the last one unless another is chosen."""
    size = len(chosen.ids)
    at = st.selectbox(
        "Token to change",
        [LAST, *range(1, size)],
        key="change_at",
        bind="query-params",
        on_change=_forget_choice,
        format_func=lambda at: "the last token" if at == LAST else f"{at} {chosen.labels[at]}",
    )
    return size - 1 if at == LAST else at


def _forget_choice() -> None:
    """What would be put in one place means nothing in another."""
    st.session_state.pop("change_to", None)


@st.cache_resource(show_spinner=False, max_entries=64)
def _foretold(variant: state.Variant, ids: tuple[int, ...], at: int) -> Foretold:
    from gptviz import next_token_table

    every = next_token_table(state.trace(variant, ids).logits[at - 1, : numbers.vocabulary(variant.name)])
    best, mine = every.ids[: CHOICES + 1], int((every.ids == ids[at]).nonzero())
    named = numbers.labels_of(variant.name, best.numpy())
    words = [f"{rank + 1}. {label} ({style.number(float(every.probs[rank]))})" for rank, label in enumerate(named)]
    return Foretold(best.tolist(), named, every.probs[: CHOICES + 1].tolist(), words, mine, float(every.probs[mine]))


def _instead(foretold: Foretold) -> int:
    ranks = [rank for rank in range(len(foretold.ids)) if rank != foretold.mine][:CHOICES]
    return foretold.ids[
        st.selectbox(
            "Put in its place",
            ranks,
            key="change_to",
            bind="query-params",
            format_func=foretold.words.__getitem__,
        )
    ]


def _table(chosen: Selection, at: int, foretold: Foretold) -> None:
    rows = [
        (f"{foretold.labels[rank]}{MINE if rank == foretold.mine else ''}", f"{rank + 1:,}", style.number(prob))
        for rank, prob in enumerate(foretold.probs[:SHOWN])
    ]
    if foretold.mine >= SHOWN:
        rows.append((f"{chosen.labels[at]}{MINE}", f"{foretold.mine + 1:,}", style.number(foretold.mine_prob)))
    strong = [min(foretold.mine, len(rows) - 1)]
    st.html(table(["Token", "Rank", "Probability"], rows, theme=chosen.theme, strong=strong))
    st.caption("At temperature 1, before any filter.")


def _change(chosen: Selection, at: int, token: int, keep: bool) -> None:
    """The text with another token at a place; what follows it is kept or cut off."""
    whole, typed = chosen.whole, len(typed_ids(chosen))
    at += len(whole) - len(chosen.ids)  # in the whole text: the window's first token apart, it is the text's end
    kept = typed if at >= typed else spelt_alike(chosen.variant.name, whole, at)
    if kept is None:
        st.session_state[_FAILED] = True
        return
    after = whole[at + 1 :] if keep else ()
    prompt = None if kept == typed else _text(chosen.variant.name, whole[:kept])
    write((*whole[kept:at], token, *after), prompt)


def _text(name: str, ids: Sequence[int]) -> str:
    tokenizer = state.checkpoint(name).tokenizer
    return tokenizer.decode(ids[1:] if ids[0] == tokenizer.bos_id else ids)


def spelt_alike(name: str, ids: Sequence[int], most: int) -> int | None:
    """The largest n, at most `most`, for which the text of ids[:n] is split into exactly these ids again.

    A word cut short is split otherwise than the whole word was; what the text cannot say stands among the generated
    tokens instead.
    """
    bos = ids[0] == state.checkpoint(name).tokenizer.bos_id
    return last_alike(lambda n: state.encode(name, _text(name, ids[:n]), bos) == tuple(ids[:n]), most)


def last_alike(alike: Callable[[int], bool], most: int) -> int | None:
    return next((n for n in range(most, max(0, most - MOST_TRIES), -1) if alike(n)), None)
