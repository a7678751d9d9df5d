"""Weights from files to this model's names, in one pass and with one copy.

What a header declares is compared with the configuration before anything is allocated. All raise GptvizError.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .. import sizing
from ..config import GPTConfig
from ..convert import Family, Source
from ..errors import GptvizError
from .memory import check_fits
from .text import read_json

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}


@dataclass(frozen=True)
class Stored:
    """A tensor in a file: what its header says, and how to get its numbers."""

    dtype: str  # as in DTYPES, or the file's name of another
    shape: tuple[int, ...]
    read: Callable[[], Tensor]


def in_safetensors(path: Path) -> dict[str, Stored]:
    """What a .safetensors file holds, by their names. The library checks that its header fits the file."""
    try:
        with safe_open(path, framework="numpy"), path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
    except FileNotFoundError:
        raise GptvizError(f"There is no {path.name} in {path.parent}: this folder is no checkpoint.") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise GptvizError(f"{path.name} is not a whole safetensors file: {_guess(path) or error}") from error
    header.pop("__metadata__", None)
    return {name: _stored(path, 8 + length, entry) for name, entry in header.items()}


def _stored(path: Path, start: int, entry: Mapping[str, Any]) -> Stored:
    dtype, shape, begin = entry["dtype"], tuple(entry["shape"]), start + entry["data_offsets"][0]
    return Stored(dtype, shape, lambda: _read(path, DTYPES[dtype], shape, begin))


def _read(path: Path, dtype: torch.dtype, shape: tuple[int, ...], begin: int) -> Tensor:
    """Straight into the tensor: a mapped file would be counted twice, and break a model if the file is cut later."""
    size = math.prod(shape) * dtype.itemsize
    buffer = mmap.mmap(-1, max(size, 1), access=mmap.ACCESS_COPY)  # malloc would keep the room of what is let go
    view = memoryview(buffer)[:size]
    with path.open("rb", buffering=0) as file:
        file.seek(begin)
        done = 0
        while done < len(view):
            got = file.readinto(view[done:])
            if not got:
                raise GptvizError(f"{path.name} ends in the middle of a tensor: it was cut off while it was read.")
            done += got
    return torch.frombuffer(buffer, dtype=dtype, count=math.prod(shape)).view(shape)


def _guess(path: Path) -> str:
    """What a file is instead, from its first bytes."""
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError:
        return ""
    kinds = {
        b"": "it is empty.",
        b"PK\x03\x04": "it is an archive, such as PyTorch's .pt, under another name.",
        b"\x80": "it is a pickle, which may hold code and is never run.",
        b"version https://git-lfs": "it is a pointer of Git LFS; fetch the file itself with `git lfs pull`.",
        b"{": "it is JSON.",
        b"<": "it is a web page.",
        b"GGUF": "it is a GGUF file, which this version can't read.",
    }
    return next((words for mark, words in kinds.items() if (start.startswith(mark) if mark else not start)), "")


def in_shards(index: Path) -> dict[str, Stored]:
    """What the files that model.safetensors.index.json names hold together."""
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise GptvizError(f"{index.name} has no weight_map that says which file holds which tensor.")
    found: dict[str, Stored] = {}
    for file in sorted({_plain(index, file) for file in names.values()}):
        for name, stored in in_safetensors(index.parent / file).items():
            if name in found:
                raise GptvizError(f"Two of the files that {index.name} names hold {name[:80]!r}.")
            found[name] = stored
    _name_some(set(names) - set(found), "lacks", f"{index.name} says it holds", "None of the shards has")
    return found


def _plain(index: Path, file: Any) -> str:
    """Only files beside the index: a path would lead out of the checkpoint."""
    if not isinstance(file, str) or not file.endswith(".safetensors") or file != Path(file).name or "\\" in file:
        raise GptvizError(f"{index.name} names {str(file)[:80]!r}, which is no .safetensors file beside it.")
    return file


def in_state(state: Mapping[str, Tensor]) -> dict[str, Stored]:
    """The same of tensors that are mapped already."""
    codes = {dtype: code for code, dtype in DTYPES.items()}

    def stored(tensor: Tensor) -> Stored:
        dtype = codes.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
        return Stored(dtype, tuple(tensor.shape), lambda: tensor.detach().clone())  # a file of its own may be cut

    return {name: stored(tensor) for name, tensor in state.items()}


def gather(
    found: Mapping[str, Stored], config: GPTConfig, family: Family, dtype: torch.dtype, device: str
) -> dict[str, Tensor]:
    """This model's parameters from a file's tensors, which must be exactly those that the configuration asks for."""
    short = _short(found, family)
    if config.n_layer > len(short):
        raise GptvizError(
            f"The configuration says n_layer = {config.n_layer}; the file holds only {len(short)} tensors."
        )
    rows = sizing.parameter_table(config)
    sources = [family.source(row.name, row.shape, config) for row in rows]
    parts = {part.name: part.shape for source in sources for part in source.parts}
    copy = _tied_copy(config, family) if config.tie_weights else None
    _name_some(set(parts) - set(short), "lacks", "the configuration asks for")
    _name_some(set(short) - set(parts) - {copy}, "holds", "this architecture does not have")
    for name, shape in parts.items():
        _check(name, short[name], shape)
    check_fits(sizing.n_params(config) * dtype.itemsize, device)
    weights = {source.name: _made(source, short, config, dtype, device) for source in sources}
    if copy in short:
        _check_copy(copy, short[copy], weights["embed.weight"])
    return weights


def _short(found: Mapping[str, Stored], family: Family) -> dict[str, Stored]:
    """By the names of the family's table, without buffers."""
    short: dict[str, Stored] = {}
    for name, stored in found.items():
        plain = family.short(name)
        if plain in short:
            raise GptvizError(f"The file holds {plain[:80]!r} twice, the second time as {name[:80]!r}.")
        if not family.buffers.fullmatch(plain):
            short[plain] = stored
    return short


