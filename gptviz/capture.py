"""trace(): one forward pass with everything it computed. Hooks live on a private view, so traces never meet.

Knows no tokenizer and draws nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .config import GPTConfig
from .edits import Edit, install
from .errors import GptvizError
from .model import GPT, view
from .positions import ADDED


@dataclass(frozen=True)
class Trace:
    """What a forward pass computed, by TransformerLens's hook names: detached float32 copies on the CPU, no batch.

    run["blocks.0.attn.hook_pattern"] is (H, T, T); the names an architecture has are `run.activations`.
    """

    ids: Tensor  # (T,)
    config: GPTConfig
    logits: Tensor  # (T, V)
    activations: Mapping[str, Tensor]
    edits: tuple[Edit, ...] = ()

    def __getitem__(self, name: str) -> Tensor:
        if name in self.activations:
            return self.activations[name]
        raise GptvizError(f"There is no {name!r} in this trace: {_why_absent(name, self.config)}")

    @property
    def nbytes(self) -> int:
        """Of all that is kept."""
        return sum(tensor.nbytes for tensor in (self.ids, self.logits, *self.activations.values()))

    def pattern(self, layer: int, head: int) -> np.ndarray:
        """One head's attention (T, T): row = query, column = key."""
        return self[f"blocks.{layer}.attn.hook_pattern"][head].numpy()

    def until(self, size: int) -> Trace:
        """The first `size` positions, which under a causal mask never saw the others.

        A forward pass of theirs alone computes the same, up to rounding. Raises GptvizError without a mask.
        """
        if not self.config.causal:
            raise GptvizError("Without a causal mask the first positions depend on the others: trace them alone.")
        cut = {name: _first(name, kept, size) for name, kept in self.activations.items()}
        return replace(self, ids=self.ids[:size], logits=self.logits[:size], activations=cut)


def _first(name: str, kept: Tensor, size: int) -> Tensor:
    return kept[:, :size, :size] if name.endswith(("hook_pattern", "hook_attn_scores")) else kept[:size]


def _why_absent(name: str, config: GPTConfig) -> str:
    if name == "hook_pos_embed" and config.pos_encoding not in ADDED:
        return f"with pos_encoding = {config.pos_encoding!r} no position is added to the embeddings."
    if "hook_rot_" in name and config.pos_encoding != "rotary":
        return f"only rotary positions turn queries and keys, and pos_encoding = {config.pos_encoding!r}."
    if "hook_resid_mid" in name and config.parallel_residual:
        return "with a parallel residual there is no stream between attention and FFN."
    return "either it was not kept, or no architecture has it; `.activations` lists what is there."


def trace(model: GPT, ids: Tensor, edits: Sequence[Edit] = (), keep: Collection[str] | None = None) -> Trace:
    """Run ids (T,) and keep the activations named by `keep` (None: all), as they are after the edits.

    Dropout is off. Raises GptvizError for ids the model can't run on, and for a name in `keep` that this model has not.
    """
    own = view(model).eval()
    install(own, edits)
    store: dict[str, Tensor] = {}
    points = dict(own.hook_points())
    unknown = sorted(set(keep or ()) - set(points))
    if unknown:
        raise GptvizError(f"There is no {unknown[0]!r} to keep: {_why_absent(unknown[0], model.config)}")
    for name in points if keep is None else keep:
        points[name].register_forward_hook(_keeper(store, name))
    ids = torch.as_tensor(ids)
    with torch.no_grad():
        logits = own(ids[None].to(own.embed.weight.device))
    return Trace(ids.detach().cpu().clone(), model.config, _plain(logits), store, tuple(edits))


def _keeper(store: dict[str, Tensor], name: str) -> Callable[[Any, Any, Tensor], None]:
    def keep(module: Any, args: Any, output: Tensor) -> None:
        store[name] = _copy(output)

    return keep


def _copy(activation: Tensor) -> Tensor:
    """The first of the batch, contiguous, sharing no memory with the model."""
    return activation.detach()[0].to("cpu", torch.float32, copy=True).contiguous()


def _plain(logits: Tensor) -> Tensor:
    """The same of what nothing else holds: a copy would need the room of two for a moment, 200 MB each at most."""
    return logits.detach()[0].to("cpu", torch.float32).contiguous()
