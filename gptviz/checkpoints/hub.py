"""Models from the Hugging Face Hub by name: fetched once, then read from the cache. Raises GptvizError throughout."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import GptvizError

PREFIX = "hf:"
WANTED = [
    "config.json",
    "card.json",
    "tokenizer.json",
    "vocab.json",
    "merges.txt",
    "*.safetensors",
    "*.safetensors.index.json",
]
NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")

Progress = Callable[[int, int], None]  # bytes fetched, bytes in all


def fetch(name: str, progress: Progress | None = None) -> Path:
    """The folder of org/name, downloaded or as it is in the cache; `org/name@revision` for a branch, tag or commit."""
    name, _, revision = name.partition("@")
    if not NAME.fullmatch(name) or ".." in name or "--" in name:
        raise GptvizError(f"{name[:80]!r} could not be fetched from the Hub: a name there reads like 'org/name'.")
    folder = _snapshot(name, revision or None, WANTED, progress)
    if not any(folder.glob("*.safetensors")):  # older repositories have PyTorch's own file only
        folder = _snapshot(name, revision or None, [*WANTED, "pytorch_model.bin"], progress)
    return folder


def _snapshot(name: str, revision: str | None, wanted: list[str], progress: Progress | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    told: dict[str, Any] = {} if progress is None else {"tqdm_class": _meter(progress)}
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted, **told))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise GptvizError(f"{name!r} could not be fetched from the Hub: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What happened and what to do about it."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return (
            "it is gated. Accept its terms on its page there, then log in on this machine with `hf auth login` or set "
            "HF_TOKEN."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return "it has no such revision: name a branch, a tag or a commit that it has."
    if isinstance(error, errors.RepositoryNotFoundError):
        return "there is no such model, or it is private: check the spelling, or log in with `hf auth login`."
    if isinstance(error, errors.LocalEntryNotFoundError):
        return "the Hub can't be reached, and the model is not in the cache of this machine. Connect once to fetch it."
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _meter(progress: Progress) -> type:
    """A tqdm that reports instead of drawing. Of the bars that count bytes (fetched, written) the furthest is told."""
    from tqdm import tqdm

    seen: dict[int, tuple[int, int]] = {}

    class Meter(tqdm):
        def __init__(self, *args: Any, **kwargs: Any):
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "disable": False, "file": _Nowhere()})

        def update(self, n: float | None = 1) -> bool | None:
            shown: bool | None = super().update(n)
            if self.unit == "B":
                seen[id(self)] = int(self.n), int(self.total or 0)
                progress(*(max(numbers) for numbers in zip(*seen.values(), strict=True)))
            return shown

    return Meter


class _Nowhere:
    """A file that swallows what is written to it."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass
