import numpy as np
import pytest

from gptviz.figures.overview import residual_norms
from tests.figures.spec import cells, read, ticks


def test_depth_runs_downwards_from_the_embedding():
    figure = residual_norms(np.arange(6.0).reshape(3, 2), ["a", "a"], theme="light")
    assert ticks(figure, "y") == ["embed", "block 0", "block 1"]
    assert ticks(figure, "x") == ["a", "a"]
    assert read(figure)["layout"]["yaxis"]["autorange"] == "reversed"
    assert cells(figure)[2, 1] == 5


def test_halves_name_attention_and_feed_forward():
    figure = residual_norms(np.ones((5, 1)), ["a"], theme="dark", halves=True)
    assert ticks(figure, "y") == ["embed", "attn 0", "mlp 0", "attn 1", "mlp 1"]


@pytest.mark.parametrize("scale", ["max", "log"])
def test_the_range_is_written_and_the_values_stay_true(scale):
    norms = np.array([[3000.0, 20.0], [3100.0, 30.0]])
    figure = residual_norms(norms, ["a", "b"], theme="light", scale=scale)
    title = read(figure)["data"][1]["marker"]["colorbar"]["title"]["text"]
    assert title == {"max": "norm, 0 to 3,100", "log": "norm, log scale, 10 to 3,100"}[scale]
    assert cells(figure)[1, 1] == 30


def test_a_log_scale_of_one_value_has_two_ends():
    trace = read(residual_norms(np.full((2, 1), 10.0), ["a"], theme="light", scale="log"))["data"][0]
    stops = [at for at, _ in trace["colorscale"]]
    assert stops == sorted(stops)
    assert stops[-1] == 1
