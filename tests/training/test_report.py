"""A run's progress in a file: what is written when, and what is read of it after a kill."""

import json
from pathlib import Path

import pytest

from gptviz.training import Progress
from gptviz.training import report as module
from gptviz.training.report import Report, curves, read_report


def progress(step: int, loss: float, val_loss: float | None = None) -> Progress:
    return Progress(step, loss, val_loss, 0.002, 1.0 * step, 100.0, 10 * step)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.jsonl"


def test_a_line_holds_the_means_since_the_line_before(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "INTERVAL", 1e9)
    write = Report(path, 100, lambda: "Once")
    for step, loss in ((1, 5.0), (2, 4.0), (3, 3.0)):
        write(progress(step, loss))
    write(progress(4, 2.0, 2.5))
    first, second = read_report(path)
    assert (first["step"], first["loss"]) == (1, 5.0)
    assert "sample" not in first
    assert (second["step"], second["loss"], second["gradient_norm"]) == (4, 3.0, 3.0)
    assert (second["val_loss"], second["sample"], second["tokens"]) == (2.5, "Once", 40)


def test_the_last_step_always_has_a_line(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "INTERVAL", 1e9)
    write = Report(path, 3, lambda: "")
    for step in (1, 2, 3):
        write(progress(step, 1.0))
    assert [line["step"] for line in read_report(path)] == [1, 3]


def test_steps_that_were_done_again_count_once(path: Path):
    lines = [{"step": step, "loss": 1.0} for step in (1, 2, 3, 4)] + [{"step": 3, "loss": 2.0}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 4, "lo')
    assert read_report(path) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 1.0}, {"step": 3, "loss": 2.0}]


def test_no_report_is_no_lines(path: Path):
    assert read_report(path) == []


def test_curves_are_pairs():
    lines = [{"step": 1, "loss": 5.0, "val_loss": None}, {"step": 2, "loss": 4.0, "val_loss": 4.5}]
    assert curves(lines) == {"training": [[1, 5.0], [2, 4.0]], "validation": [[2, 4.5]]}
