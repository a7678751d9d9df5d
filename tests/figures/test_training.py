"""The curves of a run: every number is drawn, step 0 has a place on a log axis, and the marker stands at its step."""

import numpy as np
import pytest

from gptviz.figures.training import loss_curve, score_curve
from tests.figures.spec import array, read

CURVES = {"training": [[1, 6.0], [10, 4.0], [100, 2.0]], "validation": [[0, 6.2], [100, 2.1]]}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_pair_is_a_point(theme):
    spec = read(loss_curve(CURVES, theme=theme))
    assert [trace["name"] for trace in spec["data"]] == ["training", "validation"]
    for trace, pairs in zip(spec["data"], CURVES.values(), strict=True):
        assert np.allclose(array(trace["x"]), [step for step, _ in pairs])
        assert np.allclose(array(trace["y"]), [loss for _, loss in pairs])
    assert spec["layout"]["yaxis"]["title"]["text"] == "loss (nats per token)"


def test_lines_differ_in_more_than_colour():
    for spec in (read(loss_curve(CURVES, theme="light")), read(score_curve(SCORES, theme="light"))):
        assert len({trace["line"]["dash"] for trace in spec["data"]}) == 2
        assert len({trace["marker"]["symbol"] for trace in spec["data"]}) == 2


def test_on_a_log_axis_the_start_stands_at_a_half_and_is_called_0():
    spec = read(loss_curve(CURVES, theme="light", log=True))
    axis, start = spec["layout"]["xaxis"], spec["data"][1]
    assert axis["type"] == "log"
    assert array(start["x"])[0] == 0.5
    assert array(start["customdata"])[0] == 0
    assert dict(zip(axis["tickvals"], axis["ticktext"], strict=True)) == {0.5: "0", 1: "1", 10: "10", 100: "100"}
    low, high = axis["range"]
    assert 10**low < 0.5
    assert 10**high > 100


@pytest.mark.parametrize(
    ("step", "log", "line", "words"), [(10, True, 10, 1), (0, True, 0.5, np.log10(0.5)), (10, False, 10, 10)]
)
def test_the_marker_stands_at_its_step(step, log, line, words):
    layout = read(loss_curve(CURVES, theme="light", marker=step, log=log))["layout"]
    assert layout["shapes"][0]["x0"] == layout["shapes"][0]["x1"] == line
    assert layout["annotations"][0]["x"] == pytest.approx(words)
    assert layout["annotations"][0]["text"] == f"step {step}"


def test_without_a_marker_there_is_none():
    assert "shapes" not in read(loss_curve(CURVES, theme="light"))["layout"]


SCORES = {"previous token": [[0, 0.03], [100, 0.9]], "induction": [[0, 0.01], [100, 0.5]]}


def test_scores_run_from_0_to_1():
    spec = read(score_curve(SCORES, theme="dark", marker=100))
    low, high = spec["layout"]["yaxis"]["range"]
    assert low < 0 < 1 < high
    assert np.allclose(array(spec["data"][1]["y"]), [0.01, 0.5])


@pytest.mark.parametrize("curves", [{"training": [], "validation": []}, {"training": [[1, 2.0]], "validation": []}, {}])
@pytest.mark.parametrize("log", [True, False])
def test_a_run_that_has_hardly_begun_is_drawn(curves, log):
    assert len(read(loss_curve(curves, theme="light", log=log))["data"]) == sum(map(bool, curves.values()))


def test_the_same_axes_keep_the_zoom():
    one, other = (read(loss_curve(CURVES, theme="light", marker=step))["layout"] for step in (0, 100))
    assert one["uirevision"] == other["uirevision"]


def test_a_long_curve_has_no_points_and_stays_small():
    pairs = [[step, 1.0] for step in range(1, 301)]
    spec = read(loss_curve({"training": pairs}, theme="light"))
    assert spec["data"][0]["mode"] == "lines"
    assert len(loss_curve({"training": pairs, "validation": pairs}, theme="light").to_json()) < 20_000
