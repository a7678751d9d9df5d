"""Which heads have formed: their scores on random tokens that come twice, where no text can help."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..analysis.attention import head_scores, repeated_random_ids
from ..capture import trace
from ..model import GPT, view

KINDS = ("previous_token", "induction")
DRAWS = 8  # of random tokens, over which head scores are averaged


def mean_scores(model: GPT) -> dict[str, np.ndarray]:
    """(L, H) a kind; NaN where the context is too short to repeat anything. Dropout is off, whatever the mode."""
    model = view(model).eval()
    keep = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.config.n_layer)]
    drawn = [head_scores(trace(model, ids, keep=keep)) for ids in _draws(model)]
    return {kind: np.mean([scores[kind] for scores in drawn], axis=0) for kind in KINDS}


def _draws(model: GPT) -> list[Any]:
    return [repeated_random_ids(model.config, seed) for seed in range(DRAWS)]


def best_heads(model: GPT) -> dict[str, Any]:
    """The best previous-token head and the best induction head."""
    best = {kind: _best(scores) for kind, scores in mean_scores(model).items()}
    return {**best, "measured_on": f"{len(_draws(model)[0]) // 2} random tokens twice, mean of {DRAWS} draws"}


def _best(scores: np.ndarray) -> dict[str, Any]:
    if np.isnan(scores).all():
        return {"head": None, "score": None}
    layer, head = np.unravel_index(int(scores.argmax()), scores.shape)
    return {"head": f"L{layer}H{head}", "score": round(float(scores[layer, head]), 3)}
