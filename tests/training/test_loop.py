"""Training: it learns, and an interrupted run ends with the very weights of one that was not interrupted."""

import dataclasses
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from gptviz import GPTConfig, GptvizError, Tokenizer
from gptviz.training import Options, Progress, Run, evaluate, train
from gptviz.training.optim import Muon

OPTIONS = Options(steps=20, batch_size=4, optimizer="muon", warmup=3, repeats=0.1, eval_every=7)


@pytest.fixture
def start(config: GPTConfig, stories: list[str], tokenizer: Tokenizer) -> Callable[..., Any]:
    """train() on the made-up text; `resume` and so on as keywords, options by name."""

    def begin(resume: Path | None = None, validation: list[str] | None = None, save_every: int = 100, **options: Any):
        runs: list[Run] = []
        changed = dataclasses.replace(OPTIONS, **options)
        steps = train(
            config,
            stories,
            tokenizer,
            changed,
            validation=validation or [],
            resume=resume,
            save_every=save_every,
            on_start=runs.append,
        )
        return steps, runs

    return begin


def finish(started: Any) -> tuple[list[Progress], Run]:
    steps, runs = started
    return list(steps), runs[0]


def assert_same(one: Any, other: Any) -> None:
    """Bit for bit, tensors within dicts and lists as well."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        assert one == other


def state(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = torch.load(path, weights_only=True)
    return {name: value for name, value in read.items() if name != "seconds"}


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_loss_falls(start: Callable[..., Any], stories: list[str], tokenizer: Tokenizer, optimizer: str):
    progress, run = finish(start(steps=150, optimizer=optimizer, learning_rate=1e-2, batch_size=8, repeats=0.0))
    first, last = (sum(p.loss for p in some) / 10 for some in (progress[:10], progress[-10:]))
    assert first > 4
    assert last < 0.5 * first
    assert evaluate(run.model, tokenizer, stories).nats_per_token < 0.5 * first


def test_progress_says_what_was_done(start: Callable[..., Any], stories: list[str]):
    progress, run = finish(start(validation=stories[:3]))
    assert [p.step for p in progress] == list(range(1, 21))
    assert [p.step for p in progress if p.val_loss is not None] == [7, 14, 20]
    assert progress[-1].tokens == run.tokens == 20 * 4 * 24
    assert progress[0].learning_rate == pytest.approx(OPTIONS.learning_rate / 3)
    assert all(p.gradient_norm > 0 and p.tokens_per_second > 0 for p in progress)
    assert 0 < run.seconds < 60


def test_watching_the_validation_loss_changes_nothing(start: Callable[..., Any], stories: list[str]):
    assert_same(finish(start(validation=stories[:3]))[1].model.state_dict(), finish(start())[1].model.state_dict())


def test_training_leaves_the_global_randomness_alone(start: Callable[..., Any]):
    before = torch.get_rng_state()
    finish(start(steps=2))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_run_that_was_broken_off_ends_with_the_same_weights(
    start: Callable[..., Any], tmp_path: Path, precision: str
):
    whole, parts = tmp_path / "whole.pt", tmp_path / "parts.pt"
    finish(start(whole, precision=precision))
    steps, _ = start(parts, precision=precision)
    list(islice(steps, 8))
    steps.close()
    assert state(parts)["step"] == 8
    rest, _ = finish(start(parts, precision=precision))
    assert [p.step for p in rest] == list(range(9, 21))
    assert_same(state(parts), state(whole))


def test_a_run_that_was_killed_goes_on_from_its_last_save(start: Callable[..., Any], tmp_path: Path):
    whole, killed = tmp_path / "whole.pt", tmp_path / "killed.pt"
    finish(start(whole))
    steps, _ = start(tmp_path / "first.pt", save_every=4)
    list(islice(steps, 10))
    shutil.copy(tmp_path / "first.pt", killed)  # what a kill at step 10 leaves
    assert state(killed)["step"] == 8
    (tmp_path / "killed.partial").write_bytes(b"half a sta")
    finish(start(killed))
    assert_same(state(killed), state(whole))


def test_a_failure_in_the_middle_of_a_step_leaves_the_last_save(
    start: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """AdamW has stepped by then and Muon has not: such weights belong to no step."""
    path, whole, step = tmp_path / "run.pt", tmp_path / "whole.pt", Muon.step
    finish(start(whole))
    steps, runs = start(path, save_every=4)

    def fail_at_six(self: Muon) -> None:
        if runs[0].step == 6:
            raise RuntimeError("out of memory")
        step(self)

    monkeypatch.setattr(Muon, "step", fail_at_six)
    with pytest.raises(RuntimeError, match="out of memory"):
        list(steps)
    assert state(path)["step"] == 4
    monkeypatch.undo()
    finish(start(path))
    assert_same(state(path), state(whole))


def test_a_finished_run_has_nothing_left_to_do(start: Callable[..., Any], tmp_path: Path):
    path = tmp_path / "run.pt"
    finish(start(path))
    before = path.read_bytes()
    progress, run = finish(start(path))
    assert progress == []
    assert run.step == 20
    assert path.read_bytes() == before


def test_more_steps_are_the_same_run_until_the_decay_has_begun(start: Callable[..., Any], tmp_path: Path):
    longer, path = tmp_path / "longer.pt", tmp_path / "run.pt"
    finish(start(longer, steps=40))
    steps, _ = start(path)
    list(islice(steps, 8))
    steps.close()
    finish(start(path, steps=40))
    assert_same(state(path), state(longer))
    with pytest.raises(GptvizError, match="other options: steps was 40, now 60"):
        finish(start(path, steps=60))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seed": 1}, "other options: seed was 0, now 1. Use another folder"),
        ({"optimizer": "adamw", "batch_size": 8}, "batch_size was 4, now 8; optimizer was 'muon', now 'adamw'"),
    ],
)
def test_another_run_s_options_are_refused(
    start: Callable[..., Any], tmp_path: Path, changes: dict[str, Any], sentence: str
):
    finish(start(tmp_path / "run.pt"))
    before = (tmp_path / "run.pt").read_bytes()
    with pytest.raises(GptvizError, match=sentence):
        finish(start(tmp_path / "run.pt", **changes))
    assert (tmp_path / "run.pt").read_bytes() == before


def test_another_run_s_text_and_model_are_refused(
    start: Callable[..., Any], tmp_path: Path, config: GPTConfig, stories: list[str], tokenizer: Tokenizer
):
    path = tmp_path / "run.pt"
    finish(start(path))
    with pytest.raises(GptvizError, match="another text"):
        list(train(config, stories[1:], tokenizer, OPTIONS, resume=path))
    other = dataclasses.replace(config, pos_encoding="rotary")
    with pytest.raises(GptvizError, match="another configuration: pos_encoding was 'learned', now 'rotary'"):
        list(train(other, stories, tokenizer, OPTIONS, resume=path))


def test_how_often_the_loss_is_measured_may_change(start: Callable[..., Any], tmp_path: Path, stories: list[str]):
    steps, _ = start(tmp_path / "run.pt")
    list(islice(steps, 8))
    steps.close()
    progress, _ = finish(start(tmp_path / "run.pt", validation=stories[:2], eval_every=9))
    assert [p.step for p in progress if p.val_loss] == [9, 18, 20]


def test_a_state_that_does_not_know_its_text_or_time_is_read(start: Callable[..., Any], tmp_path: Path):
    path = tmp_path / "run.pt"
    finish(start(path))
    torch.save({name: value for name, value in state(path).items() if name != "text"}, path)
    _, run = finish(start(path))
    assert run.step == 20
    assert run.seconds != run.seconds  # NaN: nobody knows


@pytest.mark.parametrize("content", [b"", b"hello", None], ids=["empty", "no state", "cut off"])
def test_a_broken_state_is_not_overwritten(start: Callable[..., Any], tmp_path: Path, content: bytes | None):
    path = tmp_path / "run.pt"
    finish(start(path))
    path.write_bytes(path.read_bytes()[:-5000] if content is None else content)
    before = path.read_bytes()
    with pytest.raises(GptvizError, match=r"run\.pt is not the whole state of a run: remove it to start over"):
        finish(start(path))
    assert path.read_bytes() == before


def test_a_loss_that_is_no_number_ends_the_run(start: Callable[..., Any]):
    with pytest.raises(GptvizError, match=r"The loss is (nan|inf) after \d+ steps: start again with a lower learning"):
        finish(start(learning_rate=1e30, optimizer="adamw", warmup=0))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 0}, "steps = 0 must be positive"),
        ({"learning_rate": float("nan")}, "learning_rate = nan must be positive"),
        ({"matrix_rate": float("inf")}, "matrix_rate = inf must be"),
        ({"decay": 1.5}, "decay = 1.5 is a share, from 0 to 1"),
        ({"aligned": 0.7, "repeats": 0.4}, "repeats = 0.4 and aligned = 0.7 are more than 1 together"),
        ({"seed": -1}, "seed = -1 must not be negative"),
        ({"optimizer": "sgd"}, "optimizer = sgd is not one of adamw, muon"),
        ({"precision": "float16"}, "precision = float16 is not one of float32, bfloat16"),
    ],
)
def test_options_that_can_t_be(changes: dict[str, Any], sentence: str):
    with pytest.raises(GptvizError, match=sentence):
        Options(**changes)