def _tied_copy(config: GPTConfig, family: Family) -> str:
    """The name under which a file may hold W_U once more, although it is W_E."""
    return family.source("unembed.weight", (config.vocab_size, config.n_embd), config).parts[0].name


def _check(name: str, stored: Stored, shape: tuple[int, ...]) -> None:
    if stored.shape != shape:
        raise GptvizError(
            f"{name} has the shape {stored.shape} in the file and {shape} by the configuration: they belong to "
            "different models."
        )
    if stored.dtype not in DTYPES:
        raise GptvizError(f"{name} holds {stored.dtype[:40]}, not floating-point weights of at least 16 bits.")


def _check_copy(name: str, stored: Stored, embedding: Tensor) -> None:
    _check(name, stored, tuple(embedding.shape))
    if not torch.equal(stored.read().to(embedding), embedding):
        raise GptvizError(f"{name} differs from the embedding, although the configuration says that they are tied.")


def _name_some(names: Iterable[str], verb: str, why: str, who: str = "The file") -> None:
    if some := sorted(names):
        more = f" and {len(some) - 3} more" if len(some) > 3 else ""
        raise GptvizError(f"{who} {verb} {', '.join(name[:80] for name in some[:3])}{more}, which {why}.")


def _made(source: Source, short: Mapping[str, Stored], config: GPTConfig, dtype: torch.dtype, device: str) -> Tensor:
    """One parameter; what its parts take while they are read is given back before the next one."""
    if len(source.parts) == 1:
        return _settled(_part(source, 0, short, config), source.name, dtype, device)
    whole = torch.empty(source.shape, dtype=dtype, device=device)
    at = 0
    for number in range(len(source.parts)):
        part = _part(source, number, short, config)
        whole[at : at + len(part)] = _settled(part, source.name, dtype, device)
        at += len(part)
    return whole


def _part(source: Source, number: int, short: Mapping[str, Stored], config: GPTConfig) -> Tensor:
    name = source.parts[number].name
    return source.layout.tensor(finite(name, short[name].read()), config)


def _settled(tensor: Tensor, name: str, dtype: torch.dtype, device: str) -> Tensor:
    settled = tensor.to(device=device, dtype=dtype)  # a transposed one stays a view: it multiplies as fast
    return finite(name, settled) if dtype.itemsize < tensor.dtype.itemsize else settled


def finite(name: str, tensor: Tensor) -> Tensor:
    """The tensor, if it holds no NaN and no infinity."""
    flat = tensor.reshape(-1)
    if tensor.dtype in (torch.float32, torch.float64) and math.isfinite(float(flat.dot(flat))):
        return tensor  # ten times as fast as looking at each number; a sum of squares may overflow, so look then
    if not bool(torch.isfinite(tensor).all()):
        stored = str(tensor.dtype).removeprefix("torch.")
        raise GptvizError(f"{name} holds NaN, or more than {stored} can hold: these weights are broken.")
    return tensor
