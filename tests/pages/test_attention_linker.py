"""What the linker on the Attention page is given, against the model itself."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from gptviz.ui.attention import linker as section
from tests.conftest import MakeModel

from .conftest import PROMPT, chip_texts, said


def sent(at: AppTest) -> tuple[dict[str, Any], np.ndarray]:
    """Header and weights (H, T, T), zero where none was sent."""
    data = next(e.proto for e in at.get("bidi_component") if e.proto.id.endswith("-linker")).bytes
    (length,) = struct.unpack_from("<I", data)
    header, flat = json.loads(data[4 : 4 + length]), np.frombuffer(data, "<u2", offset=4 + length) / 65535
    heads, size = len(header["heads"]), len(header["labels"])
    weights = np.zeros((heads, size, size))
    rows = np.tri(size, dtype=bool) if header["triangle"] else np.ones((size, size), bool)
    weights[:, rows] = flat.reshape(heads, -1)
    return header, weights


def test_the_linker_has_the_patterns_of_the_chosen_layer(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="2", head="3")
    header, weights = sent(at)
    np.testing.assert_allclose(weights, run["blocks.2.attn.hook_pattern"].numpy(), atol=1e-5)
    assert (header["heads"], header["chosen"]) == ([0, 1, 2, 3], 3)
    assert header["labels"] == chip_texts(at)
    assert len(set(header["colours"])) == 4


def test_without_the_mask_the_future_is_sent(open_page):
    header, weights = sent(open_page("attention", prompt=PROMPT, causal="false"))
    assert not header["triangle"]
    assert (weights[:, np.triu_indices(weights.shape[1], 1)[0], np.triu_indices(weights.shape[1], 1)[1]] > 0).any()
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-3)


def test_it_is_said_in_words_what_the_head_does_and_what_is_left_out(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="1", head="2")
    header, _ = sent(at)
    last = run.pattern(1, 2)[-1]
    assert header["alt"].startswith("Layer 1, head 2")
    assert f"({last.argmax()}): {last.max():.3g}." in header["alt"]
    assert header["cut"] == 0.01
    assert "Weights below 0.01 are not drawn, nor those below 0.05 while no token is chosen." in said(at)


def test_what_would_be_too_much_is_the_chosen_head_alone(open_page, run, monkeypatch):
    monkeypatch.setattr(section, "MOST", 100)
    at = open_page("attention", prompt=PROMPT, layer="2", head="3")
    header, weights = sent(at)
    assert (header["heads"], len(header["colours"])) == ([3], 1)
    np.testing.assert_allclose(weights[0], run.pattern(2, 3), atol=1e-5)
    assert "this is the chosen one" in said(at)


@pytest.mark.parametrize("prompt", ["a", "the the the", "🤗 <b>x</b> $5 שלום"])
def test_every_prompt_has_a_linker(open_page, prompt):
    at = open_page("attention", prompt=prompt, bos="false")
    assert not at.exception
    header, weights = sent(at)
    assert header["labels"] == chip_texts(at)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-3)


def test_a_layer_with_one_head_and_shared_keys(open_page, only_model, make_model: MakeModel):
    only_model(None, n_head=1, n_kv_head=1)
    at = open_page("attention", model="only", prompt="1 2 3")
    assert not at.exception
    assert sent(at)[0]["heads"] == [0]


def test_with_many_tokens_nothing_is_drawn_until_one_is_chosen(open_page, monkeypatch):
    monkeypatch.setattr(section, "MOST_FAINT", 3)
    at = open_page("attention", prompt=PROMPT, long_lines="true")
    assert sent(at)[0]["faint"] is None
    assert "nor any while no token is chosen" in said(at)


def test_the_lines_of_a_long_text_are_drawn_when_asked_for(open_page, monkeypatch):
    monkeypatch.setattr(section, "MOST_FAINT", 3)
    at = open_page("attention", prompt=PROMPT)
    assert not [e for e in at.get("bidi_component") if e.proto.id.endswith("-linker")]
    at.toggle(key="long_lines").set_value(True).run()
    assert sent(at)[0]["labels"]
