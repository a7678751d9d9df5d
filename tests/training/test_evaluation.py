"""Evaluation against a plain loop over stories, and figures worked out by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gptviz import GPT, GPTConfig, Tokenizer
from gptviz.training import evaluate
from gptviz.training.evaluation import story_windows

STORIES = ["Once upon a time, Lily saw a cake.", "Ben! ", "🤗 Tom went to the park. " * 6, "a"]


@pytest.fixture(scope="module")
def make(make_model: Callable[..., GPT], config: GPTConfig) -> Callable[..., GPT]:
    shape = {"vocab_size": config.vocab_size, "bos_token_id": 0, "block_size": 24}
    return lambda **changes: make_model(**shape | changes)


@pytest.mark.parametrize("block_size", [1, 2, 7, 8])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 30])
def test_every_token_is_counted_in_one_window_and_the_bos_in_none(block_size: int, length: int):
    ids = torch.arange(1, length + 1)
    counted: list[int] = []
    for window, fresh in story_windows(ids, block_size, bos_id=0):
        assert window[0] == 0
        assert 0 not in window[1:]
        assert len(window) <= block_size + 1
        counted += window[len(window) - fresh :].tolist()
    assert counted == ids.tolist()


def test_windows_overlap_by_half():
    windows = [window.tolist() for window, _ in story_windows(torch.arange(1, 11), 4, bos_id=0)]
    assert windows == [[0, 1, 2, 3, 4], [0, 3, 4, 5, 6], [0, 5, 6, 7, 8], [0, 7, 8, 9, 10]]


def one_by_one(model: GPT, ids: Tensor) -> float:
    """The nats of one story, a forward pass a token: each sees what it sees in the first window that it is in."""
    size, nats = model.config.block_size, 0.0
    for at in range(len(ids)):
        start = 0 if at < size else math.ceil((at + 1 - size) / (size // 2)) * (size // 2)
        context = torch.cat([torch.tensor([0]), ids[start:at]])
        nats -= float(model(context[None])[0, -1].double().log_softmax(-1)[ids[at]])
    return nats


def test_it_is_the_sum_over_single_stories(make: Callable[..., GPT], tokenizer: Tokenizer):
    model = make()
    ids = [tokenizer.encode(story) for story in STORIES]
    result = evaluate(model, tokenizer, STORIES, batch_size=3)
    nats = sum(one_by_one(model, each) for each in ids)
    assert result.tokens == sum(map(len, ids))
    assert result.bytes == sum(len(story.encode()) for story in STORIES)
    assert result.nats_per_token * result.tokens == pytest.approx(nats, rel=1e-5)
    assert result.bits_per_byte == pytest.approx(nats / math.log(2) / result.bytes, rel=1e-5)


@pytest.mark.parametrize("changes", [{}, {"causal": False}, {"pos_encoding": "alibi"}], ids=str)
def test_batches_make_no_difference(make: Callable[..., GPT], tokenizer: Tokenizer, changes: dict[str, object]):
    model = make(**changes)
    alone, together = (evaluate(model, tokenizer, STORIES, batch_size=n) for n in (1, 32))
    assert alone.nats_per_token == pytest.approx(together.nats_per_token, rel=1e-6)


def test_bits_per_byte_of_a_model_that_knows_nothing(make: Callable[..., GPT], tokenizer: Tokenizer):
    """Equal logits cost log2 V bits a token, whatever the text."""
    model = make(init_std=1e-9, tie_weights=False)
    result = evaluate(model, tokenizer, STORIES)
    assert result.nats_per_token == pytest.approx(math.log(len(tokenizer)), rel=1e-5)
    assert result.bits_per_byte == pytest.approx(result.tokens * math.log2(len(tokenizer)) / result.bytes, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_and_the_mode_stays(config: GPTConfig, tokenizer: Tokenizer, training: bool):
    model = GPT(config).train(training)
    assert evaluate(model, tokenizer, STORIES) == evaluate(model, tokenizer, STORIES)
    assert model.training is training
    assert model.blocks[0].training is training
