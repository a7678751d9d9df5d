"""How well a model predicts stories, in nats per token and, comparable between tokenizers, bits per byte."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model import GPT, view
from ..tokenizer import Tokenizer


class Evaluation(NamedTuple):
    """Sums and means over some stories; the bos is never a target."""

    tokens: int
    bytes: int
    nats_per_token: float
    bits_per_byte: float


def rounded_figures(result: Evaluation) -> dict[str, float]:
    """As a card holds them."""
    return {name: round(value, 5) for name, value in result._asdict().items()}


class Window(NamedTuple):
    ids: Tensor  # (T + 1,): the bos, then ids
    fresh: int  # how many of the last targets no window before it has counted


def story_windows(ids: Tensor, block_size: int, bos_id: int) -> Iterator[Window]:
    """Half-overlapping windows over a story's ids (N,), the bos first in each; every id is fresh in exactly one."""
    counted, start = 0, 0
    while counted < len(ids):
        end = min(start + block_size, len(ids))
        bos = torch.tensor([bos_id])
        yield Window(torch.cat([bos, ids[start:end]]), end - counted)
        counted, start = end, start + (block_size + 1) // 2


@torch.no_grad()
def evaluate(model: GPT, tokenizer: Tokenizer, stories: Sequence[str], batch_size: int = 32) -> Evaluation:
    """Each story alone; every byte of it counted once. Dropout is off, whatever the model's mode."""
    model = view(model).eval()
    bos = tokenizer.bos_id if tokenizer.bos_id is not None else 0
    windows = [w for story in stories for w in story_windows(tokenizer.encode(story), model.config.block_size, bos)]
    windows.sort(key=lambda window: len(window.ids))
    batches = [windows[i : i + batch_size] for i in range(0, len(windows), batch_size)]
    nats = math.fsum(_nats(model, batch) for batch in batches)
    tokens, size = sum(w.fresh for w in windows), sum(len(story.encode()) for story in stories)
    return Evaluation(tokens, size, nats / tokens, nats / math.log(2) / size)


def _nats(model: GPT, batch: Sequence[Window]) -> float:
    """The summed cross-entropy of the fresh targets. Shorter windows are filled at the end, where the mask hides it."""
    length = max(len(window.ids) for window in batch)
    if not model.config.causal and len({len(window.ids) for window in batch}) > 1:
        return math.fsum(_nats(model, [window]) for window in batch)
    ids = torch.stack([F.pad(window.ids, (0, length - len(window.ids))) for window in batch])
    ids = ids.to(model.embed.weight.device)
    losses = F.cross_entropy(model(ids[:, :-1]).float().transpose(1, 2), ids[:, 1:], reduction="none")  # (B, T)
    ends = [len(window.ids) - 1 for window in batch]
    rows = zip(losses.cpu(), batch, ends, strict=True)
    return math.fsum(float(row[end - w.fresh : end].double().sum()) for row, w, end in rows)
