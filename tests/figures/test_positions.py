import numpy as np
import pytest

from gptviz.figures.positions import (
    Arrow,
    alibi_lines,
    in_pairs,
    position_table,
    rotation_plane,
    similarity_matrix,
    thinned,
)
from tests.figures.spec import array, cells, hover, read, ticks


def test_a_small_table_is_drawn_whole():
    values = np.arange(12, dtype=np.float32).reshape(3, 4) - 6
    figure = position_table(values, theme="light", columns="dimension", unit="value")
    assert cells(figure) == {(i, j): values[i, j] for i in range(3) for j in range(4)}
    assert hover(figure, 2, 1) == "position 2, dimension 1: 3"


def test_a_wide_table_leaves_columns_out_in_pairs_and_keeps_its_numbers():
    values = np.random.default_rng(0).normal(size=(128, 768)).astype(np.float32)
    figure = position_table(values, theme="light", columns="dimension", unit="value", first=256)
    rows, columns = ([int(label) for label in ticks(figure, axis)] for axis in "yx")
    assert rows == list(range(256, 384))
    assert len(columns) == 128
    assert columns[:6] == [0, 1, 12, 13, 24, 25]
    assert cells(figure)[5, 7] == values[5, 37]


@pytest.mark.parametrize("length", [1, 5, 128, 129, 130, 131, 255, 257, 300, 768, 4097])
def test_pairs_stay_within_the_limit_and_within_the_table(length):
    at = in_pairs(length)
    assert len(at) <= 128
    assert at.max() < length
    assert len(set(at.tolist())) == len(at)
    assert set(at[1::2] - at[: len(at) // 2 * 2 : 2]) <= {1}


@pytest.mark.parametrize("length", [1, 2, 127, 128, 129, 255, 256, 257, 1000, 5000])
def test_thinning_keeps_one_step_and_stays_within_the_limit(length):
    at = thinned(length)
    assert len(at) <= 128
    assert at[0] == 0
    assert len(set(np.diff(at))) <= 1
    assert at[-1] < length
    assert at[-1] + (at[1] - at[0] if len(at) > 1 else 1) >= length


def test_similarities_run_from_minus_one_to_one():
    figure = similarity_matrix(np.array([[1, -0.5], [-0.5, 1]]), theme="dark", title="cosine")
    heatmap = read(figure)["data"][0]
    assert (heatmap["zmin"], heatmap["zmax"]) == (-1, 1)
    assert hover(figure, 1, 0) == "positions 1 and 0: −0.5"


def arrow(angle, name="q of ‘<b>’ (3)"):
    before = np.array([2.0, 0.0])
    after = 2 * np.array([np.cos(angle), np.sin(angle)])
    return Arrow(name, before, after, angle, "attention")


def test_a_rotation_shows_both_arrows_and_the_arc_between():
    spec = read(rotation_plane([arrow(np.pi / 2)], theme="light", dimensions=(3, 35)))
    before, after, arc = spec["data"]
    assert array(before["x"]).tolist() == [0, 2]
    assert np.allclose(array(after["y"]), [0, 2])
    assert before["line"]["dash"] == "dot"
    assert "dash" not in after["line"]
    ends = np.stack([array(arc["x"]), array(arc["y"])])[:, [0, -1]]
    assert np.allclose(ends / np.linalg.norm(ends, axis=0), [[1, 0], [0, 1]], atol=1e-6)
    assert "90°" in arc["hovertemplate"]
    assert "<b>" not in before["name"]
    assert spec["layout"]["xaxis"]["title"]["text"] == "dimension 3"
    assert spec["layout"]["yaxis"]["scaleanchor"] == "x"


def test_whole_turns_are_left_out_of_the_arc_and_not_of_the_number():
    spec = read(rotation_plane([arrow(4 * np.pi + 0.5)], theme="light", dimensions=(0, 1)))
    arc = spec["data"][2]
    turned = np.unwrap(np.arctan2(array(arc["y"]), array(arc["x"])))
    assert turned[-1] - turned[0] == pytest.approx(0.5, abs=1e-3)
    assert "749°" in arc["hovertemplate"]


def test_vectors_of_zeros_are_drawn_too():
    nothing = Arrow("q", np.zeros(2), np.zeros(2), 1.0, "attention")
    read(rotation_plane([nothing, nothing], theme="light", dimensions=(0, 1)))


def test_alibi_is_a_line_a_head_named_with_its_slope():
    slopes = np.array([0.5, 0.25], np.float32)
    spec = read(alibi_lines(slopes, -slopes[:, None] * np.arange(4), theme="light"))
    assert [trace["name"] for trace in spec["data"]] == ["head 0: m = 0.5", "head 1: m = 0.25"]
    assert array(spec["data"][0]["y"]).tolist() == [0, -0.5, -1, -1.5]
    assert len({trace["line"]["dash"] for trace in spec["data"]}) == 2


def test_many_heads_are_thinned_and_one_position_is_a_mark():
    slopes = np.linspace(1, 0.01, 96)
    spec = read(alibi_lines(slopes, np.zeros((96, 1)), theme="dark"))
    assert len(spec["data"]) == 16
    assert spec["data"][1]["name"].startswith("head 6:")
    assert spec["data"][0]["mode"] == "markers"
