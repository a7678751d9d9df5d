"""What heads do: scores of every head on a prompt, and the stages by which one head's pattern comes about.

Shapes: L layers, H heads, T positions. Rows are queries, columns keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch

from .. import positions
from ..capture import Trace
from ..config import GPTConfig
from ..errors import GptvizError
from ..model import GPT

HEAD_SCORES = {
    "previous_token": "attention to the token just before, mean over the positions from 1 on",
    "first_token": "attention to position 0, mean over the positions from 1 on; high in a sink, a head at rest",
    "self": "attention to the token itself, mean over the positions from 1 on",
    "induction": "attention to what followed the token's earlier occurrences, mean over tokens with some (Olsson 2022)",
    "duplicate_token": "attention to the token's earlier occurrences, mean over tokens with some (Wang 2022)",
    "entropy": "mean over the positions of the row's entropy in nats: 0 is all on one token",
}
ROWS, TINY = 64, np.float32(1e-38)


def head_scores(run: Trace) -> dict[str, np.ndarray]:
    """Each of HEAD_SCORES for every head: (L, H) arrays; NaN where the prompt has no position it could be measured at.

    Induction and duplicate-token heads: Olsson et al. 2022, https://arxiv.org/abs/2209.11895; Wang et al. 2022,
    https://arxiv.org/abs/2211.00593. All but the entropy are shares of attention, from 0 to 1.
    """
    targets = _targets(run.ids.numpy())
    at, rows = _stacked(targets)
    layers = [run[f"blocks.{layer}.attn.hook_pattern"] for layer in range(run.config.n_layer)]  # (H, T, T) each
    shares = np.stack([(pattern.flatten(1) @ at.T).numpy() for pattern in layers]) / rows  # (L, H, scores)
    causal = run.config.causal
    entropy = np.array([[_entropy(head.numpy(), causal) for head in pattern] for pattern in layers], np.float32)
    return {name: shares[..., n] for n, name in enumerate(targets)} | {"entropy": entropy}


def _targets(ids: np.ndarray) -> dict[str, np.ndarray]:
    """Of every score but the entropy: where the attention must go to count, (T, T)."""
    query, key = np.ogrid[: len(ids), : len(ids)]
    earlier = (ids[:, None] == ids) & (key < query)
    return {
        "previous_token": key == query - 1,
        "first_token": (key == 0) & (query > 0),
        "self": (key == query) & (query > 0),
        "induction": _next_column(earlier) & (key < query),
        "duplicate_token": earlier,
    }


def _next_column(where: np.ndarray) -> np.ndarray:
    """Each marked key moved to the one after it."""
    return np.pad(where, ((0, 0), (1, 0)))[:, :-1]


def _stacked(targets: Mapping[str, np.ndarray]) -> tuple[torch.Tensor, np.ndarray]:
    """A row of 0 and 1 a score (scores, T * T), and how many queries have a target: NaN where none has.

    One product with a layer's patterns then sums all that goes to the targets, and makes nothing of their size.
    """
    at = torch.stack([torch.from_numpy(where).flatten() for where in targets.values()]).float()
    rows = np.array([where.any(axis=1).sum() or np.nan for where in targets.values()], np.float32)
    return at, rows


def _entropy(pattern: np.ndarray, causal: bool) -> float:
    """Of one head (T, T): the mean over its rows, a few of them at a time: those fit in the processor's cache."""
    total = 0.0
    for end in range(ROWS, len(pattern) + ROWS, ROWS):
        weights = pattern[end - ROWS : end, : end if causal else None]
        logs = np.log(np.maximum(weights, TINY))  # a weight of 0 adds 0, as its limit does
        total -= float(np.einsum("qk,qk->", weights, logs))
    return max(0.0, total / len(pattern))


