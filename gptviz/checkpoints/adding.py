"""Adding a model to the library: read and checked as any other, then written anew as one of this project's folders.

Of what was uploaded nothing stays: what is kept is what was understood. Every function raises GptvizError.
"""

from __future__ import annotations

import math
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import torch

from .. import library, sizing
from ..errors import GptvizError
from ..model import GPT
from ..tokenizer import IdsTokenizer
from .checkpoint import CARD, CONFIG, INDEX, META, PICKLED, TOKENIZER, WEIGHTS, Checkpoint
from .saving import save

TEXTS = (CONFIG, TOKENIZER, CARD, INDEX, META, "meta.json", "vocab.json", "merges.txt")
SUFFIXES = (".safetensors", ".pt", ".pth")
SAMPLE = "Once upon a time, there was a little girl named Lily. She liked to play with her dog in the park."
MOST_FILES = 1000  # in a zip
RATIO = 100  # how many times smaller an honest zip of weights can be

Load = Callable[[str | Path], Checkpoint]


@dataclass(frozen=True)
class Report:
    """What was found when a model was added."""

    name: str
    parameters: int
    tensors: int
    perplexity: float | None  # on a sentence, per token; None without a vocabulary that can write it
    entries: int | None  # of the vocabulary; None where there is none


def add(source: str | Path, load: Load, name: str | None = None, origin: str = "") -> Report:
    """Read a folder, a file or "hf:org/name" and keep it in the library under a name that is free."""
    loaded = load(source)
    name = library.free_name(name or str(loaded.card.get("name") or "model").removeprefix("hf:"))
    report = examine(loaded, name)
    told = {"origin": origin or loaded.card.get("origin") or str(source)[:200], "parameters": report.parameters}
    if report.perplexity is not None:
        told["sample"] = {"text": SAMPLE, "perplexity_per_token": round(report.perplexity, 3)}
    card = {**loaded.card, **told, "name": name}
    try:
        save(Checkpoint(loaded.model, loaded.tokenizer, card), library.folder(name), _narrowest(loaded.model))
    except OSError as error:
        raise GptvizError(f"{name!r} could not be kept in {library.home()}: {error}.") from error
    return report


def examine(loaded: Checkpoint, name: str) -> Report:
    """Parameters that were read, all of them finite by now, and how well the model predicts a sentence."""
    config, without = loaded.model.config, isinstance(loaded.tokenizer, IdsTokenizer)
    tensors = sum(1 for _ in loaded.model.parameters())
    entries = None if without else len(loaded.tokenizer)
    return Report(name, sizing.n_params(config), tensors, None if without else _perplexity(loaded), entries)


def _perplexity(loaded: Checkpoint) -> float | None:
    try:
        ids = loaded.tokenizer.encode(SAMPLE, bos=loaded.tokenizer.bos_id is not None)
    except GptvizError:  # characters that this vocabulary has not
        return None
    ids = ids[: loaded.model.config.block_size + 1]
    if len(ids) < 2:
        return None
    with torch.no_grad():
        loss = float(loaded.model.loss(ids[None, :-1], ids[None, 1:]))
    if not math.isfinite(loss):
        raise GptvizError("The model computes no numbers on a plain sentence: its weights are broken.")
    return math.exp(min(loss, 700))


def _narrowest(model: GPT) -> torch.dtype:
    """16 bits where nothing is lost by it, as with weights that came in 16 bits."""
    for dtype in (torch.bfloat16, torch.float16):
        if all(torch.equal(parameter.to(dtype).to(parameter), parameter) for parameter in model.parameters()):
            return dtype
    return torch.float32


def add_uploads(files: Iterable[tuple[str, IO[bytes]]], load: Load, name: str | None = None) -> Report:
    """Add what was uploaded: the files of a folder, a single .pt, or a zip. Leaves nothing else on the disk."""
    with tempfile.TemporaryDirectory(prefix="gptviz-") as place:
        folder, first = Path(place), None
        for filename, content in files:
            plain = PurePosixPath(filename.replace("\\", "/")).name
            first = first or plain
            if plain.lower().endswith(".zip"):
                _unpack(content, plain, folder)
            else:
                _write(content, folder / _known(plain))
        if first is None:
            raise GptvizError("There is nothing to add: no file was given.")
        wanted = name or (Path(first).stem if first.lower().endswith((".zip", *SUFFIXES)) else None)
        return add(_source(folder), load, wanted or "model", origin=f"uploaded: {first[:80]}")


