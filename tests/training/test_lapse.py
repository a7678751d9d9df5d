"""Snapshots read back as a time-lapse, from what training wrote."""

import json
from pathlib import Path

import pytest

from gptviz import GPTConfig, GptvizError, Tokenizer
from gptviz.training import Options, Snapshots, train
from gptviz.training.lapse import read_lapse


@pytest.fixture
def folder(config: GPTConfig, stories: list[str], tokenizer: Tokenizer, tmp_path: Path) -> Path:
    options = Options(steps=6, batch_size=2, warmup=0, eval_every=3)
    snapshots = Snapshots(tmp_path / "lapse", (0, 2, 6))
    list(train(config, stories[:-4], tokenizer, options, validation=stories[-4:], snapshots=snapshots))
    return tmp_path / "lapse"


def test_a_run_s_snapshots_in_their_order(folder: Path):
    lapse = read_lapse(folder)
    assert lapse is not None
    assert lapse.steps == [0, 2, 6]
    assert [path.name for path in lapse.folders] == ["000000", "000002", "000006"]
    cards = [json.loads((path / "card.json").read_text()) for path in lapse.folders]
    assert lapse.losses()["validation"] == [[card["step"], card["validation"]["nats_per_token"]] for card in cards]
    assert [step for step, _ in lapse.losses()["training"]] == [1, 2, 3, 4, 5, 6]
    for kind, words in (("previous_token", "previous token"), ("induction", "induction")):
        best = [[card["step"], max(map(max, card["head_scores"][kind]))] for card in cards]
        assert lapse.scores()[words] == best


def test_a_folder_without_any_has_none(tmp_path: Path):
    assert read_lapse(tmp_path) is None
    assert read_lapse(tmp_path / "nowhere") is None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "card.json").write_text("{}")
    assert read_lapse(tmp_path) is None


def test_without_a_curve_there_are_the_snapshots_own_losses(folder: Path):
    (folder / "loss.json").unlink()
    lapse = read_lapse(folder)
    assert lapse is not None
    assert lapse.losses()["training"] == []
    assert len(lapse.losses()["validation"]) == 3


@pytest.mark.parametrize(
    ("content", "sentence"), [("{", "000002/card.json can't be read"), ("{}", "does not say its step")]
)
def test_a_broken_card_is_told(folder: Path, content: str, sentence: str):
    (folder / "000002" / "card.json").write_text(content)
    with pytest.raises(GptvizError, match=sentence):
        read_lapse(folder)


def test_a_score_that_could_not_be_measured_is_left_out(folder: Path):
    card = json.loads((folder / "000002" / "card.json").read_text())
    card["head_scores"]["induction"] = [[None, None], [None, None]]
    (folder / "000002" / "card.json").write_text(json.dumps(card))
    lapse = read_lapse(folder)
    assert lapse is not None
    assert [step for step, _ in lapse.scores()["induction"]] == [0, 6]
