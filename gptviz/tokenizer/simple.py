"""Vocabularies without the `tokenizers` library: characters, and bare ids."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..errors import GptvizError
from .base import Tokenizer, check_surrogates
from .labels import label

CHARACTERS = "characters"


class CharTokenizer(Tokenizer):
    """A token a character, as in nanoGPT's first examples: {"a": 0, ...}. Raises GptvizError for another table."""

    def __init__(self, stoi: Mapping[str, int]):
        for char, i in stoi.items():
            if not isinstance(char, str) or len(char) != 1 or "\ud800" <= char <= "\udfff":
                raise GptvizError(f"The vocabulary holds {str(char)[:20]!a}, which is not one character.")
            if type(i) is not int or not 0 <= i < 0x110000:
                raise GptvizError(
                    f"The vocabulary gives {char!a} the id {str(i)[:20]!r}, which is no small whole number."
                )
        self.stoi, self.itos = dict(stoi), {i: char for char, i in stoi.items()}
        if len(self.itos) < len(self.stoi):
            raise GptvizError("The vocabulary gives two characters the same id.")
        self.bos_id = None

    def __len__(self) -> int:
        return max(self.itos) + 1

    def _ids(self, text: str) -> list[int]:
        check_surrogates(text)
        unknown = next((at for at, char in enumerate(text) if char not in self.stoi), None)
        if unknown is not None:
            known = "".join(sorted(self.stoi))
            raise GptvizError(
                f"This model knows {len(self.stoi)} characters, and {text[unknown]!r} (U+{ord(text[unknown]):04X}), at "
                f"character {unknown} of the text, is none of them: {label(known.encode())[:200]}"
            )
        return [self.stoi[char] for char in text]

    def decode(self, ids: Any) -> str:
        return b"".join(self.pieces(ids)).decode()

    def _piece(self, i: int) -> bytes:
        return self.itos[i].encode() if i in self.itos else self._padding(i)

    def to_json(self) -> str:
        return json.dumps({"type": CHARACTERS, "stoi": self.stoi}, ensure_ascii=False, indent=1) + "\n"


class IdsTokenizer(Tokenizer):
    """Stands in where a checkpoint came without a vocabulary: a text is ids with spaces between them."""

    def __init__(self, size: int, bos_id: int | None = None):
        self.size, self.bos_id = size, bos_id

    def __len__(self) -> int:
        return self.size

    def _ids(self, text: str) -> list[int]:
        words = text.split()
        wrong = next((word for word in words if not re.fullmatch(r"[0-9]{1,9}", word) or int(word) >= self.size), None)
        if wrong is not None:
            raise GptvizError(
                f"This model came without a vocabulary, so a prompt is token ids from 0 to {self.size - 1} with spaces "
                f"between them, as in '5 17 3'; {wrong[:40]!r} is not one."
            )
        return [int(word) for word in words]

    def decode(self, ids: Any) -> str:
        return b"".join(self.pieces(ids)).decode()

    def _piece(self, i: int) -> bytes:
        if not 0 <= i < self.size:
            raise GptvizError(f"Token id {i} is outside the vocabulary: ids go from 0 to {self.size - 1}.")
        return b" %d" % i

    def to_json(self) -> str:
        raise GptvizError("This model came without a vocabulary: there is no tokenizer to write.")
