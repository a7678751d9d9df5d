"""How arithmetic, memory and size grow with context and depth, the linear and the quadratic part apart."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..config import LARGEST, GPTConfig
from . import activations
from .flops import flops
from .memory import Memory, memory
from .parameters import block_params, n_params
from .workload import Workload

STEPS = 32  # points of a curve


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Three parts of one quantity over `at`: what stays, what grows in proportion, what grows as the square."""

    at: list[int]
    constant: list[int]
    linear: list[int]
    quadratic: list[int]


def contexts(config: GPTConfig, longest: int | None = None) -> list[int]:
    """Context lengths to draw: even steps up to `longest`, by default four times the model's own."""
    return _steps(min(longest or 4 * config.block_size, LARGEST))


def depths(config: GPTConfig) -> list[int]:
    """Numbers of layers to draw: even steps up to twice the model's own."""
    return _steps(min(2 * config.n_layer, LARGEST))


def _steps(end: int) -> list[int]:
    number = min(end, STEPS)
    return [max(1, round(end * (step + 1) / number)) for step in range(number)]


def flops_over_context(config: GPTConfig, workload: Workload, at: Sequence[int]) -> Growth:
    """Operations of a forward pass, or of a training step, by context."""
    longer = _reaching(config, max(at))
    counts = [flops(longer, replace(workload, context=T)) for T in at]
    return Growth(
        at=list(at),
        constant=[0 for _ in counts],
        linear=[count.linear for count in counts],
        quadratic=[count.quadratic for count in counts],
    )


def memory_over_context(config: GPTConfig, workload: Workload, at: Sequence[int]) -> Growth:
    """Bytes by context: weights, gradients and optimizer; KV cache and activations; of those, what is T x T.

    The weights stay the model's own, although a longer table of learned positions would add a few.
    """
    constant = _held(memory(config, replace(workload, context=1)))
    longer = _reaching(config, max(at))
    workloads = [replace(workload, context=T) for T in at]
    totals = [memory(longer, each) for each in workloads]
    quadratic = [activations.quadratic(longer, each) for each in workloads]
    return Growth(
        at=list(at),
        constant=[constant for _ in at],
        linear=[total.total - _held(total) - square for total, square in zip(totals, quadratic, strict=True)],
        quadratic=quadratic,
    )


def crossing(config: GPTConfig) -> int:
    """The context at which attention's T x T products cost as much as all else: linear(1) T = quadratic(1) T^2."""
    one = flops(config, Workload(context=1))
    return round(one.linear / one.quadratic)


def parameters_over_depth(config: GPTConfig, at: Sequence[int]) -> Growth:
    """Parameters by n_layer: embeddings and output stay, blocks grow in proportion."""
    block = block_params(config)
    rest = n_params(config) - config.n_layer * block
    linear = [layers * block for layers in at]
    return Growth(at=list(at), constant=[rest for _ in at], linear=linear, quadratic=[0 for _ in at])


@functools.lru_cache(maxsize=64)
def _reaching(config: GPTConfig, T: int) -> GPTConfig:
    """The configuration, with a table of learned positions that is long enough."""
    short = config.pos_encoding == "learned" and config.block_size < T
    return replace(config, block_size=T) if short else config


def _held(need: Memory) -> int:
    """What does not depend on the context."""
    return need.weights + need.gradients + need.optimizer
