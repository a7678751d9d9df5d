"""Interventions: frozen values that become forward hooks on a model's own view. Nothing in a forward knows of them.

An edit is hashable and JSON-serialisable, so it is part of a cache key and fits in a URL.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, SupportsIndex

from torch import Tensor

from .config import GPTConfig
from .errors import GptvizError
from .model import GPT

Change = Callable[[Tensor], Tensor]


class Edit(Protocol):
    """What an intervention offers."""

    def changes(self, config: GPTConfig) -> Mapping[str, Change]:
        """What to do to which activation. Raises GptvizError where the model has no such thing."""
        ...


@dataclass(frozen=True)
class AblateHead:
    """One head's output z set to zero, or to its mean over the positions: the head says nothing about the prompt."""

    layer: int
    head: int
    to: Literal["zero", "mean"] = "zero"

    def changes(self, config: GPTConfig) -> Mapping[str, Change]:
        _check_index("layer", self.layer, config.n_layer)
        _check_index("head", self.head, config.n_head)
        if self.to not in ("zero", "mean"):
            raise GptvizError(f"A head is ablated to 'zero' or to its 'mean', not to {self.to!r}.")
        return {f"blocks.{self.layer}.attn.hook_z": self._ablate}

    def _ablate(self, z: Tensor) -> Tensor:
        z = z.clone()  # (B, T, H, D)
        mine = z[:, :, self.head]
        z[:, :, self.head] = 0 if self.to == "zero" else mine.mean(1, keepdim=True)
        return z


def _check_index(what: str, index: Any, count: int) -> None:
    whole = isinstance(index, SupportsIndex) and not isinstance(index, bool)  # numpy's integers too
    if not (whole and index in range(count)):
        raise GptvizError(f"There is no {what} {index!r}: this model's go from 0 to {count - 1}.")


KINDS: dict[str, type] = {kind.__name__: kind for kind in (AblateHead,)}


def install(model: GPT, edits: Iterable[Edit]) -> None:
    """Hook the edits on a view that belongs to the caller; where two are on one activation, the first acts first."""
    points = dict(model.hook_points())
    for edit in edits:
        for name, change in edit.changes(model.config).items():
            points[name].register_forward_hook(lambda module, args, output, change=change: change(output))


def to_json(edit: Any) -> dict[str, Any]:
    """{"kind": "AblateHead", "layer": 0, ...}"""
    return {"kind": type(edit).__name__, **dataclasses.asdict(edit)}


def from_json(value: Mapping[str, Any]) -> Edit:
    """The edit that to_json wrote. Raises GptvizError for anything else."""
    try:
        fields = dict(value)
        edit: Edit = KINDS[fields.pop("kind")](**fields)
        hash(edit)
    except (KeyError, TypeError, ValueError):
        raise GptvizError(f"{value!r} is no edit. Kinds of edit: {', '.join(KINDS)}.") from None
    return edit
