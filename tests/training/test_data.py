"""Text to windows of ids: what a window may be, and that any step's batch can be made again."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gptviz import GptvizError, Tokenizer
from gptviz.tokenizer import IdsTokenizer
from gptviz.training import read_stories, split_stories
from gptviz.training.data import Corpus

LENGTH = 150  # longer than twice the longest segment that is repeated


@pytest.fixture(scope="module")
def corpus(stories: list[str], tokenizer: Tokenizer) -> Corpus:
    return Corpus.of(stories, tokenizer)


def period(window: np.ndarray) -> int | None:
    """The shortest shift, up to 64, by which a window without its bos is itself again."""
    return next((n for n in range(6, 65) if np.array_equal(window[1:-n], window[1 + n :])), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one", ["one"]),
        ("one\n<|endoftext|>\ntwo\n<|endoftext|>\n", ["one", "two"]),
        ("one\n<|endoftext|>\ntwo\n<|endoftext|>", ["one", "two"]),
        ("\n one \n\n two\n<|endoftext|>\n\n<|endoftext|>\n", ["one \n\n two"]),
        ("a <|endoftext|> in a line\n<|endoftext|>\nb", ["a <|endoftext|> in a line", "b"]),
    ],
)
def test_a_line_separates_stories(text: str, expected: list[str]):
    assert split_stories(text) == expected


@pytest.mark.parametrize("text", ["", "  \n", "<|endoftext|>\n<|endoftext|>\n"])
def test_a_text_without_stories(text: str):
    with pytest.raises(GptvizError, match="The text is empty"):
        split_stories(text)


def test_a_file_that_is_no_text(tmp_path: Path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(GptvizError, match=r"latin\.txt can't be read as UTF-8 text"):
        read_stories(tmp_path / "latin.txt")
    with pytest.raises(GptvizError, match=r"none\.txt can't be read"):
        read_stories(tmp_path / "none.txt")


def test_the_stream_is_the_stories_each_after_the_bos(corpus: Corpus, stories: list[str], tokenizer: Tokenizer):
    bos = np.flatnonzero(corpus.stream == tokenizer.bos_id)
    assert np.array_equal(corpus.starts, bos + 1)
    pieces = np.split(corpus.stream, bos[1:])
    assert [tokenizer.decode(piece[1:]) for piece in pieces] == stories


def test_a_vocabulary_without_a_bos_is_refused(stories: list[str]):
    with pytest.raises(GptvizError, match="first token, and this one has none"):
        Corpus.of(stories, IdsTokenizer(50))


def test_a_batch_depends_on_seed_and_step_alone(corpus: Corpus):
    def batch(seed: int, step: int) -> np.ndarray:
        return corpus.batch(4, 24, seed=seed, step=step, repeats=0.3)

    first = batch(0, 7)
    np.random.default_rng().random(3)
    assert np.array_equal(batch(0, 7), first)
    assert not np.array_equal(batch(0, 8), first)
    assert not np.array_equal(batch(1, 7), first)


def test_every_window_begins_with_the_bos_and_goes_on_with_the_text(corpus: Corpus):
    windows = corpus.batch(64, 24, seed=0, step=0)
    assert windows.shape == (64, 25)
    assert windows.dtype == np.int64
    assert (windows[:, 0] == corpus.bos_id).all()
    around = np.concatenate([corpus.stream, corpus.stream[:24]])
    places = np.lib.stride_tricks.sliding_window_view(around, 24)
    assert all((places == window[1:]).all(axis=1).any() for window in windows)


def test_shares_of_aligned_and_repeated_windows(corpus: Corpus):
    windows = corpus.batch(2000, LENGTH, seed=0, step=0, aligned=0.3, repeats=0.2)
    repeated = np.array([period(window) is not None for window in windows])
    assert repeated.mean() == pytest.approx(0.2, abs=0.03)
    openings = {tuple(corpus.stream[start : start + 24]) for start in corpus.starts}
    aligned = np.array([tuple(window[1:25]) in openings for window in windows])
    by_chance = len(corpus.starts) / len(corpus.stream)
    assert (aligned & ~repeated).mean() == pytest.approx(0.3 + 0.5 * by_chance, abs=0.03)


def test_all_aligned_and_none(corpus: Corpus):
    openings = {tuple(corpus.stream[start : start + 24]) for start in corpus.starts}
    every = corpus.batch(100, 24, seed=0, step=0, aligned=1.0)
    assert all(tuple(window[1:]) in openings for window in every)
    some = corpus.batch(100, 24, seed=0, step=0, aligned=0.0)
    assert not all(tuple(window[1:]) in openings for window in some)


def test_repeated_segments_are_half_text_and_half_random_of_6_to_64_tokens(corpus: Corpus):
    windows = corpus.batch(400, LENGTH, seed=0, step=0, aligned=0.0, repeats=1.0)
    periods = [period(window) for window in windows]
    assert {min(p for p in periods if p), max(p for p in periods if p)} == {6, 64}
    assert None not in periods
    text = set(zip(corpus.stream, np.roll(corpus.stream, -1), strict=True))
    is_text = [all(pair in text for pair in pairwise(w[1:7])) for w in windows]
    assert np.mean(is_text) == pytest.approx(0.5, abs=0.1)
    random_ones = np.concatenate([w[1:] for w, of_text in zip(windows, is_text, strict=True) if not of_text])
    assert corpus.bos_id not in random_ones
    assert len(set(random_ones.tolist())) == corpus.vocab_size - 1


def test_the_fingerprint_tells_texts_and_vocabularies_apart(corpus: Corpus, stories: list[str], tokenizer: Tokenizer):
    assert Corpus.of(stories, tokenizer).fingerprint() == corpus.fingerprint()
    assert Corpus.of(stories[1:], tokenizer).fingerprint() != corpus.fingerprint()
