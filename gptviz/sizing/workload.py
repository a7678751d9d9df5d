"""What a model is asked to do, as far as memory and arithmetic depend on it. Knows no model."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from ..config import LARGEST, GPTConfig
from ..errors import GptvizError

Dtype = Literal["float32", "bfloat16", "float16", "mixed", "int8", "int4"]
Optimizer = Literal["adamw", "sgd", "sgd_momentum", "muon"]
AttentionPath = Literal["fused", "explicit"]
Device = Literal["gpu", "cpu"]
Logits = Literal["all", "last"]

# Bytes a number of the weights, and of an activation. Quantised weights are unpacked to 16 bits where they are used;
# the scales that go with them (about 3 % at 4 bits) are not counted.
WEIGHT_BYTES: dict[Dtype, float] = {"float32": 4, "bfloat16": 2, "float16": 2, "mixed": 2, "int8": 1, "int4": 0.5}
ACTIVATION_BYTES: dict[Dtype, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "mixed": 2, "int8": 2, "int4": 2}

# What a person chooses from.
DTYPES: tuple[Dtype, ...] = ("bfloat16", "float16", "float32", "mixed", "int8", "int4")
OPTIMIZERS: dict[str, Optimizer] = {
    "AdamW": "adamw",
    "SGD": "sgd",
    "SGD with momentum": "sgd_momentum",
    "Muon": "muon",
}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A forward pass, or a training step, of `batch` sequences of `context` tokens.

    dtype: "mixed" computes in 16 bits and keeps a float32 master copy of the weights for the optimizer
    (Micikevicius et al. 2017: https://arxiv.org/abs/1710.03740). attention: "fused" never stores the T x T weights
    (Dao et al. 2022, FlashAttention: https://arxiv.org/abs/2205.14135). checkpointing: keeps each block's input alone
    and computes the rest again (Chen et al. 2016: https://arxiv.org/abs/1604.06174). device: whose kernels' habits
    count. logits: of every position, as the model gives them, or of the last one, as servers do.
    Raises GptvizError for a value that is none.
    """

    batch: int = 1
    context: int | None = None  # tokens a sequence; None: the model's block_size
    dtype: Dtype = "bfloat16"
    training: bool = False
    optimizer: Optimizer = "adamw"
    attention: AttentionPath = "fused"
    checkpointing: bool = False
    device: Device = "gpu"
    logits: Logits = "all"

    def __post_init__(self) -> None:
        _check_choices(self)
        for name in ("batch", "context"):
            _check_count(name, getattr(self, name))
        if self.training and self.dtype in ("int8", "int4"):
            raise GptvizError(f"dtype = {self.dtype!r} can't be trained: choose float32, bfloat16, float16 or mixed.")

    def tokens(self, config: GPTConfig) -> int:
        """Tokens a sequence. Raises GptvizError for more than a table of learned positions has."""
        context = config.block_size if self.context is None else self.context
        if config.pos_encoding == "learned" and context > config.block_size:
            raise GptvizError(
                f"context = {context:,} is more than the {config.block_size:,} learned positions: "
                "raise block_size, or choose another pos_encoding."
            )
        return context

    @property
    def bytes(self) -> int:
        """Of one number of an activation or of the KV cache."""
        return ACTIVATION_BYTES[self.dtype]


def _check_choices(workload: Workload) -> None:
    for name, choices in _choices().items():
        value = getattr(workload, name)
        if value not in choices:
            raise GptvizError(f"{name} = {value!r} is not one of {', '.join(map(repr, choices))}.")


@functools.cache
def _choices() -> dict[str, tuple[str, ...]]:
    hints = {name: get_args(hint) for name, hint in get_type_hints(Workload).items()}
    return {name: choices for name, choices in hints.items() if choices and isinstance(choices[0], str)}


def _check_count(name: str, value: int | None) -> None:
    if value is None and name == "context":
        return
    if type(value) is not int or not 1 <= value <= LARGEST:
        raise GptvizError(f"{name} = {value!r} is not a whole number between 1 and {LARGEST:,}.")
