"""Play: the text writes on, as fast as the browser can show it.

The tokens that come next are worked out ahead. Where a causal mask keeps what was there as it is, the browser has their
pictures, too, and shows one after another by itself: the tokens, the next token's bars, and what the page has besides.
It then tells how many it has shown, and only those are in the text: the page is drawn whole, and the next ones follow.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import streamlit as st

from gptviz.errors import GptvizError
from gptviz.ui import state
from gptviz.ui.components.player import Frame, player
from gptviz.ui.components.plot import payload
from gptviz.ui.live import alone, part, redraw
from gptviz.ui.numbers import vocabulary
from gptviz.ui.played import PLAYER, SHOWING, Showing, hear
from gptviz.ui.prompt import length, token_chips
from gptviz.ui.selection import Selection, select
from gptviz.ui.switch import stay
from gptviz.ui.transport import ALT, KEY, LONGEST_PLAY, bars, settings, stale_buttons

if TYPE_CHECKING:
    from gptviz import Step

Pictures = Mapping[str, bytes]  # key of a plot -> what it is sent
Ahead = Callable[[Selection], Pictures]  # what a page's plots will show of a text

PACE = 10.0  # tokens a second
MOST_AHEAD = 24  # tokens between two drawings of the page
GROWTH, SLACK = 1.5, 1.05  # they become more where they took longer than the pace allows
MOST_UNSEEN = 4  # where the browser can't show them one by one: Stop is never far behind
MOST_BYTES = 128 * 1024  # of a plot in a frame: what is larger waits for the page
AHEAD = "played ahead"  # in the session: what is being shown, and what comes after that
ASKED = "last asked"  # in the session: when the browser last asked for tokens
DRAWINGS = itertools.count(1)  # of the player, in all sessions


class Chunk(NamedTuple):
    """Tokens to come, and what the browser shows of each: None where it takes the whole page."""

    whole: tuple[int, ...]  # the text that they follow
    here: tuple[object, ...]  # what they depend on besides
    drawn: Pictures  # of the text: while they are what is drawn now, the frames are good
    tokens: tuple[int, ...]
    frames: list[Frame | None]
    steps: Iterator[Step]  # what comes after them


def metronome(ahead: Ahead | None = None) -> None:
    """While it plays, the browser shows what comes next and asks for more."""
    part(PLAYER, lambda: _metronome(ahead))


def _metronome(ahead: Ahead | None) -> None:
    if st.session_state.playing:
        if stale_buttons():
            st.rerun()
        _go_on(ahead)
        return
    if AHEAD in st.session_state:  # with a KV cache as large as the text is long
        hear()
        for name in (AHEAD, ASKED, SHOWING):
            st.session_state.pop(name, None)
    if alone():  # what a hand did came along with the player's word, and ran as that
        st.rerun()


def _go_on(ahead: Ahead | None) -> None:
    selection = _text()
    if selection is None or _over(selection):
        _end()
    known, drawing = st.session_state.get(AHEAD, []), next(DRAWINGS)
    count = _due(len(known[0].tokens) if known else 1)
    chunk = _chunk(selection, count, _pictures(selection, ahead), ahead, known)
    st.session_state[AHEAD] = [chunk]
    st.session_state[SHOWING] = Showing(drawing, selection.written, chunk.tokens)
    address = state.in_address(selection.written + chunk.tokens)
    player(chunk.frames, drawing=drawing, key=PLAYER, pace=PACE, address=address, on_shown=_shown)
    following, last = selection.after(chunk.tokens), chunk.frames[-1]
    if not _over(following):  # while the browser shows these
        drawn = last.pictures if last else _pictures(following, ahead)
        st.session_state[AHEAD] = [chunk, _chunk(following, count, drawn, ahead, [*known, chunk])]


def _shown() -> None:
    """The browser has told what it has shown: it is in the text, and the page is to be drawn so."""
    stay()
    if st.session_state.playing:
        redraw()


def _end() -> NoReturn:
    st.session_state.playing = False
    st.rerun()


def _text() -> Selection | None:
    try:
        return select()
    except GptvizError:  # said beside the tokens
        return None


def _chunk(selection: Selection, count: int, drawn: Pictures, ahead: Ahead | None, known: Sequence[Chunk]) -> Chunk:
    """What follows a text, so many tokens or fewer where it ends; as far as it is known already, that."""
    here = selection.variant, *settings().values(), st.session_state.seed
    steps = None
    for one in known:  # in the order of their texts: a later one's steps are those of the one before, gone further
        if (one.here, one.whole) == (here, selection.whole):
            same = one.drawn == drawn
            return one if same else one._replace(drawn=drawn, frames=_frames(selection, one.tokens, ahead))
        if (one.here, one.whole + one.tokens) == (here, selection.whole):
            steps = one.steps
    steps = steps or _steps(selection)
    tokens: tuple[int, ...] = ()
    count = min(count, _room(selection))
    for step in itertools.islice(steps, count if _grows(selection, count) else min(count, MOST_UNSEEN)):
        tokens += (step.token,)
        if step.token == selection.config.bos_token_id:
            break
    return Chunk(selection.whole, here, drawn, tokens, _frames(selection, tokens, ahead), steps)


def _grows(selection: Selection, count: int) -> bool:
    """Whether so many more tokens leave all that is there as it is."""
    return selection.variant.causal and len(selection.ids) + count <= selection.config.block_size


def _room(selection: Selection) -> int:
    return max(0, LONGEST_PLAY - len(selection.written))


def _over(text: Selection) -> bool:
    """Whether Play goes no further: it is as long as it may be, or the model has ended it."""
    return _room(text) == 0 or (text.generated > 0 and text.ids[-1] == text.config.bos_token_id)


def _steps(selection: Selection) -> Iterator[Step]:
    """What follows, with the KV cache of what came before."""
    import torch

    import gptviz

    model, ids, size = state.model(selection.variant), torch.tensor(selection.whole), vocabulary(selection.variant.name)
    return gptviz.generate(model, ids, LONGEST_PLAY, **settings(), seed=st.session_state.seed, size=size)


def _frames(selection: Selection, tokens: tuple[int, ...], ahead: Ahead | None) -> list[Frame | None]:
    """None where a token changes what was there before it: without a mask, and where the window slides."""
    if not _grows(selection, len(tokens)):
        return [None] * len(tokens)
    last = selection.after(tokens)
    texts = [last.before(further) for further in reversed(range(len(tokens)))]
    return [_frame(text, _pictures(text, ahead)) for text in texts]


def _pictures(text: Selection, ahead: Ahead | None) -> Pictures:
    every = {KEY: payload(bars(text), key=KEY, alt=ALT), **(ahead(text) if ahead else {})}
    return {key: sent for key, sent in every.items() if len(sent) < MOST_BYTES and b"\0" not in sent}


def _frame(text: Selection, pictures: Pictures) -> Frame:
    chip = token_chips(text)[-1]
    return Frame(chip.label, chip.hover(len(text.ids) - 1), chip.classes, length(text), pictures)


def _due(shown: int) -> int:
    """How many tokens until the page is drawn again, so many having been shown since the last time.

    One, where the page is drawn as fast as they come. Where that takes longer, more tokens make up for it.
    """
    now = time.monotonic()
    took, st.session_state[ASKED] = now - st.session_state.get(ASKED, now), now
    late = took * PACE > SLACK * shown
    return min(int(GROWTH * took * PACE), MOST_AHEAD) if late else shown
