"""The processes that train one model together: torchrun's, over gloo or NCCL. One process alone is a group of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from ..errors import GptvizError


def rank_and_world() -> tuple[int, int]:
    """Which process this is, and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


@contextmanager
def process_group(device: str) -> Iterator[None]:
    """Join the group that torchrun started, where it did, and leave it at the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    try:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    except (ValueError, dist.DistError) as error:
        raise GptvizError(f"The processes can't meet: {error}. Start them with torchrun.") from error
    try:
        yield
    except RuntimeError as error:  # a broken group is not left in good order, which may wait for those that are gone
        raise _explained(error) from error
    dist.destroy_process_group()


def _explained(error: RuntimeError) -> Exception:
    """A lost connection means that another process ended; gloo reports it as a bare RuntimeError."""
    lost = isinstance(error, dist.DistError) or any(word in str(error) for word in ("gloo", "closed by peer"))
    return (
        GptvizError("Another process of this run ended: the same command goes on from the last save.")
        if lost
        else error
    )


def local_device(device: str) -> torch.device:
    """This process's own device of that kind."""
    return torch.device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device)


def wait_for_the_others() -> None:
    """Returns once every process has come here."""
    if dist.is_initialized():
        dist.barrier()


def any_of_us(asked: bool) -> bool:
    """Whether it is so in one of the processes: all of them must ask at once, and get the same answer."""
    if not dist.is_initialized():
        return asked
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    answer = torch.tensor(float(asked), device=device)
    dist.all_reduce(answer)
    return bool(answer)


def check_agreed(value: Any, what: str) -> None:
    """Raises GptvizError unless every process has the same value."""
    values = [value] * rank_and_world()[1]
    if dist.is_initialized():
        dist.all_gather_object(values, value)
    if len(set(values)) > 1:
        raise GptvizError(
            f"The processes differ in {what} ({values}): they need one run folder that all of them can read."
        )
