"""What the Residual stream page draws, against the model itself."""

import json
import math
import re
from typing import get_args

import numpy as np
import pytest
import torch.nn.functional as F

import gptviz
from gptviz.config import PosEncoding
from gptviz.tokenizer import train_bpe
from tests.analysis.test_logit_lens import KINDS
from tests.figures.spec import array, cells, read, ticks

from .conftest import PROMPT, _component, figure, said
from .test_frame import AWKWARD

PAGE = "residual_stream"


def lens(at) -> dict:
    return json.loads(_component(at, "lens_table").bytes)


def check_of(at, start: str) -> float:
    """The error that a visible check reports."""
    sentence = next(c.value for c in at.caption if c.value.startswith("Check") and start in c.value)
    error = re.search(r"error is (\S+(?: × 10\S+)?)", sentence)[1].rstrip(".")
    mantissa, _, power = error.partition(" × 10")
    return float(mantissa) * 10 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def test_every_cell_of_the_lens_is_what_the_layer_would_predict(open_page, checkpoint, run):
    shown, probs = lens(open_page(PAGE, prompt=PROMPT)), gptviz.analysis.logit_lens(checkpoint.model, run)
    assert shown["columns"] == ["embed", "block 0", "block 1", "block 2", "block 3"]
    for position in range(len(run.ids)):
        expected = checkpoint.tokenizer.labels(probs[:, position].argmax(-1).tolist())
        assert shown["text"][position] == expected
    assert shown["rows"][1] == "1 The"


@pytest.mark.parametrize(
    ("measure", "name"), [("Rank", "rank"), ("Entropy", "entropy"), ("KL", "kl"), ("Probability", "probability")]
)
def test_the_colour_is_the_chosen_measure(open_page, checkpoint, run, measure, name):
    shown = lens(open_page(PAGE, prompt=PROMPT, lens=measure))
    values = getattr(gptviz.analysis.lens_summary(checkpoint.model, run), name).T
    levels = np.array(shown["levels"])
    assert levels.shape == values.shape
    order = np.argsort(values, axis=None, kind="stable")
    assert (np.diff(levels.flatten()[order]) >= 0).all(), "a larger number never has a weaker colour"
    assert levels.min() == 0 or measure == "Probability"


def test_the_last_token_and_the_last_layer_are_chosen_until_another_cell_is(open_page, run):
    at = open_page(PAGE, prompt=PROMPT)
    assert lens(at)["selected"] == [len(run.ids) - 1, 4]
    at.session_state["position"], at.session_state["lens_layer"] = 3, 1
    at.run()
    assert lens(at)["selected"] == [3, 1]
    assert "After block 0, at ‘·sat’" in said(at) or "After block 0, at" in said(at)


def test_the_chosen_cell_lists_its_most_likely_tokens(open_page, checkpoint, run):
    at = open_page(PAGE, prompt=PROMPT)
    at.session_state["position"], at.session_state["lens_layer"] = 5, 2
    at.run()
    row = gptviz.analysis.lens_logits(checkpoint.model, run, 2, 5)
    table = next(e.proto.body for e in at.get("html") if "In the end" in e.proto.body)
    best = checkpoint.tokenizer.labels(np.argsort(-row)[:10].tolist())
    assert re.findall(r'<th scope="row">(.*?)</th>', table) == best


def test_the_parts_add_up_to_the_logit(open_page, run):
    at = open_page(PAGE, prompt=PROMPT)
    bars = read(figure(at, "attribution"))["data"][0]
    lengths = dict(zip(bars["customdata"], array(bars["x"]), strict=True))
    logit = float(run.logits[-1].max())
    assert lengths.pop("logit") == pytest.approx(logit, abs=1e-4)
    assert sum(lengths.values()) == pytest.approx(logit, abs=1e-4)
    assert len(lengths) == 2 + 4 * 5 + 1
    assert check_of(at, "the parts sum to") < 1e-4


def test_against_another_token_the_parts_add_up_to_the_difference(open_page, run):
    at = open_page(PAGE, prompt=PROMPT)
    at.selectbox(key="against").select_index(1).run()
    bars = read(figure(at, "attribution"))["data"][0]
    best = run.logits[-1].sort(descending=True).values
    lengths = dict(zip(bars["customdata"], array(bars["x"]), strict=True))
    assert lengths["difference"] == pytest.approx(float(best[0] - best[1]), abs=1e-4)
    assert lengths["biases"] != 0
    assert check_of(at, "the parts sum to") < 1e-4


def test_the_token_that_came_can_be_asked_about(open_page, run):
    at = open_page(PAGE, prompt=PROMPT)
    at.session_state["position"] = 4
    at.run()
    box = at.selectbox(key="token")
    box.select_index(len(box.options) - 1).run()
    assert at.selectbox(key="token").options[-1].startswith("came next:")
    bars = read(figure(at, "attribution"))["data"][0]
    assert array(bars["x"])[-1] == pytest.approx(float(run.logits[4, run.ids[5]]), abs=1e-4)


