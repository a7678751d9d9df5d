"""Pages on a prompt of more tokens than a matrix shows exactly: what they keep and send."""

import json

import numpy as np
import pytest

from gptviz.ui import state
from gptviz.ui.components.ahead import MOST, fitting

from .conftest import OnlyModel, OpenPage, tile_pixels

LENGTH = 300
IDS = tuple(int(id) for id in np.random.default_rng(0).integers(50, size=LENGTH))
PROMPT = " ".join(map(str, IDS))


@pytest.fixture
def long_model(only_model: OnlyModel) -> str:
    return only_model(None, block_size=400).name


def components(at) -> dict[str, bytes]:
    return {element.proto.id.rsplit("-", 1)[-1]: element.proto.bytes for element in at.get("bidi_component")}


def test_a_page_s_trace_keeps_all_but_the_scores(long_model):
    run = state.trace(state.Variant(long_model, True, "learned"), IDS)
    assert "blocks.1.attn.hook_pattern" in run.activations
    assert "blocks.1.mlp.hook_post" in run.activations
    assert not [name for name in run.activations if name.endswith("hook_attn_scores")]
    assert run.nbytes == 4 * sum(value.numel() for value in (*run.activations.values(), run.logits)) + 8 * LENGTH


def test_the_chosen_head_is_sent_with_a_byte_a_cell_and_no_other_head_ahead(open_page: OpenPage, long_model):
    at = open_page("attention", prompt=PROMPT, layer="1", head="2")
    assert not at.exception
    sent = components(at)
    text, _, behind = sent["attention_heatmap"].partition(b"\0")
    assert len(behind) == 2 * LENGTH + LENGTH * (LENGTH + 1) // 2
    steps = np.array(json.loads(text)["figure"]["data"][0]["z"]["steps"])
    codes = np.frombuffer(behind[2 * LENGTH :], np.uint8)
    run = state.trace(state.Variant(long_model, True, "learned"), IDS)
    weights = run.pattern(1, 2)[np.tri(LENGTH, dtype=bool)]
    assert np.abs(steps[codes] - weights).max() < 0.004 + 1e-6  # half of the widest step
    assert not json.loads(sent["heads_ahead"])["entries"]


@pytest.mark.parametrize("stage", ["raw", "masked", "values", "output"])
def test_every_stage_is_drawn(open_page: OpenPage, long_model, stage):
    assert not open_page("attention", prompt=PROMPT, stage=stage).exception


def test_the_overview_pools_every_head(open_page: OpenPage, long_model):
    at = open_page("overview", prompt=PROMPT)
    assert not at.exception
    pixels = tile_pixels(at, "pipeline")["1.3"]
    assert pixels.shape == (64, 64)
    pattern = state.trace(state.Variant(long_model, True, "learned"), IDS).pattern(1, 3)
    row, column = np.unravel_index(np.argmax(pattern), pattern.shape)
    assert pixels[row * 64 // LENGTH, column * 64 // LENGTH] == np.rint(pattern.max() * 254)


def test_as_many_heads_go_ahead_as_have_room():
    weights = 100 * 101 // 2 * 4
    assert fitting(weights) * weights * 4 / 3 <= MOST < (fitting(weights) + 1) * weights * 4 / 3
    assert fitting(1024 * 1025 // 2 * 4) == 0
