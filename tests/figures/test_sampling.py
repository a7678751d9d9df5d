"""The draw, the tree, entropy and pace, as plotly.js would draw them."""

import html

import numpy as np
import pytest

from gptviz.figures.sampling import branches, entropy_lines, interval, speed_lines
from tests.figures.spec import array, read


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_shares_lie_side_by_side_and_the_draw_is_a_line(theme):
    spec = read(interval(["·a", "<b>", "·c"], np.array([0.5, 0.3, 0.2]), theme=theme, sampled=1, draw=0.6))
    bars = spec["data"][0]
    np.testing.assert_allclose(array(bars["base"]), [0, 0.5, 0.8])
    np.testing.assert_allclose(array(bars["x"]), [0.5, 0.3, 0.2])
    assert spec["layout"]["shapes"][0]["x0"] == spec["layout"]["shapes"][0]["x1"] == 0.6
    assert bars["marker"]["pattern"]["shape"] == ["", "/", ""]
    assert html.unescape(bars["customdata"][1][0]) == "<b>"
    assert bars["customdata"][1][1:] == ["0.3", "0.5", "0.8"]


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.9999])
def test_one_token_takes_it_all(draw):
    spec = read(interval(["·a"], np.array([1.0]), theme="light", sampled=0, draw=draw))
    assert array(spec["data"][0]["x"]).tolist() == [1]


def test_a_branch_is_as_high_as_it_is_likely_and_starts_where_its_share_does():
    figure = branches(
        np.array([0, 0, 0.6]),
        np.array([0.6, 0.3, 0.25]),
        np.array([1, 2, 1]),
        ["·a", "b", "<i>"],
        ["·a", "·ab", "<i>"],
        np.array([0.6, 0.5, 0.25]),
        theme="light",
        ids=["1", "1.2", "3"],
    )
    bars = read(figure)["data"][0]
    assert array(bars["base"]).tolist() == [0, 0, 0.6]
    assert array(bars["y"]).tolist() == [0.6, 0.3, 0.25]
    assert array(bars["x"]).tolist() == [1, 2, 1]
    assert [told[0] for told in bars["customdata"]] == ["1", "1.2", "3"]
    assert bars["customdata"][1][1:] == ["·ab", "0.5", "0.3"]
    assert bars["text"][2] == "&lt;i&gt; 0.25"
    assert len(set(bars["marker"]["color"])) == 3


def test_entropy_comes_before_its_token_and_surprise_with_it():
    entropy, tempered, surprise = np.array([1.0, 2, 3]), np.array([0.5, 1, 2]), np.array([4.0, 5])
    spec = read(entropy_lines(entropy, tempered, surprise, ["<s>", "a", "b"], theme="dark", generated=1))
    raw, tempered, came = spec["data"]
    assert array(raw["y"]).tolist() == [1, 2, 3]
    assert raw["customdata"] == ["a", "b", "what comes next"]
    assert array(tempered["y"]).tolist() == [0.5, 1, 2]
    assert (array(came["x"]).tolist(), array(came["y"]).tolist()) == ([0, 1], [4, 5])
    shade = spec["layout"]["shapes"][0]
    assert (shade["x0"], shade["x1"]) == (0.5, 1.5)  # the token at 1 was generated, "next" was not


def test_one_token_has_what_comes_next():
    spec = read(entropy_lines(np.array([1.0]), None, np.zeros(0), ["a"], theme="light"))
    assert len(spec["data"]) == 2
    assert spec["data"][0]["customdata"] == ["what comes next"]


def test_pace_is_drawn_by_how_many_tokens_stand_before():
    cached, full = read(speed_lines(np.array([1.0, 2]), np.array([3.0, 4]), theme="light", first=7))["data"]
    assert array(cached["x"]).tolist() == array(full["x"]).tolist() == [7, 8]
    assert array(full["y"]).tolist() == [3, 4]
    assert cached["line"]["dash"] != full["line"]["dash"]
