"""Snapshots of a run as it learns: small checkpoints at chosen steps, each with its losses and its heads' scores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..checkpoints import Checkpoint, save
from ..errors import GptvizError
from ..tokenizer import Tokenizer
from .evaluation import evaluate, rounded_figures
from .heads import mean_scores

if TYPE_CHECKING:
    from .run import Run

MANY = 16  # snapshots where nobody says how many
CURVE = "loss.json"
POINTS = 300  # of the loss curve that is kept


def log_spaced(last: int, count: int = MANY) -> tuple[int, ...]:
    """0 and `last`, and steps between them whose ratios are about equal: at most `count` in all."""
    return tuple(sorted({0, last, *np.geomspace(1, last, max(1, count - 1)).round().astype(int).tolist()}))


@dataclass(frozen=True)
class Snapshots:
    """Where they are written, a folder a step, and after which steps."""

    folder: Path
    steps: tuple[int, ...]

    def place(self, step: int) -> Path:
        """Names of equal length, so that they sort."""
        return self.folder / f"{step:06d}"

    def check(self, done: int) -> None:
        """Raises GptvizError where a run that has done so many steps can't make some of them any more."""
        lost = [step for step in self.steps if step < done and not self.place(step).is_dir()]
        if lost:
            first = ", ".join(map(str, lost[:3])) + (" ..." if len(lost) > 3 else "")
            raise GptvizError(
                f"The run is at step {done} already, and {self.folder.name} has no snapshot of step {first}: "
                "start a new run, or ask for later steps."
            )

    def write(self, run: Run, tokenizer: Tokenizer, texts: Mapping[str, Sequence[str]]) -> None:
        """The model after run.step steps, in 16 bits, whole or not at all; and the loss curve so far.

        texts: stories by the name that the card has for the loss on them.
        """
        _check_size(run)
        about: dict[str, Any] = {
            "name": f"step {run.step}",
            "step": run.step,
            "tokens_seen": run.tokens,
            **{name: rounded_figures(evaluate(run.model, tokenizer, some)) for name, some in texts.items() if some},
            "head_scores": {name: _rounded(scores) for name, scores in mean_scores(run.model).items()},
        }
        save(Checkpoint(run.model, tokenizer, about), self.place(run.step), torch.float16)
        _write_json(self.folder / CURVE, loss_curve(run.history))


def _check_size(run: Run) -> None:
    """Raises GptvizError where a weight is beyond what 16 bits hold, as in a run that has come apart."""
    most = torch.finfo(torch.float16).max
    if not all(bool(parameter.abs().max() <= most) for parameter in run.model.parameters()):
        raise GptvizError(
            f"The weights are beyond {most:,.0f} after {run.step} steps: start again with a lower learning rate."
        )


def _rounded(scores: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(score) else round(float(score), 4) for score in row] for row in scores]


def loss_curve(history: Iterable[Mapping[str, Any]], points: int = POINTS) -> dict[str, list[list[float]]]:
    """[step, nats per token] pairs: "training" as means over at most `points` log-spaced spans, "validation" as it was.

    A span stands at its last step.
    """
    entries = list(history)
    losses = np.array([entry["loss"] for entry in entries])
    ends = np.unique(np.geomspace(1, max(1, len(entries)), points).round().astype(int)).tolist() if entries else []
    spans = zip([0, *ends[:-1]], ends, strict=True) if ends else ()
    return {
        "training": [[entries[end - 1]["step"], round(losses[start:end].mean().item(), 5)] for start, end in spans],
        "validation": [[e["step"], round(e["val_loss"], 5)] for e in entries if e["val_loss"] is not None],
    }


def _write_json(path: Path, values: Any) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(values) + "\n", encoding="utf-8")
    partial.replace(path)
