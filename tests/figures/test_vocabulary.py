import numpy as np
import pytest

from gptviz.figures.vocabulary import MOST_NAMES, Places, vocabulary_map
from tests.figures.spec import array, read


def places(n, labels=None, seed=0):
    points = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    return Places(points, labels or [f"·tok{at}" for at in range(n)], np.arange(100, 100 + n))


def drawn(dimensions=2, prompt=None, theme="light"):
    shares = np.array([0.5, 0.25, 0.125])
    prompt = prompt or places(3, ["<b>", "$x$", "the"])
    return read(vocabulary_map(places(20), prompt, places(1), theme=theme, shares=shares, dimensions=dimensions))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_flat_map_has_the_vocabulary_the_prompt_and_the_chosen_token(theme):
    spec = drawn(theme=theme)
    assert [trace["name"] for trace in spec["data"]] == ["vocabulary", "in the prompt", "chosen"]
    assert np.array_equal(array(spec["data"][0]["y"]), places(20).points[:, 1])
    assert [row[1] for row in spec["data"][0]["customdata"]] == list(range(100, 120))
    assert spec["layout"]["yaxis"]["scaleanchor"] == "x"
    assert spec["layout"]["xaxis"]["title"]["text"] == "component 1: 50% of the variance"


def test_names_of_the_prompts_tokens_are_literal():
    prompt = drawn()["data"][1]
    assert prompt["text"] == ["&lt;b&gt;", "$x$", "the"]
    assert [row[0] for row in prompt["customdata"]] == prompt["text"]
    assert "customdata" in prompt["hovertemplate"]


def test_the_deep_map_is_a_scene():
    spec = drawn(dimensions=3)
    assert {trace["type"] for trace in spec["data"]} == {"scatter3d"}
    assert np.array_equal(array(spec["data"][0]["z"]), places(20).points[:, 2])
    assert spec["layout"]["scene"]["zaxis"]["title"]["text"] == "3: 12.5%"


def test_names_in_a_scene_are_literal_too():
    """Its text knows no entities, but tags: `<b>` must not become one."""
    names = drawn(dimensions=3)["data"][1]["text"]
    assert names == ["<\u2060b>", "$x$", "the"]


def test_a_long_prompt_is_named_on_hover_only():
    assert "text" not in drawn(prompt=places(MOST_NAMES + 1))["data"][1]
    assert len(drawn(prompt=places(MOST_NAMES))["data"][1]["text"]) == MOST_NAMES


def test_one_token_alone():
    one = places(1)
    read(vocabulary_map(one, one, one, theme="light", shares=np.zeros(3), dimensions=2))
