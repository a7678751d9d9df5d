"""Text to token ids and back, and how tokens are shown. Knows no model.

Byte-level BPE, sentencepiece-like vocabularies, characters, and bare ids. Typed text never becomes a special token.
"""

from __future__ import annotations

import json

from ..errors import GptvizError
from .base import Tokenizer
from .bpe import END_OF_TEXT, from_vocab_and_merges, train_bpe
from .labels import label
from .simple import CHARACTERS, CharTokenizer, IdsTokenizer
from .spelling import BYTE_OF

__all__ = [
    "BYTE_OF",
    "END_OF_TEXT",
    "CharTokenizer",
    "IdsTokenizer",
    "Tokenizer",
    "from_vocab_and_merges",
    "label",
    "read_tokenizer",
    "train_bpe",
]


def read_tokenizer(text: str, bos_id: int | None = None) -> Tokenizer:
    """The vocabulary that a tokenizer.json holds, of whichever kind. Raises GptvizError for what holds none."""
    if f'"{CHARACTERS}"' not in text[:100]:
        return Tokenizer.from_json(text, bos_id)
    try:
        stoi = json.loads(text)["stoi"]
        return CharTokenizer(stoi)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, GptvizError):
            raise
        raise GptvizError("The tokenizer.json holds no table of characters.") from None
