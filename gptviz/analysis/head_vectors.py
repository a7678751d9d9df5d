"""One head's queries, keys and values: where they come from, and what they make of a weight.

Shapes: T positions, C n_embd, D d_head. Of several heads that share a key and a value, each is shown with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from ..capture import Trace
from ..model import GPT


class HeadVectors(NamedTuple):
    """A row a token: (T, D) each; the turned ones are None without rotary positions."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    turned_q: np.ndarray | None
    turned_k: np.ndarray | None

    @property
    def dotted(self) -> tuple[np.ndarray, np.ndarray]:
        """The queries and keys whose dot products are the scores."""
        asks, answers = self.turned_q, self.turned_k
        return (self.q if asks is None else asks), (self.k if answers is None else answers)


def head_vectors(run: Trace, layer: int, head: int) -> HeadVectors:
    """The captured vectors of one head. Rotation: Su et al. 2021, https://arxiv.org/abs/2104.09864"""
    block, shared = f"blocks.{layer}.attn.hook_", head * run.config.n_kv_head // run.config.n_head

    def rows(name: str, at: int) -> np.ndarray:
        captured: np.ndarray = run[block + name][:, at].numpy()
        return captured

    turned = run.config.pos_encoding == "rotary"
    return HeadVectors(
        rows("q", head),
        rows("k", shared),
        rows("v", shared),
        rows("rot_q", head) if turned else None,
        rows("rot_k", shared) if turned else None,
    )


@torch.no_grad()
def projection_error(model: GPT, run: Trace, layer: int, head: int) -> float:
    """Largest difference of the captured q, k and v from the normalised stream times W_Q, W_K and W_V."""
    attention, config = model.block(layer).attn, run.config
    stream = run[f"blocks.{layer}.ln1.hook_normalized"].to(attention.qkv.weight)
    rows = attention.qkv(stream).unflatten(-1, (-1, config.d_head))  # (T, H + 2 H_kv, D)
    shared = config.n_head + head * config.n_kv_head // config.n_head
    q, k, v = attention.q_norm(rows[:, head]), attention.k_norm(rows[:, shared]), rows[:, shared + config.n_kv_head]
    captured = head_vectors(run, layer, head)
    pairs = zip((q, k, v), (captured.q, captured.k, captured.v), strict=True)
    return max(float(np.abs(made.float().cpu().numpy() - seen).max()) for made, seen in pairs)


def value_weighted(pattern: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Each weight times the length of its value, rows (T, T) summing to 1 again; pattern (T, T), values (T, D).

    A weight on a value of almost no length moves almost nothing: Kobayashi et al. 2020,
    https://arxiv.org/abs/2004.10102
    """
    moved = pattern.astype(np.float64) * np.linalg.norm(values.astype(np.float64), axis=1)
    total = moved.sum(1, keepdims=True)
    shares: np.ndarray = np.divide(moved, total, out=np.zeros_like(moved), where=total > 0)
    return shares.astype(np.float32)


class Contribution(NamedTuple):
    """What one key adds to a query's mix z."""

    length: float  # of its value
    added: float  # length of weight times value
    share: float  # of z, along z: over a row these sum to 1
    error: float  # largest difference of the row's sum of weight times value from the captured z


def contribution(run: Trace, layer: int, head: int, query: int, key: int) -> Contribution:
    """Weight times value of one cell, beside the whole row's sum, which is z."""
    values = head_vectors(run, layer, head).v.astype(np.float64)
    parts = run.pattern(layer, head)[query].astype(np.float64)[:, None] * values  # (T, D)
    z = run[f"blocks.{layer}.attn.hook_z"][query, head].numpy().astype(np.float64)
    whole = float(z @ z)
    return Contribution(
        float(np.linalg.norm(values[key])),
        float(np.linalg.norm(parts[key])),
        float(parts[key] @ z) / whole if whole else 0.0,
        float(np.abs(parts.sum(0) - z).max()),
    )
