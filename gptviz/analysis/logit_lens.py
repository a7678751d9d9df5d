"""The logit lens: what the model would predict if it stopped after a layer.

nostalgebraist 2020, https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens. The final norm
takes its mean and its scale anew from every layer's stream: with the last layer's, the others would not be normalised.
Shapes: L layers, T positions, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..capture import Trace
from ..model import GPT, view

AT_ONCE = 2**23  # logits that a summary holds at a time: a few arrays of 32 MB


def stream_names(n_layer: int) -> list[str]:
    """The hooks of the L + 1 streams: entering block 0, then after each block."""
    return ["blocks.0.hook_resid_pre", *(f"blocks.{layer}.hook_resid_post" for layer in range(n_layer))]


def logit_lens(model: GPT, run: Trace) -> np.ndarray:
    """(L + 1, T, V): the logits that the final norm and W_U read from every stream; the last are the run's own.

    It holds L + 1 times what the run's logits take: `lens_summary` and `lens_logits` are the same without holding it.
    """
    return np.stack([_read_out(model, run, run[name]).numpy() for name in stream_names(run.config.n_layer)])


def lens_logits(model: GPT, run: Trace, layer: int, position: int) -> np.ndarray:
    """(V,): one cell of `logit_lens`. Layer 0 is the stream that enters block 0."""
    stream = run[stream_names(run.config.n_layer)[layer]][position : position + 1]
    return _read_out(model, run, stream)[0].numpy()


@torch.no_grad()
def _read_out(model: GPT, run: Trace, stream: Tensor) -> Tensor:
    """Streams (T, C) -> logits (T, V), under the run's configuration: a variant's norms may differ from the model's."""
    norm, unembed = view(model.ln_final, run.config), view(model.unembed)
    return unembed(norm(stream.to(unembed.weight))).float().cpu()


class LensSummary(NamedTuple):
    """Every cell of the lens in five numbers: (L + 1, T) arrays."""

    token: np.ndarray  # the most likely one
    probability: np.ndarray  # of that token
    rank: np.ndarray  # of the token that is most likely in the end: 1 is the most likely
    entropy: np.ndarray  # nats
    kl: np.ndarray  # KL(final || layer) in nats
    error: float  # the last layer's logits against the model's own: the largest difference


def lens_summary(model: GPT, run: Trace, size: int | None = None) -> LensSummary:
    """The lens, layer by layer and some positions at a time, so that little of it is held at once.

    size: how many of the V rows of W_U are tokens; the padding beyond is left out. The divergence is what Belrose et
    al. 2023 (https://arxiv.org/abs/2303.08112) measure lenses by.
    """
    step = max(1, AT_ONCE // run.logits.shape[1])
    pieces = [_piece(model, run, slice(at, at + step), size) for at in range(0, len(run.ids), step)]
    *columns, errors = zip(*pieces, strict=True)
    token, probability, rank, entropy, kl = (np.concatenate(column, axis=1) for column in columns)
    return LensSummary(token, probability, rank, entropy, kl, max(errors))


def _piece(model: GPT, run: Trace, rows: slice, size: int | None) -> LensSummary:
    """The summary of some of the positions."""
    own = logits = run.logits[rows]
    final = own[:, :size].log_softmax(-1)
    best, layers = final.argmax(-1, keepdim=True), []
    for name in stream_names(run.config.n_layer):
        logits = _read_out(model, run, run[name][rows])
        layers.append(_summarised(logits[:, :size].log_softmax(-1), final, best))
    token, probability, rank, entropy, kl = (np.stack(column) for column in zip(*layers, strict=True))
    return LensSummary(token, probability, rank, entropy, kl, float((logits - own).abs().max()))


def _summarised(layer: Tensor, final: Tensor, best: Tensor) -> tuple[np.ndarray, ...]:
    """Of one layer: log-probabilities (T, V), the final ones, and the token that is best in the end (T, 1)."""
    highest, token = layer.max(-1)
    probs = layer.exp()
    rank = 1 + (layer > layer.gather(-1, best)).sum(-1)
    entropy = -_weighted(probs, layer)
    kl = _weighted(final.exp(), final - layer).clamp(min=0)  # never negative but for rounding
    return tuple(column.numpy() for column in (token, highest.exp(), rank, entropy, kl))


def _weighted(probs: Tensor, values: Tensor) -> Tensor:
    """The mean of values under probs, over the last axis; what cannot happen weighs nothing."""
    return (probs * values.masked_fill(probs == 0, 0)).sum(-1)
