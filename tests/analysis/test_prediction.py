"""Loss, rank and entropy at every position, by hand and against PyTorch's own losses."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from gptviz import trace
from gptviz.analysis import entropies, perplexity, predictions


def test_by_hand():
    shares = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    made = predictions(shares.log(), torch.tensor([0, 2, 1]))
    assert made.token.tolist() == [2, 1]
    np.testing.assert_allclose(made.probability, [0.2, 0.8], rtol=1e-6)
    np.testing.assert_allclose(made.loss, [math.log(5), -math.log(0.8)], rtol=1e-6)
    assert made.rank.tolist() == [3, 1]
    assert made.best.tolist() == [0, 1]
    assert perplexity(made.loss) == pytest.approx(math.sqrt(5 / 0.8))


def test_the_mean_loss_is_the_models(tiny_model, ids):
    made = predictions(trace(tiny_model, ids).logits, ids)
    expected = tiny_model.loss(ids[None, :-1], ids[None, 1:])
    assert float(made.loss.mean()) == pytest.approx(float(expected), rel=1e-5)
    assert perplexity(made.loss) == pytest.approx(math.exp(float(expected)), rel=1e-4)


def test_one_token_foretells_nothing(tiny_model):
    made = predictions(trace(tiny_model, torch.tensor([4])).logits, torch.tensor([4]))
    assert [len(column) for column in made] == [0] * 5
    assert math.isnan(perplexity(made.loss))


def test_padding_takes_no_share():
    logits = torch.tensor([[0.0, 0.0, 50.0], [0.0, 0.0, 50.0]])
    made = predictions(logits, torch.tensor([0, 1]), size=2)
    np.testing.assert_allclose(made.probability, [0.5])
    assert made.best.tolist() == [0]


def test_an_absurd_loss_is_a_number():
    assert perplexity(np.array([1e6])) > 1e300


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_entropies_are_pytorchs(temperature):
    logits = 5 * torch.randn(6, 40)
    expected = torch.distributions.Categorical(logits=logits / temperature).entropy()
    np.testing.assert_allclose(entropies(logits, temperature), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_entropies_at_the_ends():
    logits = torch.randn(4, 8)
    assert entropies(logits, 0).tolist() == [0] * 4
    np.testing.assert_allclose(entropies(logits, 1e-6), 0, atol=1e-5)
    np.testing.assert_allclose(entropies(torch.zeros(2, 8)), math.log(8), rtol=1e-6)
    np.testing.assert_allclose(entropies(torch.zeros(2, 8), size=4), math.log(4), rtol=1e-6)
    assert not np.isnan(entropies(torch.tensor([[0.0, -torch.inf]]))).any()


def test_the_loss_is_pytorchs_cross_entropy():
    logits, ids = 5 * torch.randn(7, 40), torch.randint(40, (7,))
    expected = F.cross_entropy(logits[:-1], ids[1:], reduction="none")
    np.testing.assert_allclose(predictions(logits, ids).loss, expected.numpy(), rtol=1e-5)


def test_entropies_of_a_large_vocabulary_come_some_positions_at_a_time(monkeypatch):
    logits = torch.randn(7, 40)
    whole = entropies(logits)
    monkeypatch.setattr("gptviz.analysis.prediction.AT_ONCE", 100)
    np.testing.assert_allclose(entropies(logits), whole, rtol=1e-6)
