"""A run's progress as lines of JSON in a file that another process reads as it grows. Knows no model, and not torch."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .options import Progress

INTERVAL = 0.5  # seconds between lines
MEANS = ("loss", "gradient_norm", "tokens_per_second")  # over the steps since the line before


class Report:
    """Called with every Progress; writes a line now and then, and always where the held-out loss was measured.

    `sample` then gives what the model writes by now. Lines are appended: a run that goes on adds to what is there.
    """

    def __init__(self, path: Path, steps: int, sample: Callable[[], str]):
        self.path, self.steps, self.sample = path, steps, sample
        self.waiting: list[Progress] = []
        self.written = -INTERVAL

    def __call__(self, progress: Progress) -> None:
        self.waiting.append(progress)
        telling = progress.val_loss is not None or progress.step == self.steps
        if telling or time.monotonic() - self.written >= INTERVAL:
            self._write(progress)

    def _write(self, progress: Progress) -> None:
        means = {name: sum(getattr(p, name) for p in self.waiting) / len(self.waiting) for name in MEANS}
        line: dict[str, Any] = {"step": progress.step, "tokens": progress.tokens, **means}
        line |= {"learning_rate": progress.learning_rate, "val_loss": progress.val_loss}
        if progress.val_loss is not None:
            line["sample"] = self.sample()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.waiting, self.written = [], time.monotonic()


def read_report(path: Path) -> list[dict[str, Any]]:
    """The lines so far, in the order of their steps.

    Where a kill made the run do steps again, the later lines count; a line that is still being written does not.
    """
    if not path.exists():
        return []
    lines: list[dict[str, Any]] = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        while lines and lines[-1]["step"] >= line["step"]:
            lines.pop()
        lines.append(line)
    return lines


def curves(lines: Sequence[dict[str, Any]]) -> dict[str, list[list[float]]]:
    """[step, nats per token] pairs by name, as snapshots' loss_curve has them."""
    watched = [line for line in lines if line["val_loss"] is not None]
    return {
        "training": [[line["step"], line["loss"]] for line in lines],
        "validation": [[line["step"], line["val_loss"]] for line in watched],
    }
