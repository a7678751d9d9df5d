"""Bytes: weights, gradients, optimizer, activations, KV cache; and whether they fit.

Knows no tensors. GB are 10^9 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

from ..config import GPTConfig
from . import activations
from .parameters import n_params, parameter_groups
from .workload import WEIGHT_BYTES, Optimizer, Workload

GB = 10**9
FLOAT32 = 4
LABELS = {
    "weights": "Weights",
    "gradients": "Gradients",
    "optimizer": "Optimizer",
    "activations": "Activations",
    "kv_cache": "KV cache",
}


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes. For training the sum is what is held when the backward pass begins with gradients already allocated."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    kv_cache: int

    def parts(self) -> dict[str, int]:
        """What takes any, with the names they are shown by."""
        return {LABELS[name]: size for name, size in asdict(self).items() if size}

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations + self.kv_cache


# Numbers an optimizer remembers: of the matrices in the blocks, and of every other parameter.
# AdamW two moments (Loshchilov & Hutter 2017: https://arxiv.org/abs/1711.05101); Muon one momentum for the matrices,
# with AdamW for the rest (Jordan 2024: https://kellerjordan.github.io/posts/muon/). AdamW's step counters are left out.
STATES: dict[Optimizer, Callable[[int, int], int]] = {
    "adamw": lambda matrices, rest: 2 * (matrices + rest),
    "sgd": lambda matrices, rest: 0,
    "sgd_momentum": lambda matrices, rest: matrices + rest,
    "muon": lambda matrices, rest: matrices + 2 * rest,
}


def memory(config: GPTConfig, workload: Workload | None = None) -> Memory:
    """What the workload takes, in bytes. Raises GptvizError for one that the model can't do."""
    workload = workload or Workload()
    workload.tokens(config)
    weights = math.ceil(n_params(config) * WEIGHT_BYTES[workload.dtype])
    if workload.training:
        return Memory(
            weights=weights,
            gradients=weights,
            optimizer=_optimizer(config, workload),
            activations=activations.kept(config, workload).total,
            kv_cache=0,
        )
    return Memory(
        weights=weights,
        gradients=0,
        optimizer=0,
        activations=activations.transient(config, workload),
        kv_cache=kv_cache(config, workload),
    )


def kv_cache(config: GPTConfig, workload: Workload) -> int:
    """A key and a value a layer, KV head and position: 2 L B T H_kv D numbers, in bytes."""
    numbers = 2 * config.n_layer * workload.batch * workload.tokens(config) * config.n_kv_head * config.d_head
    return numbers * workload.bytes


def _optimizer(config: GPTConfig, workload: Workload) -> int:
    """Its states have the weights' type; in mixed precision they are float32, and so is a master copy of the weights.

    16 bytes a parameter with AdamW then: Rajbhandari et al. 2019 (ZeRO), section 3.1: https://arxiv.org/abs/1910.02054
    """
    groups = parameter_groups(config)
    states = STATES[workload.optimizer](groups.matrices, groups.total - groups.matrices)
    if workload.dtype == "mixed":
        return FLOAT32 * (states + groups.total)
    return math.ceil(states * WEIGHT_BYTES[workload.dtype])


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One memory size. share: of it that is needed; above 1 it does not fit. n: how many such devices would hold it."""

    name: str
    size: int
    share: float
    fits: bool
    n: int


# As sold; counted as 10^9 bytes a GB, which leaves the few per cent that a driver takes.
SIZES = {
    "8 GB laptop GPU": 8 * GB,
    "16 GB T4, laptop": 16 * GB,
    "24 GB RTX 4090, L4": 24 * GB,
    "48 GB L40S": 48 * GB,
    "80 GB A100, H100": 80 * GB,
    "141 GB H200": 141 * GB,
    "8 × 80 GB server": 640 * GB,
}


def fits(need: int, sizes: dict[str, int] | None = None) -> list[Fit]:
    """Whether so many bytes fit, for each memory size in bytes."""
    sizes = SIZES if sizes is None else sizes
    return [
        Fit(name=name, size=size, share=need / size, fits=need <= size, n=max(1, -(-need // size)))
        for name, size in sizes.items()
    ]
