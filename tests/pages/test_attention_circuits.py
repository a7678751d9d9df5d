"""The Attention page's circuits, against a forward pass and the package."""

import numpy as np
import pytest

import gptviz
from gptviz.analysis import circuit_eigenvalues, eigenvalue_score, ov_circuit
from gptviz.figures.style import number
from gptviz.ui.attention import circuits
from tests.figures.spec import array, hover, read, ticks

from .conftest import PROMPT, figure, said


def test_nothing_is_computed_before_it_is_asked_for(open_page, monkeypatch):
    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(circuits, "_circuits", fail)
    monkeypatch.setattr(circuits, "_scores", fail)
    at = open_page("attention", prompt=PROMPT)
    assert not at.exception
    assert at.toggle(key="circuits").value is False
    assert "Circuits" in [heading.value for heading in at.subheader]


def test_a_link_opens_them_for_the_different_tokens_of_the_prompt(open_page, checkpoint, run):
    at = open_page("attention", prompt=PROMPT, circuits="true", layer="1", head="2")
    assert not at.exception
    unique = list(dict.fromkeys(run.ids.tolist()))
    labels = checkpoint.tokenizer.labels(unique)
    assert len(unique) < len(run.ids)
    for key in ("qk_circuit", "ov_circuit"):
        assert ticks(figure(at, key), "x") == ticks(figure(at, key), "y") == labels
    assert f"The {len(unique)} different tokens" in said(at)
    drawn = array(read(figure(at, "ov_circuit"))["data"][0]["z"])
    np.testing.assert_allclose(drawn, ov_circuit(checkpoint.model, unique, 1, 2, len(checkpoint.tokenizer)), atol=1e-4)


def test_the_scores_drawn_are_those_of_layer_0_without_positions(open_page, checkpoint):
    """From a forward pass of the different tokens, without a mask; each row less its mean."""
    at = open_page("attention", prompt="The little girl was", circuits="true", head="1")
    bare = gptviz.variant(checkpoint.model, pos_encoding="none", causal=False)
    ids = checkpoint.tokenizer.encode("The little girl was", bos=True)
    assert len(set(ids.tolist())) == len(ids)
    scores = gptviz.trace(bare, ids)["blocks.0.attn.hook_attn_scores"][1].numpy()
    drawn = array(read(figure(at, "qk_circuit"))["data"][0]["z"])
    np.testing.assert_allclose(drawn, scores - scores.mean(1, keepdims=True), atol=1e-4)
    labels = checkpoint.tokenizer.labels(ids.tolist())
    assert hover(figure(at, "qk_circuit"), 1, 2).startswith(f"query ‘{labels[1]}’, key ‘{labels[2]}’: ")


def test_how_much_the_head_matches_and_copies_is_said(open_page, checkpoint):
    at = open_page("attention", prompt=PROMPT, circuits="true", head="2")
    found = circuit_eigenvalues(checkpoint.model, 0, 2, len(checkpoint.tokenizer))
    assert f"Matching score {number(eigenvalue_score(found.qk))}" in said(at)
    assert f"Copying score {number(eigenvalue_score(found.ov))}" in said(at)


def test_the_table_names_what_each_token_promotes(open_page, checkpoint, run):
    at = open_page("attention", prompt=PROMPT, circuits="true", head="2")
    body = next(e.proto.body for e in at.get("html") if "Promotes" in e.proto.body)
    size, unique = len(checkpoint.tokenizer), list(dict.fromkeys(run.ids.tolist()))
    moved = ov_circuit(checkpoint.model, range(size), 0, 2)[unique]
    assert body.count("<tr") == 1 + len(unique)
    for row in moved:
        [best] = checkpoint.tokenizer.labels([int(row.argmax())])
        if not set(best) & set("<>&"):
            assert f"\u2068{best}\u2069’ {number(float(row.max()))}" in body


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("learned", "Left out: positions and what earlier layers write."),
        ("rotary", "Left out: rotary’s turning and what earlier layers write."),
        ("alibi", "Left out: ALiBi’s bias and what earlier layers write."),
        ("none", "Left out: what earlier layers write."),
    ],
)
def test_what_is_left_out_is_said(open_page, encoding, words):
    at = open_page("attention", prompt=PROMPT, circuits="true", encoding=encoding, layer="1")
    assert not at.exception
    assert words in said(at)


def test_in_layer_0_without_positions_nothing_is_left_out(open_page):
    assert "Left out" not in said(open_page("attention", prompt=PROMPT, circuits="true", encoding="none"))


def test_one_token(open_page):
    at = open_page("attention", prompt="a", bos="false", circuits="true")
    assert not at.exception
    assert "The only token of the prompt" in said(at)
    assert array(read(figure(at, "qk_circuit"))["data"][0]["z"]).tolist() == [[0]]


def test_many_tokens_come_some_at_a_time(open_page, checkpoint):
    labels = checkpoint.tokenizer.labels(range(len(checkpoint.tokenizer)))
    words = [label.replace("·", " ") for label in labels if label.startswith("·") and label[1:].isalpha()][:90]
    at = open_page("attention", prompt="".join(words), circuits="true")
    assert not at.exception
    assert "different tokens of the prompt, 64 at a time" in said(at)
    first = ticks(figure(at, "qk_circuit"), "x")
    assert len(first) == 64
    at.selectbox(key="circuit_tokens").select(64).run()
    rest = ticks(figure(at, "ov_circuit"), "x")
    assert f"The {len(first) + len(rest)} different tokens" in said(at)
    assert not set(first) & set(rest)


def test_tokens_are_literal(open_page):
    at = open_page("attention", prompt='<img src=x onerror="alert(1)"> $5 **y** 🤗', bos="false", circuits="true")
    assert not at.exception
    assert "<img" not in next(e.proto.body for e in at.get("html") if "Promotes" in e.proto.body)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_kv_head": 2, "norm": "rmsnorm", "gated_mlp": True, "tie_weights": False, "pos_encoding": "rotary"},
        {"qk_norm": True, "qkv_bias": False, "pos_encoding": "rotary"},
        {"parallel_residual": True, "unembed_bias": True, "pos_encoding": "alibi", "scale_by_layer": True},
    ],
    ids=str,
)
def test_any_architecture(open_page, only_model, changes):
    only_model(None, **changes)
    at = open_page("attention", prompt="1 2 3 49 2", circuits="true", layer="1", head="3")
    assert not at.exception
    assert ticks(figure(at, "qk_circuit"), "x") == ["·1", "·2", "·3", "·49"]


def test_another_head_is_another_circuit(open_page, only_model, make_model):
    only_model(None)
    at = open_page("attention", prompt="4 5", circuits="true")
    before = array(read(figure(at, "ov_circuit"))["data"][0]["z"])
    np.testing.assert_allclose(before, ov_circuit(make_model(), [4, 5], 0, 0), atol=1e-4)
    at.selectbox(key="head").select(3).run()
    np.testing.assert_allclose(
        array(read(figure(at, "ov_circuit"))["data"][0]["z"]), ov_circuit(make_model(), [4, 5], 0, 3), atol=1e-4
    )
