"""Neurons, sparsity and what a neuron writes, against PyTorch, sums over all neurons, and numbers by hand."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from gptviz import trace
from gptviz.analysis import (
    activation_curve,
    activation_error,
    neurons,
    output_error,
    output_norms,
    sparsity,
    strongest,
    written_logits,
)

GATED = dict(gated_mlp=True, activation="silu", mlp_bias=False, norm="rmsnorm")


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("gelu", F.gelu),
        ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
        ("relu", F.relu),
        ("silu", F.silu),
    ],
)
def test_every_activation_by_its_definition(name, reference):
    x = np.concatenate([np.linspace(-12, 12, 501), [-1e3, 0, 1e3]])
    assert np.allclose(activation_curve(name, x), reference(torch.from_numpy(x)).numpy(), atol=1e-12)


def test_gelu_worked_by_hand():
    assert activation_curve("gelu", np.array([1.0]))[0] == pytest.approx(0.841345, abs=1e-6)  # Phi(1)
    assert activation_curve("gelu_tanh", np.array([1.0]))[0] == pytest.approx(0.841192, abs=1e-6)


@pytest.mark.parametrize("changes", [{}, {"activation": "relu"}, {"activation": "gelu_tanh"}, GATED])
def test_what_is_captured_is_what_the_formulas_say(make_model, ids, changes):
    model = make_model(**changes)
    run = trace(model, ids)
    for layer in range(2):
        found = neurons(run, layer)
        assert (found.linear is not None) is model.config.gated_mlp
        assert activation_error(found, model.config.activation) < 1e-5
        assert output_error(model, run, layer) < 1e-4


def test_the_branches_of_a_gated_layer_are_those_of_its_weights(make_model, ids):
    model = make_model(**GATED)
    run = trace(model, ids)
    found, x = neurons(run, 1), run["blocks.1.ln2.hook_normalized"]
    mlp = model.blocks[1].mlp
    assert np.allclose(found.pre, (x @ mlp.w_gate.weight.T).detach(), atol=1e-4)
    assert np.allclose(found.linear, (x @ mlp.w_in.weight.T).detach(), atol=1e-4)


def test_numbers_that_do_not_add_up_show_in_the_errors(tiny_model, ids):
    run = trace(tiny_model, ids)
    post = run["blocks.0.mlp.hook_post"].clone()
    post[2, 9] += 0.5
    broken = dataclasses.replace(run, activations={**run.activations, "blocks.0.mlp.hook_post": post})
    assert activation_error(neurons(broken, 0), "gelu") == pytest.approx(0.5, abs=1e-5)
    column = tiny_model.blocks[0].mlp.w_out.weight[:, 9].detach().abs().max()
    assert output_error(tiny_model, broken, 0) == pytest.approx(0.5 * float(column), abs=1e-5)
    assert output_error(tiny_model, broken, 0, 2) == pytest.approx(0.5 * float(column), abs=1e-5)
    assert output_error(tiny_model, broken, 0, 3) < 1e-5


def test_the_strongest_come_first_at_a_token_or_anywhere():
    post = np.array([[0.1, -3.0, 0.0, 2.0], [0.0, 0.5, -4.0, 1.0]])
    assert strongest(post).tolist() == [2, 1, 3, 0]
    assert strongest(post, 0).tolist() == [1, 3, 0, 2]


def test_sparsity_worked_by_hand(make_model):
    model = make_model(n_layer=1, n_head=1, n_embd=1)
    run = trace(model, torch.tensor([3, 4]))
    # Squares: 100, 4, 0, 0 of 104: one neuron holds 90%. And 1, 1, 1, 1 of 4: it takes all four.
    post = torch.tensor([[10.0, -2.0, 0.0, 0.0], [-1.0, 1.0, -1.0, 1.0]])
    run = dataclasses.replace(run, activations={**run.activations, "blocks.0.mlp.hook_post": post})
    found = sparsity(run)
    assert found.positive.tolist() == [3 / 8]
    assert found.near_zero.tolist() == [2 / 8]
    assert found.carriers.tolist() == [(1 / 4 + 4 / 4) / 2]


def test_a_silent_layer_has_no_carriers(make_model):
    run = trace(make_model(n_layer=1), torch.tensor([3]))
    silent = dataclasses.replace(run, activations={**run.activations, "blocks.0.mlp.hook_post": torch.zeros(1, 128)})
    found = sparsity(silent)
    assert (found.positive[0], found.near_zero[0], found.carriers[0]) == (0, 1, 0)


@pytest.mark.parametrize("changes", [{}, {"norm": "rmsnorm"}, {"tie_weights": False, "unembed_bias": True}, GATED])
def test_what_all_neurons_write_is_what_the_layer_does_to_the_logits(make_model, ids, changes):
    """With the final norm's scale held, the last layer's neurons times their activations move the logits so."""
    model = make_model(**{"mlp_bias": False, **changes})
    run = trace(model, ids)
    position = 4
    scale = float(run["ln_final.hook_scale"][position, 0])
    written = written_logits(model, 1, range(model.config.d_mlp), scale)
    moved = run["blocks.1.mlp.hook_post"][position].numpy() @ written

    def logits(stream):
        centred = stream - stream.mean() if model.config.norm == "layernorm" else stream
        return model.unembed.weight @ (centred / scale * model.ln_final.weight)

    after, before = run["blocks.1.hook_resid_post"][position], run["blocks.1.hook_resid_mid"][position]
    expected = logits(after) - logits(before)
    assert np.allclose(moved, expected - expected.mean(), atol=1e-4)


def test_what_is_written_has_no_shift_and_only_tokens(tiny_model):
    written = written_logits(tiny_model, 0, [5, 77], 2.0, size=40)
    assert written.shape == (2, 40)
    assert np.abs(written.mean(1)).max() < 1e-6
    assert np.allclose(2 * written, written_logits(tiny_model, 0, [5, 77], 1.0, size=40), atol=1e-6)


def test_output_norms_are_lengths_of_the_output_weights(tiny_model):
    weights = tiny_model.blocks[1].mlp.w_out.weight.detach().numpy()
    assert np.allclose(output_norms(tiny_model, 1), [np.linalg.norm(weights[:, n]) for n in range(128)], atol=1e-6)
