"""Embeddings, positions, neighbours and the map, against numpy's own answers and numbers worked out by hand."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from gptviz import trace, variant
from gptviz.analysis import (
    added_positions,
    alibi_lines,
    cosines,
    embedding_against_unembedding,
    embedding_sum,
    nearest_tokens,
    rotary_similarity,
    rotary_table,
    rotary_turn,
    vocabulary_map,
)


def test_what_enters_block_0_is_the_row_of_the_token_plus_that_of_the_position(tiny_model, ids):
    total = embedding_sum(tiny_model, trace(tiny_model, ids))
    rows, table = (weights.detach().numpy() for weights in (tiny_model.embed.weight, tiny_model.pos_embed.weight))
    for at, token in enumerate(ids.tolist()):
        assert np.allclose(total.token[at], rows[token])
        assert np.allclose(total.position[at], table[at])
        assert np.allclose(total.total[at], rows[token] + table[at], atol=1e-6)
    assert total.error < 1e-6


@pytest.mark.parametrize("encoding", ["rotary", "alibi", "none"])
def test_without_added_positions_the_tokens_enter_alone(tiny_model, ids, encoding):
    model = variant(tiny_model, pos_encoding=encoding)
    total = embedding_sum(model, trace(model, ids))
    assert total.position is None
    assert (total.token == total.total).all()
    assert total.error == 0


def test_the_scale_of_positions_is_applied(tiny_model, ids):
    model = variant(tiny_model, pos_scale=3.0)
    total = embedding_sum(model, trace(model, ids))
    assert np.allclose(total.position, 3 * tiny_model.pos_embed.weight[: len(ids)].detach().numpy())
    assert total.error < 1e-6


@pytest.mark.parametrize("hook", ["hook_embed", "hook_pos_embed", "blocks.0.hook_resid_pre"])
def test_a_sum_that_does_not_hold_shows_in_the_error(tiny_model, ids, hook):
    run = trace(tiny_model, ids)
    wrong = run[hook].clone()
    wrong[3, 5] += 0.25
    broken = dataclasses.replace(run, activations={**run.activations, hook: wrong})
    assert embedding_sum(tiny_model, broken).error == pytest.approx(0.25, abs=1e-5)


def test_added_positions_are_the_papers_waves(tiny_model):
    table = added_positions(variant(tiny_model, pos_encoding="sinusoidal"), 20)
    assert table.shape == (20, 32)
    assert table[3, 0] == pytest.approx(math.sin(3), abs=1e-6)
    assert table[3, 1] == pytest.approx(math.cos(3), abs=1e-6)
    assert table[7, 30] == pytest.approx(math.sin(7 / 10000 ** (30 / 32)), abs=1e-6)


def test_cosines_worked_by_hand():
    alike = cosines(np.array([[3.0, 4.0], [4.0, 3.0], [0.0, 0.0], [-6.0, -8.0]]))
    assert np.allclose(alike[0], [1, 24 / 25, 0, -1])
    assert np.allclose(alike, alike.T)


def test_the_rotation_is_a_complex_product(make_model, ids):
    model = make_model(pos_encoding="rotary")
    run = trace(model, ids)
    q = run["blocks.1.attn.hook_q"][6, 2].double().numpy()
    for pair in range(4):
        turn = rotary_turn(run, 1, 2, 6, pair, "q")
        turned = complex(q[pair], q[pair + 4]) * np.exp(1j * 6 * 10000 ** (-2 * pair / 8))
        assert turn.before.tolist() == [q[pair], q[pair + 4]]
        assert np.allclose(turn.after, [turned.real, turned.imag], atol=1e-5)
        assert turn.angle == pytest.approx(6 * 10000 ** (-2 * pair / 8), rel=1e-5)
        assert turn.error < 1e-5


def test_a_rotation_by_another_angle_shows_in_the_error(make_model, ids):
    run = trace(make_model(pos_encoding="rotary"), ids)
    hook = "blocks.0.attn.hook_rot_k"
    broken = dataclasses.replace(run, activations={**run.activations, hook: run[hook] + 0.5})
    assert rotary_turn(broken, 0, 0, 2, 1, "k").error == pytest.approx(0.5, abs=1e-4)


def test_the_first_position_is_not_turned_and_one_token_is_enough(make_model):
    turn = rotary_turn(trace(make_model(pos_encoding="rotary"), torch.tensor([4])), 0, 3, 0, 0, "k")
    assert turn.angle == 0
    assert np.allclose(turn.before, turn.after)


def test_a_query_head_turns_with_the_key_of_its_group(make_model, ids):
    run = trace(make_model(pos_encoding="rotary", n_kv_head=2, d_rotary=4), ids)
    key = run["blocks.0.attn.hook_k"]
    assert key.shape[1] == 2
    turn = rotary_turn(run, 0, 3, 5, 1, "k")
    assert np.allclose(turn.before, key[5, 1, [1, 3]])
    assert turn.error < 1e-5


def test_rotation_keeps_what_depends_on_the_distance_alone(make_model):
    """Turning a query by i and a key by j leaves a product that only i - j decides."""
    config = make_model(pos_encoding="rotary").config
    alike = rotary_similarity(config, 12)
    assert np.allclose(np.diag(alike), 1)
    for distance in range(12):
        assert np.ptp(np.diag(alike, distance)) < 1e-5
    angles = [5 * 10000 ** (-2 * pair / 8) for pair in range(4)]
    assert alike[7, 2] == pytest.approx(np.mean(np.cos(angles)), abs=1e-5)
    assert rotary_table(config, 6)[5] == pytest.approx(angles, rel=1e-5)


def test_alibi_lines_have_the_papers_slopes(make_model):
    config = make_model(n_head=8, n_embd=32, pos_encoding="alibi").config
    slopes, bias = alibi_lines(config, 5)
    assert slopes.tolist() == [2.0**-h for h in range(1, 9)]
    assert bias.shape == (8, 5)
    assert bias[0].tolist() == [0, -0.5, -1, -1.5, -2]
    assert bias[7, 4] == -4 / 256


def test_neighbours_are_the_largest_cosines_of_all(tiny_model):
    rows = tiny_model.embed.weight.detach().numpy().astype(np.float64)
    near = nearest_tokens(tiny_model, 7, count=6)
    against = [(row @ rows[7]) / (np.linalg.norm(row) * np.linalg.norm(rows[7])) for row in rows]
    expected = [at for at in np.argsort(against)[::-1] if at != 7][:6]
    assert near.ids.tolist() == expected
    assert np.allclose(near.cosine, [against[at] for at in expected], atol=1e-6)
    assert np.allclose(near.norms, np.linalg.norm(rows[expected], axis=1), atol=1e-6)
    assert near.own_norm == pytest.approx(np.linalg.norm(rows[7]), abs=1e-6)
    assert near.own_cosine == pytest.approx(1, abs=1e-6)


def test_rows_that_are_no_tokens_are_no_neighbours(tiny_model):
    near = nearest_tokens(tiny_model, 7, count=100, size=9)
    assert sorted(near.ids.tolist()) == [0, 1, 2, 3, 4, 5, 6, 8]
    assert not len(nearest_tokens(tiny_model, 0, size=1).ids)


def test_a_vector_of_zeros_is_like_nothing(make_model):
    model = variant(make_model(tie_weights=False))
    model.embed.weight = torch.nn.Parameter(model.embed.weight.detach().clone())
    model.embed.weight.data[3] = 0
    assert nearest_tokens(model, 3).own_cosine == 0
    assert not np.isnan(nearest_tokens(model, 3).cosine).any()
    assert 3 not in nearest_tokens(model, 5, count=3).ids


def test_the_map_is_the_singular_value_decomposition(tiny_model):
    found = vocabulary_map(tiny_model)
    rows = tiny_model.embed.weight.detach().double().numpy()
    left, lengths, axes = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    assert np.allclose(found.shares, (lengths**2 / (lengths**2).sum())[:3])
    assert np.allclose(np.abs(found.axes.T @ axes[:3].T), np.eye(3), atol=1e-6)
    assert np.allclose(np.abs(found.points), np.abs(left[:, :3] * lengths[:3]), atol=1e-5)
    assert np.allclose(found.place(rows[[4, 9]]), found.points[[4, 9]], atol=1e-5)
    assert found.ids.tolist() == list(range(50))


def test_the_map_is_the_same_every_time(tiny_model):
    first, second = vocabulary_map(tiny_model), vocabulary_map(tiny_model)
    assert (first.points == second.points).all()
    assert (np.take_along_axis(first.axes, np.abs(first.axes).argmax(0)[None], 0) > 0).all()


@pytest.mark.parametrize(
    "changes", [{"vocab_size": 1}, {"vocab_size": 2}, {"n_embd": 2, "n_head": 1}, {"n_embd": 1, "n_head": 1}]
)
def test_the_map_of_next_to_nothing_is_still_a_map(make_model, changes):
    model = make_model(**changes)
    found = vocabulary_map(model)
    assert found.points.shape == (model.config.vocab_size, 3)
    assert np.isfinite(found.points).all()
    assert found.shares.sum() == pytest.approx(1) or model.config.vocab_size == 1


def test_a_large_vocabulary_is_thinned_evenly(make_model):
    found = vocabulary_map(make_model(vocab_size=9000, n_embd=8, n_head=2))
    assert found.fitted == 4096
    assert len(found.ids) == 2000 == len(found.points)
    assert found.ids[[0, -1]].tolist() == [0, 8999]
    assert set(np.diff(found.ids)) <= {4, 5}


def test_tied_rows_are_the_same_and_untied_ones_are_not(make_model, tiny_model):
    assert embedding_against_unembedding(tiny_model, 3) == pytest.approx(1, abs=1e-6)
    model = make_model(tie_weights=False)
    a, b = model.embed.weight[3].detach().numpy(), model.unembed.weight[3].detach().numpy()
    expected = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
    assert embedding_against_unembedding(model, 3) == pytest.approx(expected, abs=1e-6)
