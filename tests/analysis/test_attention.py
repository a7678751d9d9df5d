"""Head scores on patterns whose scores are known, and the stages of a head against what was captured."""

import dataclasses
import math
import tracemalloc
from typing import get_args

import numpy as np
import pytest
import torch

from gptviz import GPTConfig, GptvizError, Trace, trace
from gptviz.analysis import (
    HEAD_SCORES,
    attention_stages,
    head_kind,
    head_output,
    head_scores,
    repeated_random_ids,
    without_first,
)
from gptviz.config import PosEncoding
from tests.memory_meter import AllocatedBytes


def run_of(ids: list[int], *heads: np.ndarray) -> Trace:
    """A trace of one layer that holds the patterns of its heads and nothing else."""
    config = GPTConfig(vocab_size=20, block_size=16, n_layer=1, n_head=len(heads), n_embd=4 * len(heads))
    patterns = torch.from_numpy(np.stack(heads).astype(np.float32))
    return Trace(torch.tensor(ids), config, torch.zeros(len(ids), 20), {"blocks.0.attn.hook_pattern": patterns})


def looking_at(*keys: int) -> np.ndarray:
    """A head that puts everything on one key a query."""
    return np.eye(len(keys))[list(keys)]


def uniform(size: int) -> np.ndarray:
    """A causal head that looks at all it can see evenly."""
    return np.tril(np.ones((size, size))) / np.arange(1, size + 1)[:, None]


def scores_of(ids: list[int], head: np.ndarray) -> dict[str, float]:
    return {name: float(score[0, 0]) for name, score in head_scores(run_of(ids, head)).items()}


def test_there_is_an_array_of_layers_by_heads_for_every_score(tiny_model, ids):
    scores = head_scores(trace(tiny_model, ids))
    assert scores.keys() == HEAD_SCORES.keys()
    assert {score.shape for score in scores.values()} == {(2, 4)}
    assert all(bool(((score >= 0) & (score <= 1)).all()) for name, score in scores.items() if name != "entropy")


def test_a_head_that_looks_one_back_is_a_previous_token_head():
    scores = scores_of([1, 2, 3, 4], looking_at(0, 0, 1, 2))
    assert scores["previous_token"] == 1
    assert scores["first_token"] == pytest.approx(1 / 3)  # of three queries, one has the first token just before it
    assert scores["self"] == 0
    assert scores["entropy"] == 0


def test_a_head_that_looks_at_the_beginning_is_a_first_token_head():
    scores = scores_of([1, 2, 3, 4], looking_at(0, 0, 0, 0))
    assert (scores["first_token"], scores["self"]) == (1, 0)


def test_a_head_that_looks_at_itself_is_a_self_head():
    scores = scores_of([1, 2, 3, 4], looking_at(0, 1, 2, 3))
    assert (scores["self"], scores["first_token"], scores["previous_token"]) == (1, 0, 0)


def test_a_head_that_looks_at_what_came_next_last_time_is_an_induction_head():
    scores = scores_of([5, 6, 7, 5, 6, 7], looking_at(0, 0, 0, 1, 2, 3))
    assert (scores["induction"], scores["duplicate_token"]) == (1, 0)


def test_a_head_that_looks_at_the_same_token_earlier_is_a_duplicate_token_head():
    scores = scores_of([5, 6, 7, 5, 6, 7], looking_at(0, 0, 0, 0, 1, 2))
    assert (scores["duplicate_token"], scores["induction"]) == (1, 0)


def test_only_the_tokens_that_have_an_earlier_one_count_for_induction():
    # the second 5 is the only repeated token, and half of its attention is on the 6 that followed the first
    pattern = looking_at(0, 0, 0, 0)
    pattern[3] = [0, 0.5, 0.5, 0]
    assert scores_of([5, 6, 7, 5], pattern)["induction"] == 0.5


def test_a_uniform_causal_head_by_hand():
    scores = scores_of([1, 2, 3, 4], uniform(4))
    assert scores["entropy"] == pytest.approx((0 + math.log(2) + math.log(3) + math.log(4)) / 4)
    mean_share = (1 / 2 + 1 / 3 + 1 / 4) / 3
    for name in ("previous_token", "first_token", "self"):
        assert scores[name] == pytest.approx(mean_share)


