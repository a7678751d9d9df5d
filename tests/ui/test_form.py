"""The form's server side: what a browser says is checked, what a link says is read."""

from types import SimpleNamespace

import pytest

from gptviz.ui.components import form
from gptviz.ui.components.form import Field

SIZE = Field(name="size", label="size", help="A number.", kind="number", start=12)
MODE = Field(name="mode", label="mode", help="A choice.", kind="choice", start="a", options=("a", "b"))
TIED = Field(name="tied", label="tied", help="A switch.", kind="switch", start=True)
FIELDS = {field.name: field for field in (SIZE, MODE, TIED)}


@pytest.fixture
def session(monkeypatch):
    """session(edits, **link) -> the session's values; edits: what the browser sends."""

    def start(edits=None, **link):
        state = {"form": {"edits": {"edits": edits or {}, "time": 1.0}}}
        monkeypatch.setattr(form, "st", SimpleNamespace(session_state=state, query_params=link))
        return state

    return start


def kept():
    """The names that have changed, once the browser's message was taken in."""
    changed = []
    form._keep("form", FIELDS, changed.append)
    return changed[0]


def test_edits_are_kept_and_told_by_name(session):
    edits = {"size": 13, "mode": "b", "tied": True}
    state = session(edits)
    assert kept() == {"size", "mode"}  # tied is as it was
    assert (state["size"], state["mode"], state["tied"]) == (13, "b", True)


@pytest.mark.parametrize(
    "edits",
    [{"mode": "c"}, {"mode": None}, {"tied": "yes"}, {"tied": 1}, {"size": [1]}, {"size": True}, {"other": 1}],
)
def test_what_no_form_could_have_said_is_passed_over(session, edits):
    state = session(edits)
    assert kept() == set()
    assert "other" not in state


def test_an_emptied_number_is_none_and_one_beyond_all_numbers_a_text(session):
    state = session({"size": None})
    assert kept() == {"size"}
    assert state["size"] is None
    session({"size": "1e400"})
    assert kept() == {"size"}


@pytest.mark.parametrize(
    ("link", "value"), [("24", 24), ("-3", -3), ("0.1", 0.1), ("", None), ("many", "many"), ("9" * 50, "9" * 40)]
)
def test_a_link_gives_a_number_or_a_text_to_be_refused(session, link, value):
    session(size=link)
    assert SIZE.value == value


@pytest.mark.parametrize(
    ("link", "mode", "tied"), [({"mode": "b", "tied": "false"}, "b", False), ({"mode": "c", "tied": "no"}, "a", True)]
)
def test_a_link_gives_a_choice_or_nothing(session, link, mode, tied):
    session(**link)
    assert (MODE.value, TIED.value) == (mode, tied)


def test_the_session_goes_before_the_link(session):
    state = session(size="24")
    state["size"] = 13
    assert SIZE.value == 13
