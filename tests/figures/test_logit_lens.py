"""The lens as a figure, and the colours of its cells."""

import numpy as np
import pytest

from gptviz.figures.logit_lens import layer_names, lens_levels, lens_scale, lens_table
from tests.figures.spec import cells, read, ticks

TOKENS = [["·a", "<b>x</b>"], ["·b", "$5 _x_"]]


@pytest.mark.parametrize("measure", ["probability", "rank", "entropy", "kl"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_cell_holds_its_token_and_its_number(measure, theme):
    values = np.array([[0.25, 1.0], [0.5, 0.75]]) * (1 if measure == "probability" else 8)
    figure = lens_table(values, TOKENS, ["the", "the"], measure=measure, theme=theme)
    assert cells(figure) == {(i, j): values[i, j] for i in range(2) for j in range(2)}
    assert read(figure)["data"][0]["text"] == [["·a", "&lt;b&gt;x&lt;/b&gt;"], ["·b", "$5 _x_"]]
    assert ticks(figure, "x") == ["embed", "block 0"]
    assert ticks(figure, "y") == ["the", "the"]


def test_layers_are_named_from_the_embedding_on():
    assert layer_names(3) == ["embed", "block 0", "block 1"]


def test_a_level_is_in_proportion_to_the_value():
    scale = lens_scale(np.array([0.0, 1.0]), "probability", "light")
    last = len(scale.colours) - 1
    assert lens_levels(np.array([[0, 0.5, 1, 2]]), scale).tolist() == [[0, round(last / 2), last, last]]


def test_ranks_are_spread_by_their_logarithm():
    scale = lens_scale(np.array([1.0, 10000.0]), "rank", "light")
    last = len(scale.colours) - 1
    assert lens_levels(np.array([1, 100, 10000]), scale).tolist() == [0, round(last / 2), last]
    assert lens_levels(np.array([1, 1]), lens_scale(np.array([1.0]), "rank", "light")).tolist() == [0, 0]


def test_a_measure_that_is_zero_everywhere_has_the_first_colour():
    values = np.zeros((1, 2))
    assert lens_levels(values, lens_scale(values, "kl", "dark")).tolist() == [[0, 0]]
