"""Which model was trained as another would be with another mask or encoding."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gptviz
from gptviz import checkpoints, library
from gptviz.tokenizer import train_bpe

WORDS = train_bpe(["the cat sat on the mat"], vocab_size=300)
OTHER_WORDS = train_bpe(["a dog ran in a park"], vocab_size=300)


@pytest.fixture
def shelf(tmp_path: Path, make_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """shelf("name", tokens, words, **changes): one more model in the library."""
    monkeypatch.setattr(library, "BUNDLED", tmp_path)
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path / "home"))

    def put(name: str, tokens: int = 1000, words: Any = WORDS, **changes: Any) -> None:
        model = make_model(**{"vocab_size": 300, **changes})
        card = {"tokens_seen": tokens}
        checkpoints.save(checkpoints.Checkpoint(model, words, card), tmp_path / name)

    return put


def test_a_model_that_differs_in_the_encoding_alone_is_the_counterpart(shelf):
    shelf("own")
    shelf("turned", pos_encoding="rotary")
    assert library.counterpart("own", True, "rotary") == "turned"
    assert library.counterpart("turned", True, "learned") == "own"
    assert library.counterpart("own", True, "alibi") is None
    assert library.counterpart("own", False, "rotary") is None
    assert library.has_counterparts("own")


def test_a_model_that_cheats_is_the_counterpart_without_a_mask(shelf):
    shelf("own")
    shelf("cheat", causal=False)
    assert library.counterpart("own", False, "learned") == "cheat"


def test_scale_and_dropout_may_differ_but_nothing_else(shelf):
    shelf("own")
    shelf("wave", pos_encoding="sinusoidal", pos_scale=0.1, dropout=0.1)
    shelf("wide", pos_encoding="rotary", n_embd=64)
    shelf("words", pos_encoding="alibi", words=OTHER_WORDS)
    assert library.counterpart("own", True, "sinusoidal") == "wave"
    assert library.counterpart("own", True, "rotary") is None
    assert library.counterpart("own", True, "alibi") is None


def test_of_several_the_one_that_saw_as_many_tokens(shelf):
    shelf("own", tokens=600, pos_encoding="rotary")
    shelf("long", tokens=1000)
    shelf("twin", tokens=650)
    assert library.counterpart("own", True, "learned") == "twin"


def test_a_model_alone_has_none_and_an_unknown_one_neither(shelf):
    shelf("own")
    assert not library.has_counterparts("own")
    assert library.counterpart("nobody", True, "rotary") is None


def test_the_counterpart_is_not_the_model_itself(shelf):
    shelf("own")
    assert library.counterpart("own", True, "learned") is None


def test_a_folder_that_cannot_be_read_is_passed_over(shelf, tmp_path):
    shelf("own")
    shelf("turned", pos_encoding="rotary")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    assert library.counterpart("own", True, "rotary") == "turned"


def test_it_can_be_loaded_and_its_configuration_is_the_one_asked_for(shelf, tmp_path):
    shelf("own")
    shelf("turned", pos_encoding="rotary")
    name = library.counterpart("own", True, "rotary")
    config = gptviz.load(tmp_path / str(name)).model.config
    assert dataclasses.replace(config, pos_encoding="learned") == gptviz.load(tmp_path / "own").model.config
