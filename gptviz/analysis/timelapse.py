"""What a model makes of a prompt at one moment of its training: what a time-lapse shows, and no more of the trace.

Shapes: L layers, H heads, T positions, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from ..capture import trace
from ..model import GPT
from .attention import head_scores
from .logit_lens import lens_summary, stream_names


class Moment(NamedTuple):
    patterns: np.ndarray  # (L, H, T, T) attention
    probs: np.ndarray  # (V,) of the next token
    lens_token: (
        np.ndarray
    )  # (L + 1,) the most likely next token, read from the stream into block 0 and after each block
    lens_probability: np.ndarray  # (L + 1,) of that token
    lens_error: float  # the last layer's logits against the model's own: the largest difference
    scores: dict[str, np.ndarray]  # (L, H) each: see head_scores
    loss: float  # nats per token on the prompt itself; NaN where it has one token alone


def moment(model: GPT, ids: Tensor, size: int | None = None) -> Moment:
    """ids (T,). `size`: how many of the V rows are tokens; what is beyond is padding and left out."""
    layers = range(model.config.n_layer)
    patterns = [f"blocks.{layer}.attn.hook_pattern" for layer in layers]
    run = trace(model, ids, keep=[*patterns, *stream_names(len(layers))])
    logs = run.logits[:, :size].log_softmax(-1)
    lens = lens_summary(model, run, size)
    told = logs[:-1].gather(-1, run.ids[1:, None])
    return Moment(
        np.stack([run[name].numpy() for name in patterns]),
        logs[-1].exp().numpy(),
        lens.token[:, -1],
        lens.probability[:, -1],
        lens.error,
        head_scores(run),
        float(-told.mean()) if len(told) else float("nan"),
    )
