"""A button's callback learns for how many presses it is called."""

from types import SimpleNamespace

import pytest

from gptviz.ui.components import presses as module
from gptviz.ui.components.presses import COUNTED, MOST, TOLD, presses


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict:
    """As much of a session's state as is needed."""
    session: dict = {}
    monkeypatch.setattr(module, "st", SimpleNamespace(session_state=session))
    return session


def turns(button: str) -> int:
    return sum(1 for _ in presses(button))


def told(session: dict, **counts: int) -> None:
    session[TOLD] = {"counts": counts}


def test_a_call_stands_for_all_presses_since_the_last(session):
    told(session, step=1)
    assert turns("step") == 1
    told(session, step=5)
    assert turns("step") == 4


def test_each_button_is_counted_for_itself(session):
    told(session, step=3)
    assert turns("step") == 3
    told(session, step=3, back=2)
    assert turns("back") == 2
    told(session, step=4, back=2)
    assert turns("step") == 1


def test_without_a_count_a_call_is_a_press(session):
    assert turns("step") == 1
    session[TOLD] = None
    assert turns("step") == 1
    told(session, back=7)
    assert turns("step") == 1


def test_another_page_goes_on_counting(session):
    told(session, step=7)
    assert turns("step") == 7
    del session[TOLD]  # its counter has just been drawn, and has told nothing yet
    told(session, step=8)
    assert turns("step") == 1


def test_a_count_that_went_back_is_still_a_press(session):
    session[COUNTED] = {"step": 9}
    told(session, step=2)
    assert turns("step") == 1


def test_a_count_out_of_all_proportion_is_bounded(session):
    told(session, step=10**9)
    assert turns("step") == MOST


def test_a_press_whose_turn_was_cut_off_is_made_up_for(session):
    told(session, step=2)
    for turn, _ in enumerate(presses("step")):
        if turn == 1:
            break
    told(session, step=3)
    assert turns("step") == 2
