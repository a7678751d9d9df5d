"""The Sizing page as a person uses it, without a browser."""

import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.config import preset
from gptviz.sizing import Workload, memory, n_params, si

PAGE = Path(__file__).parents[2] / "pages" / "sizing.py"
VIEWS = ["Parameters", "Memory", "Operations", "Growth", "Compare"]


@pytest.fixture
def page():
    """page(**widgets by key) -> the page with GPT-2 on it."""

    def open_page(**values):
        at = AppTest.from_file(str(PAGE), default_timeout=60)
        at.session_state["configuration"] = "gpt2"
        for key, value in values.items():
            at.session_state[key] = value
        return shown(at.run())

    return open_page


def shown(at):
    assert not at.exception
    return at


def metric(at, label):
    return next(metric.value for metric in at.metric if metric.label == label)


def number(at, field):
    return at.number_input(key=f"gpt2.{field}")


def pictures(at):
    return len(at.get("bidi_component"))


@pytest.mark.parametrize(("view", "expected"), list(zip(VIEWS, [1, 1, 1, 3, 1], strict=True)))
def test_every_view_has_its_pictures_and_its_formula(page, view, expected):
    at = page(view=view)
    assert pictures(at) == expected
    assert any(expander.label == "The formula" for expander in at.expander)
    assert metric(at, "Parameters") == "124,439,808"


def test_an_edit_is_followed_by_every_number(page):
    at = page()
    number(at, "n_layer").set_value(24)
    shown(at.run())
    deeper = preset("gpt2", n_layer=24)
    assert metric(at, "Parameters") == f"{n_params(deeper):,}"
    assert metric(at, "Memory") == si(memory(deeper).total, "B")


def test_a_field_left_empty_follows_the_others(page):
    at = page()
    assert number(at, "d_mlp").value is None
    number(at, "n_embd").set_value(1536)
    shown(at.run())
    assert metric(at, "Parameters") == f"{n_params(preset('gpt2', n_embd=1536)):,}"


def test_another_starting_point_brings_its_own_fields(page):
    at = page()
    at.selectbox(key="configuration").set_value("llama3-8b")
    shown(at.run())
    assert metric(at, "Parameters") == "8,030,261,248"
    assert at.number_input(key="llama3-8b.n_kv_head").value == 8


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("n_head", 7, "does not divide"),
        ("n_layer", 0, "n_layer = 0 is out of range"),
        ("n_embd", -768, "n_embd = -768 is out of range"),
        ("vocab_size", 10**12, "vocab_size = 1000000000000 is out of range"),
        ("n_embd", 12 * 10**8, "d_mlp = 4800000000 is out of range"),
    ],
)
def test_bad_input_says_so_and_keeps_what_was_there(page, field, value, complaint):
    at = page()
    number(at, "n_layer").set_value(13)
    before = metric(shown(at.run()), "Parameters")
    number(at, field).set_value(value)
    shown(at.run())
    (error,) = at.error
    assert complaint in error.value
    assert metric(at, "Parameters") == before
    assert pictures(at) == 1


def test_the_largest_sizes_are_drawn_like_any_other(page):
    for view in VIEWS:
        at = page(view=view)
        for field in ("n_layer", "vocab_size", "block_size"):
            number(at, field).set_value(2**31 - 1)
        number(at, "n_embd").set_value(12 * 10**7)
        shown(at.run())
        assert not at.error


def test_more_context_than_positions_is_refused_with_a_remedy(page):
    (error,) = page(context=5000).error
    assert "raise block_size" in error.value


def test_training_takes_what_the_package_says(page):
    at = page(use="Training", batch=4, dtype="mixed", optimizer="Muon", kernel="explicit", checkpointing=True)
    workload = Workload(
        training=True, batch=4, dtype="mixed", optimizer="muon", attention="explicit", checkpointing=True
    )
    assert metric(at, "Memory") == si(memory(preset("gpt2"), workload).total, "B")


def test_what_plays_no_part_is_disabled_and_says_why(page):
    at = page()
    assert at.selectbox(key="optimizer").disabled
    assert "training alone" in at.selectbox(key="optimizer").help
    assert page(use="Training").selectbox(key="logits").disabled


def test_the_course_ledger_and_the_difference_are_on_the_page(page):
    at = page(configuration="gpt_from_scratch", biases="left out")
    html = " ".join(element.proto.body for element in at.get("html"))
    assert "3,314,176" in html
    assert any("9,216" in caption.value for caption in at.caption)


def test_an_accelerator_can_be_edited_and_a_wrong_one_is_refused(page):
    at = page(view="Operations")
    at.number_input(key="NVIDIA A100 80 GB.tflops").set_value(1.0)
    assert not shown(at.run()).error
    at.number_input(key="NVIDIA A100 80 GB.tflops").set_value(-1.0)
    (error,) = shown(at.run()).error
    assert "must be a positive number" in error.value


@pytest.mark.parametrize("other", ["gpt2", "minimal_decoder", "llama3-70b"])
def test_two_configurations_are_compared_under_one_workload(page, other):
    at = page(view="Compare", other=other)
    html = " ".join(element.proto.body for element in at.get("html"))
    assert f"{other} (other)" in html


def test_a_link_reproduces_the_view(open_page):
    fields = {"llama3-8b.n_layer": "16", "batch": "4", "dtype": "float32"}
    at = shown(open_page("sizing", configuration="llama3-8b", view="Memory", **fields))
    config = preset("llama3-8b", n_layer=16)
    assert metric(at, "Parameters") == f"{n_params(config):,}"
    assert metric(at, "Memory") == si(memory(config, Workload(batch=4, dtype="float32")).total, "B")
    assert any(heading.value == "Fits on" for heading in at.subheader)


def test_the_page_does_without_torch():
    code = (
        "import sys; from streamlit.testing.v1 import AppTest; "
        f"at = AppTest.from_file({str(PAGE)!r}, default_timeout=60).run(); "
        "sys.exit(bool(at.exception) or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
