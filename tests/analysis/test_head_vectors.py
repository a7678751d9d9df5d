"""A head's vectors against the equations, worked from the weights."""

import numpy as np
import pytest
import torch

from gptviz import trace
from gptviz.analysis import (
    attention_stages,
    contribution,
    head_vectors,
    projection_error,
    value_weighted,
)


@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
def test_the_vectors_are_the_streams_rows_times_the_heads_weights(make_model, ids, n_kv_head):
    model = make_model(n_kv_head=n_kv_head)
    run = trace(model, ids)
    config, head = run.config, 3
    x = run["blocks.1.ln1.hook_normalized"].numpy()
    weight, bias = (p.detach().numpy() for p in (model.blocks[1].attn.qkv.weight, model.blocks[1].attn.qkv.bias))
    width, size = config.n_head * config.d_head, config.d_head
    shared = head // (config.n_head // n_kv_head)
    starts = {"q": head * size, "k": width + shared * size, "v": width + (n_kv_head + shared) * size}
    vectors = head_vectors(run, 1, head)
    for name, start in starts.items():
        rows = x @ weight[start : start + size].T + bias[start : start + size]
        np.testing.assert_allclose(getattr(vectors, name), rows, atol=1e-5)
    assert projection_error(model, run, 1, head) < 1e-5


def test_a_vector_that_is_not_the_weights_work_is_seen(make_model, ids):
    model = make_model()
    run = trace(model, ids)
    run["blocks.0.attn.hook_v"][2, 1, 0] += 1
    assert projection_error(model, run, 0, 1) == pytest.approx(1, abs=1e-3)
    assert projection_error(model, run, 0, 0) < 1e-5


def test_only_rotary_turns_queries_and_keys_and_keeps_their_length(make_model, ids):
    plain = head_vectors(trace(make_model(), ids), 0, 1)
    assert plain.turned_q is None
    assert plain.turned_k is None
    turned = head_vectors(trace(make_model(pos_encoding="rotary"), ids), 0, 1)
    assert turned.turned_q is not None
    np.testing.assert_allclose(turned.turned_q[0], turned.q[0], atol=1e-6)  # position 0 is not turned
    assert np.abs(turned.turned_q[5] - turned.q[5]).max() > 1e-3
    lengths = (np.linalg.norm(rows, axis=1) for rows in (turned.q, turned.turned_q))
    np.testing.assert_allclose(*lengths, rtol=1e-5)


@pytest.mark.parametrize("encoding", ["learned", "rotary"])
def test_the_dotted_vectors_give_the_scores(make_model, ids, encoding):
    run = trace(make_model(pos_encoding=encoding), ids)
    asks, answers = head_vectors(run, 1, 2).dotted
    np.testing.assert_allclose(asks @ answers.T, attention_stages(run, 1, 2).raw, rtol=1e-4, atol=1e-5)


def test_a_weight_on_a_value_of_no_length_moves_nothing():
    pattern = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.5, 0.25, 0.25]])
    values = np.array([[0, 0], [3, 4], [0, 10]])  # lengths 0, 5 and 10
    expected = [[0, 0, 0], [0, 1, 0], [0, 1 / 3, 2 / 3]]
    np.testing.assert_allclose(value_weighted(pattern, values), expected, atol=1e-6)


def test_values_of_equal_length_leave_the_weights_as_they_are():
    pattern = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    np.testing.assert_allclose(value_weighted(pattern, np.eye(4)), pattern, atol=1e-6)


def test_the_contributions_of_a_row_are_its_mix(make_model, ids):
    run = trace(make_model(n_kv_head=2), ids)
    parts = [contribution(run, 1, 3, 6, key) for key in range(len(ids))]
    assert sum(part.share for part in parts) == pytest.approx(1, abs=1e-5)
    value = run["blocks.1.attn.hook_v"][4, 1].numpy()  # two heads share a value
    assert parts[4].length == pytest.approx(float(np.linalg.norm(value)), rel=1e-5)
    assert parts[4].added == pytest.approx(float(run.pattern(1, 3)[6, 4]) * parts[4].length, rel=1e-5)
    assert parts[9].added == 0  # the future
    assert max(part.error for part in parts) < 1e-5


def test_a_mix_that_is_not_the_rows_sum_is_seen(make_model, ids):
    run = trace(make_model(), ids)
    run["blocks.0.attn.hook_z"][6, 2] += torch.ones(run.config.d_head)
    assert contribution(run, 0, 2, 6, 1).error > 0.9
