"""Byte-level BPE: learned from texts, or read from GPT-2's two files.

Sennrich et al. 2015, https://arxiv.org/abs/1508.07909, on bytes as in GPT-2.
"""

from __future__ import annotations

from collections.abc import Iterable

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers

from ..errors import GptvizError
from .base import Tokenizer

END_OF_TEXT = "<|endoftext|>"


def train_bpe(texts: Iterable[str], vocab_size: int = 512) -> Tokenizer:
    """A byte-level BPE of `vocab_size` entries: END_OF_TEXT (id 0, the bos), all 256 bytes, then the merges learned.

    Raises GptvizError for fewer entries than those first 257.
    """
    if vocab_size < 257:
        raise GptvizError(f"vocab_size = {vocab_size} is too small: 256 bytes and {END_OF_TEXT} make 257.")
    backend = _byte_level(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[AddedToken(END_OF_TEXT, special=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend, bos_id=0)


def from_vocab_and_merges(vocab: dict[str, int], merges: str, bos_id: int | None = None) -> Tokenizer:
    """vocab.json and merges.txt, as GPT-2's first checkpoints have them. Raises GptvizError for what is neither."""
    lines = [line for line in merges.splitlines() if line and not line.startswith("#version")]
    pairs = [(left, right) for left, _, right in (line.partition(" ") for line in lines)]
    try:
        backend = _byte_level(models.BPE(vocab, pairs))
    except Exception as error:  # the library raises bare Exception, pyo3 a TypeError
        raise GptvizError(f"vocab.json and merges.txt make no vocabulary: {error}") from error
    if END_OF_TEXT in vocab:
        backend.add_special_tokens([AddedToken(END_OF_TEXT, special=True)])
    return Tokenizer(backend, bos_id)


def _byte_level(model: models.Model) -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend
