"""How vocabularies write bytes and spaces as tokens, and back: one function a kind. Knows no model."""

from __future__ import annotations

import re
from collections.abc import Callable

import tokenizers


def _byte_letters() -> dict[str, int]:
    """The printable letter that byte-level BPE writes for each byte, reversed: letter -> byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTE_OF = _byte_letters()
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # what a vocabulary without the character falls back to
SPACE = "▁"  # U+2581, sentencepiece's space

Spelling = Callable[[str], bytes]  # a token as the vocabulary writes it -> its bytes


def byte_level(token: str) -> bytes:
    """GPT-2, GPT-NeoX, Llama 3, Qwen: a letter a byte."""
    if any(letter not in BYTE_OF for letter in token):
        return token.encode()
    return bytes(BYTE_OF[letter] for letter in token)


def sentencepiece(token: str) -> bytes:
    """Llama 2, Mistral: characters, with a sign for the space, and bytes for what has no token."""
    byte = BYTE_TOKEN.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(SPACE, " ").encode()


def word_pieces(token: str) -> bytes:
    """BERT's: `##` goes on with a word."""
    return token.removeprefix("##").encode() if token.startswith("##") else b" " + token.encode()


def suffixed(token: str) -> bytes:
    """GPT-1's: the last piece of a word has a mark."""
    return token.replace("</w>", " ").encode()


def plain(token: str) -> bytes:
    """As it is written."""
    return token.encode()


# What a tokenizer.json's parts are called tells how its tokens are spelled: the first that is found.
_SIGNS: dict[str, Spelling] = {
    "ByteLevel(": byte_level,
    "Metaspace(": sentencepiece,
    SPACE: sentencepiece,
    "ByteFallback(": sentencepiece,
    "WordPiece(": word_pieces,
    "BPEDecoder(": suffixed,
}


def spelling_of(backend: tokenizers.Tokenizer) -> Spelling:
    """How this vocabulary spells."""
    parts = f"{backend.decoder!r} {backend.pre_tokenizer!r} {backend.normalizer!r}"
    return next((spelling for sign, spelling in _SIGNS.items() if sign in parts), plain)


def is_complete(backend: tokenizers.Tokenizer, spelling: Spelling) -> bool:
    """Whether every text has tokens: each byte has one, or something stands for the unknown."""
    if spelling is byte_level:
        return all(backend.token_to_id(letter) is not None for letter in BYTE_OF)
    unknown = getattr(backend.model, "unk_token", None)
    falls_back = "byte_fallback=True" in repr(backend.model) and backend.token_to_id("<0x00>") is not None
    return falls_back or "Unigram(" in repr(backend.model) or (unknown and backend.token_to_id(unknown)) is not None
