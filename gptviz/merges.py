"""How BPE arrives at a word's tokens: merge by merge, in the order in which the pairs were learned.

Sennrich et al. 2015, https://arxiv.org/abs/1508.07909. Knows no model and draws nothing.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import GptvizError
from .tokenizer import Tokenizer, label
from .tokenizer.spelling import SPACE, spelling_of

Pair = tuple[str, str]


@dataclass(frozen=True)
class Word:
    """A stretch of text that no merge leaves, as the vocabulary spells it, and the symbols it begins as."""

    spelled: str
    symbols: tuple[str, ...]


@dataclass(frozen=True)
class Merge:
    """One merge. rank: how early the pair was learned, from 0; made: what it became; after: the word's symbols then."""

    rank: int
    made: str
    after: tuple[str, ...]


class Merges:
    """The learned merges of a tokenizer, read from its tokenizer.json.

    Raises GptvizError for a vocabulary that works without merges, such as one of characters.
    """

    def __init__(self, tokenizer: Tokenizer):
        if not hasattr(tokenizer, "backend"):
            raise GptvizError("Every piece of a prompt is a token of its own in this vocabulary: nothing is merged.")
        model: dict[str, Any] = json.loads(tokenizer.to_json())["model"]
        if model.get("type", "BPE") != "BPE" or "merges" not in model:
            raise GptvizError(f"This vocabulary is no BPE but {model.get('type')!r}, which splits without merges.")
        self.backend, self._spell = tokenizer.backend, spelling_of(tokenizer.backend)
        self.vocabulary: Mapping[str, int] = model["vocab"]
        self.ranks: dict[Pair, int] = {_pair(merge): rank for rank, merge in enumerate(model["merges"])}
        self._by_byte = bool(model.get("byte_fallback"))  # a character without an entry becomes its bytes
        self._whole_first = bool(model.get("ignore_merges"))  # a word that is an entry is taken as it stands
        self._prefix, self._suffix = model.get("continuing_subword_prefix") or "", model.get("end_of_word_suffix") or ""

    def words(self, text: str) -> list[Word]:
        """The text cut where merges stop, such as before a space: every word once, in the order of the text."""
        normal = text if self.backend.normalizer is None else self.backend.normalizer.normalize_str(text)
        cut = self.backend.pre_tokenizer
        if cut is None:  # sentencepiece's: what holds a space has it in front
            pieces = re.findall(f"{SPACE}*[^{SPACE}]+|{SPACE}+", normal)
        else:
            pieces = [piece for piece, _ in cut.pre_tokenize_str(normal)]
        return [Word(piece, tuple(self._symbols(piece))) for piece in dict.fromkeys(pieces) if piece]

    def _symbols(self, piece: str) -> list[str]:
        if self._whole_first and piece in self.vocabulary:
            return [piece]
        last = len(piece) - 1
        marked = [
            f"{self._prefix if at else ''}{char}{self._suffix if at == last else ''}" for at, char in enumerate(piece)
        ]
        return [symbol for mark, char in zip(marked, piece, strict=True) for symbol in self._known(mark, char)]

    def _known(self, mark: str, char: str) -> list[str]:
        if mark in self.vocabulary or not self._by_byte:
            return [mark]
        return [f"<0x{byte:02X}>" for byte in char.encode()]

    def of(self, word: Word) -> list[Merge]:
        """The merges of a word: always the pair that was learned first, everywhere it stands, until none is left."""
        symbols, steps = word.symbols, []
        while known := [pair for pair in itertools.pairwise(symbols) if pair in self.ranks]:
            pair = min(known, key=self.ranks.__getitem__)
            made = pair[0] + pair[1].removeprefix(self._prefix)
            symbols = tuple(_merged(symbols, pair, made))
            steps.append(Merge(self.ranks[pair], made, symbols))
        return steps

    def ids(self, symbols: Sequence[str]) -> list[int | None]:
        """The entry that each symbol is, None for one that is not in the vocabulary."""
        return [self.vocabulary.get(symbol) for symbol in symbols]

    def by_the_library(self, word: Word) -> list[int]:
        """The ids that the tokenizer itself gives a word."""
        return [token.id for token in self.backend.model.tokenize(word.spelled)]

    def shown(self, symbol: str) -> str:
        """A symbol as a person can read it, as labels are."""
        return label(self._spell(symbol))


def _pair(merge: str | Sequence[str]) -> Pair:
    """A merge as either format writes it: "a b" or ["a", "b"]."""
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _merged(symbols: Sequence[str], pair: Pair, made: str) -> list[str]:
    """Every occurrence of the pair made one, from the left."""
    merged: list[str] = []
    at = 0
    while at < len(symbols):
        here = tuple(symbols[at : at + 2]) == pair
        merged.append(made if here else symbols[at])
        at += 2 if here else 1
    return merged
