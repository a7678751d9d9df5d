import numpy as np
import pytest

from gptviz.figures.feed_forward import (
    activation_curve,
    curve_range,
    neuron_heatmap,
    sparsity_bars,
)
from tests.figures.spec import array, cells, hover, read, ticks


def test_neurons_are_rows_and_tokens_columns():
    values = np.array([[3.0, -1.0], [0.5, 0.0]])
    figure = neuron_heatmap(values, [84, 7], ["the", "the"], theme="light", name="post", selected=(1, 0))
    assert cells(figure)[0, 1] == -1
    assert ticks(figure, "y") == ["84", "7"]
    assert ticks(figure, "x") == ["the", "the"]
    assert hover(figure, 0, 1) == "neuron 84 at ‘the’ (1): −1"
    spec = read(figure)
    assert (spec["data"][0]["zmin"], spec["data"][0]["zmax"]) == (-3, 3)
    assert spec["layout"]["shapes"][0]["y0"] == 0.5
    assert "width" not in spec["layout"]


def test_every_neuron_lies_on_the_curve_and_the_strongest_are_named():
    pre = np.array([-1.0, 5.0, 2.0])
    post = np.maximum(pre, 0)
    at = curve_range(pre)
    spec = read(activation_curve(pre, post, (at, np.maximum(at, 0)), theme="light", name="ReLU", named=[1], selected=2))
    curve, every, strongest, chosen = spec["data"]
    assert np.allclose(np.interp(array(every["x"]), array(curve["x"]), array(curve["y"])), array(every["y"]), atol=0.05)
    assert strongest["text"] == ["1"]
    assert array(strongest["x"]).tolist() == [5]
    assert array(chosen["customdata"]).tolist() == [2]
    assert array(every["customdata"]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("pre", [[0.0], [-100.0, 3.0], [40.0]])
def test_the_curve_reaches_over_all_that_lies_on_it_and_over_zero(pre):
    at = curve_range(np.array(pre))
    assert at[0] < min(pre)
    assert at[-1] > max(pre)
    assert at[0] < 0 < at[-1]


def test_sparsity_in_percent_told_apart_without_colour():
    shares = {"above zero": np.array([0.25, 0.5]), "near zero": np.array([0.75, 0.1]), "carriers": np.array([0.01, 1])}
    spec = read(sparsity_bars(shares, theme="dark", selected=1))
    assert array(spec["data"][0]["y"]).tolist() == [25, 50]
    assert len({trace["marker"]["pattern"]["shape"] for trace in spec["data"]}) == 3
    assert spec["layout"]["yaxis"]["range"] == [0, 100]
    assert spec["layout"]["shapes"][0]["x0"] == 0.5
