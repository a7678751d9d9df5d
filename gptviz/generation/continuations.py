"""The same beginning, continued many times: each as `generate` would with a seed of its own."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import GptvizError
from ..model import GPT
from ..sampling import Step, sample
from .rows import Rows

MOST = 64  # texts at once: a row of the batch each


@dataclass(frozen=True)
class Continuation:
    """One text that the model went on with."""

    seed: int
    tokens: tuple[int, ...]
    probs: tuple[float, ...]  # of each token when it was drawn, after temperature and filters
    nats: float  # minus the log of all of them together, before temperature and filters: the model's own surprise


def continuations(
    model: GPT,
    ids: Tensor,
    count: int = 8,
    length: int = 20,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int = 0,
    size: int | None = None,
) -> list[Continuation]:
    """`count` texts of `length` tokens that follow ids (T,), under the seeds seed, seed + 1, ...; decoded as one batch.

    size: how many of the V rows of W_U are tokens; the padding beyond is never drawn.
    Raises GptvizError for ids or settings that can't be used.
    """
    if not 1 <= count <= MOST:
        raise GptvizError(f"count = {count} texts at once: between 1 and {MOST}.")
    draw = functools.partial(sample, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    rows, same = Rows(model, ids), torch.arange(count)
    steps: list[list[Step]] = [[] for _ in range(count)]
    for at in range(length):
        logits = rows.logits()[:, :size].cpu()  # one row as long as all texts are the same
        drawn = [draw(row, seed=seed + n, position=len(ids) + at) for n, row in enumerate(logits.expand(count, -1))]
        for text, step in zip(steps, drawn, strict=True):
            text.append(step)
        parents = same if at else torch.zeros_like(same)
        rows.extend(parents, torch.tensor([step.token for step in drawn], device=rows.ids.device))
    return [_finished(seed + n, text) for n, text in enumerate(steps)]


def _finished(seed: int, steps: list[Step]) -> Continuation:
    tokens, probs = tuple(s.token for s in steps), tuple(float(s.probs[s.token]) for s in steps)
    nats = math.fsum(-float(step.logits.log_softmax(-1)[step.token]) for step in steps)
    return Continuation(seed, tokens, probs, nats)
