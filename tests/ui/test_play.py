"""Play keeps its pace however slowly the browser draws."""

import time
from types import SimpleNamespace

import pytest

from gptviz.ui import play as playing


class Session(dict):
    """As much of a session's state as is needed."""

    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__


@pytest.fixture
def play(monkeypatch):
    """play(page, token, chunks): the tokens of each chunk, and how long it took, where drawing takes so many seconds.

    The next chunk's size is settled while one is shown, and the player is never faster than the pace.
    """

    def run(page: float, token: float, chunks: int) -> list[tuple[int, float]]:
        clock, session = [0.0], Session({playing.ASKED: 0.0})
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(playing, "st", SimpleNamespace(session_state=session))
        shown, following, log = 1, 1, []
        for _ in range(chunks):
            took = max(page + token * shown, shown / playing.PACE)
            clock[0] += took
            log.append((shown, took))
            shown, following = following, playing._due(shown)
        return log

    return run


def rate(log: list[tuple[int, float]]) -> float:
    tokens, seconds = zip(*log, strict=True)
    return sum(tokens) / sum(seconds)


@pytest.mark.parametrize("page", [0.02, 0.08])
def test_a_browser_that_keeps_up_gets_the_page_drawn_for_every_token(play, page):
    assert [tokens for tokens, _ in play(page, 0.02, 20)] == [1] * 20


@pytest.mark.parametrize(("page", "token"), [(0.2, 0.04), (0.3, 0.06), (0.45, 0.065), (0.5, 0.075)])
def test_a_slower_one_still_keeps_the_pace(play, page, token):
    log = play(page, token, 60)
    assert rate(log[8:]) == pytest.approx(playing.PACE, rel=0.06)
    assert max(tokens for tokens, _ in log) <= playing.MOST_AHEAD


def test_a_pause_is_not_made_up_for_at_once(play):
    assert [tokens for tokens, _ in play(60, 0.05, 5)][2:] == [playing.MOST_AHEAD] * 3
