"""What a family of checkpoints is: how its configuration reads, and which of its tensors make which of ours.

A table names tensors without their last part, `weight` or `bias`; `{}` stands for the layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from ..config import GPTConfig
from .fields import Fields

Shape = tuple[int, ...]
Names = Mapping[str, str | tuple[str, ...]]


class Layout(NamedTuple):
    """How a tensor lies in their file, seen from here."""

    shape: Callable[[Shape], Shape]  # ours -> theirs
    tensor: Callable[[Tensor, GPTConfig], Tensor]  # theirs -> ours


def _as_it_is(tensor: Tensor, config: GPTConfig) -> Tensor:
    return tensor


SAME = Layout(lambda shape: shape, _as_it_is)
TRANSPOSED = Layout(lambda shape: shape[::-1], lambda tensor, config: tensor.T)  # rows are inputs, as in a Conv1D


class Part(NamedTuple):
    """One of their tensors: its name and the shape that it has to have."""

    name: str
    shape: Shape


class Source(NamedTuple):
    """Where one of this model's tensors comes from: parts that lie one above the other, each laid out alike."""

    name: str
    shape: Shape
    parts: tuple[Part, ...]
    layout: Layout = SAME


@dataclass(frozen=True)
class Family:
    """A table of names and a reader of configurations."""

    read: Callable[[Fields], dict[str, Any]] = lambda fields: {}
    names: Names = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()  # may stand before a name, one after the other
    aliases: Mapping[str, str] = field(default_factory=dict)  # other names of the same tensor
    layouts: Mapping[str, Layout] = field(default_factory=dict)  # by our name without blocks.i.
    buffers: re.Pattern[str] = re.compile(r"(?!)")  # tensors that hold no weights

    def config_of(self, values: Mapping[str, Any]) -> GPTConfig:
        """The GPTConfig of a foreign configuration. Raises GptvizError for a field not understood."""
        fields = Fields(values)
        ours = self.read(fields)
        bos, size = fields.get("bos_token_id"), ours["vocab_size"]
        fields.finish()
        known = type(bos) is int and type(size) is int and 0 <= bos < size
        return GPTConfig(**ours, bos_token_id=bos if known else None)

    def short(self, name: str) -> str:
        """Their name as the table has it."""
        for prefix in self.prefixes:
            name = name.removeprefix(prefix)
        return self.aliases.get(name, name)

    def source(self, name: str, shape: Shape, config: GPTConfig) -> Source:
        """What the tensor `name` of that shape is made of."""
        table, layer, local = _place(name)
        stem, _, kind = table.rpartition(".")
        theirs = self.names[stem]
        layout = self.layouts.get(local, SAME)
        stems = (theirs,) if isinstance(theirs, str) else theirs
        rows = (shape[0],) if len(stems) == 1 else qkv_rows(config)
        parts = tuple(
            Part(f"{stem.format(layer)}.{kind}", layout.shape((count, *shape[1:])))
            for stem, count in zip(stems, rows, strict=True)
        )
        return Source(name, shape, parts, layout)


class _Own(Family):
    """Checkpoints as this project writes them: every tensor under its own name."""

    def source(self, name: str, shape: Shape, config: GPTConfig) -> Source:
        return Source(name, shape, (Part(name, shape),))


OWN = _Own()


def _place(name: str) -> tuple[str, str, str]:
    """blocks.3.attn.qkv.weight -> blocks.{}.attn.qkv.weight, 3, attn.qkv.weight."""
    block = re.fullmatch(r"blocks\.(\d+)\.(.+)", name)
    return ("blocks.{}." + block[2], block[1], block[2]) if block else (name, "", name)


def qkv_rows(config: GPTConfig) -> tuple[int, int, int]:
    """How many rows of W_QKV are W_Q, W_K and W_V."""
    width, kv_width = config.n_head * config.d_head, config.n_kv_head * config.d_head
    return width, kv_width, kv_width
