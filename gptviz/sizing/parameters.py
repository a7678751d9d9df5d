"""Every weight of a model, by name and shape, from its configuration alone.

Names, shapes and order are those of `GPT(config).named_parameters()`. Knows no tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..config import GPTConfig
from ..errors import GptvizError

MOST_ROWS = 200_000  # of a table; the counts themselves have no limit

Shape = tuple[int, ...]
Named = Iterator[tuple[str, Shape]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One parameter tensor. count: its numbers; share: of all the model's, 0 to 1; component: what it is part of."""

    name: str
    shape: Shape
    count: int
    share: float
    component: str


@functools.lru_cache(maxsize=256)
def n_params(config: GPTConfig) -> int:
    """How many numbers training sets: sum(p.numel() for p in GPT(config).parameters()). Tied weights count once."""
    return _count(stem_tensors(config)) + config.n_layer * block_params(config) + _count(head_tensors(config))


def block_params(config: GPTConfig) -> int:
    """One block's share of them."""
    return _count(block_tensors(config))


def parameter_table(config: GPTConfig) -> list[Row]:
    """A row a tensor, in the order of the forward pass; counts add up to n_params, shares to 1.

    Raises GptvizError for so many layers that no table could be read.
    """
    if config.n_layer * sum(1 for _ in block_tensors(config)) > MOST_ROWS:
        raise GptvizError(f"n_layer = {config.n_layer:,} makes a table of over {MOST_ROWS:,} rows: use fewer layers.")
    total = n_params(config)
    return [_row(name, shape, total) for name, shape in _all(config)]


def _row(name: str, shape: Shape, total: int) -> Row:
    count = math.prod(shape)
    return Row(name=name, shape=shape, count=count, share=count / total, component=component(name))


def component(name: str) -> str:
    """What the tensor of that name is part of: "Attention" for blocks.3.attn.qkv.weight."""
    kinds = {
        "embed": "Token embedding",
        "pos_embed": "Position embedding",
        "attn": "Attention",
        "mlp": "Feed-forward",
        "unembed": "Unembedding",
    }
    part = name.split(".")[2] if name.startswith("blocks.") else name.split(".")[0]
    return kinds.get(part, "Norms")


def _all(config: GPTConfig) -> Named:
    yield from stem_tensors(config)
    for layer in range(config.n_layer):
        for name, shape in block_tensors(config):
            yield f"blocks.{layer}.{name}", shape
    yield from head_tensors(config)


def stem_tensors(config: GPTConfig) -> Named:
    """What stands before the blocks."""
    yield "embed.weight", (config.vocab_size, config.n_embd)  # W_E
    if config.pos_encoding == "learned":
        yield "pos_embed.weight", (config.block_size, config.n_embd)  # W_pos


def block_tensors(config: GPTConfig) -> Named:
    """One block's tensors, named from the block."""
    yield from _norm(config, "ln1", config.n_embd)
    yield from _attention(config)
    yield from _norm(config, "ln2", config.n_embd)
    yield from _linear("mlp.w_in", config.n_embd, config.d_mlp, config.mlp_bias)
    if config.gated_mlp:
        yield from _linear("mlp.w_gate", config.n_embd, config.d_mlp, config.mlp_bias)
    yield from _linear("mlp.w_out", config.d_mlp, config.n_embd, config.mlp_bias)


def _attention(config: GPTConfig) -> Named:
    width, kv_width = config.n_head * config.d_head, config.n_kv_head * config.d_head
    yield from _linear("attn.qkv", config.n_embd, width + 2 * kv_width, config.qkv_bias)  # W_Q, W_K, W_V
    yield from _linear("attn.out", width, config.n_embd, config.out_bias)  # W_O
    if config.qk_norm:
        yield "attn.q_norm.weight", (config.d_head,)
        yield "attn.k_norm.weight", (config.d_head,)


def head_tensors(config: GPTConfig) -> Named:
    """What stands after the blocks."""
    yield from _norm(config, "ln_final", config.n_embd)
    if not config.tie_weights:
        yield "unembed.weight", (config.vocab_size, config.n_embd)  # W_U
    if config.unembed_bias:
        yield "unembed.bias", (config.vocab_size,)


def _linear(name: str, inputs: int, outputs: int, bias: bool) -> Named:
    yield f"{name}.weight", (outputs, inputs)
    if bias:
        yield f"{name}.bias", (outputs,)


def _norm(config: GPTConfig, name: str, dim: int) -> Named:
    yield f"{name}.weight", (dim,)
    if config.norm_bias and config.norm == "layernorm":  # an RMSNorm has none
        yield f"{name}.bias", (dim,)


def _count(tensors: Named) -> int:
    return sum(math.prod(shape) for _, shape in tensors)


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Parts of n_params that are treated unlike the rest.

    matrices: the blocks' weight matrices; linear_biases: biases of all linear layers; tables: rows that are
    looked up, not multiplied (W_E unless it is W_U too, and W_pos).
    """

    total: int
    matrices: int
    linear_biases: int
    tables: int


@functools.lru_cache(maxsize=256)
def parameter_groups(config: GPTConfig) -> Groups:
    """Counted without a row for each layer, so that any number of layers will do."""
    block = list(block_tensors(config))
    matrices = _count((name, shape) for name, shape in block if len(shape) == 2)
    biases = _count((name, shape) for name, shape in block if is_linear_bias(name))
    head_biases = _count((name, shape) for name, shape in head_tensors(config) if is_linear_bias(name))
    multiplied = {"embed.weight"} if config.tie_weights else set()
    tables = _count((name, shape) for name, shape in stem_tensors(config) if name not in multiplied)
    return Groups(
        total=n_params(config),
        matrices=config.n_layer * matrices,
        linear_biases=config.n_layer * biases + head_biases,
        tables=tables,
    )


def is_linear_bias(name: str) -> bool:
    """Whether the tensor is a linear layer's bias, not a norm's."""
    return name.endswith(".bias") and not name.startswith("ln")


def component_counts(config: GPTConfig) -> dict[str, int]:
    """Parameters by component, in the order of the forward pass, for any number of layers; they add up to n_params."""
    counts: dict[str, int] = {}
    blocks = ((f"blocks.0.{name}", shape) for name, shape in block_tensors(config))
    for times, tensors in ((1, stem_tensors(config)), (config.n_layer, blocks), (1, head_tensors(config))):
        for name, shape in tensors:
            kind = component(name)
            counts[kind] = counts.get(kind, 0) + times * math.prod(shape)
    return counts
