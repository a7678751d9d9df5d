"""Text to token ids and back, by the `tokenizers` library."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import AddedToken

from ..errors import GptvizError
from .labels import label
from .spelling import BYTE_OF, byte_level, is_complete, spelling_of

if TYPE_CHECKING:
    from torch import Tensor

# Tokens that steer a model, such as <think> or [INST], which some vocabularies list as ordinary ones.
_STEERING = re.compile(r"<[^<>\s]{1,60}>|\[/?[A-Z_]{2,60}\]")


class Tokenizer:
    """A vocabulary. Typed text is only text: it never becomes a special token.

    `bos_id` is the token that stood first in every training window, or None; `rows` those of the embedding, which may
    be more than there are entries.
    """

    bos_id: int | None
    rows: int = 0

    def __init__(self, backend: tokenizers.Tokenizer, bos_id: int | None = None):
        backend.encode_special_tokens = True  # "<|endoftext|>" in a text is 13 characters
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.bos_id = bos_id
        self._added, self._special = _added(backend)  # these are written as they are, not byte by byte
        self._spell = spelling_of(backend)
        self._complete = is_complete(backend, self._spell)
        self._size = _size(backend)
        self._space_in_front = self._puts_a_space_in_front()

    def __len__(self) -> int:
        """How many ids there are: 0 .. len - 1."""
        return self._size

    def encode(self, text: str, bos: bool = False) -> Tensor:
        """The ids of text, int64 (T,), with the model's first token in front where `bos`.

        Raises GptvizError for a lone surrogate, for a character that the vocabulary can't write, and for bos where it
        has no such token.
        """
        import torch

        if bos and self.bos_id is None:
            raise GptvizError("This vocabulary has no beginning-of-text token: encode with bos=False.")
        front = [self.bos_id] if bos else []
        return torch.tensor(front + self._ids(text), dtype=torch.long)

    def _ids(self, text: str) -> list[int]:
        check_surrogates(text)
        try:
            encoding = self.backend.encode(text, add_special_tokens=False)
        except Exception as error:  # the library raises bare Exception
            raise GptvizError(f"The vocabulary can't write this text: {error}.") from error
        if not self._complete:
            self._check_known(text)
        return self._without_specials(text, encoding)

    def _check_known(self, text: str) -> None:
        """The library leaves out what it has no token for."""
        for char in dict.fromkeys(text):
            if not char.isspace() and not self.backend.encode(char, add_special_tokens=False).ids:
                at = text.index(char)
                raise GptvizError(f"The vocabulary has no token for {char!r} (U+{ord(char):04X}), at character {at}.")

    def _without_specials(self, text: str, encoding: tokenizers.Encoding) -> list[int]:
        """Some models of the library find a special token, or a byte's, that stands spelled out in the text."""
        if self._literals.keys().isdisjoint(encoding.ids):
            return encoding.ids
        ids: list[int] = []
        for i, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            literal = i in self._literals and text[start:end].strip() == self._literals[i]
            ids += self._spelled_out(text[start:end]) if literal else [i]
        return ids

    @property
    def _literals(self) -> dict[int, str]:
        """Tokens that stand for something else than they read."""
        if "_literals_kept" not in self.__dict__:
            ids = [self.backend.token_to_id(f"<0x{byte:02X}>") for byte in range(256)] + sorted(self._special)
            self._literals_kept = {i: str(self.backend.id_to_token(i)) for i in ids if i is not None}
        return self._literals_kept

    def _spelled_out(self, text: str) -> list[int]:
        """Character by character, each as itself, as its bytes, or not at all."""
        letters = {byte: letter for letter, byte in BYTE_OF.items()}
        ids: list[int | None] = []
        for char in text:
            whole = None if self._spell is byte_level else self.backend.token_to_id(char)
            names = [letters[byte] if self._spell is byte_level else f"<0x{byte:02X}>" for byte in char.encode()]
            ids += [whole] if whole is not None else [self.backend.token_to_id(name) for name in names]
        return [i for i in ids if i is not None]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. Bytes that are no UTF-8 become U+FFFD.

        The space that some vocabularies put in front of every text is not part of it.
        """
        pieces = self.pieces(ids := [int(i) for i in ids])
        first = 1 if ids and ids[0] == self.bos_id else 0
        if self._space_in_front and len(ids) > first and ids[first] not in self._added:
            pieces[first] = pieces[first].removeprefix(b" ")
        return b"".join(pieces).decode("utf-8", "replace")

    def _puts_a_space_in_front(self) -> bool:
        return b"".join(self.pieces(_ids_of_x(self.backend, special=False))).startswith(b" ")

    def pieces(self, ids: Iterable[int]) -> list[bytes]:
        """The bytes of every token. Raises GptvizError for an id that is in no vocabulary."""
        return [self._piece(int(i)) for i in ids]

    def _piece(self, i: int) -> bytes:
        token = self.backend.id_to_token(i) if i >= 0 else None
        if token is None:
            return self._padding(i)
        return token.encode() if i in self._added else self._spell(token)

    def _padding(self, i: int) -> bytes:
        """A row of the embedding that no token uses."""
        last = max(len(self), self.rows) - 1
        if not 0 <= i <= last:
            raise GptvizError(f"Token id {i} is outside the vocabulary: ids go from 0 to {last}.")
        return b"<unused %d>" % i

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
        """Reads what to_json or Hugging Face's tokenizers wrote. Raises GptvizError for anything else.

        The token that the file itself puts in front of a text, where it does, goes before `bos_id`.
        """
        try:
            backend = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception for whatever it can't parse
            raise GptvizError(f"The tokenizer.json is not one that `tokenizers` can read: {error}") from error
        return cls(backend, _first_token(backend, bos_id))


def check_surrogates(text: str) -> None:
    """Raises GptvizError for half of a surrogate pair, which no encoding can hold."""
    lone = re.search(r"[\ud800-\udfff]", text)
    if lone:
        raise GptvizError(
            f"The text holds U+{ord(lone[0]):04X} at character {lone.start()}, half of a surrogate pair, "
            "which is no character: replace it (with U+FFFD, say)."
        )


def _added(backend: tokenizers.Tokenizer) -> tuple[set[int], set[int]]:
    """The ids of tokens added to the vocabulary, and of those that are special; steering ones become special."""
    added = backend.get_added_tokens_decoder()
    steering = [token for token in added.values() if not token.special and _STEERING.fullmatch(token.content)]
    if steering:
        backend.add_special_tokens([AddedToken(token.content, special=True, normalized=False) for token in steering])
        added = backend.get_added_tokens_decoder()
    return set(added), {i for i, token in added.items() if token.special}


def _size(backend: tokenizers.Tokenizer) -> int:
    """One more than the largest id; there may be gaps."""
    size = backend.get_vocab_size(with_added_tokens=True)
    if backend.id_to_token(size - 1) is not None and backend.id_to_token(size) is None:
        return size
    return max(backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1


def _first_token(backend: tokenizers.Tokenizer, bos_id: int | None) -> int | None:
    """What the file's own rule puts in front of a text, else bos_id."""
    bare, whole = (_ids_of_x(backend, special) for special in (False, True))
    return whole[0] if len(whole) > len(bare) and whole[1 : 1 + len(bare)] == bare else bos_id


def _ids_of_x(backend: tokenizers.Tokenizer, special: bool) -> list[int]:
    """How the vocabulary writes an x, by which its habits are told; nothing where it can't."""
    try:
        return backend.encode("x", add_special_tokens=special).ids
    except Exception:  # the library's only word for a vocabulary that has neither an x nor a token for the unknown
        return []
