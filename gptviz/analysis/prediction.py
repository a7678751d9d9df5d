"""How well each position foretold the token that came next. T positions, V vocabulary."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .logit_lens import AT_ONCE


class Predictions(NamedTuple):
    """Of the positions 0 .. T - 2, each about the token after it: (T - 1,) arrays."""

    token: np.ndarray  # the one that came
    probability: np.ndarray  # given to it
    loss: np.ndarray  # -log of that, in nats
    rank: np.ndarray  # of it: 1 is the most likely
    best: np.ndarray  # the most likely token


def predictions(logits: Tensor, ids: Tensor, size: int | None = None) -> Predictions:
    """From logits (T, V) and ids (T,). `size`: how many of the V rows are tokens; the padding beyond is left out."""
    step = max(1, AT_ONCE // logits.shape[1])
    pieces = zip(logits[:-1, :size].split(step), ids[1:, None].split(step), strict=True)
    return Predictions(*map(np.concatenate, zip(*(_foretold(piece, came) for piece, came in pieces), strict=True)))


def _foretold(logits: Tensor, came: Tensor) -> Predictions:
    """Of some positions: logits (T, V), and the token that came after each (T, 1)."""
    log_probs = logits.float().log_softmax(-1)
    mine = log_probs.gather(-1, came)
    rank = 1 + (log_probs > mine).sum(-1)
    columns = came[:, 0], mine[:, 0].exp(), -mine[:, 0], rank, log_probs.argmax(-1)
    return Predictions(*(column.numpy() for column in columns))


def perplexity(loss: np.ndarray) -> float:
    """e to the mean loss in nats: among how many equally likely tokens the model seemed to choose. NaN of nothing."""
    return math.exp(min(float(loss.mean()), 700)) if loss.size else math.nan


def entropies(logits: Tensor, temperature: float = 1.0, size: int | None = None) -> np.ndarray:
    """Entropy in nats of every position's distribution at a temperature: (T,). Temperature 0 leaves one token: 0."""
    if temperature == 0:
        return np.zeros(len(logits), np.float32)
    step = max(1, AT_ONCE // logits.shape[1])
    return np.concatenate([_entropy(piece[:, :size], temperature) for piece in logits.split(step)])


def _entropy(logits: Tensor, temperature: float) -> np.ndarray:
    above = logits.double()
    log_probs = ((above - above.amax(-1, keepdim=True)) / temperature).log_softmax(-1)
    surprise = torch.where(log_probs > -torch.inf, -log_probs, 0.0)
    return (log_probs.exp() * surprise).sum(-1).float().numpy()
