"""How to train, and what each step of it reports. Knows neither model nor text, and not torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from ..errors import GptvizError

Optimizer = Literal["adamw", "muon"]
Precision = Literal["float32", "bfloat16"]


def schedule(step: int, steps: int, warmup: int, decay: float) -> float:
    """Factor on the rate at a step (from 0): up over `warmup` steps, flat, then down to 1 % over the share `decay`."""
    rise = min(1.0, (step + 1) / warmup) if warmup else 1.0
    left = (steps - step) / max(1.0, decay * steps)
    return rise * min(1.0, max(0.01, left))


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to train. The same options, configuration, text and seed give the same weights, interrupted or not."""

    steps: int = 1000
    batch_size: int = 16
    optimizer: Optimizer = "adamw"
    learning_rate: float = 2e-3  # AdamW's
    matrix_rate: float = 0.02  # Muon's
    warmup: int = 50  # steps
    decay: float = 0.45  # share of the steps over which the rate falls to 1 %
    clip: float = 1.0  # largest norm of the gradient
    aligned: float = 0.25  # share of windows that begin with a story
    repeats: float = 0.0  # share of windows that are one segment repeated
    seed: int = 0
    precision: Precision = "float32"
    eval_every: int = 500  # steps

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "learning_rate", "matrix_rate", "clip", "eval_every"):
            self._check(name, 0 < getattr(self, name) < math.inf, "must be positive")
        for name in ("decay", "aligned", "repeats"):
            self._check(name, 0 <= getattr(self, name) <= 1, "is a share, from 0 to 1")
        for name in ("warmup", "seed"):
            self._check(name, getattr(self, name) >= 0, "must not be negative")
        self._check(
            "repeats", self.aligned + self.repeats <= 1, f"and aligned = {self.aligned} are more than 1 together"
        )
        for name, kind in (("optimizer", Optimizer), ("precision", Precision)):
            self._check(name, getattr(self, name) in get_args(kind), f"is not one of {', '.join(get_args(kind))}")

    def _check(self, name: str, right: bool, sentence: str) -> None:
        if not right:
            raise GptvizError(f"{name} = {getattr(self, name)} {sentence}.")

    def rate(self, step: int) -> float:
        """Factor on both learning rates at a step."""
        return schedule(step, self.steps, self.warmup, self.decay)


@dataclass(frozen=True)
class Progress:
    """What one step did. val_loss is there at evaluations only."""

    step: int  # steps done
    loss: float  # nats per token, of this batch before the step
    val_loss: float | None  # nats per token
    learning_rate: float
    gradient_norm: float  # before clipping
    tokens_per_second: float
    tokens: int  # seen so far
