"""From logits to tokens: filters against other implementations, draws against probabilities, the cache against none."""

import copy
import math
from itertools import pairwise
from typing import get_args

import pytest
import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from gptviz import GPT, GptvizError, generate, next_token_table
from gptviz.config import PosEncoding
from gptviz.sampling import sample, uniform, window

ENCODINGS = get_args(PosEncoding)
close = torch.testing.assert_close


def by_id(table) -> torch.Tensor:
    return torch.empty_like(table.probs).scatter_(0, table.ids, table.probs)


def logits_of(*probabilities: float) -> torch.Tensor:
    return torch.tensor(probabilities).log()


# One distribution


def test_the_nucleus_by_hand():
    # of 0.4, 0.3, 0.2 and 0.1 the first three are the fewest that hold 0.75; they are scaled by 1 / 0.9
    table = next_token_table(logits_of(0.2, 0.4, 0.1, 0.3), top_p=0.75)
    assert table.ids.tolist() == [1, 3, 0, 2]
    assert table.in_top_p.tolist() == [True, True, True, False]
    close(table.probs, torch.tensor([4 / 9, 3 / 9, 2 / 9, 0]))


def test_top_k_and_min_p_by_hand():
    logits = logits_of(0.2, 0.4, 0.1, 0.3)
    close(by_id(next_token_table(logits, top_k=2)), torch.tensor([0, 4 / 7, 0, 3 / 7]))
    close(by_id(next_token_table(logits, min_p=0.4)), torch.tensor([2 / 9, 4 / 9, 0, 3 / 9]))


def test_temperature_by_hand():
    # dividing logits by 0.5 squares the probabilities: 0.64 and 0.04 of 0.68
    close(next_token_table(logits_of(0.8, 0.2), temperature=0.5).probs, torch.tensor([16 / 17, 1 / 17]))


def test_each_filter_sees_what_the_one_before_left():
    # the two of top-k are 4/7 and 3/7, and the first alone holds the half that top-p asks for
    table = next_token_table(logits_of(0.2, 0.4, 0.1, 0.3), top_k=2, top_p=0.5)
    assert table.in_top_k.tolist() == [True, True, False, False]
    assert table.in_top_p.tolist() == [True, False, False, False]


def test_what_each_filter_left_by_hand():
    # of 0.4, 0.3, 0.2 and 0.1 top-k keeps three (of 0.9); top-p the two that hold 0.7 of that, of 0.7; min-p both
    table = next_token_table(logits_of(0.2, 0.4, 0.1, 0.3), top_k=3, top_p=0.7, min_p=0.5)
    close(table.after_top_k, torch.tensor([4 / 9, 3 / 9, 2 / 9, 0]))
    close(table.after_top_p, torch.tensor([4 / 7, 3 / 7, 0, 0]))
    close(table.probs, table.after_top_p)


