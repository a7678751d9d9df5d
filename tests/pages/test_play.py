"""What Play sends ahead for the browser to show, token by token."""

import json
from typing import Any

import numpy as np
import pytest

import gptviz
from gptviz.ui import play
from gptviz.ui.play import AHEAD
from gptviz.ui.played import PLAYER
from tests.figures.spec import array, read
from tests.pages.conftest import PROMPT, Drawn, _component, chip_html, figure

SETTINGS = dict(temperature=0.8, top_k=40, seed=0)  # as the page has them


@pytest.fixture(autouse=True)
def several_at_once(monkeypatch):
    monkeypatch.setattr(play, "_due", lambda shown: 5)


def playing(open_page, page: str, **params: str) -> Any:
    at = open_page(page, prompt=PROMPT, **params)
    at.button(key="play").click().run()
    assert not at.exception
    return at


def frames(at) -> list[Any]:
    return json.loads(_component(at, PLAYER).bytes)["frames"]


def generated(at) -> str:
    return ".".join(map(str, at.session_state.generated))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"encoding": "rotary"},
        {"encoding": "alibi", "stage": "+ position bias"},
        {"stage": "scaled", "layer": "1", "head": "2"},
        {"scale": "log", "hide_first": "true", "value_weighted": "true"},
    ],
    ids=str,
)
def test_every_frame_is_what_the_page_would_show(open_page, params):
    at = playing(open_page, "attention", **params)
    tokens = [step.token for step in following(at, params)]
    for count, frame in enumerate(frames(at), start=1):
        written = ".".join([generated(at), *map(str, tokens[:count])])
        whole = open_page("attention", prompt=PROMPT, generated=written, **params)
        assert set(frame["pictures"]) == {"next_token", "attention_heatmap"}
        for key, text in frame["pictures"].items():
            assert_same(Drawn(json.dumps(json.loads(text)["figure"])), figure(whole, key))
        chip = chip_html(whole).rpartition("<span")[2]
        assert all(frame[part] in chip for part in ("label", "classes", "hover"))
        assert frame["length"] in [caption.value for caption in whole.caption]


def following(at, params) -> list[gptviz.Step]:
    """The tokens that follow, by full forward passes."""
    loaded = gptviz.load("stories")
    model = gptviz.variant(loaded.model, pos_encoding=params.get("encoding", "learned"))
    ids = [*loaded.tokenizer.encode(PROMPT, bos=True).tolist(), *at.session_state.generated]
    return list(gptviz.generate(model, ids, 5, **SETTINGS, cache=False))


def assert_same(sent, drawn) -> None:
    """Equal but for rounding: one is part of a longer text's forward pass."""
    one, other = (read(shown)["data"][0] for shown in (sent, drawn))
    for name in ("x", "y", "z"):
        if name in other:
            np.testing.assert_allclose(array(one[name]), array(other[name]), rtol=1e-4, atol=1e-5)
    one, other = (read(shown)["layout"]["yaxis"] for shown in (sent, drawn))
    for name in ("labelalias", "ticktext"):
        assert one.get(name) == other.get(name)


def test_the_same_tokens_are_prepared_once(open_page):
    at = playing(open_page, "attention")
    first = at.session_state[AHEAD]
    at.run()
    again = at.session_state[AHEAD]
    assert again[0] is first[0]
    assert again[1].tokens == first[1].tokens
    assert first[1].whole == first[0].whole + first[0].tokens


def test_another_head_is_not_shown_the_old_ones_frames(open_page):
    at = playing(open_page, "attention")
    before = frames(at)
    at.selectbox(key="head").select(3).run()
    after = frames(at)
    assert [frame["label"] for frame in after] == [frame["label"] for frame in before]
    assert "head 3" in json.loads(after[0]["pictures"]["attention_heatmap"])["options"]["alt"]


@pytest.mark.parametrize("params", [{"causal": "false"}, {"prompt": "a long way " * 60}], ids=["no mask", "window"])
def test_where_a_token_changes_what_was_there_nothing_is_sent_ahead(open_page, params):
    at = open_page("attention", **{"prompt": PROMPT, **params})
    at.button(key="play").click().run()
    assert frames(at) == [None] * play.MOST_UNSEEN


@pytest.mark.parametrize("page", ["overview", "embeddings", "feed_forward", "residual_stream", "sampling"])
def test_every_page_sends_the_bars_ahead(open_page, page):
    assert [set(frame["pictures"]) for frame in frames(playing(open_page, page))] == [{"next_token"}] * 5


def test_play_ends_at_its_longest(open_page, monkeypatch):
    monkeypatch.setattr(play, "LONGEST_PLAY", 3)
    assert len(frames(playing(open_page, "overview"))) == 2
