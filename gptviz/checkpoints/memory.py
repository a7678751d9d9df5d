"""How much memory there is for a model, asked before any of it is taken."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import GptvizError

SPARE = 200 * 10**6  # bytes left to everything else


def available(device: str = "cpu") -> int | None:
    """Bytes that can be taken on the device now, or None where nobody can tell."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.mem_get_info(device)[0]
    known = [size for size in (_free(), _container()) if size is not None]
    return min(known) if known else None


def check_fits(size: int, device: str = "cpu") -> None:
    """Raises GptvizError where `size` bytes of weights are more than there is room for."""
    room = available(device)
    if room is not None and size > room - SPARE:
        raise GptvizError(
            f"The weights take {size / 1e9:,.2f} GB of memory, and {max(room, 0) / 1e9:,.2f} GB are free: choose a "
            "smaller model, a 16-bit dtype, or a machine with more memory."
        )


def _free() -> int | None:
    """What the system could hand out without swapping; where it does not say, all that it has."""
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container() -> int | None:
    """What is left of a container's limit."""
    folder = Path("/sys/fs/cgroup")
    limit, used = (_lines(folder / name) for name in ("memory.max", "memory.current"))
    if not (limit and used and limit[0].isdigit() and used[0].isdigit()):
        return None
    cached = sum(int(line.split()[1]) for line in _lines(folder / "memory.stat") if line.startswith("inactive_file "))
    return int(limit[0]) - int(used[0]) + cached


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []


@contextmanager
def without_collections() -> Iterator[None]:
    """Thousands of new objects make Python look for garbage among all of torch's: a tenth of a second, for nothing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
