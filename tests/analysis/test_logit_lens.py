"""The lens against Transformers' hidden states and against numpy, on every kind of architecture."""

import sys

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import gptviz
from gptviz import trace, variant
from gptviz.analysis import lens_logits, lens_summary, logit_lens

module = sys.modules["gptviz.analysis.logit_lens"]  # of the package, the function has the name

KINDS = {
    "learned": dict(),
    "rmsnorm, gated, rotary, grouped": dict(
        norm="rmsnorm", gated_mlp=True, activation="silu", pos_encoding="rotary", n_kv_head=2
    ),
    "parallel, untied": dict(parallel_residual=True, tie_weights=False, unembed_bias=True),
    "alibi, one head": dict(pos_encoding="alibi", n_head=1, norm_bias=False),
    "scaled sinusoid": dict(pos_encoding="sinusoidal", pos_scale=0.5),
    "no positions, one layer": dict(pos_encoding="none", n_layer=1),
}
kinds = pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS.keys())


@kinds
def test_the_last_layer_is_the_model(make_model, ids, changes):
    model = make_model(**changes)
    run = trace(model, ids)
    lens = logit_lens(model, run)
    assert lens.shape == (model.config.n_layer + 1, len(ids), 50)
    np.testing.assert_allclose(lens[-1], run.logits.numpy(), atol=1e-4)
    assert lens_summary(model, run).error < 1e-4


def test_every_layer_is_the_final_norm_and_the_head_of_transformers_hidden_states(tmp_path):
    sizes = dict(vocab_size=60, n_positions=32, n_layer=3, n_head=4, n_embd=32, initializer_range=0.2)
    theirs = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).eval().requires_grad_(False)
    theirs.save_pretrained(tmp_path)
    ids = torch.randint(60, (9,))
    ours = gptviz.load(tmp_path).model
    hidden = theirs(ids[None], output_hidden_states=True).hidden_states  # the last one has had its norm
    expected = [theirs.lm_head(theirs.transformer.ln_f(stream))[0] for stream in hidden[:-1]]
    lens = logit_lens(ours, trace(ours, ids))
    np.testing.assert_allclose(lens[:-1], torch.stack(expected).numpy(), atol=1e-4)
    np.testing.assert_allclose(lens[-1], theirs(ids[None]).logits[0].numpy(), atol=1e-4)


def test_statistics_are_taken_anew_from_each_layer(tiny_model, ids):
    run = trace(tiny_model, ids)
    stream = run["blocks.0.hook_resid_pre"].double().numpy()
    norm, head = tiny_model.ln_final, tiny_model.unembed.weight.double().numpy()
    standard = (stream - stream.mean(-1, keepdims=True)) / np.sqrt(stream.var(-1, keepdims=True) + 1e-5)
    expected = (standard * norm.weight.double().numpy() + norm.bias.double().numpy()) @ head.T
    np.testing.assert_allclose(logit_lens(tiny_model, run)[0], expected, atol=1e-4)


def test_a_variants_run_is_read_with_its_own_configuration(tiny_model, ids):
    other = variant(tiny_model, norm_eps=0.5)
    run = trace(other, ids)
    np.testing.assert_allclose(logit_lens(tiny_model, run)[-1], run.logits.numpy(), atol=1e-4)


@kinds
def test_the_summary_is_the_lens_in_five_numbers(make_model, ids, changes):
    model = make_model(**changes)
    run = trace(model, ids)
    lens, summary = logit_lens(model, run).astype(np.float64), lens_summary(model, run)
    probs = np.exp(lens - lens.max(-1, keepdims=True))
    probs /= probs.sum(-1, keepdims=True)
    final, best = probs[-1], probs[-1].argmax(-1)
    for layer, here in enumerate(probs):
        assert summary.token[layer].tolist() == here.argmax(-1).tolist()
        np.testing.assert_allclose(summary.probability[layer], here.max(-1), rtol=1e-3)
        np.testing.assert_allclose(summary.entropy[layer], -(here * np.log(here)).sum(-1), rtol=1e-3, atol=1e-5)
        kl = (final * np.log(final / here)).sum(-1)
        np.testing.assert_allclose(summary.kl[layer], kl, rtol=1e-3, atol=1e-5)
        for position, token in enumerate(best):
            place = np.argsort(-here[position], kind="stable").tolist().index(token)
            assert summary.rank[layer, position] == place + 1
    assert (summary.rank[-1] == 1).all()
    assert summary.kl[-1].max() < 1e-5


def test_one_cell_is_that_of_the_whole_lens(tiny_model, ids):
    run = trace(tiny_model, ids)
    lens = logit_lens(tiny_model, run)
    for layer, position in ((0, 0), (1, 9), (2, 4)):
        np.testing.assert_allclose(lens_logits(tiny_model, run, layer, position), lens[layer, position], atol=1e-4)


def test_rows_beyond_the_vocabulary_are_left_out(tiny_model, ids):
    run = trace(tiny_model, ids)
    summary = lens_summary(tiny_model, run, size=5)
    assert summary.token.max() < 5
    probs = run.logits[:, :5].softmax(-1).numpy()
    np.testing.assert_allclose(summary.probability[-1], probs.max(-1), rtol=1e-4)


def test_one_token_and_whole_context(tiny_model):
    for length in (1, 32):
        run = trace(tiny_model, torch.arange(length))
        assert lens_summary(tiny_model, run).token.shape == (3, length)


def test_a_large_vocabulary_is_summarised_some_positions_at_a_time(tiny_model, ids, monkeypatch):
    run = trace(tiny_model, ids)
    whole = lens_summary(tiny_model, run)
    monkeypatch.setattr(module, "AT_ONCE", 3 * 50)  # three of the ten positions
    pieces = lens_summary(tiny_model, run)
    for one, other in zip(whole[:-1], pieces[:-1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert pieces.error < 1e-4
