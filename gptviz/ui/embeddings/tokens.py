"""From text to tokens: bytes and ids, and the merges of one word."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures import style
from gptviz.merges import Merge, Merges, Word
from gptviz.ui import state
from gptviz.ui.markdown import literal
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

TABLE_HEIGHT = 336  # pixels; longer prompts scroll inside
MOST_WORDS = 400


def tokens(chosen: Selection) -> None:
    """The table of tokens, and beside it how a word became some of them."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Tokens", anchor=False)
        st.caption("The model never sees letters: every token is a piece of text with a number, its id.")
        with st.container(height=TABLE_HEIGHT, border=False):
            st.html(_token_table(chosen))
        st.caption(_joined(chosen))
    with right:
        st.subheader("How a word is merged", anchor=False)
        try:
            _merged(chosen, merges(chosen.variant.name))
        except GptvizError as error:
            st.info(literal(str(error)))


def _joined(chosen: Selection) -> str:
    """Whether the tokens give the prompt back, where all of it is there and nothing else."""
    tokenizer = state.checkpoint(chosen.variant.name).tokenizer
    if chosen.generated or len(chosen.whole) > len(chosen.ids):
        return ""
    text, first = state.prompt(), chosen.ids[0] == tokenizer.bos_id
    if tokenizer.decode(chosen.ids[first:]) != text:
        return "Joined, the tokens are not the prompt: this vocabulary changes a text as it reads it."
    return f"Check: joined, the tokens' bytes are the prompt: all {len(text.encode()):,} of them, none left out."


def _token_table(chosen: Selection) -> str:
    tokenizer = state.checkpoint(chosen.variant.name).tokenizer
    pieces = tokenizer.pieces(chosen.ids)
    rows = [
        (label, str(at), str(id), _bytes(piece))
        for at, (label, id, piece) in enumerate(zip(chosen.labels, chosen.ids, pieces, strict=True))
    ]
    return table(["Token", "Position", "Id", "Bytes"], rows, theme=chosen.theme)


def _bytes(piece: bytes) -> str:
    """In hexadecimal; of a long piece the first eight, and how many there are."""
    return f"{piece[:8].hex(' ').upper()}{f' … {len(piece)} bytes' if len(piece) > 8 else ''}"


@st.cache_resource(show_spinner=False, max_entries=8)
def merges(name: str) -> Merges:
    """The merges of a model's vocabulary, read once."""
    return Merges(state.checkpoint(name).tokenizer)


@st.cache_resource(show_spinner=False, max_entries=64)
def _words(name: str, ids: tuple[int, ...]) -> list[Word]:
    tokenizer = state.checkpoint(name).tokenizer
    text = tokenizer.decode(id for id in ids if id != tokenizer.bos_id)
    return merges(name).words(text)[:MOST_WORDS]


def _merged(chosen: Selection, known: Merges) -> None:
    words = _words(chosen.variant.name, chosen.ids)
    if not words:
        st.info("The prompt holds no word yet.")
        return
    at = st.selectbox(
        "Word",
        range(len(words)),
        key="word",
        bind="query-params",
        format_func=lambda at: f"{at + 1} {_label(known, words[at])}",
        help="No merge reaches beyond these stretches of text.",
    )
    word = words[at]
    steps = known.of(word)
    st.caption(
        "It begins as bytes or characters. Then, again and again, the two neighbours that were merged first when the "
        "vocabulary was learned become one piece, until no learned pair is left."
    )
    st.html(_ladder(known, word, steps, chosen.theme))
    _check(known, word, steps)


def _label(known: Merges, word: Word) -> str:
    return style.shortened(known.shown(word.spelled), 40)


def _check(known: Merges, word: Word, steps: Sequence[Merge]) -> None:
    ours = known.ids(steps[-1].after if steps else word.symbols)
    theirs = known.by_the_library(word)
    same = "the same as" if ours == theirs else "not what the tokenizer gives, which is"
    ids, reached = ", ".join(map(str, theirs)), f"{_count(len(steps), 'merge')} end at {_count(len(ours), 'token')}"
    st.caption(f"Check: {reached}, {same} the tokenizer's own: ids {ids}.")
    with st.expander("Formula"):
        st.latex(r"(a, b)^{*} = \arg\min_{(a, b)\,\in\,\text{neighbours}} \operatorname{rank}(a, b), \quad a\,b \to ab")
        st.caption(
            f"{len(known.ranks):,} pairs were learned, the most frequent first; the rank is the place in that order. "
            "Byte pair encoding: [Sennrich et al. 2015](https://arxiv.org/abs/1508.07909)."
        )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _ladder(known: Merges, word: Word, steps: Sequence[Merge], theme: style.Theme) -> str:
    """A row a merge: what was joined, and the word's pieces after it, the new one marked."""
    rows = [_rung(known, "begins as", word.symbols, "")]
    rows += [_rung(known, f"rank {step.rank:,}", step.after, step.made) for step in steps]
    return f"<style>{_css(theme)}</style><div class='gptviz-merges' tabindex='0'>{''.join(rows)}</div>"


def _rung(known: Merges, name: str, symbols: Sequence[str], made: str) -> str:
    pieces = "".join(
        f"<span class='piece{' made' if symbol == made else ''}'>{html.escape(known.shown(symbol))}</span>"
        for symbol in symbols
    )
    return f"<div><span class='name'>{html.escape(name)}</span>{pieces}</div>"


def _css(theme: style.Theme) -> str:
    muted, text, line = (style.surface(name, theme) for name in ("muted", "text", "line"))
    full, pale = style.colour("token", theme), style.ramp("token", theme)[4]
    return (
        f".gptviz-merges{{overflow:auto;max-height:240px;color:{text}}}"
        ".gptviz-merges>div{display:flex;gap:4px;align-items:baseline;margin-bottom:6px;width:max-content}"
        f".gptviz-merges .name{{color:{muted};font-size:13px;width:88px;flex:none}}"
        f".gptviz-merges .piece{{font:13px/20px {style.MONOSPACE};padding:0 5px;border-radius:4px;"
        f"border:1px solid {line};white-space:pre;unicode-bidi:isolate}}"
        f".gptviz-merges .made{{border-color:{full};border-bottom-width:3px;background:{pale}}}"
    )
