"""Which parts of a page a change draws again."""

from types import SimpleNamespace

import pytest

from gptviz.ui import live


@pytest.fixture
def reruns(monkeypatch) -> list[tuple[str, ...]]:
    """The parts that were asked for so far; a page of three parts has begun, and is not whole yet."""
    asked: list[tuple[str, ...]] = []
    streamlit = SimpleNamespace(session_state={}, fragment=lambda draw, key: draw, rerun=asked.append)
    monkeypatch.setattr(live, "st", streamlit)
    monkeypatch.setattr(live, "stay", lambda: None)
    live.begin()
    live.part("tokens", lambda: None)
    live.part("bars", lambda: None, sampled=True)
    live.part("choice", lambda: None, follows=False)
    return asked


def test_a_page_that_is_not_whole_is_drawn_whole(reruns):
    live.redraw()
    live.resample()
    assert reruns == []


def test_a_change_draws_what_follows_it_and_a_sampling_setting_what_depends_on_it(reruns):
    live.end()
    live.redraw()
    live.resample()
    live.redraw("choice")
    assert reruns == [("tokens", "bars"), ("bars",), ("choice",)]
