import html
import itertools

import numpy as np
import pytest

from gptviz.figures import style
from gptviz.figures.embeddings import neighbour_bars, vector_panels
from tests.figures.spec import array, read

AWKWARD = ["<b>x</b>", "$5 **y**", "the", "the"]


def panels(rows=4, columns=6):
    draw = np.random.default_rng(0)
    token, position = draw.normal(size=(2, rows, columns)).astype(np.float32)
    return {"token": token, "position": position, "sum": token + position}


def test_three_panels_stand_side_by_side_with_their_own_numbers():
    given = panels()
    spec = read(vector_panels(given, AWKWARD, theme="light", first=64))
    assert [trace["xaxis"] for trace in spec["data"]] == ["x", "x2", "x3"]
    for trace, values in zip(spec["data"], given.values(), strict=True):
        assert np.array_equal(array(trace["z"]), values)
        assert array(trace["x"]).tolist() == list(range(64, 70))
    domains = [spec["layout"][f"xaxis{at}"]["domain"] for at in ("", 2, 3)]
    assert all(left[1] < right[0] for left, right in itertools.pairwise(domains))
    assert [note["text"] for note in spec["layout"]["annotations"]] == ["token", "position", "sum", "+", "="]


def test_one_scale_for_all_panels_with_zero_in_the_background():
    given = panels()
    axis = read(vector_panels(given, AWKWARD, theme="dark"))["layout"]["coloraxis"]
    largest = max(np.abs(values).max() for values in given.values())
    assert axis["cmax"] == -axis["cmin"] == pytest.approx(largest)
    assert axis["colorscale"][8][1] == style.surface("background", "dark")
    assert style.number(float(largest)) in axis["colorbar"]["title"]["text"]


def test_row_0_is_on_top_and_repeated_or_awkward_tokens_keep_a_tick_each():
    layout = read(vector_panels(panels(), AWKWARD, theme="light"))["layout"]
    assert layout["yaxis"]["range"] == [3.5, -0.5]
    shown = [layout["yaxis"]["labelalias"][at] for at in layout["yaxis"]["categoryarray"]]
    assert [html.unescape(label) for label in shown] == AWKWARD
    assert "<" not in "".join(shown)
    assert layout["yaxis2"]["matches"] == "y"


def test_one_panel_alone_has_no_sign():
    spec = read(vector_panels({"token": np.zeros((1, 3))}, ["a"], theme="light"))
    assert [note["text"] for note in spec["layout"]["annotations"]] == ["token"]
    assert spec["layout"]["xaxis"]["domain"] == [0, 1]


def test_neighbours_are_bars_with_cosine_and_norm():
    cosine, norms = np.array([0.9, -0.125]), np.array([1.5, 0.00004])
    spec = read(neighbour_bars(["<i>", "the"], cosine, norms, theme="light"))
    (bars,) = spec["data"]
    assert np.allclose(array(bars["x"]), cosine)
    assert bars["text"] == ["0.9   ‖1.5‖", "−0.125   ‖4.00 × 10⁻⁵‖"]
    assert spec["layout"]["yaxis"]["ticktext"] == ["&lt;i&gt;", "the"]
    assert spec["layout"]["yaxis"]["autorange"] == "reversed"


def test_no_neighbours_make_an_empty_figure():
    read(neighbour_bars([], np.empty(0), np.empty(0), theme="light"))