def repeated_random_ids(config: GPTConfig, seed: int = 0, length: int | None = None) -> torch.Tensor:
    """The bos, where the model has one, then `length` distinct random ids twice: (1 + 2 length,).

    Induction is measured on them. length is by default what fits in block_size, at most 63.
    """
    bos = config.bos_token_id
    front = [] if bos is None else [bos]
    ordinary = np.delete(np.arange(config.vocab_size), front)
    if length is None:
        length = min(63, (config.block_size - len(front)) // 2, len(ordinary))
    half = np.random.default_rng(seed).choice(ordinary, length, replace=False)
    return torch.from_numpy(np.concatenate([front, half, half]).astype(np.int64))


class Stages(NamedTuple):
    """How one head's pattern comes about: (T, T) each; bias is None without ALiBi."""

    raw: np.ndarray  # q . k
    scaled: np.ndarray  # times attn_scale, 1 / sqrt(D)
    bias: np.ndarray | None  # the position bias alone
    biased: np.ndarray
    masked: np.ndarray  # -inf in the future, where there is a mask
    pattern: np.ndarray


def attention_stages(run: Trace, layer: int, head: int) -> Stages:
    """The stages of one head, from q and k; `pattern` is the captured one, and so is `masked` where it was kept.

    Raises GptvizError where no scores were kept and the pattern is not the softmax of those that q and k make.
    """
    config, block = run.config, f"blocks.{layer}.attn."
    prefix = "hook_rot_" if config.pos_encoding == "rotary" else "hook_"
    q = run[f"{block}{prefix}q"][:, head]
    k = run[f"{block}{prefix}k"][:, head * config.n_kv_head // config.n_head]
    raw = (q @ k.T).numpy()
    scaled, bias = raw * config.scale(layer), None
    if config.pos_encoding == "alibi":
        bias = _alibi(len(run.ids), config.n_head, head)
    biased = scaled if bias is None else scaled + bias
    pattern = run[f"{block}hook_pattern"][head].numpy()
    if f"{block}hook_attn_scores" in run.activations:
        masked = run[f"{block}hook_attn_scores"][head].numpy()
    else:
        masked = np.where(_hidden(config, layer, len(run.ids)), np.float32(-np.inf), biased)
        _check_softmax(masked, pattern, layer, head)
    return Stages(raw, scaled, bias, biased, masked, pattern)


def _alibi(size: int, n_head: int, head: int) -> np.ndarray:
    """One head's bias (T, T)."""
    at = torch.arange(size)
    slope = positions.alibi_slopes(n_head)[head]
    return (-slope * (at[:, None] - at).abs()).numpy()


def _hidden(config: GPTConfig, layer: int, size: int) -> np.ndarray:
    """Where no query of the layer may look (T, T): the future, and what lies beyond its window."""
    at, window = torch.arange(size), config.window(layer)
    hidden = torch.zeros(size, size, dtype=torch.bool)
    if config.causal:
        hidden |= positions.causal_mask(at, at)
    if window:
        hidden |= positions.beyond_window(at, at, window)
    return hidden.numpy()


def _check_softmax(masked: np.ndarray, pattern: np.ndarray, layer: int, head: int, most: float = 1e-3) -> None:
    """Rounding is far below `most`, even where scores are in the hundreds."""
    error = float((torch.from_numpy(masked).softmax(-1) - torch.from_numpy(pattern)).abs().max())
    if error > most:
        raise GptvizError(
            f"The pattern of layer {layer}, head {head} is not the softmax of its scores, by {error:.2g}: an edit made "
            f"it. Keep 'blocks.{layer}.attn.hook_attn_scores' in the trace to see the scores that it was made from."
        )


class Cell(NamedTuple):
    """One weight, step by step: weight = e^score / row_sum, score = raw * scale + bias."""

    raw: float  # q . k
    scale: float  # attn_scale
    bias: float  # 0 without ALiBi
    score: float  # -inf where masked
    row_sum: float  # the sum of e^score over the row
    weight: float  # as captured


def attention_cell(stages: Stages, scale: float, query: int, key: int) -> Cell:
    """The arithmetic of the weight that one query gives to one key; the row's sum is taken in float64."""
    bias = 0.0 if stages.bias is None else float(stages.bias[query, key])
    score, row_sum = float(stages.masked[query, key]), float(np.exp(stages.masked[query].astype(np.float64)).sum())
    return Cell(float(stages.raw[query, key]), scale, bias, score, row_sum, float(stages.pattern[query, key]))


class HeadOutput(NamedTuple):
    """What one head takes from the tokens it looks at, and what of it reaches the stream."""

    mix: np.ndarray  # z, (T, D): the values, weighted by the pattern
    written: np.ndarray  # o, (T, C): z times the head's part of W_O
    mix_error: float  # largest difference of z from the captured one
    sum_error: float  # largest difference of all heads' outputs and W_O's bias from what attention writes


def head_output(model: GPT, run: Trace, layer: int, head: int) -> HeadOutput:
    """z = A V of one head, and what W_O makes of it. Vaswani et al. 2017, 3.2.2: https://arxiv.org/abs/1706.03762"""
    block, config = f"blocks.{layer}.attn.", run.config
    value = run[block + "hook_v"][:, head * config.n_kv_head // config.n_head]  # (T, D)
    mix = run[block + "hook_pattern"][head] @ value
    out = model.block(layer).attn.out
    weight = out.weight.detach().float().cpu().reshape(config.n_embd, config.n_head, config.d_head)  # (C, H, D)
    written = torch.einsum("thd,chd->htc", run[block + "hook_z"], weight)
    total = written.sum(0) + (0 if out.bias is None else out.bias.detach().float().cpu())
    return HeadOutput(
        mix.numpy(),
        written[head].numpy(),
        float((mix - run[block + "hook_z"][:, head]).abs().max()),
        float((total - run[f"blocks.{layer}.hook_attn_out"]).abs().max()),
    )


def without_first(pattern: np.ndarray) -> np.ndarray:
    """The pattern (T, T) with nothing on position 0 and every row's rest made to sum to 1 again.

    A row that looked at nothing else is NaN, and so is the column of position 0 itself.
    """
    rest = pattern.astype(np.float64)
    rest[:, 0] = 0
    total = rest.sum(1, keepdims=True)
    rest = np.divide(rest, total, out=np.full_like(rest, np.nan), where=total > 1e-6)
    rest[:, 0] = np.nan
    return rest.astype(np.float32)


_KINDS = {"previous_token": "previous", "induction": "induction", "duplicate_token": "duplicate", "self": "self"}


def head_kind(scores: Mapping[str, np.ndarray], layer: int, head: int, least: float = 0.4) -> str:
    """What takes at least that share of the head's attention on this prompt, in a word, or "".

    Resting on the first token is no kind: a head does that when it finds nothing to do (Xiao et al. 2023,
    https://arxiv.org/abs/2309.17453).
    """
    shares = {word: float(scores[name][layer, head]) for name, word in _KINDS.items()}
    known = {word: share for word, share in shares.items() if share >= least}  # NaN is not
    return max(known, key=lambda word: known[word], default="")
