"""What stands in the stream and who wrote a logit, as plotly.js would draw it."""

import numpy as np
import pytest

from gptviz.figures import style
from gptviz.figures.residual import LONGEST, attribution_bars, cosine_heatmap, stream_heatmap
from tests.figures.spec import array, cells, read, ticks

PARTS = {"embed": 1.0, "pos": -0.5, "L0H0": 3.0, "L0H1": 0.25, "mlp0": -2.0, "biases": 0.125}


def bars(figure) -> dict[str, tuple[float, float]]:
    """name -> where the bar starts and how long it is."""
    trace = read(figure)["data"][0]
    assert trace["customdata"] == read(figure)["layout"]["yaxis"]["ticktext"]
    return dict(zip(trace["customdata"], zip(array(trace["base"]), array(trace["x"]), strict=True), strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_part_is_a_bar_from_zero_the_largest_first_and_the_sum_last(theme):
    drawn = bars(attribution_bars(PARTS, theme=theme))
    assert list(drawn) == ["L0H0", "mlp0", "embed", "pos", "L0H1", "biases", "logit"]
    assert {name: length for name, (start, length) in drawn.items() if start == 0} == {**PARTS, "logit": 1.875}


def test_in_the_models_order_each_bar_starts_where_the_one_before_ends():
    drawn = bars(attribution_bars(PARTS, theme="light", order="model", logit="difference"))
    assert list(drawn) == [*PARTS, "difference"]
    at = 0.0
    for name in PARTS:
        assert drawn[name] == (at, PARTS[name])
        at += PARTS[name]
    assert drawn["difference"] == (0, at)


MANY = {"embed": 0.1} | {f"L{layer}H{head}": layer - head / 7 for layer in range(12) for head in range(12)}


def test_of_many_parts_the_small_ones_are_one_bar():
    drawn = bars(attribution_bars(MANY, theme="light"))
    assert len(drawn) == LONGEST + 1
    assert f"the other {len(MANY) - LONGEST + 1}" in drawn
    lengths = [length for _, length in drawn.values()]
    assert sum(lengths[:-1]) == pytest.approx(lengths[-1]) == pytest.approx(sum(MANY.values()))


def test_of_many_parts_a_layers_heads_stay_together_in_the_models_order():
    drawn = bars(attribution_bars(MANY, theme="light", order="model"))
    assert list(drawn) == ["embed", *(f"attn {layer}" for layer in range(12)), "logit"]
    assert drawn["attn 3"][1] == pytest.approx(sum(3 - head / 7 for head in range(12)))


def test_every_kind_of_part_has_its_colour():
    trace = read(attribution_bars(PARTS, theme="light", order="model"))["data"][0]
    roles = ["token", "position", "attention", "attention", "feed_forward", "residual", "logits"]
    assert trace["marker"]["color"] == [style.colour(role, "light") for role in roles]


def test_parts_that_are_all_zero_can_be_drawn():
    low, high = read(attribution_bars({"embed": 0.0}, theme="light"))["layout"]["xaxis"]["range"]
    assert low < high


@pytest.mark.parametrize("size", [1, 128])
def test_lengths_are_drawn_by_place_and_token(size):
    values = np.geomspace(1, 700, 3 * size).reshape(3, size)
    figure = stream_heatmap(values, ["embed", "a", "b"], ["the"] * size, theme="light", name="length")
    assert cells(figure) == {(i, j): pytest.approx(values[i, j], rel=1e-6) for i in range(3) for j in range(size)}
    assert ticks(figure, "x") == ["the"] * size
    assert "log scale" in read(figure)["data"][1]["marker"]["colorbar"]["title"]["text"]


def test_cosines_are_centred_on_zero():
    figure = cosine_heatmap(np.array([[-0.5, 0.25]]), ["attn 0"], ["<b>x</b>", "$5"], theme="dark")
    trace = read(figure)["data"][0]
    assert (trace["zmin"], trace["zmax"]) == (-1, 1)
    assert ticks(figure, "x") == ["<b>x</b>", "$5"]
