"""Play keeps its pace however slowly the browser draws."""

import time
from types import SimpleNamespace

import pytest

from gptviz.ui import play as playing


@pytest.fixture
def play(monkeypatch):
    """play(interval, ticks): tokens added by each of so many ticks, that many seconds apart."""

    def run(interval: float, ticks: int) -> list[int]:
        clock, session = [0.0], Session({playing.ASKED: (0.0, 0.0)})
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(playing, "st", SimpleNamespace(session_state=session))
        counts = []
        for _ in range(ticks):
            clock[0] += interval
            counts.append(playing._due())
        return counts

    return run


class Session(dict):
    """As much of a session's state as is needed."""

    __getattr__, __setattr__ = dict.__getitem__, dict.__setitem__


def test_a_browser_that_keeps_up_gets_every_token_drawn(play):
    assert play(0.1, 20) == [1] * 20
    assert play(0.02, 20) == [1] * 20


@pytest.mark.parametrize("interval", [0.2, 0.3, 0.4])
def test_a_slower_one_still_keeps_the_pace(play, interval):
    ticks = round(10 / interval)
    assert sum(play(interval, ticks)) == pytest.approx(playing.PACE * ticks * interval, abs=1)


def test_a_pause_is_not_made_up_for_at_once(play):
    counts = play(5, 3)
    assert counts == [playing.MOST_AHEAD] * 3
