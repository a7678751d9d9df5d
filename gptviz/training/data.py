"""Text files to batches of token windows. A batch depends on the seed and the step alone, so any step can be redone.

Knows no model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import GptvizError
from ..tokenizer import END_OF_TEXT, Tokenizer


def read_stories(path: str | Path, most: int | None = None) -> list[str]:
    """The stories of a text file, which a line `<|endoftext|>` separates; a file without one is one story.

    Only the first `most`, where that is given: no more of the file is read.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read() if most is None else "".join(_up_to(file, most))
    except (OSError, UnicodeDecodeError) as error:
        raise GptvizError(f"{path} can't be read as UTF-8 text: {error}") from error
    return split_stories(text)


def _up_to(lines: Iterable[str], most: int) -> Iterator[str]:
    for line in lines:
        yield line
        most -= line.rstrip("\n").endswith(END_OF_TEXT)
        if most <= 0:
            return


def split_stories(text: str) -> list[str]:
    """The stories of a text. Raises GptvizError where there is none."""
    stories = [story for piece in text.split(f"{END_OF_TEXT}\n") if (story := piece.removesuffix(END_OF_TEXT).strip())]
    if not stories:
        raise GptvizError("The text is empty: there is nothing to train on.")
    return stories


@dataclass(frozen=True)
class Corpus:
    """Stories as one stream of ids, the bos before each.

    A window is the bos and then `length` ids: from anywhere; or, for the share `aligned`, from a story's start; or, for
    the share `repeats`, a segment of 6 to 64 ids (half of them text, half random) tiled, which teaches induction early.
    """

    stream: np.ndarray  # (N,) ids
    starts: np.ndarray  # where stories begin in it, after their bos
    bos_id: int
    vocab_size: int

    @classmethod
    def of(cls, stories: Sequence[str], tokenizer: Tokenizer) -> Corpus:
        if tokenizer.bos_id is None:
            raise GptvizError("Training begins every window with the vocabulary's first token, and this one has none.")
        pieces = [tokenizer.encode(story, bos=True).numpy() for story in stories]
        starts = np.cumsum([0] + [len(piece) for piece in pieces[:-1]]) + 1
        return cls(np.concatenate(pieces), starts, tokenizer.bos_id, len(tokenizer))

    def fingerprint(self) -> str:
        """Another text or another vocabulary gives another one."""
        return hashlib.sha256(self.stream.tobytes() + self.starts.tobytes()).hexdigest()[:16]

    def batch(
        self, size: int, length: int, *, seed: int, step: int, aligned: float = 0.25, repeats: float = 0.0
    ) -> np.ndarray:
        """(size, length + 1) ids: the inputs are [:, :-1], the targets [:, 1:]."""
        random = np.random.default_rng([seed, step])
        windows = np.full((size, length + 1), self.bos_id, dtype=np.int64)
        for window in windows:
            window[1:] = self._window(random, length, aligned, repeats)
        return windows

    def _window(self, random: np.random.Generator, length: int, aligned: float, repeats: float) -> np.ndarray:
        kind = random.random()
        if kind < repeats:
            return np.resize(self._segment(random), length)
        start = random.choice(self.starts) if kind < repeats + aligned else random.integers(len(self.stream))
        return self.stream.take(np.arange(start, start + length), mode="wrap")

    def _segment(self, random: np.random.Generator) -> np.ndarray:
        length = random.integers(6, 65)
        if random.random() < 0.5:
            start = random.integers(len(self.stream))
            return self.stream.take(np.arange(start, start + length), mode="wrap")
        ordinary = np.delete(np.arange(self.vocab_size), self.bos_id)
        return random.choice(ordinary, length)
