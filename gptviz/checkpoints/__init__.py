"""Models on disk: this project's folders, Hugging Face's, nanoGPT's files.

Files are untrusted: they are read as data, no code in them ever runs, and nothing is allocated before what a file
declares agrees with its configuration and with the memory there is.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import torch

from .. import convert, library
from ..config import GPTConfig
from ..errors import GptvizError
from ..model import GPT
from ..tokenizer import IdsTokenizer, Tokenizer, read_tokenizer
from . import adding, foreign, hub, torchfile
from .checkpoint import CARD, CONFIG, INDEX, NANOGPT, PICKLED, TOKENIZER, WEIGHTS, Checkpoint
from .memory import without_collections
from .saving import check_replaceable, save
from .tensors import Stored, gather, in_safetensors, in_shards, in_state
from .text import LARGEST_JSON, read_json, read_text

__all__ = [
    "BUNDLED",
    "LARGEST_JSON",
    "Checkpoint",
    "add",
    "add_uploads",
    "bundled",
    "check_replaceable",
    "load",
    "save",
]

BUNDLED = library.BUNDLED
DEFAULT = library.DEFAULT
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PICKLES = (".pt", ".pth", ".bin", ".ckpt")


def bundled() -> list[str]:
    """The names of the models that come with the repository, the default first."""
    names = sorted(path.parent.name for path in BUNDLED.glob(f"*/{CONFIG}"))
    return sorted(names, key=lambda name: name != DEFAULT)


def load(
    source: str | Path,
    *,
    dtype: str | torch.dtype = "float32",
    device: str = "cpu",
    progress: hub.Progress | None = None,
) -> Checkpoint:
    """A bundled or added name, a folder, a .safetensors file with its config.json, nanoGPT's ckpt.pt, or "hf:org/name".

    Weights become `dtype` on `device`, whatever the file holds; progress(done, total) tells the bytes of a download.
    Raises GptvizError, with nothing changed, for whatever can't be read.
    """
    target = _dtype(dtype), _device(device)
    if str(source) in bundled():
        return _load_folder(BUNDLED / str(source), str(source), *target)
    if str(source) in library.added():
        return _load_folder(library.folder(str(source)), str(source), *target)
    if str(source).startswith(hub.PREFIX):
        return _load_folder(hub.fetch(str(source).removeprefix(hub.PREFIX), progress), str(source), *target)
    path = Path(source)
    try:
        is_folder, is_file = path.is_dir(), path.is_file()
    except (
        OSError,
        ValueError,
    ) as error:  # a name that is too long or holds a NUL, a place that may not be looked into
        raise GptvizError(f"{str(path)[:80]!r} can't be looked at: {getattr(error, 'strerror', error)}.") from error
    if is_folder:
        return _load_folder(path, path.resolve().name, *target)
    if is_file and path.suffix == ".safetensors":
        return _load_folder(path.parent, path.stem, *target, weights=path.name)
    if is_file and path.suffix in PICKLES:
        return _load_pickled(path, *target)
    raise GptvizError(_unreadable(path))


def add(source: str | Path, name: str | None = None, progress: hub.Progress | None = None) -> adding.Report:
    """Keep in the library what `load` can read. Raises GptvizError, with nothing kept, for whatever it can't."""
    return adding.add(source, functools.partial(load, progress=progress), name)


def add_uploads(files: Iterable[tuple[str, IO[bytes]]], name: str | None = None) -> adding.Report:
    """The same of files by name: those of a folder, a single .pt, or a .zip. Nothing else is left on the disk."""
    return adding.add_uploads(files, load, name)


def _dtype(dtype: str | torch.dtype) -> torch.dtype:
    known = dtype if isinstance(dtype, torch.dtype) else DTYPES.get(dtype)
    if known is None or known not in DTYPES.values():
        raise GptvizError(f"dtype = {str(dtype)!r} is not one of {', '.join(DTYPES)}.")
    return known


