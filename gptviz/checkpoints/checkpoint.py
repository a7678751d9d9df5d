"""What a loaded model is, and the files that hold one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import GPT
from ..tokenizer import Tokenizer

CONFIG, WEIGHTS, TOKENIZER, CARD = "config.json", "model.safetensors", "tokenizer.json", "card.json"
INDEX = "model.safetensors.index.json"  # which file holds which tensor, where there are several
PICKLED = "pytorch_model.bin"
NANOGPT, META = "ckpt.pt", "meta.pkl"


@dataclass(frozen=True)
class Checkpoint:
    """A model that is ready to run (eval, float32 unless asked otherwise), its vocabulary, and where it came from."""

    model: GPT
    tokenizer: Tokenizer
    card: Mapping[str, Any] = field(default_factory=dict)
