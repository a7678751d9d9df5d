import numpy as np
import pytest

from gptviz.figures import roofline as roof
from gptviz.figures import sizing, style
from gptviz.figures.growth import growth
from gptviz.figures.sizing import Tile
from tests.figures.spec import array, read

themes = pytest.mark.parametrize("theme", ["light", "dark"])
HOSTILE = "<b>x</b>"


def colours(node):
    """Every hex colour in a figure's JSON, apart from those of the template."""
    if isinstance(node, dict):
        return {c for key, value in node.items() if key != "template" for c in colours(value)}
    if isinstance(node, list):
        return {c for value in node for c in colours(value)}
    return {node.upper()} if isinstance(node, str) and node.startswith("#") else set()


def allowed(theme):
    ramps = (shade for role in style.ROLES[theme] for shade in style.ramp(role, theme))
    return {c.upper() for c in (*style.ROLES[theme].values(), *style.SURFACES[theme].values(), *ramps)}


def tiles():
    parts = [("W_E", "", 30, "token"), ("blocks", "", 70, "residual"), (HOSTILE, "blocks", 70, "attention")]
    return [Tile(id=n, label=n, parent=p, value=v, text=str(v), role=r) for n, p, v, r in parts]


def all_figures(theme):
    points = [roof.Point(name=n, intensity=i, speed=i * 1e12, hover=n) for n, i in (("prefill", 50), ("decode", 1))]
    axes = dict(x="context", unit="B", now=(20, "here"), theme=theme)
    return [
        sizing.parameter_treemap(tiles(), theme=theme),
        sizing.fit_bars({"8 GB": 8e9}, {"Weights": 5e9, "Activations": 2e9}, ["fits"], theme=theme),
        growth([10, 20], {"linear": ("a", [1, 2]), "quadratic": ("b", [1, 4])}, **axes),
        sizing.component_bars({"a": {"Attention": 3}, "b": {"Attention": 5, "Norms": 1}}, theme=theme),
        roof.roofline(points, points[1:], flops=100e12, bandwidth=1e12, theme=theme),
    ]


@themes
def test_every_colour_comes_from_the_style(theme):
    for figure in all_figures(theme):
        spec = read(figure)
        assert colours(spec["data"]) | colours(spec["layout"]) <= allowed(theme)


def test_tiles_lie_in_their_parents_and_labels_are_literal():
    trace = read(sizing.parameter_treemap(tiles(), theme="light"))["data"][0]
    assert trace["branchvalues"] == "total"
    assert trace["parents"] == ["", "", "blocks"]
    assert list(array(trace["values"])) == [30, 70, 70]
    assert trace["labels"][2] == "&lt;b&gt;x&lt;/b&gt;"


def test_fit_bars_are_shares_that_end_where_the_need_does():
    need = {"Weights": 6e9, "KV cache": 6e9}
    spec = read(sizing.fit_bars({"8 GB": 8e9, "24 GB": 24e9}, need, ["no", "fits"], theme="light"))
    weights, cache = spec["data"]
    np.testing.assert_allclose(array(weights["x"]), [0.75, 0.25])
    np.testing.assert_allclose(array(cache["x"]), [0.5, 0.25])  # 1.5 in all, drawn to 1.25
    assert spec["layout"]["yaxis"]["ticktext"] == ["8 GB<br>no", "24 GB<br>fits"]
    assert cache["customdata"] == ["75", "25"]
    assert spec["layout"]["shapes"][0]["x0"] == 1


def test_growth_stacks_its_parts_and_marks_the_models_own_place():
    parts = {"constant": ("weights", [5, 5]), "quadratic": (HOSTILE, [1, 4])}
    spec = read(growth([10, 20], parts, x="T", unit="B", now=(15, "here"), theme="dark"))
    assert [trace["stackgroup"] for trace in spec["data"]] == ["all", "all"]
    assert len({trace["fillpattern"]["shape"] for trace in spec["data"]}) == 2  # not by colour alone
    assert spec["layout"]["shapes"][0]["x0"] == 15
    assert "here" in str(spec["layout"]["annotations"])
    assert HOSTILE not in str(spec)


def test_components_that_no_model_has_are_left_out():
    spec = read(sizing.component_bars({"a": {"Attention": 3}, "b": {"Norms": 1}}, theme="light"))
    assert [trace["name"] for trace in spec["data"]] == ["Attention", "Norms"]
    assert list(array(spec["data"][0]["x"])) == [3, 0]


def test_the_roof_is_a_slope_up_to_the_ridge_and_flat_beyond():
    spec = read(roof.roofline([], [], flops=100.0, bandwidth=10.0, theme="light"))
    x, y = (array(spec["data"][0][axis]) for axis in "xy")
    np.testing.assert_allclose(x[1], 10)
    np.testing.assert_allclose(y, [10 * x[0], 100, 100])
    assert "ridge: 10" in spec["layout"]["annotations"][0]["text"]


@pytest.mark.parametrize("intensity", [1e-3, 1e6])
def test_a_point_far_out_is_still_on_the_roof(intensity):
    point = roof.Point(name="decode", intensity=intensity, speed=min(100.0, 10 * intensity), hover="decode")
    spec = read(roof.roofline([point], [], flops=100.0, bandwidth=10.0, theme="light"))
    x = array(spec["data"][0]["x"])
    assert x[0] < intensity < x[-1]
