"""Texts decoded together are those that generate() gives one by one, and each of them is real."""

import math
from typing import get_args

import pytest
import torch

from gptviz import GptvizError, generate
from gptviz.config import PosEncoding
from gptviz.generation import continuations

SETTINGS = [dict(), dict(temperature=0.7, top_k=5), dict(temperature=0), dict(top_p=0.5), dict(min_p=0.2)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("encoding", get_args(PosEncoding))
def test_each_is_what_generate_gives_for_its_seed(make_model, ids, encoding, settings):
    model = make_model(pos_encoding=encoding)
    texts = continuations(model, ids, 3, 8, seed=5, **settings)
    for seed, text in zip((5, 6, 7), texts, strict=True):
        alone = list(generate(model, ids, 8, seed=seed, **settings))
        assert text.seed == seed
        assert list(text.tokens) == [step.token for step in alone]
        assert text.probs == pytest.approx([float(step.probs[step.token]) for step in alone], abs=1e-4)


@pytest.mark.parametrize(
    "changes", [dict(causal=False), dict(n_kv_head=2, pos_encoding="rotary"), dict(bos_token_id=7)]
)
def test_also_beyond_the_context_and_without_a_mask(make_model, ids, changes):
    model, long = make_model(**changes), ids.repeat(3)
    texts = continuations(model, long, 2, 6)  # 30 tokens and 6 more: the context holds 32
    expected = [[step.token for step in generate(model, long, 6, seed=seed)] for seed in (0, 1)]
    assert [list(text.tokens) for text in texts] == expected


def test_the_nats_are_those_of_the_models_own_distribution(tiny_model, ids):
    (text,) = continuations(tiny_model, ids, 1, 4, temperature=0.5, top_k=3)
    whole = torch.cat([ids, torch.tensor(text.tokens)])
    log_probs = tiny_model(whole[None])[0].log_softmax(-1)
    surprise = sum(-float(log_probs[len(ids) - 1 + at, token]) for at, token in enumerate(text.tokens))
    assert text.nats == pytest.approx(surprise, abs=1e-3)


def test_padding_is_never_drawn(tiny_model, ids):
    texts = continuations(tiny_model, ids.clamp(max=9), 8, 10, temperature=5, size=10)
    assert max(max(text.tokens) for text in texts) < 10


def test_no_length_is_no_text(tiny_model, ids):
    (text,) = continuations(tiny_model, ids, 1, 0)
    assert (text.tokens, text.probs, text.nats) == ((), (), 0)


@pytest.mark.parametrize("count", [0, -1, 65])
def test_a_count_that_cannot_be_is_refused(tiny_model, ids, count):
    with pytest.raises(GptvizError, match=f"count = {count}"):
        continuations(tiny_model, ids, count)


def test_settings_and_ids_are_refused_as_in_generate(tiny_model, ids):
    with pytest.raises(GptvizError, match="top_p"):
        continuations(tiny_model, ids, top_p=2)
    with pytest.raises(GptvizError, match="outside the vocabulary"):
        continuations(tiny_model, torch.tensor([50]))


def test_the_model_is_left_as_it_was(tiny_model, ids):
    before = tiny_model(ids[None])
    continuations(tiny_model, ids, 2, 3)
    assert torch.equal(tiny_model(ids[None]), before)
    assert not any(module._forward_hooks for module in tiny_model.modules())
    assert math.isfinite(float(before.sum()))
