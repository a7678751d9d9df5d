"""Several texts with a common beginning, decoded together: what they share is computed once.

Shapes: B texts, T tokens so far, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..capture import Trace
from ..model import GPT, Cache, check_ids, view
from ..sampling import window


class Rows:
    """Begins as one text, ids (T,). The KV cache serves where it gives what a full forward would, as in `generate`."""

    def __init__(self, model: GPT, ids: Tensor):
        check_ids(model.config, window(model.config, ids)[None])
        self.model = view(model).eval()
        self.ids = ids[None].to(model.embed.weight.device)  # (B, T)
        self.cache = Cache(model.config) if model.config.causal else None
        self.known: Tensor | None = None  # logits that need no forward pass

    @classmethod
    def after(cls, model: GPT, run: Trace) -> Rows:
        """Goes on from an unedited trace of the same model: its keys, values and logits save the first forward pass."""
        rows = cls(model, run.ids)
        rows.known = run.logits[-1:].to(rows.ids.device)
        k = "hook_rot_k" if run.config.pos_encoding == "rotary" else "hook_k"
        for at, layer in enumerate(rows.cache.layers if rows.cache is not None else ()):
            name = f"blocks.{at}.attn."
            layer.k, layer.v = (run[name + hook][None].to(model.embed.weight) for hook in (k, "hook_v"))
        return rows

    @torch.no_grad()
    def logits(self) -> Tensor:
        """What follows each text: (B, V)."""
        config, known = self.model.config, self.known
        if known is not None:
            return known
        if self.cache is None or self.ids.shape[1] > config.block_size:
            return self.model(torch.stack([window(config, row) for row in self.ids]))[:, -1]
        return self.model(self.ids[:, len(self.cache) :], self.cache)[:, -1]

    def extend(self, parents: Tensor, tokens: Tensor) -> None:
        """Go on with one text for each token (B',): that of its parent (B',), an index into those before."""
        self.known = None
        self.ids = torch.cat([self.ids[parents], tokens[:, None]], dim=1)
        for layer in self.cache.layers if self.cache is not None else ():
            if layer.k is not None and layer.v is not None:
                layer.k, layer.v = layer.k[parents], layer.v[parents]
