"""Snapshots of a run: which steps, what each holds, and that no kill costs one."""

import json
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gptviz
from gptviz import GPTConfig, GptvizError, Tokenizer
from gptviz.model import GPT
from gptviz.training import Options, Snapshots, evaluate, log_spaced, train
from gptviz.training import __main__ as cli
from gptviz.training.snapshots import loss_curve

OPTIONS = Options(steps=12, batch_size=4, warmup=2, eval_every=4)
STEPS = (0, 1, 5, 12)


def start(config: GPTConfig, stories: list[str], tokenizer: Tokenizer, folder: Path, **more: Any):
    snapshots = more.pop("snapshots", Snapshots(folder / "lapse", STEPS))
    held_out = stories[-4:]
    options = dict(validation=held_out, resume=folder / "last.pt", save_every=4, snapshots=snapshots) | more
    return train(config, stories[:-4], tokenizer, OPTIONS, **options)


def everything(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("last", [1, 2, 10, 3000])
def test_steps_are_log_spaced_from_the_first_to_the_last(last: int):
    steps = log_spaced(last)
    assert (steps[0], steps[1], steps[-1]) == (0, 1, last)
    assert list(steps) == sorted(set(steps))
    assert len(steps) <= 17


def test_a_long_run_has_at_least_twelve_whose_ratios_are_alike():
    steps = log_spaced(3000)
    assert len(steps) >= 12
    ratios = np.array(steps[6:-1]) / np.array(steps[5:-2])
    assert ratios.max() / ratios.min() < 1.3


def test_every_snapshot_is_a_checkpoint_with_its_losses(
    config: GPTConfig, stories: list[str], tokenizer: Tokenizer, tmp_path: Path
):
    runs: list[Any] = []
    list(start(config, stories, tokenizer, tmp_path, on_start=runs.append))
    folders = sorted(path for path in (tmp_path / "lapse").iterdir() if path.is_dir())
    assert [path.name for path in folders] == ["000000", "000001", "000005", "000012"]
    for step, folder in zip(STEPS, folders, strict=True):
        loaded = gptviz.load(folder)
        assert (loaded.card["step"], loaded.card["tokens_seen"]) == (step, step * 4 * 24)
        for name, some in (("training", stories[:4]), ("validation", stories[-4:])):
            again = evaluate(loaded.model, loaded.tokenizer, some)
            assert loaded.card[name]["nats_per_token"] == pytest.approx(again.nats_per_token, abs=1e-3)
        scores = loaded.card["head_scores"]
        assert np.array(scores["previous_token"]).shape == np.array(scores["induction"]).shape == (2, 2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first = GPT(config)
    assert torch.equal(gptviz.load(folders[0]).model.embed.weight, first.embed.weight.half().float())
    last = gptviz.load(folders[-1]).model
    for mine, trained in zip(last.parameters(), runs[0].model.parameters(), strict=True):
        assert torch.equal(mine, trained.half().float())


def test_a_kill_costs_no_snapshot(config: GPTConfig, stories: list[str], tokenizer: Tokenizer, tmp_path: Path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    list(start(config, stories, tokenizer, whole))
    steps = start(config, stories, tokenizer, tmp_path / "first")
    list(islice(steps, 6))  # the state knows of step 4, the snapshots of step 5
    shutil.copytree(tmp_path / "first", killed)
    list(start(config, stories, tokenizer, killed))
    assert everything(killed / "lapse") == everything(whole / "lapse")


def test_snapshots_change_nothing_in_the_run(
    config: GPTConfig, stories: list[str], tokenizer: Tokenizer, tmp_path: Path
):
    list(start(config, stories, tokenizer, tmp_path / "with"))
    list(start(config, stories, tokenizer, tmp_path / "without", snapshots=None))
    one, other = (torch.load(tmp_path / name / "last.pt", weights_only=True) for name in ("with", "without"))
    assert all(torch.equal(one["model"][name], other["model"][name]) for name in one["model"])


def test_a_snapshot_that_can_t_be_made_any_more_is_refused(
    config: GPTConfig, stories: list[str], tokenizer: Tokenizer, tmp_path: Path
):
    steps = start(config, stories, tokenizer, tmp_path, snapshots=None)
    list(islice(steps, 6))
    steps.close()
    with pytest.raises(GptvizError, match="is at step 6 already, and lapse has no snapshot of step 0, 1, 5: start a"):
        list(start(config, stories, tokenizer, tmp_path))


def test_the_curve_has_means_of_log_spaced_spans():
    history = [{"step": n, "loss": float(n), "val_loss": n / 2 if n % 50 == 0 else None} for n in range(1, 101)]
    curve = loss_curve(history, points=3)  # spans end at 1, 10 and 100
    assert curve["training"] == [[1, 1.0], [10, 6.0], [100, 55.5]]
    assert curve["validation"] == [[50, 25.0], [100, 50.0]]
    assert loss_curve([]) == {"training": [], "validation": []}


def test_the_command_line_makes_them(text_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    words = [str(text_file), "--out", "tiny", "--held-out", "4", "--steps", "6", "--batch-size", "4"]
    words += ["--set", "n_layer=1", "n_head=2", "n_embd=16", "block_size=24", "--vocab-size", "280"]
    assert cli.main([*words, "--snapshots", "lapse", "--snapshot-steps", "2", "3"]) == 0
    assert sorted(path.name for path in Path("lapse").iterdir()) == [
        "000000",
        "000002",
        "000003",
        "000006",
        "loss.json",
    ]
    curve = json.loads(Path("lapse/loss.json").read_text())
    assert [step for step, _ in curve["training"]] == [1, 2, 3, 4, 5, 6]
    assert gptviz.load("tiny").card["command"].endswith("--snapshots lapse --snapshot-steps 2 3")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--snapshot-steps", "3"], "--snapshot-steps needs --snapshots FOLDER"),
        (["--snapshots", "x", "--snapshot-steps", "3", "7"], "--snapshot-steps 7 is no step of this run, which has 6"),
    ],
)
def test_steps_that_can_t_be(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["text.txt", "--out", "tiny", "--steps", "6", *words]) == 2
    assert sentence in capsys.readouterr().err