def _known(name: str) -> str:
    if name not in TEXTS and name != PICKLED and not name.endswith(SUFFIXES):
        raise GptvizError(
            f"{name[:80]!r} is no part of a checkpoint. What can be read: {CONFIG}, {TOKENIZER}, {CARD}, "
            ".safetensors files and their index, nanoGPT's ckpt.pt and meta.pkl, or a .zip of these."
        )
    return name


def _source(folder: Path) -> Path:
    """The folder; or its only file of weights, where no configuration came with it."""
    weights = [path for path in folder.iterdir() if path.suffix in (*SUFFIXES, ".bin")]
    if not weights:
        raise GptvizError("There are no weights among the files: add a .safetensors or .pt file.")
    single = len(weights) == 1 and not (folder / INDEX).exists()
    if single and weights[0].suffix == ".safetensors":
        weights[0].rename(folder / WEIGHTS)
    return weights[0] if single and not (folder / CONFIG).exists() and weights[0].suffix in (".pt", ".pth") else folder


def _write(content: IO[bytes], path: Path) -> None:
    if path.exists():
        raise GptvizError(f"Two of the files are called {path.name!r}.")
    content.seek(0)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file, 2**20)


def _unpack(content: IO[bytes], name: str, folder: Path) -> None:
    """The known files of the one folder in the archive that holds a checkpoint, by bare names, sizes checked first."""
    try:
        with zipfile.ZipFile(content) as archive:
            for info in _honest(archive, name, folder):
                with archive.open(info) as member, (folder / PurePosixPath(info.filename).name).open("xb") as file:
                    shutil.copyfileobj(member, file, 2**20)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        raise GptvizError(f"{name[:80]!r} can't be unpacked: {str(error) or type(error).__name__}.") from None


def _honest(archive: zipfile.ZipFile, name: str, folder: Path) -> list[zipfile.ZipInfo]:
    infos = [info for info in archive.infolist() if not info.is_dir()]
    if len(infos) > MOST_FILES:
        raise GptvizError(f"{name[:80]!r} holds {len(infos):,} files: no checkpoint has over {MOST_FILES:,}.")
    odd = next((info.filename for info in infos if _leads_elsewhere(info)), None)
    if odd is not None:
        raise GptvizError(f"{name[:80]!r} holds {odd[:80]!r}, which leads out of the archive.")
    mine = _checkpoint_in(infos, name)
    size, packed = sum(info.file_size for info in mine), sum(info.compress_size for info in mine)
    if size > RATIO * packed + 2**20:
        raise GptvizError(
            f"{name[:80]!r} would unpack to {size / 1e6:,.0f} MB from {packed / 1e6:,.1f} MB: that is a bomb."
        )
    if size > shutil.disk_usage(folder).free // 2:
        raise GptvizError(f"{name[:80]!r} would unpack to {size / 1e9:,.1f} GB, more than half of the free disk.")
    return mine


def _leads_elsewhere(info: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(info.filename.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in path.parts[0] or stat.S_ISLNK(info.external_attr >> 16)


def _checkpoint_in(infos: list[zipfile.ZipInfo], name: str) -> list[zipfile.ZipInfo]:
    """The known files of the only folder with weights; a Mac's own additions are left out."""
    usable = [info for info in infos if not info.filename.startswith("__MACOSX/")]
    by_folder: dict[str, list[zipfile.ZipInfo]] = {}
    for info in usable:
        path = PurePosixPath(info.filename)
        if path.name in (*TEXTS, PICKLED) or path.name.endswith(SUFFIXES):
            by_folder.setdefault(str(path.parent), []).append(info)
    found = [group for group in by_folder.values() if any(i.filename.endswith((*SUFFIXES, ".bin")) for i in group)]
    if len(found) != 1:
        raise GptvizError(f"{name[:80]!r} holds {len(found)} folders with weights; one is needed.")
    return found[0]
