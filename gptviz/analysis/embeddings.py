"""What goes into block 0: token rows, positions and their sum; nearest tokens; a map of the vocabulary.

Shapes: T positions, P positions of a table, C n_embd, R dimensions that rotary turns, H heads, V vocabulary,
N rows that are drawn.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

import numpy as np
import torch
from torch import nn

from .. import positions
from ..capture import Trace
from ..config import GPTConfig
from ..model import GPT


class EmbeddingSum(NamedTuple):
    """The vectors that enter block 0: total = token + position. (T, C) each; position is None where none is added."""

    token: np.ndarray
    position: np.ndarray | None
    total: np.ndarray
    error: float  # the largest difference between the captured vectors and what the tables say


def embedding_sum(model: GPT, run: Trace) -> EmbeddingSum:
    """The captured vectors, and how far they are from rows of W_E, rows of W_pos and the sum of both."""
    token, total = run["hook_embed"].numpy(), run["blocks.0.hook_resid_pre"].numpy()
    rows = model.embed.weight.detach()[run.ids].cpu().float().numpy()
    error, position = np.abs(token - rows).max(), None
    if "hook_pos_embed" in run.activations:
        position = run["hook_pos_embed"].numpy()
        error = max(error, np.abs(position - added_positions(model, len(run.ids))).max())
    expected = token if position is None else token + position
    return EmbeddingSum(token, position, total, float(max(error, np.abs(total - expected).max())))


def added_positions(model: GPT, length: int) -> np.ndarray:
    """What is added at each of the first `length` positions, pos_scale applied: (P, C). Only for added encodings."""
    table_of = cast(nn.Module, model.pos_embed)
    with torch.no_grad():
        table = table_of(torch.arange(length, device=model.embed.weight.device))
    return (model.config.pos_scale * table).cpu().float().numpy()


def rotary_table(config: GPTConfig, length: int) -> np.ndarray:
    """By how many radians each pair of dimensions has turned at each position: (P, R / 2)."""
    return positions.rotary_angles(torch.arange(length), config).numpy()


def cosines(vectors: np.ndarray) -> np.ndarray:
    """The cosine of every two rows: (P, C) -> (P, P). A row of zeros has cosine 0 with everything."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit @ unit.T


def rotary_similarity(config: GPTConfig, length: int) -> np.ndarray:
    """Cosine of a vector of equal pairs, turned as at position i, with the same turned as at j: (P, P).

    The mean over the pairs of cos((i - j) w): it depends on the distance alone.
    """
    angles = rotary_table(config, length)
    return (np.cos(angles) @ np.cos(angles).T + np.sin(angles) @ np.sin(angles).T) / angles.shape[1]


class Turn(NamedTuple):
    """One pair of dimensions of a query or a key, before and after rotary turned it: (2,) each."""

    before: np.ndarray
    after: np.ndarray  # as captured
    angle: float  # radians: position times the pair's frequency
    error: float  # the largest difference between `after` and `before` turned by the angle


def rotary_turn(run: Trace, layer: int, head: int, position: int, pair: int, of: Literal["q", "k"]) -> Turn:
    """What the rotation does to one pair of one query or key. A key belongs to the query head's group.

    Su et al. 2021 (RoPE), equation 34: https://arxiv.org/abs/2104.09864
    """
    config, block = run.config, f"blocks.{layer}.attn."
    own = head if of == "q" else head * config.n_kv_head // config.n_head
    at = [pair, pair + config.d_rotary // 2]
    before, after = (run[f"{block}{name}{of}"][position, own, at].double().numpy() for name in ("hook_", "hook_rot_"))
    angle = float(rotary_table(config, position + 1)[position, pair])
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ before
    return Turn(before, after, angle, float(np.abs(after - turned).max()))


def alibi_lines(config: GPTConfig, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (H,) and the bias at each distance 0 .. length - 1 (H, P), from `positions.alibi_bias` itself."""
    bias = positions.alibi_bias(torch.tensor([length - 1]), torch.arange(length), config.n_head)  # (H, 1, P)
    return positions.alibi_slopes(config.n_head).numpy(), bias[:, 0].flip(-1).numpy()


class Neighbours(NamedTuple):
    """The tokens whose vectors point the most alike, nearest first; the token itself is left out."""

    ids: np.ndarray  # (K,)
    cosine: np.ndarray  # (K,)
    norms: np.ndarray  # (K,)
    own_norm: float
    own_cosine: float  # of the token with itself: 1, or 0 for a vector of zeros


def nearest_tokens(model: GPT, token: int, count: int = 10, size: int | None = None) -> Neighbours:
    """By cosine, over the first `size` rows of W_E (all of them): no approximation."""
    rows = model.embed.weight.detach()[:size].float()
    norms = rows.norm(dim=1)
    products = norms * norms[token]
    cosine = torch.where(products > 0, rows @ rows[token] / products.clamp_min(1e-30), 0.0)
    own = float(cosine[token])
    others = cosine.clone()
    others[token] = -torch.inf
    best = others.topk(min(count, len(rows) - 1)).indices
    return Neighbours(
        best.cpu().numpy(), cosine[best].cpu().numpy(), norms[best].cpu().numpy(), float(norms[token]), own
    )


class VocabularyMap(NamedTuple):
    """The vocabulary along its three axes of largest variance: principal component analysis, Pearson 1901."""

    mean: np.ndarray  # (C,)
    axes: np.ndarray  # (C, 3), orthonormal; zeros where there are fewer dimensions
    shares: np.ndarray  # (3,) of the rows' variance, largest first
    ids: np.ndarray  # (N,) the rows that are drawn
    points: np.ndarray  # (N, 3)
    fitted: int  # how many rows the axes were worked out from

    def place(self, vectors: np.ndarray) -> np.ndarray:
        """Other vectors (n, C) on the same map: (n, 3)."""
        return ((vectors - self.mean) @ self.axes).astype(np.float32)


MOST_FITTED, MOST_DRAWN = 4096, 2000


def vocabulary_map(model: GPT, size: int | None = None) -> VocabularyMap:
    """The exact eigenvectors of the rows' covariance, in float64. A large vocabulary is thinned evenly by id."""
    rows = model.embed.weight.detach()[:size].cpu()
    fitted = rows[_spread(len(rows), MOST_FITTED)].double().numpy()
    mean = fitted.mean(0)
    variances, axes = np.linalg.eigh((fitted - mean).T @ (fitted - mean))
    variances, axes = variances[::-1].clip(0), axes[:, ::-1]
    axes = axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0) < 0, -1, 1)  # a sign of one's own
    missing = max(0, 3 - len(variances))
    shares = np.pad(variances / (variances.sum() or 1), (0, missing))[:3]
    kept = _spread(len(rows), MOST_DRAWN)
    drawn = VocabularyMap(mean, np.pad(axes, ((0, 0), (0, missing)))[:, :3], shares, kept, np.empty(0), len(fitted))
    return drawn._replace(points=drawn.place(rows[kept].numpy()))


def _spread(length: int, most: int) -> np.ndarray:
    """At most `most` of 0 .. length - 1, evenly spaced: (N,)."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.int64))


def embedding_against_unembedding(model: GPT, token: int) -> float:
    """Cosine of a token's row of W_E with its row of W_U: 1 where they are tied."""
    pair = torch.stack([model.embed.weight.detach()[token], model.unembed.weight.detach()[token]])
    return float(cosines(pair.cpu().float().numpy())[0, 1])
