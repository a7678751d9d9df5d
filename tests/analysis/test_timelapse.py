"""A moment of a training, against the trace of the same model."""

import numpy as np
import pytest
import torch

import gptviz
from gptviz.analysis.timelapse import moment
from gptviz.model import GPT
from tests.conftest import MakeModel

IDS = torch.tensor([0, 5, 9, 5, 9, 7])


def test_a_moment_is_what_the_trace_says(tiny_model: GPT):
    now, run = moment(tiny_model, IDS), gptviz.trace(tiny_model, IDS)
    for layer in range(tiny_model.config.n_layer):
        assert np.allclose(now.patterns[layer], run[f"blocks.{layer}.attn.hook_pattern"].numpy(), atol=1e-5)
    probs = np.exp(run.logits.double().numpy())
    probs /= probs.sum(-1, keepdims=True)
    assert np.allclose(now.probs, probs[-1], atol=1e-6)
    assert now.loss == pytest.approx(-np.mean([np.log(probs[t, IDS[t + 1]]) for t in range(5)]), abs=1e-5)
    assert now.lens_token[-1] == probs[-1].argmax()
    assert now.lens_probability[-1] == pytest.approx(probs[-1].max(), abs=1e-5)
    assert now.lens_error < 1e-4
    assert len(now.lens_token) == tiny_model.config.n_layer + 1
    scores = gptviz.analysis.head_scores(run)
    assert all(np.allclose(now.scores[name], scores[name], atol=1e-5) for name in scores)


def test_one_token_has_no_loss(tiny_model: GPT):
    now = moment(tiny_model, IDS[:1])
    assert np.isnan(now.loss)
    assert now.patterns.shape[2:] == (1, 1)


@pytest.mark.parametrize(
    "changes",
    [
        dict(pos_encoding="none"),
        dict(pos_encoding="rotary", causal=False),
        dict(norm="rmsnorm", tie_weights=False, gated_mlp=True, parallel_residual=True),
        dict(n_head=1),
    ],
)
def test_every_architecture_has_moments(make_model: MakeModel, changes: dict):
    now = moment(make_model(**changes), IDS)
    assert np.allclose(now.patterns.sum(-1), 1, atol=1e-5)
    assert now.probs.sum() == pytest.approx(1, abs=1e-5)


def test_padding_is_no_token(tiny_model: GPT):
    now = moment(tiny_model, IDS, size=10)
    assert now.probs.shape == (10,)
    assert now.probs.sum() == pytest.approx(1, abs=1e-5)
    assert now.lens_token.max() < 10
