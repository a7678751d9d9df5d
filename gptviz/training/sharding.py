"""A model whose weights, gradients and optimizer are shared out over processes: torch's FSDP2.

Zhao et al. 2023: https://arxiv.org/abs/2304.11277. What is saved is whole tensors under the same names as without, so
a run may go on with or without it.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from ..errors import GptvizError
from ..model import GPT


def shard(model: GPT, device: torch.device, optimizer: str) -> None:
    """In place: a block's weights are whole only while that block computes."""
    if not dist.is_initialized():
        raise GptvizError("Sharding needs several processes: start them with torchrun.")
    if optimizer == "muon":
        raise GptvizError("Muon needs whole matrices, which sharding takes apart: use --optimizer adamw.")
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def is_sharded(model: GPT) -> bool:
    return isinstance(model.embed.weight, DTensor)


def gathered(value: Any) -> Any:
    """Tensors within dicts and lists put together again, in every process. All processes must ask at once."""
    if isinstance(value, DTensor):
        return value.full_tensor().cpu()
    if isinstance(value, dict):
        return {key: gathered(each) for key, each in value.items()}
    return [gathered(each) for each in value] if isinstance(value, list) else value


def whole(model: GPT) -> GPT:
    """The model itself, or, where it is sharded, a copy that is not. All processes must ask at once."""
    if not is_sharded(model):
        return model
    with torch.device("meta"):
        copy = GPT(model.config)
    copy.load_state_dict(gathered(model.state_dict()), assign=True)
    copy.tie()
    return copy


def load(model: GPT, weights: dict[str, Tensor]) -> None:
    """Whole weights into a model, sharded or not."""
    own = model.state_dict()
    model.load_state_dict({name: _like(own.get(name), tensor) for name, tensor in weights.items()})


def load_optimizer(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """A whole state into an optimizer, whose parameters may be sharded."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state = {
        at: {name: _like(parameters[at], value) for name, value in entries.items()}
        for at, entries in saved["state"].items()
    }
    optimizer.load_state_dict({**saved, "state": state})


def _like(own: Tensor | None, value: Any) -> Any:
    """`value` shared out as `own` is, where it has the same shape."""
    if not (isinstance(own, DTensor) and isinstance(value, Tensor) and value.shape == own.shape):
        return value
    return distribute_tensor(value.to(own.device), own.device_mesh, own.placements, src_data_rank=None)
