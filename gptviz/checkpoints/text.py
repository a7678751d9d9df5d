"""Text files of a checkpoint, untrusted: bounded in size, and JSON only. Every function raises GptvizError."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import GptvizError

LARGEST_JSON = 64 * 2**20  # bytes; Llama 3's tokenizer.json is 9 MB


def read_text(path: Path) -> str:
    """A whole text file of a sensible size."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise GptvizError(f"{path.name} can't be read: {error}") from error


def read_bytes(path: Path) -> bytes:
    """A whole file of a sensible size."""
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise GptvizError(f"{path.name} is {size / 2**20:,.0f} MB: no real one is over 64 MB.")
        with path.open("rb") as file:
            return file.read(LARGEST_JSON)
    except FileNotFoundError:
        raise GptvizError(f"There is no {path.name} in {path.parent}: this folder is no checkpoint.") from None
    except OSError as error:
        raise GptvizError(f"{path.name} can't be read: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds."""
    return parse_json(read_text(path), path.name)


def parse_json(text: str, name: str) -> dict[str, Any]:
    """The object that a JSON text holds; `name` is what to call it in a refusal."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: a whole number of thousands of digits, too
        raise GptvizError(f"{name} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise GptvizError(f"{name} holds no JSON object, but a {type(values).__name__}.")
    return values
