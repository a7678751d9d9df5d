"""Text to token ids and back, and how tokens are shown. Knows no model.

Byte-level BPE by the `tokenizers` library, on bytes as in GPT-2: Sennrich et al. 2015, https://arxiv.org/abs/1508.07909
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers

from .errors import GptvizError

if TYPE_CHECKING:
    from torch import Tensor

END_OF_TEXT = "<|endoftext|>"


def _byte_letters() -> dict[str, int]:
    """The printable letter that byte-level BPE writes for each byte, reversed: letter -> byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTE_OF = _byte_letters()


class Tokenizer:
    """A byte-level BPE vocabulary. Typed text is only text: it never becomes a special token.

    `bos_id` is the token that stood first in every training window, or None.
    """

    def __init__(self, backend: tokenizers.Tokenizer, bos_id: int | None = None):
        backend.encode_special_tokens = True  # "<|endoftext|>" in a text is 13 characters
        backend.no_truncation()
        backend.no_padding()
        self.backend, self.bos_id = backend, bos_id
        self._added = set(backend.get_added_tokens_decoder())  # these are written as they are, not byte by byte

    def __len__(self) -> int:
        """How many ids there are: 0 .. len - 1."""
        return self.backend.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, bos: bool = False) -> Tensor:
        """The ids of text, int64 (T,), with the model's first token in front where `bos`.

        Raises GptvizError for a lone surrogate, and for bos where the vocabulary has no such token.
        """
        import torch

        if bos and self.bos_id is None:
            raise GptvizError("This vocabulary has no beginning-of-text token: encode with bos=False.")
        front = [self.bos_id] if bos else []
        return torch.tensor(front + self._ids(text), dtype=torch.long)

    def _ids(self, text: str) -> list[int]:
        lone = re.search(r"[\ud800-\udfff]", text)
        if lone:
            raise GptvizError(
                f"The text holds U+{ord(lone[0]):04X} at character {lone.start()}, half of a surrogate pair, "
                "which is no character: replace it (with U+FFFD, say)."
            )
        return self.backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. Bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.pieces(ids)).decode("utf-8", "replace")

    def pieces(self, ids: Iterable[int]) -> list[bytes]:
        """The bytes of every token. Raises GptvizError for an id that is in no vocabulary."""
        return [self._piece(int(i)) for i in ids]

    def _piece(self, i: int) -> bytes:
        token = self.backend.id_to_token(i) if i >= 0 else None
        if token is None:
            raise GptvizError(f"Token id {i} is outside the vocabulary: ids go from 0 to {len(self) - 1}.")
        if i in self._added or any(letter not in BYTE_OF for letter in token):
            return token.encode()
        return bytes(BYTE_OF[letter] for letter in token)

    def labels(self, ids: Iterable[int]) -> list[str]:
        """Every token as a person can read it: white space visible, hexadecimal for bytes that are part of a character.

        A label without a leading `·` goes on with the word before it.
        """
        return [label(piece) for piece in self.pieces(ids)]

    def to_json(self) -> str:
        """The vocabulary as the text of a tokenizer.json."""
        return self.backend.to_str()

    @classmethod
    def from_json(cls, text: str, bos_id: int | None = None) -> Tokenizer:
        """Reads what to_json or Hugging Face's tokenizers wrote. Raises GptvizError for anything else."""
        try:
            return cls(tokenizers.Tokenizer.from_str(text), bos_id)
        except Exception as error:  # the library raises bare Exception for whatever it can't parse
            raise GptvizError(f"The tokenizer.json is not one that `tokenizers` can read: {error}") from error


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

    def _piece(self, i: int) -> bytes:
        if not 0 <= i < self.size:
            raise GptvizError(f"Token id {i} is outside the vocabulary: ids go from 0 to {self.size - 1}.")
        return b" %d" % i

    def to_json(self) -> str:
        raise GptvizError("This model came without a vocabulary: there is no tokenizer to write.")


def train_bpe(texts: Iterable[str], vocab_size: int = 512) -> Tokenizer:
    """A byte-level BPE of `vocab_size` entries: END_OF_TEXT (id 0, the bos), all 256 bytes, then the merges learned.

    Raises GptvizError for fewer entries than those first 257.
    """
    if vocab_size < 257:
        raise GptvizError(f"vocab_size = {vocab_size} is too small: 256 bytes and {END_OF_TEXT} make 257.")
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[AddedToken(END_OF_TEXT, special=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend, bos_id=0)


def label(piece: bytes) -> str:
    """One token's bytes as readable text: b" a\\n" -> "·a⏎", b"\\xf0\\x9f" -> "F0 9F"."""
    text = piece.decode("utf-8", "surrogateescape")  # a byte that is no UTF-8 becomes U+DC80 + byte - 128
    runs: Sequence[str] = re.findall(r"[\udc80-\udcff]+|[^\udc80-\udcff]+", text)
    return " ".join(_hexadecimal(run) if "\udc80" <= run[0] <= "\udcff" else _visible(run) for run in runs)


def _hexadecimal(run: str) -> str:
    return " ".join(f"{ord(char) - 0xDC00:02X}" for char in run)


_SIGNS = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍", "\x7f": "␡"}


def _visible(run: str) -> str:
    shown = "".join(_sign(char) for char in run)
    return "◌" + shown if unicodedata.combining(run[0]) else shown


def _sign(char: str) -> str:
    if char in _SIGNS:
        return _SIGNS[char]
    if ord(char) < 0x20:
        return chr(0x2400 + ord(char))  # the control pictures
    unseen = unicodedata.category(char) in {"Cc", "Cf", "Cn", "Co", "Zs", "Zl", "Zp"}
    return f"U+{ord(char):04X}" if unseen else char