def test_a_token_three_times_over_by_hand():
    # the second sees one equal token of two, the third two of three; what followed an earlier one and lies behind
    # the query exists for the third alone: the second
    scores = scores_of([9, 9, 9], uniform(3))
    assert scores["duplicate_token"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert scores["induction"] == pytest.approx(1 / 3)
    assert scores["previous_token"] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_scores_belong_to_their_heads():
    scores = head_scores(run_of([1, 2, 3, 4], looking_at(0, 0, 1, 2), looking_at(0, 1, 2, 3)))
    assert scores["previous_token"].tolist() == [[1, 0]]
    assert scores["self"].tolist() == [[0, 1]]


def test_what_a_prompt_cannot_show_is_not_a_number():
    distinct = scores_of([1, 2, 3], uniform(3))
    assert {name for name, score in distinct.items() if math.isnan(score)} == {"induction", "duplicate_token"}
    one = scores_of([1], uniform(1))
    assert {name for name, score in one.items() if not math.isnan(score)} == {"entropy"}
    assert one["entropy"] == 0


@pytest.mark.parametrize("bos", [None, 0, 3])
def test_repeated_random_ids_are_distinct_ids_twice_after_the_bos(bos):
    config = GPTConfig(vocab_size=60, block_size=41, n_layer=1, n_head=1, n_embd=4, bos_token_id=bos)
    ids = repeated_random_ids(config)
    front, rest = (ids[:0], ids) if bos is None else (ids[:1], ids[1:])
    assert front.tolist() == ([] if bos is None else [bos])
    assert torch.equal(rest[:20], rest[20:])
    assert len(set(rest.tolist())) == 20
    assert bos not in rest.tolist()
    assert len(ids) <= config.block_size
    assert ids.dtype == torch.int64
    assert torch.equal(ids, repeated_random_ids(config))
    assert not torch.equal(ids, repeated_random_ids(config, seed=1))
    assert len(repeated_random_ids(config, length=5)) == 10 + len(front)


def test_repeated_random_ids_fit_a_vocabulary_smaller_than_the_context():
    config = GPTConfig(vocab_size=6, block_size=100, n_layer=1, n_head=1, n_embd=4, bos_token_id=5)
    assert sorted(repeated_random_ids(config)[1:].tolist()) == sorted([0, 1, 2, 3, 4] * 2)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
@pytest.mark.parametrize("encoding", get_args(PosEncoding))
def test_the_stages_of_a_head_lead_to_the_captured_scores(make_model, ids, encoding, n_kv_head, causal):
    run = trace(make_model(pos_encoding=encoding, n_kv_head=n_kv_head, causal=causal), ids)
    future = np.triu(np.ones((10, 10), dtype=bool), 1) & causal
    for layer in range(2):
        for head in range(4):
            stages = attention_stages(run, layer, head)
            captured = run[f"blocks.{layer}.attn.hook_attn_scores"][head].numpy()
            np.testing.assert_allclose(stages.scaled, stages.raw / math.sqrt(8), rtol=1e-5)
            np.testing.assert_allclose(np.where(future, -np.inf, stages.biased), captured, rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(stages.masked, captured)
            np.testing.assert_array_equal(stages.pattern, run.pattern(layer, head))
            exponents = np.exp(stages.masked - stages.masked.max(1, keepdims=True))
            np.testing.assert_allclose(stages.pattern, exponents / exponents.sum(1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("encoding", get_args(PosEncoding))
def test_scores_that_were_not_kept_are_made_from_q_and_k(make_model, ids, encoding, causal):
    run = trace(make_model(pos_encoding=encoding, causal=causal), ids)
    names = [name for name in run.activations if not name.endswith("hook_attn_scores")]
    without = dataclasses.replace(run, activations={name: run[name] for name in names})
    for head in range(4):
        expected, stages = attention_stages(run, 1, head), attention_stages(without, 1, head)
        np.testing.assert_allclose(stages.masked, expected.masked, rtol=1e-4, atol=1e-5)
        assert stages.masked.dtype == np.float32


def test_a_pattern_that_is_no_softmax_of_its_scores_is_said(tiny_model, ids):
    run = trace(tiny_model, ids)
    swapped = {name: value for name, value in run.activations.items() if not name.endswith("hook_attn_scores")}
    swapped["blocks.0.attn.hook_pattern"] = swapped["blocks.0.attn.hook_pattern"].flip(0)  # as an edit might
    with pytest.raises(GptvizError, match=r"layer 0, head 1 .*hook_attn_scores"):
        attention_stages(dataclasses.replace(run, activations=swapped), 0, 1)


def big_run(layers: int = 4, heads: int = 4, size: int = 256) -> Trace:
    """Random causal patterns, repeated tokens, and nothing else."""
    config = GPTConfig(vocab_size=20, block_size=size, n_layer=layers, n_head=heads, n_embd=4 * heads)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(layers, heads, size, size, generator=generator)
    patterns = (3 * scores).masked_fill(torch.ones(size, size).triu(1).bool(), -torch.inf).softmax(-1)
    kept = {f"blocks.{layer}.attn.hook_pattern": patterns[layer].clone() for layer in range(layers)}
    return Trace(torch.randint(20, (size,), generator=generator), config, torch.zeros(size, 20), kept)


def test_scores_of_long_prompts_are_the_sums_in_float64():
    run = big_run()
    scores, ids = head_scores(run), run.ids.numpy()
    pattern = run["blocks.3.attn.hook_pattern"][2].double().numpy()
    positive = pattern[pattern > 0]
    assert scores["entropy"][3, 2] == pytest.approx(-(positive * np.log(positive)).sum() / 256, rel=1e-5)
    assert scores["previous_token"][3, 2] == pytest.approx(np.diagonal(pattern, -1).mean(), rel=1e-5)
    rows = [(query, np.flatnonzero(ids[:query] == ids[query])) for query in range(256)]
    duplicate = [pattern[query, keys].sum() for query, keys in rows if len(keys)]
    assert scores["duplicate_token"][3, 2] == pytest.approx(np.mean(duplicate), rel=1e-5)
    after = [(query, keys[keys + 1 < query] + 1) for query, keys in rows]
    induction = [pattern[query, keys].sum() for query, keys in after if len(keys)]
    assert scores["induction"][3, 2] == pytest.approx(np.mean(induction), rel=1e-5)


def test_scores_take_less_room_than_two_layers_patterns():
    run = big_run(layers=8, heads=8)
    head_scores(run)
    tracemalloc.start()
    head_scores(run)
    numpys = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with AllocatedBytes() as torchs:
        head_scores(run)
    assert torchs.peak + numpys < 2 * run["blocks.0.attn.hook_pattern"].nbytes  # 16 layers' before, and more


def test_only_alibi_has_a_bias_and_it_is_the_distance_times_the_slope(make_model, ids):
    assert attention_stages(trace(make_model(), ids), 0, 0).bias is None
    bias = attention_stages(trace(make_model(pos_encoding="alibi"), ids), 1, 2).bias
    at = np.arange(10)
    np.testing.assert_array_equal(bias, -np.abs(at[:, None] - at) / 64)  # four heads: 1/4, 1/16, 1/64, 1/256


@pytest.mark.parametrize("changes", [{}, {"n_kv_head": 2}, {"n_kv_head": 1, "out_bias": False}, {"d_head": 6}])
def test_the_outputs_of_all_heads_make_up_what_attention_writes(make_model, ids, changes):
    model = make_model(**changes)
    run = trace(model, ids)
    outputs = [head_output(model, run, 1, head) for head in range(4)]
    for head, output in enumerate(outputs):
        # a head on its own, by silencing the others in front of W_O
        alone = torch.zeros_like(run["blocks.1.attn.hook_z"])
        alone[:, head] = run["blocks.1.attn.hook_z"][:, head]
        linear = model.blocks[1].attn.out
        written = torch.nn.functional.linear(alone.flatten(1), linear.weight).detach().numpy()
        np.testing.assert_allclose(output.written, written, atol=1e-5)
        np.testing.assert_allclose(output.mix, run["blocks.1.attn.hook_z"][:, head].numpy(), atol=1e-5)
        assert max(output.mix_error, output.sum_error) < 1e-5
    bias = 0 if model.blocks[1].attn.out.bias is None else model.blocks[1].attn.out.bias.detach().numpy()
    total = sum(output.written for output in outputs) + bias
    np.testing.assert_allclose(total, run["blocks.1.hook_attn_out"].numpy(), atol=1e-5)


def test_an_output_that_does_not_add_up_is_seen(make_model, ids):
    model = make_model()
    run = trace(model, ids)
    run["blocks.0.attn.hook_z"][3, 1, 2] += 1
    assert head_output(model, run, 0, 1).mix_error > 0.9


def test_without_the_first_token_each_rows_rest_sums_to_one():
    rest = without_first(np.array([[1, 0, 0], [0.5, 0.5, 0], [0.6, 0.3, 0.1]], dtype=np.float32))
    np.testing.assert_allclose(rest, [[np.nan] * 3, [np.nan, 1, 0], [np.nan, 0.75, 0.25]], rtol=1e-6)


def test_a_head_is_called_after_what_it_does_but_not_after_the_first_token():
    def kind(ids: list[int], head: np.ndarray) -> str:
        return head_kind(head_scores(run_of(ids, head)), 0, 0)

    eight = [5, 6, 7, 8, 9, 10, 11, 12]
    assert kind(eight, looking_at(*[0] * 8)) == ""
    assert kind(eight, uniform(8)) == ""
    assert kind(eight, looking_at(0, 0, 1, 2, 3, 4, 5, 6)).startswith("previous")
    assert kind(eight, looking_at(*range(8))).startswith("self")
    assert kind([5, 6, 7, 5, 6, 7], looking_at(0, 0, 0, 1, 2, 3)).startswith("induction")
    assert kind([5, 6, 7, 5, 6, 7], looking_at(0, 0, 0, 0, 1, 2)).startswith("duplicate")
