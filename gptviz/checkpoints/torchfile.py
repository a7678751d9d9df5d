"""PyTorch's own files (.pt, .pth, .bin): checked as an archive and as data before torch opens them.

`torch.load(weights_only=True)` runs no code, but believes what a file declares: a kilobyte may declare a tensor of
terabytes. So the declarations are read first, and each has to be backed by as many bytes. All raise GptvizError.
"""

from __future__ import annotations

import collections
import math
import warnings
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..errors import GptvizError
from . import pickles

LARGEST_INDEX = 16 * 2**20  # bytes of data.pkl, which holds names and shapes
STORAGES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}


class Storage(NamedTuple):
    """A run of numbers that the file says it holds."""

    key: str
    dtype: torch.dtype
    length: int


class Declared(NamedTuple):
    """A tensor that the file says it holds."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def read(path: Path) -> Any:
    """What torch.save wrote, its tensors mapped from the file and not yet in memory."""
    declared(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # torch raises its own, pickle's and zip's errors, and bare ones
        raise GptvizError(f"{path.name} can't be read as a PyTorch file: {_first_line(error)}") from None


def declared(path: Path) -> Any:
    """What the file says it holds, with Declared in place of tensors; every one of them is backed by enough bytes."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = _check_archive(path, archive)
            name = _only(path, [info.filename for info in archive.infolist() if info.filename.endswith("/data.pkl")])
            if archive.getinfo(name).file_size > LARGEST_INDEX:
                raise GptvizError(f"{path.name} has an index of over 16 MB: no real one does.")
            index = archive.read(name)
    except zipfile.BadZipFile as error:
        raise GptvizError(f"{path.name} is not a whole PyTorch file: {_older(path) or error}.") from None
    except (OSError, NotImplementedError, RuntimeError) as error:  # the two latter: encrypted, or compressed oddly
        raise GptvizError(f"{path.name} can't be read: {error}.") from None
    prefix = name.removesuffix("data.pkl") + "data/"
    backed = _Backed(path.name, {key.removeprefix(prefix): size for key, size in sizes.items()})
    return pickles.read(index, path.name, backed.names(), backed.storage)


def _older(path: Path) -> str:
    """Whether it is of the format that torch.save wrote until 2020: pickles one after the other."""
    with path.open("rb") as file:
        magic = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
        old = magic in file.read(32)
    return "it was written before PyTorch 1.6; load it there and save it again with a newer one" if old else ""


def _check_archive(path: Path, archive: zipfile.ZipFile) -> dict[str, int]:
    """Sizes of the entries. torch.save stores them as they are, so that a compressed one is a bomb or a mistake."""
    entries = archive.infolist()
    packed = next((info for info in entries if info.compress_type != zipfile.ZIP_STORED), None)
    if packed is not None:
        raise GptvizError(f"{path.name} holds {packed.filename[:60]!r} compressed, which torch.save never does.")
    if sum(info.file_size for info in entries) > path.stat().st_size:
        raise GptvizError(f"{path.name} says it holds more bytes than it has.")
    return {info.filename: info.file_size for info in entries}


def _only(path: Path, names: list[str]) -> str:
    if len(names) != 1:
        raise GptvizError(f"{path.name} is an archive, but none that torch.save wrote: it has {len(names)} data.pkl.")
    return names[0]


class _Backed:
    """Stands in for torch while declarations are read: its tensors are Declared, checked against the entries' sizes."""

    def __init__(self, file: str, sizes: dict[str, int]):
        self.file, self.sizes = file, sizes

    def names(self) -> dict[tuple[str, str], Any]:
        """What a state dict and an optimizer's state may name."""
        return {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): self.tensor,
            ("torch._utils", "_rebuild_parameter"): self.parameter,
            ("torch", "Size"): tuple,
            **{("torch", name): dtype for name, dtype in STORAGES.items()},
            **{("torch", str(dtype).removeprefix("torch.")): dtype for dtype in STORAGES.values()},
        }

    def storage(self, pid: Any) -> Storage:
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, torch.dtype) or type(count) is not int or count < 0:
            raise GptvizError("it refers to something other than a tensor's numbers")
        if count * dtype.itemsize > self.sizes.get(str(key), -1):
            raise GptvizError(
                f"it declares {count:,} numbers of which the file holds {self.sizes.get(str(key), 0):,} bytes"
            )
        return Storage(str(key), dtype, count)

    def tensor(self, storage: Storage, offset: int, shape: Any, stride: Any, *rest: Any) -> Declared:
        numbers = [offset, *shape, *stride]
        if not isinstance(storage, Storage) or any(type(n) is not int or n < 0 for n in numbers):
            raise GptvizError("it declares a tensor without a proper shape")
        found = Declared(storage, offset, tuple(shape), tuple(stride))
        if math.prod(found.shape) > storage.length:
            raise GptvizError(f"it declares a tensor of shape {found.shape} over {storage.length:,} numbers")
        return found

    def parameter(self, tensor: Declared, *rest: Any) -> Declared:
        return tensor


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def state_of(values: Any, name: str) -> dict[str, Tensor]:
    """The tensors by name. Anything else in their place is refused."""
    if not isinstance(values, dict) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in values.items()
    ):
        raise GptvizError(f"{name} holds no table of tensors by name, as a model's state_dict() is.")
    return dict(values)
