"""Other people's checkpoints: their configuration's fields and their tensors' names, a table a family.

Reads values that were read already; knows no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config import GPTConfig
from ..errors import GptvizError
from . import gpt2, gpt_neo, gpt_neox, llama, nanogpt
from .family import OWN as OWN
from .family import Family as Family
from .family import Part as Part
from .family import Source as Source

FAMILIES: dict[str, Family] = {
    "gpt2": gpt2.FAMILY,
    "gpt_neo": gpt_neo.FAMILY,
    "gpt_neox": gpt_neox.FAMILY,
    "llama": llama.LLAMA,
    "mistral": llama.MISTRAL,
    "qwen2": llama.QWEN2,
    "qwen3": llama.QWEN3,
}
NANOGPT = nanogpt.FAMILY


def family_of(hf: Mapping[str, Any]) -> Family:
    """The family that a Hugging Face config.json names. Raises GptvizError for one that can't be read."""
    name = hf.get("model_type")
    if name not in list(FAMILIES):  # a list, as an untrusted name may be unhashable
        raise GptvizError(f"Models of the type {str(name)[:40]!r} can't be read; these can: {', '.join(FAMILIES)}.")
    return FAMILIES[name]


def config_from_hf(hf: Mapping[str, Any]) -> GPTConfig:
    """The GPTConfig of a Hugging Face config.json. Raises GptvizError for a family or a field not understood."""
    return family_of(hf).config_of(hf)