SETTINGS = [
    dict(),
    dict(temperature=0.7),
    dict(temperature=1.5, top_k=5),
    dict(top_k=10_000),
    dict(top_p=0.3),
    dict(top_p=0.9),
    dict(top_p=0.999),
    dict(min_p=0.05),
    dict(temperature=2.0, top_k=100, top_p=0.8, min_p=0.1),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_filters_are_those_of_transformers(settings):
    warpers = {
        "temperature": TemperatureLogitsWarper,
        "top_k": TopKLogitsWarper,
        "top_p": TopPLogitsWarper,
        "min_p": MinPLogitsWarper,
    }
    for _ in range(5):
        logits = 3 * torch.randn(500)
        scores = logits[None]
        for name, value in settings.items():
            scores = warpers[name](value)(None, scores)
        close(by_id(next_token_table(logits, **settings)), scores[0].softmax(-1), atol=1e-6, rtol=1e-4)


EXTREMES = [dict(temperature=t) for t in (0, 1e-300, 1e-45, 1e-6, 100, 1e300)]
EXTREMES += [dict(top_k=1), dict(top_p=0), dict(top_p=1), dict(min_p=0), dict(min_p=1)]
EXTREMES += [dict(temperature=1e-6, top_p=1, min_p=1), dict(temperature=100, top_k=1, top_p=0)]
LOGITS = {
    "random": 5 * torch.randn(300, generator=torch.Generator().manual_seed(1)),
    "equal": torch.zeros(300),
    "huge": 1e30 * torch.randn(300, generator=torch.Generator().manual_seed(2)),
    "certain": torch.arange(300) * 100.0,
    "one": torch.zeros(1),
    "excluded": torch.tensor([-torch.inf, 1.0, 2.0, -torch.inf]),
}


@pytest.mark.parametrize("settings", EXTREMES, ids=str)
@pytest.mark.parametrize("name", LOGITS)
def test_extreme_settings_give_a_distribution(settings, name):
    table = next_token_table(LOGITS[name], **settings)
    assert not table.probs.isnan().any()
    assert not table.scaled.isnan().any()
    assert float(table.probs.sum()) == pytest.approx(1, abs=1e-5)
    for draw in (0.0, 0.5, math.nextafter(1, 0)):
        assert float(table.probs[table.ids == table.ids[table.pick(draw)]]) >= 0
        assert bool(table.in_min_p[table.pick(draw)])


@pytest.mark.parametrize(
    "greedy", [dict(temperature=0), dict(temperature=1e-6), dict(temperature=1e-300), dict(top_k=1)]
)
@pytest.mark.parametrize("draw", [0.0, 0.3, 0.999999])
def test_greedy_settings_choose_the_most_likely_token(greedy, draw):
    table = next_token_table(LOGITS["random"], **greedy)
    assert table.ids[table.pick(draw)] == LOGITS["random"].argmax()
    assert table.probs[0] == 1


def test_greedy_with_several_best_tokens_chooses_the_first():
    table = next_token_table(torch.tensor([1.0, 3.0, 3.0, 3.0]), temperature=0)
    assert table.ids[table.pick(0.99)] == 1
    assert table.probs.tolist() == [1, 0, 0, 0]


def test_top_p_of_zero_keeps_the_most_likely_token():
    assert next_token_table(LOGITS["random"], top_p=0).in_top_p.sum() == 1


@pytest.mark.parametrize("top_p", [1, 1.0, None])
def test_top_p_of_one_keeps_the_whole_vocabulary_however_unlikely(top_p):
    for logits in (torch.zeros(50257), 8 * torch.randn(50257), torch.tensor([100.0, 0.0, -10.0])):
        assert bool(next_token_table(logits, top_p=top_p).in_top_p.all())


def test_the_nucleus_is_taken_over_the_whole_vocabulary():
    logits = torch.zeros(20_000)  # half of an even distribution is half of all tokens
    assert next_token_table(logits, top_p=0.5).in_top_p.sum() == pytest.approx(10_000, abs=2)


def test_a_high_temperature_evens_out_and_a_filter_still_holds():
    table = next_token_table(torch.tensor([3.0, 2.0, 1.0, 0.0]), temperature=1e6, top_k=2)
    close(table.probs, torch.tensor([0.5, 0.5, 0, 0]))


def test_the_table_shows_logits_before_and_after_temperature():
    table = next_token_table(torch.tensor([1.0, 3.0]), temperature=2)
    assert table.logits.tolist() == [3, 1]
    assert table.scaled.tolist() == [1.5, 0.5]


WRONG = [
    dict(temperature=-1),
    dict(temperature=float("nan")),
    dict(temperature=float("inf")),
    dict(top_k=0),
    dict(top_k=-3),
    dict(top_p=1.1),
    dict(top_p=-0.1),
    dict(top_p=float("nan")),
    dict(min_p=2),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_setting_out_of_range_is_refused_by_name_before_the_first_step(tiny_model, ids, wrong):
    name = next(iter(wrong))
    with pytest.raises(GptvizError, match=f"{name} = "):
        next_token_table(torch.zeros(5), **wrong)
    with pytest.raises(GptvizError, match=f"{name} = "):
        generate(tiny_model, ids, **wrong)


# Draws


def test_pick_divides_the_unit_interval_by_the_probabilities():
    table = next_token_table(logits_of(0.25, 0.5, 0.25))
    assert [int(table.ids[table.pick(draw)]) for draw in (0, 0.49, 0.51, 0.74, 0.76, 0.999)] == [1, 1, 0, 0, 2, 2]


def test_tokens_come_as_often_as_their_probabilities_say():
    probabilities, n = torch.tensor([0.1, 0.4, 0.2, 0.05, 0.25]), 2000
    logits = probabilities.log()
    tokens = torch.tensor([sample(logits, seed=seed, position=seed % 7).token for seed in range(n)])
    expected = n * probabilities
    chi_square = float(((tokens.bincount(minlength=5) - expected) ** 2 / expected).sum())
    assert chi_square < 18.47  # what chance exceeds once in a thousand times, with four degrees of freedom


def test_draws_at_successive_positions_are_uniform_and_unrelated():
    draws = torch.tensor([uniform(5, position) for position in range(4000)], dtype=torch.float64)
    counts = torch.histc(draws, 10, 0, 1)
    assert float(((counts - 400) ** 2 / 400).sum()) < 27.88  # once in a thousand, nine degrees of freedom
    assert abs(float(torch.corrcoef(torch.stack([draws[1:], draws[:-1]]))[0, 1])) < 0.05
    assert uniform(5, 3) == uniform(5, 3) != uniform(6, 3)


def test_a_step_tells_where_its_token_came_from(tiny_model, ids):
    first, second = generate(tiny_model, ids, 2, temperature=1.3, top_k=10, seed=4)
    assert (first.position, second.position, first.seed) == (10, 11, 4)
    assert first.logits.shape == first.probs.shape == (50,)
    close(first.logits, tiny_model(ids[None])[0, -1], atol=1e-5, rtol=1e-5)
    assert (first.probs > 0).sum() == 10
    assert float(first.probs.sum()) == pytest.approx(1, abs=1e-6)
    assert first.probs[first.token] > 0
    assert sample(first.logits, 1.3, 10, seed=4, position=10).token == first.token


# Generation


def tokens(*args, **settings) -> list[int]:
    return [step.token for step in generate(*args, **settings)]


def test_temperature_zero_is_the_arg_max_at_every_step(tiny_model, ids):
    for step in generate(tiny_model, ids, 12, temperature=0):
        assert step.token == int(step.logits.argmax())
        assert step.probs[step.token] == 1


def test_a_seed_gives_the_same_text_again_and_another_gives_another(tiny_model, ids):
    once = tokens(tiny_model, ids, 20, temperature=2.0, seed=1)
    assert tokens(tiny_model, ids, 20, temperature=2.0, seed=1) == once
    assert tokens(tiny_model, ids, 20, temperature=2.0, seed=2) != once


def test_the_padding_beyond_the_vocabulary_is_never_drawn(tiny_model, ids):
    steps = list(generate(tiny_model, ids, 40, temperature=9.0, seed=0, size=3))
    assert {step.token for step in steps} == {0, 1, 2}
    assert {len(step.probs) for step in steps} == {3}


def test_without_a_seed_one_is_drawn_and_told(tiny_model, ids):
    steps = list(generate(tiny_model, ids, 8, temperature=2.0))
    assert len({step.seed for step in steps}) == 1
    assert tokens(tiny_model, ids, 8, temperature=2.0, seed=steps[0].seed) == [step.token for step in steps]


def test_a_seed_does_not_depend_on_the_global_random_state(tiny_model, ids):
    state = torch.get_rng_state()
    once = tokens(tiny_model, ids, 5, temperature=2.0, seed=1)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(99)
    assert tokens(tiny_model, ids, 5, temperature=2.0, seed=1) == once


def test_twenty_tokens_are_ten_and_then_ten_more(tiny_model, ids):
    ten = tokens(tiny_model, ids, 10, seed=3)
    ten_more = tokens(tiny_model, torch.cat([ids, torch.tensor(ten)]), 10, seed=3)
    assert tokens(tiny_model, ids, 20, seed=3) == ten + ten_more


def full_forward_steps(model, ids, steps):
    """The logits a full forward gives before each of the steps, and those of the step."""
    for step in steps:
        yield step.logits, model(window(model.config, ids)[None])[0, -1]
        ids = torch.cat([ids, torch.tensor([step.token])])


@pytest.mark.parametrize("architecture", [dict(), dict(causal=False), dict(n_kv_head=2, qk_norm=True)], ids=str)
@pytest.mark.parametrize("bos", [None, 7])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_cache_gives_the_logits_of_a_full_forward_also_past_block_size(
    make_model, ids, encoding, bos, architecture
):
    model = make_model(pos_encoding=encoding, bos_token_id=bos, block_size=16, **architecture)
    steps = list(generate(model, ids, 12, temperature=1.5, seed=0))
    assert [step.position for step in steps] == list(range(10, 22))
    for cached, full in full_forward_steps(model, ids, steps):
        close(cached, full, atol=1e-4, rtol=1e-4)
    uncached = generate(model, ids, 12, temperature=1.5, seed=0, cache=False)
    for with_cache, without in zip(steps, uncached, strict=True):
        close(with_cache.logits, without.logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("length", [16, 17, 40])
def test_a_prompt_that_fills_block_size_or_more_goes_on(make_model, length):
    model = make_model(block_size=16)
    prompt = torch.randint(50, (length,))
    (step,) = generate(model, prompt, 1, seed=0)
    close(step.logits, model(prompt[None, -16:])[0, -1], atol=1e-5, rtol=1e-5)


def test_the_window_holds_the_latest_ids_and_the_models_bos_in_front(make_model):
    ids = torch.tensor([7, 1, 2, 3, 4, 5])
    plain, begun = make_model(block_size=4).config, make_model(block_size=4, bos_token_id=7).config
    assert window(plain, ids).tolist() == [2, 3, 4, 5]
    assert window(begun, ids).tolist() == [7, 3, 4, 5]
    assert window(begun, ids[1:]).tolist() == [2, 3, 4, 5]  # no bos was there
    assert window(begun, ids[:4]).tolist() == [7, 1, 2, 3]
    assert window(make_model(block_size=1, bos_token_id=7).config, ids).tolist() == [5]


class Count:
    """An edit that changes nothing and counts the positions of every forward pass."""

    def __init__(self):
        self.lengths = []

    def changes(self, config):
        return {"hook_embed": self.note}

    def note(self, embedded):
        self.lengths.append(embedded.shape[1])
        return embedded


def test_each_step_is_computed_only_when_asked_for(tiny_model, ids):
    count = Count()
    steps = generate(tiny_model, ids, 10**9, edits=[count])
    assert count.lengths == []
    next(steps)
    assert count.lengths == [10]
    next(steps)
    assert count.lengths == [10, 11]


@pytest.mark.parametrize(("causal", "expected"), [(True, [10, 1, 1]), (False, [10, 11, 12])])
def test_the_cache_saves_positions_where_there_is_a_mask_and_is_not_used_without(
    make_model, ids, monkeypatch, causal, expected
):
    lengths, forward = [], GPT.forward

    def note(self, ids, cache=None):
        lengths.append(ids.shape[1])
        return forward(self, ids, cache)

    monkeypatch.setattr(GPT, "forward", note)
    list(generate(make_model(causal=causal), ids, 3))
    assert lengths == expected


def test_generation_in_training_mode_is_without_dropout(make_model, ids):
    model = copy.deepcopy(make_model(dropout=0.5)).train()
    assert tokens(model, ids, 5, temperature=0) == tokens(make_model(dropout=0.5), ids, 5, temperature=0)
    assert model.training


@pytest.mark.parametrize("wrong", [[], [50], [-2], [1.5], [[1, 2]], 3])
def test_ids_that_cannot_be_continued_are_refused_before_the_first_step(tiny_model, wrong):
    with pytest.raises(GptvizError):
        generate(tiny_model, torch.tensor(wrong))


def test_no_tokens_asked_for_are_no_steps(tiny_model, ids):
    assert list(generate(tiny_model, ids, 0)) == []


def test_the_prompt_is_left_as_it_was(tiny_model, ids):
    before = ids.clone()
    all_steps = list(generate(tiny_model, ids, 5, seed=0))
    assert torch.equal(ids, before)
    assert all(later.position == earlier.position + 1 for earlier, later in pairwise(all_steps))
