"""A configuration by name or from a file, for the command line. Knows no tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..config import PRESETS, GPTConfig
from ..errors import GptvizError

LARGEST_FILE = 1_000_000  # bytes; a config.json has a few hundred


def read(source: str, changes: dict[str, Any]) -> GPTConfig:
    """A preset's name, a config.json or a folder with one, with some fields changed.

    Raises GptvizError for anything else, and for changes that make no model.
    """
    return GPTConfig.from_dict({**read_fields(source), **changes})


def read_fields(source: str) -> dict[str, Any]:
    """The fields that a preset or a file gives. Raises GptvizError for what is neither."""
    return dict(PRESETS[source]) if source in PRESETS else _file(source)


def change(text: str) -> tuple[str, Any]:
    """n_layer=24 -> ("n_layer", 24); a value that is no JSON is a word."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise GptvizError(f"--set {text!r} is not of the form FIELD=VALUE, as in n_layer=24.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _file(source: str) -> dict[str, Any]:
    path = _existing(source)
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise GptvizError(f"{source!r} can't be read as JSON: {_first_line(error)}.") from error
    if not isinstance(fields, dict):
        raise GptvizError(f"{source!r} holds {type(fields).__name__}, not an object with a configuration's fields.")
    return fields


def _existing(source: str) -> Path:
    """Only a plain file of a sensible size: a device or a pipe could be read for ever."""
    path = Path(source)
    try:
        path = path / "config.json" if path.is_dir() else path
        if path.is_file() and path.stat().st_size <= LARGEST_FILE:
            return path
        large = f"is larger than {LARGEST_FILE:,} bytes"
        why = large if path.is_file() else "is neither a preset nor a configuration file"
    except (OSError, ValueError) as error:
        why = f"can't be opened: {_first_line(error)}"
    raise GptvizError(f"{_shown(source)} {why}. Presets: {', '.join(PRESETS)}.")


def _shown(source: str) -> str:
    return repr(source if len(source) <= 80 else source[:77] + "...")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
