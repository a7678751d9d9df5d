import numpy as np

from gptviz.figures import style
from gptviz.figures.neuron import neuron_along_prompt, written_bars
from tests.figures.spec import array, read


def test_a_neuron_along_the_prompt_keeps_repeated_tokens_apart():
    lines = {"post": np.array([0.5, 0.0, 2.0]), "pre": np.array([0.7, -1.0, 2.0])}
    spec = read(neuron_along_prompt(lines, ["the", "<b>", "the"], theme="light", selected=2))
    assert [trace["type"] for trace in spec["data"]] == ["bar", "scatter"]
    assert array(spec["data"][0]["y"]).tolist() == [0.5, 0, 2]
    assert spec["layout"]["xaxis"]["labelalias"] == {"0": "the", "1": "&lt;b&gt;", "2": "the"}
    assert spec["layout"]["shapes"][0]["x0"] == 1.5


def test_a_gated_neuron_has_three_lines():
    lines = {name: np.array([1.0]) for name in ("post", "gate", "linear")}
    spec = read(neuron_along_prompt(lines, ["a"], theme="light", selected=0))
    assert len({trace.get("marker", {}).get("symbol") for trace in spec["data"][1:]}) == 2


def test_what_is_written_up_and_down_has_different_colours():
    spec = read(written_bars(["<b>", "x"], np.array([0.25, -0.5]), theme="light"))
    (bars,) = spec["data"]
    assert bars["text"] == ["0.25", "−0.5"]
    assert bars["marker"]["color"] == [style.colour("feed_forward", "light"), style.colour("attention", "light")]
    assert spec["layout"]["yaxis"]["ticktext"] == ["&lt;b&gt;", "x"]
    low, high = spec["layout"]["xaxis"]["range"]
    assert low == -high < -0.5
