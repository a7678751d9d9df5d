"""The optimizers: AdamW and Muon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..config import GPTConfig
from ..model import GPT
from .processes import rank_and_world


def optimizers(model: GPT, kind: str, learning_rate: float, matrix_rate: float) -> list[torch.optim.Optimizer]:
    """Of the kind "adamw": AdamW for all. "muon": Muon for the blocks' matrices, AdamW for the others."""
    named = dict(model.named_parameters())
    matrices = {name: p for name, p in named.items() if kind == "muon" and name.startswith("blocks.") and p.ndim == 2}
    rest = [p for name, p in named.items() if name not in matrices]
    made: list[torch.optim.Optimizer] = [_adamw(rest, learning_rate)]
    if matrices:
        made.append(Muon(_muon_groups(matrices, model.config), lr=matrix_rate))
    return made


def _adamw(parameters: Iterable[nn.Parameter], learning_rate: float) -> torch.optim.AdamW:
    parameters = list(parameters)
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=learning_rate, betas=(0.9, 0.95), eps=1e-8)


def _muon_groups(matrices: dict[str, nn.Parameter], config: GPTConfig) -> list[dict[str, Any]]:
    """The fused QKV matrix is three matrices, and is orthogonalised as three."""
    kv = config.n_kv_head * config.d_head
    fused = [p for name, p in matrices.items() if name.endswith("attn.qkv.weight")]
    whole = [p for name, p in matrices.items() if not name.endswith("attn.qkv.weight")]
    rows = [config.n_head * config.d_head, kv, kv]
    return [{"params": fused, "rows": rows}, {"params": whole, "rows": None}]


class Muon(torch.optim.Optimizer):
    """Momentum whose every step is made orthogonal. Jordan 2024: https://kellerjordan.github.io/posts/muon/

    A group's "rows" says how many rows each matrix in a stacked parameter has; None is one matrix.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float = 0.02, momentum: float = 0.95):
        super().__init__(groups, dict(lr=lr, momentum=momentum, rows=None))

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        stepped = [(group, p) for group in self.param_groups for p in group["params"] if p.grad is not None]
        updates = [self._momentum(p, p.grad, group["momentum"]) for group, p in stepped]
        rank, world = rank_and_world()
        for i, (group, _) in enumerate(stepped):  # each process orthogonalises its share
            parts = updates[i].split(group["rows"] or len(updates[i]))
            mine = i % world == rank
            updates[i] = torch.cat([_step_of(part) for part in parts]) if mine else torch.zeros_like(updates[i])
        if world > 1:
            _sum_over_processes(updates)
        for (group, p), update in zip(stepped, updates, strict=True):
            p.sub_(update, alpha=group["lr"])

    def _momentum(self, p: nn.Parameter, gradient: Tensor, momentum: float) -> Tensor:
        """Nesterov's: the gradient moved towards its running mean."""
        state = self.state[p]
        mean = state.setdefault("mean", torch.zeros_like(p))
        mean.lerp_(gradient, 1 - momentum)
        return gradient.lerp(mean, momentum)


def _sum_over_processes(tensors: list[Tensor]) -> None:
    """In place, in one message."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    for tensor, summed in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(summed.view_as(tensor))


def _step_of(part: Tensor) -> Tensor:
    rows, columns = part.shape
    return orthogonalise(part) * max(1, rows / columns) ** 0.5


def orthogonalise(matrix: Tensor, iterations: int = 5) -> Tensor:
    """About U V^T of the matrix U S V^T: its singular values go to between 0.7 and 1.2 (Newton-Schulz, quintic)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(iterations):
        gram = x @ x.T
        x = a * x + torch.addmm(gram, gram, gram, beta=b, alpha=c) @ x
    return x if wide else x.T
