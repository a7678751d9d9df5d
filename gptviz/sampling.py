"""From logits to one token, and on. Knows no text.

A draw depends on the seed and on how many tokens stand before it, and on nothing else: generating 20 tokens, or 10 and
then 10 more, gives the same text.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .config import GPTConfig
from .edits import Edit, install
from .errors import GptvizError
from .model import GPT, Cache, check_ids, view


@dataclass(frozen=True)
class NextTokenTable:
    """Every token of the vocabulary, most likely first, through each filter: tensors (V,)."""

    ids: Tensor
    logits: Tensor
    scaled: Tensor  # logits / temperature
    in_top_k: Tensor  # bool, as the two below: whether it is still there after this filter
    in_top_p: Tensor
    in_min_p: Tensor
    probs: Tensor  # after temperature and filters; sums to 1
    after_top_k: Tensor  # the probabilities that this filter left, as the one below: each sums to 1
    after_top_p: Tensor

    def pick(self, draw: float) -> int:
        """The row in whose share of the unit interval, laid out in this order, the draw falls."""
        ends = self.probs.double().cumsum(0)
        row = int(torch.searchsorted(ends, draw * float(ends[-1]), right=True))
        return min(row, int(self.in_min_p.sum()) - 1)


def next_token_table(
    logits: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> NextTokenTable:
    """What temperature, top-k, top-p and min-p, in this order, make of logits (V,). Temperature 0 is the arg-max.

    Top-p is the nucleus of Holtzman et al. 2019 (https://arxiv.org/abs/1904.09751): the fewest tokens that hold p.
    Min-p keeps what has at least that share of the most likely token (Nguyen et al. 2024, https://arxiv.org/abs/2407.01082).
    Raises GptvizError for a setting that is out of range.
    """
    _check_settings(temperature, top_k, top_p, min_p)
    ordered, ids = logits.float().sort(descending=True, stable=True)
    above = ordered - ordered[0]  # <= 0, so that a tiny temperature can't overflow
    scaled = torch.where(above == 0, 0.0, -torch.inf) if temperature == 0 else _divided(above, temperature)
    if temperature == 0:
        top_k = 1
    nucleus = math.inf if top_p in (None, 1) else top_p  # off, where rounded sums reach 1 before the last token
    row = torch.arange(len(ids), device=ids.device)
    in_top_k = row < (top_k or len(ids))
    after_top_k = _renormalised(scaled, in_top_k)
    in_top_p = in_top_k & ((after_top_k.cumsum(0) - after_top_k < nucleus) | (row == 0))
    after_top_p = _renormalised(scaled, in_top_p)
    in_min_p = in_top_p & (after_top_p >= (min_p or 0) * after_top_p[0])
    probs = _renormalised(scaled, in_min_p)
    shown = scaled if temperature == 0 else _divided(ordered, temperature)
    return NextTokenTable(ids, ordered, shown, in_top_k, in_top_p, in_min_p, probs, after_top_k, after_top_p)


def _divided(logits: Tensor, temperature: float) -> Tensor:
    return (logits.double() / temperature).float()  # a temperature may be too small for a float32: 0 / 0


def _renormalised(scaled: Tensor, kept: Tensor) -> Tensor:
    return scaled.masked_fill(~kept, -torch.inf).softmax(0)


def _check_settings(temperature: float, top_k: int | None, top_p: float | None, min_p: float | None) -> None:
    if not (math.isfinite(temperature) and temperature >= 0):
        raise GptvizError(f"temperature = {temperature} must be 0 (the most likely token) or a positive number.")
    if top_k is not None and top_k < 1:
        raise GptvizError(f"top_k = {top_k} would leave no token: at least 1, or None to switch it off.")
    for name, share in (("top_p", top_p), ("min_p", min_p)):
        if share is not None and not 0 <= share <= 1:
            raise GptvizError(f"{name} = {share} must be between 0 and 1, or None to switch it off.")


def uniform(seed: int, position: int) -> float:
    """The draw from [0, 1) that chooses the token at a position: the same on every platform."""
    return random.Random(f"{seed}:{position}").random()


@dataclass(frozen=True)
class Step:
    """One token and where it came from."""

    token: int
    logits: Tensor  # (V,) raw
    probs: Tensor  # (V,) after temperature and filters, by token id; sums to 1
    position: int  # how many tokens stand before it
    draw: float  # in [0, 1): see NextTokenTable.pick
    seed: int


def window(config: GPTConfig, ids: Tensor) -> Tensor:
    """The ids (T,) that fit in block_size: the latest, with the first kept in front where it is the model's bos."""
    if ids.numel() <= config.block_size:
        return ids
    keeps_bos = config.bos_token_id is not None and int(ids[0]) == config.bos_token_id and config.block_size > 1
    front = ids[:1] if keeps_bos else ids[:0]
    return torch.cat([front, ids[len(ids) - config.block_size + len(front) :]])


def generate(
    model: GPT,
    ids: Tensor,
    max_new_tokens: int = 20,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    edits: Sequence[Edit] = (),
    cache: bool = True,
    size: int | None = None,
) -> Iterator[Step]:
    """Yields a Step for each of max_new_tokens tokens that follow ids (T,). Without a seed, one is drawn, and told.

    size: how many of the V rows of W_U are tokens; the padding beyond is never drawn, and no part of a Step.
    The KV cache serves as long as it gives what a full forward would: under a causal mask, within block_size, unedited.
    Raises GptvizError, before the first step, for ids or settings that can't be used.
    """
    ids = torch.as_tensor(ids)
    check_ids(model.config, window(model.config, ids)[None])
    _check_settings(temperature, top_k, top_p, min_p)
    own = view(model).eval()
    install(own, edits)
    seed = random.SystemRandom().randrange(2**31) if seed is None else seed
    cached = cache and model.config.causal and not edits
    settings = temperature, top_k, top_p, min_p
    return _steps(own, ids.to(own.embed.weight.device), max_new_tokens, settings, seed, cached, size)


Settings = tuple[float, int | None, float | None, float | None]


def _steps(
    model: GPT, ids: Tensor, count: int, settings: Settings, seed: int, cached: bool, size: int | None
) -> Iterator[Step]:
    store = Cache(model.config) if cached else None
    for _ in range(count):
        logits = _last_logits(model, ids, store)[:size]
        step = sample(logits, *settings, seed=seed, position=len(ids))
        yield step
        ids = torch.cat([ids, ids.new_tensor([step.token])])


@torch.no_grad()
def _last_logits(model: GPT, ids: Tensor, store: Cache | None) -> Tensor:
    """(V,): through the cache while the ids fit in block_size, else by a full forward over the window."""
    if store is None or len(ids) > model.config.block_size:
        return model(window(model.config, ids)[None])[0, -1]
    return model(ids[None, len(store) :], store)[0, -1]


def sample(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    *,
    seed: int,
    position: int,
) -> Step:
    """The token that logits (V,) and the draw for this seed and position give."""
    table = next_token_table(logits, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    draw = uniform(seed, position)
    token = int(table.ids[table.pick(draw)])
    probs = torch.empty_like(table.probs).scatter_(0, table.ids, table.probs)
    return Step(token, logits.detach().clone(), probs, position, draw, seed)
