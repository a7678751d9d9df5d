import numpy as np
import pytest

from gptviz.figures import style
from gptviz.figures.circuits import ov_heatmap, qk_heatmap
from tests.figures.spec import cells, hover, read, ticks

DRAWN = [qk_heatmap, ov_heatmap]
VALUES = np.array([[0.41, -2.0, 0], [3.0, 0.5, -1], [0, 0, 0.25]])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("draw", DRAWN)
def test_zero_is_the_background_and_both_ends_are_as_far_from_it(draw, theme):
    trace = read(draw(VALUES, ["a", "b", "c"], theme=theme))["data"][0]
    assert (trace["zmin"], trace["zmax"]) == (-3, 3)
    stops = trace["colorscale"]
    assert stops[len(stops) // 2] == [0.5, style.surface("background", theme)]


@pytest.mark.parametrize("draw", DRAWN)
def test_every_cell_is_drawn_and_the_range_is_written(draw):
    figure = draw(VALUES, ["a", "b", "c"], theme="light")
    assert cells(figure) == {(i, j): pytest.approx(VALUES[i, j]) for i in range(3) for j in range(3)}
    bar = read(figure)["data"][1]["marker"]["colorbar"]["title"]["text"]
    assert bar.endswith("−3 to 3")


@pytest.mark.parametrize("draw", DRAWN)
@pytest.mark.parametrize("label", ["<b>x</b>", "&lt;", "$5 **y** `z`", "%{z}"])
def test_tokens_are_literal_and_equal_ones_stay_apart(draw, label):
    figure = draw(VALUES, [label, "F0 9F", "F0 9F"], theme="light")
    assert ticks(figure, "x") == ticks(figure, "y") == [label, "F0 9F", "F0 9F"]
    assert "<b>" not in figure.to_json()
    assert len(set(read(figure)["layout"]["xaxis"]["categoryarray"])) == 3


def test_hover_says_whose_number_it_is():
    labels = ["The", "cat", "sat"]
    assert hover(qk_heatmap(VALUES, labels, theme="light"), 0, 1) == "query ‘The’, key ‘cat’: −2"
    assert hover(ov_heatmap(VALUES, labels, theme="light"), 0, 2) == "attention to ‘The’ moves ‘sat’ by 0"


def test_rows_are_queries_and_sources():
    titles = [
        [read(draw(VALUES, ["a", "b", "c"], theme="light"))["layout"][axis]["title"]["text"] for axis in order]
        for draw in DRAWN
        for order in [("yaxis", "xaxis")]
    ]
    assert titles == [["query", "key"], ["attended to", "output"]]


@pytest.mark.parametrize("draw", DRAWN)
def test_one_token_and_numbers_that_are_none(draw):
    assert cells(draw(np.zeros((1, 1)), ["·Once"], theme="dark")) == {(0, 0): 0}
    figure = draw(np.full((2, 2), np.nan), ["a", "b"], theme="light")
    assert cells(figure) == {}
    assert hover(figure, 0, 0).endswith("no number")


@pytest.mark.parametrize("draw", DRAWN)
def test_payload_of_sixty_four_tokens(draw):
    labels = [f"·token{at}" for at in range(64)]
    figure = draw(np.random.default_rng(0).normal(size=(64, 64)), labels, theme="light")
    assert len(figure.to_json()) < 40_000


@pytest.mark.parametrize("draw", DRAWN)
@pytest.mark.parametrize(("tokens", "most"), [(1, 440), (15, 440), (64, 640)])
def test_two_stand_side_by_side(draw, tokens, most):
    layout = read(draw(np.zeros((tokens, tokens)), ["<|endoftext|>"] * tokens, theme="light"))["layout"]
    margin = layout["margin"]
    assert layout["width"] <= most
    room = layout["width"] - margin["l"] - margin["r"], layout["height"] - margin["t"] - margin["b"]
    assert room[0] == room[1] > 180