def _device(device: str) -> str:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ValueError) as error:
        raise GptvizError(f"device = {str(device)!r} can't be used here: {str(error).splitlines()[0]}") from None
    return str(device)


def _unreadable(path: Path) -> str:
    names = ", ".join(bundled()) or "none"
    if path.is_file():
        return (
            f"{path} is no checkpoint this version can read: give a .safetensors file or a folder with a {CONFIG}, or "
            "nanoGPT's ckpt.pt."
        )
    return f"There is no checkpoint {str(path)!r}: it is no folder, no file and no bundled name (bundled: {names})."


def _load_folder(folder: Path, name: str, dtype: torch.dtype, device: str, weights: str | None = None) -> Checkpoint:
    if not (folder / CONFIG).is_file() and (folder / NANOGPT).is_file():
        return _load_pickled(folder / NANOGPT, dtype, device, name)
    values = read_json(folder / CONFIG)
    family = convert.family_of(values) if "model_type" in values else convert.OWN
    config = GPTConfig.from_dict(values) if family is convert.OWN else family.config_of(values)
    tokenizer, config = _tokenizer(folder, config)
    model = _build(config, gather(_stored(folder, weights), config, family, dtype, device))
    card = read_json(folder / CARD) if (folder / CARD).is_file() else {}
    return Checkpoint(model, tokenizer, {"name": name} | card)


def _stored(folder: Path, weights: str | None) -> Mapping[str, Stored]:
    """The tensors of a folder: one file, several, or PyTorch's own."""
    if weights is not None:
        return in_safetensors(folder / weights) if weights.endswith(".safetensors") else _pickled(folder / weights)
    if (folder / INDEX).is_file() and not (folder / WEIGHTS).exists():
        return in_shards(folder / INDEX)
    if (folder / PICKLED).is_file() and not (folder / WEIGHTS).exists():
        return _pickled(folder / PICKLED)
    return in_safetensors(folder / WEIGHTS)


def _pickled(path: Path) -> dict[str, Stored]:
    return in_state(torchfile.state_of(torchfile.read(path), path.name))


def _load_pickled(path: Path, dtype: torch.dtype, device: str, name: str | None = None) -> Checkpoint:
    """A .pt file: nanoGPT's, or the weights of the folder that it lies in."""
    if name is None and (path.parent / CONFIG).is_file():
        return _load_folder(path.parent, path.stem, dtype, device, weights=path.name)
    config, stored, card = foreign.read_nanogpt(path)
    tokenizer, config = _tokenizer(path.parent, config)
    model = _build(config, gather(stored, config, convert.NANOGPT, dtype, device))
    return Checkpoint(model, tokenizer, {"name": name or path.stem} | card)


def _tokenizer(folder: Path, config: GPTConfig) -> tuple[Tokenizer, GPTConfig]:
    """The vocabulary, and the configuration with the first token that the vocabulary says a text begins with."""
    found = _read_tokenizer(folder, config)
    if found is None:
        return IdsTokenizer(config.vocab_size, config.bos_token_id), config
    if len(found) > config.vocab_size:
        raise GptvizError(
            f"The tokenizer has {len(found)} entries, more than the {config.vocab_size} rows of the embedding: "
            "it belongs to another model."
        )
    found.rows = config.vocab_size
    return found, dataclasses.replace(config, bos_token_id=found.bos_id)


def _read_tokenizer(folder: Path, config: GPTConfig) -> Tokenizer | None:
    if (folder / TOKENIZER).is_file():
        return read_tokenizer(read_text(folder / TOKENIZER), config.bos_token_id)
    return foreign.read_vocabulary(folder, config.bos_token_id)


def _build(config: GPTConfig, weights: Mapping[str, Any]) -> GPT:
    with torch.device("meta"), without_collections():
        model = GPT(config)
    model.load_state_dict(weights, strict=False, assign=True)
    model.tie()
    return model.eval()
