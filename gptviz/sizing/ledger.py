"""The parameters as a ledger: a line a matrix, a subtotal a block, the total. Knows no tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..config import GPTConfig
from .parameters import (
    Named,
    Shape,
    block_tensors,
    component,
    head_tensors,
    is_linear_bias,
    n_params,
    parameter_groups,
    stem_tensors,
)

LABELS = {
    "embed": "Token embedding W_E",
    "pos_embed": "Position embedding W_pos",
    "attn.qkv": "Attention: W_Q, W_K, W_V",
    "attn.out": "Attention: output W_O",
    "attn.q_norm": "Attention: query norm",
    "attn.k_norm": "Attention: key norm",
    "mlp.w_in": "Feed-forward: W_in",
    "mlp.w_gate": "Feed-forward: W_gate",
    "mlp.w_out": "Feed-forward: W_out",
    "ln1": "Norm before attention",
    "ln2": "Norm before feed-forward",
    "ln_final": "Final norm",
    "unembed": "Output layer W_U",
}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: what, how it is worked out, how many. component: what it is part of; "" for sums."""

    label: str
    arithmetic: str
    count: int
    kind: Literal["part", "block", "subtotal", "total"]
    component: str = ""


def ledger(config: GPTConfig, linear_biases: bool = True) -> list[Line]:
    """Lines whose "part", "subtotal" ("× L blocks") and "total" add up; "block" lines stand for one block.

    Without linear_biases it is the ledger that courses print, which counts the matrices, embeddings and norms alone.
    """
    stem = _lines(stem_tensors(config), "part", linear_biases, config.tie_weights)
    block = _lines(block_tensors(config), "block", linear_biases)
    head = _lines(head_tensors(config), "part", linear_biases)
    each = sum(line.count for line in block)
    blocks = f"{config.n_layer:,} × {each:,}"
    subtotal = Line(label="All blocks", arithmetic=blocks, count=config.n_layer * each, kind="subtotal")
    total = sum(line.count for line in (*stem, subtotal, *head))
    return [*stem, *block, subtotal, *head, Line(label="Total", arithmetic="", count=total, kind="total")]


def _lines(tensors: Named, kind: Literal["part", "block"], linear_biases: bool, tied: bool = False) -> list[Line]:
    shapes: dict[str, list[Shape]] = {}
    labels = LABELS | ({"embed": f"{LABELS['embed']}, also W_U"} if tied else {})
    for name, shape in tensors:
        module = name.rsplit(".", 1)[0]
        if linear_biases or not is_linear_bias(name):
            shapes.setdefault(module, []).append(shape)
    return [
        Line(
            label=labels[module],
            arithmetic=_sum(parts),
            count=sum(map(math.prod, parts)),
            kind=kind,
            component=component(f"blocks.0.{module}" if kind == "block" else module),
        )
        for module, parts in shapes.items()
    ]


def _sum(shapes: list[Shape]) -> str:
    return " + ".join(" × ".join(f"{side:,}" for side in reversed(shape)) for shape in shapes)


def biases_sentence(config: GPTConfig) -> str:
    """How the ledger without the linear layers' biases differs from what PyTorch counts."""
    groups = parameter_groups(config)
    if not groups.linear_biases:
        return f"No linear layer has a bias: {n_params(config):,} counts everything."
    each = sum(math.prod(shape) for name, shape in block_tensors(config) if is_linear_bias(name))
    outside = groups.linear_biases - config.n_layer * each
    output = f" + {outside:,} of the output layer" if outside else ""
    return (
        f"Without the linear layers' biases the ledger adds up to {groups.total - groups.linear_biases:,}; "
        f"PyTorch counts {groups.total:,}. The difference is the biases: {config.n_layer:,} blocks × {each:,}{output} "
        f"= {groups.linear_biases:,}."
    )
