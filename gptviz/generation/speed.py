"""How fast tokens come, with the KV cache and without: measured, never estimated."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from ..model import GPT
from ..sampling import generate


class Speed(NamedTuple):
    """One generation, timed."""

    tokens: tuple[int, ...]
    seconds: np.ndarray  # each token's own; the first one's holds the forward pass of the prompt

    @property
    def per_second(self) -> float:
        """Tokens per second, the prompt's forward pass included."""
        return len(self.tokens) / float(self.seconds.sum())


def generation_speed(model: GPT, ids: Tensor, count: int, *, cache: bool, **settings: Any) -> Speed:
    """Generates `count` tokens after ids (T,), with `generate`'s settings, and looks at the clock after each."""
    steps = generate(model, ids, count, cache=cache, **settings)
    tokens, ends = [], [time.perf_counter()]
    for step in steps:
        tokens.append(step.token)
        ends.append(time.perf_counter())
    return Speed(tuple(tokens), np.diff(ends))


def cache_and_none(model: GPT, ids: Tensor, count: int, *, repeats: int = 3, **settings: Any) -> tuple[Speed, Speed]:
    """With the KV cache and without: in turns, `repeats` times, of which each token's median time counts.

    So that what else the machine does falls on both. One short run before them pays for what only a first one costs.
    """
    generation_speed(model, ids, 2, cache=True, **settings)
    runs = [
        [generation_speed(model, ids, count, cache=cache, **settings) for cache in (True, False)]
        for _ in range(repeats)
    ]
    cached, full = (_median(kind) for kind in zip(*runs, strict=True))
    return cached, full


def _median(runs: Sequence[Speed]) -> Speed:
    return Speed(runs[0].tokens, np.median([run.seconds for run in runs], axis=0))
