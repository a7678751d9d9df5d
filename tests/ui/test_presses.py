"""A button's callback learns which buttons were pressed, and in which order."""

from types import SimpleNamespace

import pytest

from gptviz.ui.components import presses as module
from gptviz.ui.components.presses import TOLD, presses


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict:
    """As much of a session's state as is needed."""
    session: dict = {}
    monkeypatch.setattr(module, "st", SimpleNamespace(session_state=session))
    return session


def told(session: dict, words: str, first: int = 1) -> None:
    session[TOLD] = {"log": [[number, word] for number, word in enumerate(words.split(), first)]}


def test_a_call_stands_for_all_presses_since_the_last(session):
    told(session, "step")
    assert list(presses("step")) == ["step"]
    told(session, "step step step step")
    assert list(presses("step")) == ["step"] * 3


def test_presses_of_several_buttons_keep_their_order_whichever_is_called_first(session):
    told(session, "step step reset step")
    assert list(presses("reset")) == ["step", "step", "reset", "step"]
    assert list(presses("step")) == []


def test_a_button_that_was_answered_along_counts_again_when_it_is_pressed_again(session):
    told(session, "step back")
    assert list(presses("step")) == ["step", "back"]
    assert list(presses("back")) == []
    told(session, "step back back")
    assert list(presses("back")) == ["back"]


def test_without_a_word_from_the_browser_a_call_is_a_press(session):
    assert list(presses("step")) == ["step"]
    session[TOLD] = None
    assert list(presses("step")) == ["step"]
    assert list(presses("step")) == ["step"]


def test_another_page_goes_on_counting(session):
    told(session, "step step step")
    assert list(presses("step")) == ["step"] * 3
    del session[TOLD]  # its counter has just been drawn, and has told nothing yet
    assert list(presses("step")) == ["step"]
    told(session, "step", first=5)
    assert list(presses("step")) == ["step"]


def test_numbers_that_begin_again_are_still_presses(session):
    told(session, "step", first=9)
    assert list(presses("step")) == ["step"]
    told(session, "step")
    assert list(presses("step")) == ["step"]


def test_a_press_whose_turn_was_cut_off_is_made_up_for(session):
    told(session, "step back")
    for pressed in presses("step"):
        if pressed == "back":
            break
    told(session, "step back step")
    assert list(presses("back")) == ["back", "step"]
