"""nanoGPT's ckpt.pt, and vocabularies that are no tokenizer.json. Raises GptvizError throughout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import convert
from ..config import GPTConfig
from ..errors import GptvizError
from ..tokenizer import CharTokenizer, Tokenizer, from_vocab_and_merges
from . import pickles, torchfile
from .checkpoint import META
from .tensors import Stored, in_state
from .text import read_bytes, read_json, read_text

VOCAB, MERGES = "vocab.json", "merges.txt"
VOCABULARIES = ("meta.json", "vocab.json", "vocabulary.json")  # a character vocabulary as JSON


def read_nanogpt(path: Path) -> tuple[GPTConfig, dict[str, Stored], dict[str, Any]]:
    """The configuration, the tensors still in the file, and what is worth telling of the training."""
    outline = torchfile.declared(path)
    if not isinstance(outline, dict) or not isinstance(outline.get("model_args"), dict):
        raise GptvizError(
            f"{path.name} has no 'model_args' as nanoGPT's checkpoints have, and without them a table of weights does "
            "not say how many heads it has: save torch.save({'model': ..., 'model_args': ...}), or give a folder."
        )
    config = convert.NANOGPT.config_of(outline["model_args"])
    values = torchfile.read(path)
    return config, in_state(torchfile.state_of(values.get("model"), "'model'")), _told(values)


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    """A card of what nanoGPT noted."""
    card: dict[str, Any] = {"origin": "a nanoGPT checkpoint"}
    if type(values.get("iter_num")) is int:
        card["steps"] = values["iter_num"]
    try:
        loss = float(values["best_val_loss"])
        if 0 < loss < 100:
            card["validation"] = {"nats_per_token": loss}
    except (KeyError, TypeError, ValueError, RuntimeError):
        pass  # not noted, or no single number
    return card


def read_vocabulary(folder: Path, bos_id: int | None = None) -> Tokenizer | None:
    """What stands in for a tokenizer.json: GPT-2's two files, or nanoGPT's characters, as a pickle or as JSON."""
    if (folder / VOCAB).is_file() and (folder / MERGES).is_file():
        return from_vocab_and_merges(read_json(folder / VOCAB), read_text(folder / MERGES), bos_id)
    if (folder / META).is_file():
        return CharTokenizer(_stoi(pickles.read(read_bytes(folder / META), META), META))
    for name in VOCABULARIES:
        if (folder / name).is_file():
            return CharTokenizer(_stoi(read_json(folder / name), name))
    return None


def _stoi(values: Any, name: str) -> dict[str, int]:
    """{"stoi": {"a": 0, ...}, ...}, or the inner table alone."""
    table = values.get("stoi", values) if isinstance(values, dict) else values
    if not isinstance(table, dict) or not table:
        raise GptvizError(f"{name} holds no table of characters and their ids.")
    return table
