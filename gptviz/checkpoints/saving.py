"""Writing a checkpoint's folder, whole or not at all."""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import save_file

from ..errors import GptvizError
from ..tokenizer import IdsTokenizer
from .checkpoint import CARD, CONFIG, TOKENIZER, WEIGHTS, Checkpoint
from .tensors import finite


def save(checkpoint: Checkpoint, folder: str | Path, dtype: torch.dtype | None = None) -> Path:
    """Write the folder, whole or not at all, in place of a checkpoint that stood there. Weights are float32 by default.

    Raises GptvizError where anything else stands there.
    """
    folder = Path(folder).resolve()
    check_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _write(checkpoint, partial, dtype or torch.float32)
        partial.chmod(0o755)
        _swap(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def check_replaceable(folder: str | Path) -> None:
    """Raises GptvizError unless saving there would replace nothing but a checkpoint."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise GptvizError(f"{folder} is a file: a checkpoint is a folder.")
    others = sorted(path.name for path in folder.glob("*") if path.name not in (CONFIG, WEIGHTS, TOKENIZER, CARD))
    if others:
        raise GptvizError(
            f"{folder} holds {others[0]!r}, which saving here would remove: give the checkpoint its own folder."
        )


def _write(checkpoint: Checkpoint, folder: Path, dtype: torch.dtype) -> None:
    parameters = checkpoint.model.named_parameters()
    weights = {name: parameter.detach().to("cpu", dtype).contiguous() for name, parameter in parameters}
    for name, tensor in weights.items():
        finite(name, tensor)
    save_file(weights, folder / WEIGHTS)
    (folder / WEIGHTS).chmod(0o644)
    (folder / CONFIG).write_text(json.dumps(checkpoint.model.config.to_dict(), indent=2) + "\n", encoding="utf-8")
    (folder / CARD).write_text(json.dumps(dict(checkpoint.card), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if not isinstance(checkpoint.tokenizer, IdsTokenizer):
        (folder / TOKENIZER).write_text(checkpoint.tokenizer.to_json(), encoding="utf-8")


def _swap(new: Path, folder: Path) -> None:
    """Put the folder `new` where `folder` is; what was there goes only once the new one stands."""
    old = new.with_name(new.name + "-old")
    with suppress(FileNotFoundError):
        folder.replace(old)
    try:
        new.replace(folder)
    except OSError:
        with suppress(FileNotFoundError):
            old.replace(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
