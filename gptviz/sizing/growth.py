"""How arithmetic, memory and size grow with context and depth, the linear and the quadratic part apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..config import LARGEST, GPTConfig
from . import activations
from .flops import flops
from .memory import memory
from .parameters import n_params
from .workload import Workload


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Three parts of one quantity over `at`: what stays, what grows in proportion, what grows as the square."""

    at: list[int]
    constant: list[int]
    linear: list[int]
    quadratic: list[int]


def contexts(config: GPTConfig, longest: int | None = None) -> list[int]:
    """Context lengths to draw: even steps up to `longest`, by default four times the model's own."""
    longest = min(longest or 4 * config.block_size, LARGEST)
    steps = min(longest, 48)
    return sorted({max(1, round(longest * (step + 1) / steps)) for step in range(steps)})


def flops_over_context(config: GPTConfig, workload: Workload, at: Sequence[int]) -> Growth:
    """Operations of a forward pass, or of a training step, by context. All logits are counted."""
    counts = [flops(*_with_context(config, workload, T)) for T in at]
    return Growth(
        at=list(at),
        constant=[0 for _ in counts],
        linear=[count.linear for count in counts],
        quadratic=[count.quadratic for count in counts],
    )


def memory_over_context(config: GPTConfig, workload: Workload, at: Sequence[int]) -> Growth:
    """Bytes by context: weights, gradients and optimizer; KV cache and activations; of those, what is T x T."""
    parts = [_memory_parts(*_with_context(config, workload, T)) for T in at]
    constant, linear, quadratic = (list(column) for column in zip(*parts, strict=True))
    return Growth(at=list(at), constant=constant, linear=linear, quadratic=quadratic)


def crossing(config: GPTConfig) -> int:
    """The context at which attention's T x T products cost as much as all else: linear(1) T = quadratic(1) T^2."""
    one = flops(*_with_context(config, Workload(), 1))
    return round(one.linear / one.quadratic)


def parameters_over_depth(config: GPTConfig, at: Sequence[int]) -> Growth:
    """Parameters by n_layer: embeddings and output stay, blocks grow in proportion."""
    counts = [n_params(replace(config, n_layer=L)) for L in at]
    block = n_params(replace(config, n_layer=2)) - n_params(replace(config, n_layer=1))
    return Growth(
        at=list(at),
        constant=[count - L * block for count, L in zip(counts, at, strict=True)],
        linear=[L * block for L in at],
        quadratic=[0 for _ in at],
    )


def depths(config: GPTConfig) -> list[int]:
    """Numbers of layers to draw: up to twice the model's own, at most 48 of them."""
    deepest = min(2 * config.n_layer, LARGEST)
    steps = min(deepest, 48)
    return sorted({max(1, round(deepest * (step + 1) / steps)) for step in range(steps)})


def _with_context(config: GPTConfig, workload: Workload, T: int) -> tuple[GPTConfig, Workload]:
    """A learned table is as long as the context asks for."""
    longer = config.pos_encoding == "learned" and config.block_size < T
    return replace(config, block_size=T) if longer else config, replace(workload, context=T)


def _memory_parts(config: GPTConfig, workload: Workload) -> tuple[int, int, int]:
    parts = memory(config, workload)
    quadratic = activations.quadratic(config, workload)
    constant = parts.weights + parts.gradients + parts.optimizer
    return constant, max(0, parts.total - constant - quadratic), quadratic
