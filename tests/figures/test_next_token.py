import numpy as np
import pytest

from gptviz.figures import style
from gptviz.figures.next_token import next_token_bars
from tests.figures.spec import array, read


def bars(**changes):
    given = dict(labels=["·on", "·down", "·up"], probabilities=np.array([0.41, 0.2, 0.00004]), theme="light")
    return read(next_token_bars(**given | changes))


def test_the_most_likely_is_on_top_whatever_the_order_given():
    spec = bars(probabilities=np.array([0.1, 0.7, 0.2]), argmax=1)
    assert spec["layout"]["yaxis"]["ticktext"] == ["·down", "·up", "·on"]
    assert spec["layout"]["yaxis"]["autorange"] == "reversed"
    np.testing.assert_array_equal(array(spec["data"][0]["x"]), [0.7, 0.2, 0.1])
    assert "▲" in spec["data"][0]["text"][0]
    assert "▲ most likely" in spec["layout"]["xaxis"]["title"]["text"]


def test_a_tiny_probability_reads_as_such():
    spec = bars()
    assert spec["data"][0]["text"][2] == "4.00 × 10⁻⁵"
    assert spec["data"][0]["customdata"][2][:2] == ["·up", "4.00 × 10⁻⁵"]


def test_the_sampled_token_differs_from_the_most_likely_in_more_than_colour():
    trace = bars(sampled=1, draw=0.5)["data"][0]
    assert trace["text"] == ["0.41  ▲", "0.2  ◆", "4.00 × 10⁻⁵"]
    assert bars(sampled=1, draw=0.5)["layout"]["xaxis"]["title"]["text"].endswith("◆ sampled by the draw 0.5")
    assert trace["marker"]["pattern"]["shape"] == ["", "/", ""]
    logits, generated = style.colour("logits", "light"), style.colour("generated", "light")
    assert trace["marker"]["color"] == [logits, generated, logits]


def test_one_token_can_be_both():
    assert bars(sampled=0)["data"][0]["text"][0] == "0.41  ▲◆"


def test_equal_labels_keep_a_bar_each():
    spec = bars(labels=["the", "the", "the"])
    assert array(spec["data"][0]["y"]).tolist() == [0, 1, 2]
    assert spec["layout"]["yaxis"]["tickvals"] == [0, 1, 2]


@pytest.mark.parametrize("label", ["<b>x</b>", "%{x}", "$5"])
def test_labels_are_literal(label):
    spec = bars(labels=[label, "b", "c"])
    assert spec["layout"]["yaxis"]["ticktext"][0] == style.literal(label)
    assert spec["data"][0]["customdata"][0][0] == style.literal(label)
    assert label not in spec["data"][0]["hovertemplate"]


def test_one_candidate():
    assert bars(labels=["·on"], probabilities=np.array([1.0]), sampled=0)["data"][0]["text"][0].startswith("1 ")