def test_loss_and_perplexity_are_the_models(open_page, run):
    at = open_page(PAGE, prompt=PROMPT)
    losses = F.cross_entropy(run.logits[:-1], run.ids[1:], reduction="none").numpy()
    np.testing.assert_allclose(array(read(figure(at, "predictions"))["data"][0]["y"]), losses, rtol=1e-4, atol=1e-6)
    shown = float(re.search(r"Perplexity of the prompt: ([\d.,]+)", said(at))[1].replace(",", ""))
    assert shown == pytest.approx(math.exp(losses.mean()), rel=5e-3)
    bits = float(re.search(r"tokens is .*?, ([\d.]+) bits per byte", said(at))[1])
    assert bits == pytest.approx(losses.sum() / math.log(2) / len(PROMPT), rel=5e-3)


def test_what_perplexity_counts_is_said_with_the_first_token_and_without(open_page):
    assert "Counted is every token after `<|endoftext|>`" in said(open_page(PAGE, prompt=PROMPT))
    assert "The first token, `The`, is not counted" in said(open_page(PAGE, prompt=PROMPT, bos="false"))


def test_generated_tokens_are_shown_and_not_counted(open_page, run):
    at = open_page(PAGE, prompt=PROMPT)
    before = re.search(r"Perplexity of the prompt: (\S+)", said(at))[1]
    at.button(key="step").click().run()
    assert re.search(r"Perplexity of the prompt: (\S+)", said(at))[1] == before
    assert "Generated tokens are not counted" in said(at)
    bars = read(figure(at, "predictions"))["data"][0]
    assert bars["marker"]["pattern"]["shape"] == [""] * (len(run.ids) - 1) + ["/"]
    assert len(lens(at)["rows"]) == len(run.ids) + 1


@pytest.mark.parametrize("shown", ["Length", "Length added", "Direction added", "Norm's scale"])
def test_every_view_of_the_stream_is_the_packages(open_page, run, shown):
    at = open_page(PAGE, prompt=PROMPT, stream=shown)
    drawn, added = figure(at, "stream_heatmap"), gptviz.analysis.additions(run)
    expected = {
        "Length": gptviz.analysis.stream_norms(run),
        "Length added": added.share,
        "Direction added": added.cosine,
        "Norm's scale": gptviz.analysis.norm_scales(run)[1],
    }[shown]
    assert np.allclose([cells(drawn)[at] for at in np.ndindex(expected.shape)], expected.flatten(), rtol=1e-4)
    assert len(ticks(drawn, "x")) == len(run.ids)
    assert check_of(at, "in every block") < 1e-5


def test_the_lens_checks_itself(open_page):
    assert check_of(open_page(PAGE, prompt=PROMPT), "the last column's logits") < 1e-4


def test_without_the_mask_nothing_is_foretold(open_page):
    assert "has seen the token after it" in said(open_page(PAGE, prompt=PROMPT, causal="false"))


@pytest.mark.parametrize("encoding", get_args(PosEncoding))
def test_every_encoding_keeps_the_sums(open_page, encoding):
    at = open_page(PAGE, prompt=PROMPT, encoding=encoding)
    assert not at.exception
    assert check_of(at, "the parts sum to") < 1e-3
    assert check_of(at, "the last column's logits") < 1e-3


@pytest.mark.parametrize("prompt", AWKWARD.values(), ids=AWKWARD.keys())
def test_any_prompt_is_drawn_as_it_is(open_page, prompt):
    at = open_page(PAGE, prompt=prompt)
    assert not at.exception
    assert not at.error
    assert check_of(at, "the parts sum to") < 1e-3


def test_one_token_has_a_lens_and_no_past_to_judge(open_page):
    at = open_page(PAGE, prompt="a", bos="false")
    assert not at.exception
    assert len(lens(at)["rows"]) == 1
    assert "there is no token after it yet" in said(at)


def test_a_full_context_is_within_the_payload(open_page):
    at = open_page(PAGE, prompt="a b" * 100)
    assert len(lens(at)["rows"]) == 128
    assert sum(len(e.proto.bytes) for e in at.get("bidi_component")) < 300_000


def test_a_position_beyond_a_shorter_prompt_falls_back_to_the_last(open_page):
    at = open_page(PAGE, prompt=PROMPT)
    at.session_state["position"] = 7
    at.run()
    at.text_area(key="prompt").set_value("ab").run()
    assert not at.exception
    shown = lens(at)
    assert shown["selected"][0] == len(shown["rows"]) - 1


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS.keys())
def test_any_architecture_adds_up(open_page, only_model, changes):
    only_model(None, **changes)
    at = open_page(PAGE, prompt="7 31 2 48 7 0 19", model="only")
    assert not at.exception
    assert check_of(at, "the parts sum to") < 1e-3
    assert check_of(at, "the last column's logits") < 1e-3
    assert check_of(at, "in every block") < 1e-5


def test_rows_of_padding_are_never_predicted(open_page, only_model):
    tokenizer = train_bpe(["a b c"], 257)
    only_model(tokenizer, vocab_size=300)
    at = open_page(PAGE, prompt="a b c", model="only")
    assert not at.exception
    assert not at.error


def test_more_positions_than_the_table_holds_are_reached_by_a_slider(open_page, only_model):
    only_model(None, block_size=200)
    at = open_page(PAGE, prompt=" ".join(["7"] * 150), model="only")
    assert not at.exception
    assert len(lens(at)["rows"]) == 128
    assert lens(at)["rows"][-1] == "149 ·7"
    at.slider(key="lens_first").set_value(0).run()
    assert lens(at)["rows"][0] == "0 ·7"
