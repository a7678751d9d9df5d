"""What a model keeps in memory, measured: storages, each counted once, from when they appear to when they go."""

from __future__ import annotations

import collections
import weakref

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Meter:
    """Bytes now and at most. A storage is known by its address as long as something holds it."""

    def __init__(self) -> None:
        self.live = self.peak = 0

    def add(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)


class Handle:
    """Stands for one saved tensor; autograd lets it go when the backward pass has used it."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor


class SavedBytes(Meter, torch.autograd.graph.saved_tensors_hooks):
    """What autograd saves for the backward pass, apart from the model's parameters."""

    def __init__(self, model: nn.Module):
        Meter.__init__(self)
        torch.autograd.graph.saved_tensors_hooks.__init__(self, self.pack, lambda handle: handle.tensor)
        self.parameters = {address(parameter) for parameter in model.parameters()}
        self.holders: collections.Counter[int] = collections.Counter()

    def __enter__(self) -> SavedBytes:
        super().__enter__()
        return self

    def pack(self, tensor: torch.Tensor) -> Handle:
        handle, where, size = Handle(tensor), address(tensor), tensor.untyped_storage().nbytes()
        if where not in self.parameters:
            self.holders[where] += 1
            if self.holders[where] == 1:
                self.add(size)
            weakref.finalize(handle, self.let_go, where, size)
        return handle

    def let_go(self, where: int, size: int) -> None:
        self.holders[where] -= 1
        if self.holders[where] == 0:
            self.live -= size


class AllocatedBytes(Meter, TorchDispatchMode):
    """What operations allocate, until it is freed. Their inputs' storages are not theirs."""

    def __init__(self) -> None:
        Meter.__init__(self)
        TorchDispatchMode.__init__(self)
        self.known: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        given = {address(tensor) for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, torch.Tensor)}
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and address(tensor) not in self.known | given:
                self.watch(tensor.untyped_storage())
        return result

    def watch(self, storage: torch.UntypedStorage) -> None:
        self.known.add(storage._cdata)
        self.add(storage.nbytes())
        weakref.finalize(storage, self.freed, storage._cdata, storage.nbytes())

    def freed(self, where: int, size: int) -> None:
        self.known.discard(where)
        self.live -= size


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
