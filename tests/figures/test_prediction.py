"""Loss, probability and rank of every token, as bars."""

import math

import numpy as np
import pytest

from gptviz.figures import style
from gptviz.figures.prediction import prediction_bars, token_axis
from tests.figures.spec import array, read

SHARES, RANKS = np.array([0.5, 0.00004], np.float32), np.array([1, 300])


def drawn(measure, **more):
    labels, best = ["<b>x</b>", "·the"], ["·a", "$5"]
    return read(prediction_bars(SHARES, RANKS, labels, best, theme="light", measure=measure, **more))


def test_heights_are_the_measure():
    np.testing.assert_allclose(array(drawn("loss")["data"][0]["y"]), [math.log(2), math.log(25000)], rtol=1e-5)
    np.testing.assert_allclose(array(drawn("probability")["data"][0]["y"]), SHARES)
    assert array(drawn("rank")["data"][0]["y"]).tolist() == [1, 300]
    assert drawn("rank")["layout"]["yaxis"]["type"] == "log"


def test_hover_has_all_of_it_and_small_probabilities_as_they_are():
    told = drawn("loss", first=4)["data"][0]["customdata"]
    assert told[1] == ["·the", "5", "4.00 × 10⁻⁵", "10.1\u00a0nats", "300", "$5"]
    assert told[0][0] == "&lt;b&gt;x&lt;/b&gt;"


def test_generated_tokens_are_marked_by_more_than_a_colour():
    marker = drawn("loss", generated=1)["data"][0]["marker"]
    assert marker["pattern"]["shape"] == ["", "/"]
    assert marker["color"] == [style.colour("logits", "light"), style.colour("generated", "light")]


def test_equal_tokens_keep_a_place_each():
    axis = token_axis(["the", "the", "the"])
    assert axis["categoryarray"] == ["0", "1", "2"]
    assert list(axis["labelalias"].values()) == ["the"] * 3


@pytest.mark.parametrize("measure", ["loss", "probability", "rank"])
def test_no_token_and_an_impossible_one(measure):
    read(prediction_bars(np.zeros(0), np.zeros(0, int), [], [], theme="dark", measure=measure))
    bars = read(prediction_bars(np.zeros(1), np.ones(1, int), ["a"], ["a"], theme="dark", measure=measure))["data"][0]
    assert np.isfinite(array(bars["y"])).all()
