"""The Sizing page as a person uses it, without a browser: what the session holds is what the fields say."""

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from gptviz import sizing
from gptviz.config import preset
from gptviz.sizing import Workload, memory, n_params, si
from gptviz.ui.sizing import editor

PAGE = Path(__file__).parents[2] / "pages" / "sizing.py"
VIEWS = ["Parameters", "Memory", "Operations", "Growth", "Compare"]


@pytest.fixture
def page():
    """page(**values by the fields' names) -> the page with GPT-2 on it."""

    def open_page(**values):
        at = AppTest.from_file(str(PAGE), default_timeout=60)
        return run(at, **{"configuration": "gpt2", **values})

    return open_page


def run(at, **values):
    """The whole page with these values in the session."""
    for name, value in values.items():
        at.session_state[name] = value
    return shown(at.run())


def shown(at):
    assert not at.exception
    return at


def html(at):
    return unescape(" ".join(element.proto.body for element in at.get("html")))


def headline(at, label):
    return re.search(rf'<dt>{label}</dt><dd class="number">(.*?)</dd>', html(at))[1]


def components(at, name):
    return [element.proto for element in at.get("bidi_component") if element.proto.component_name.endswith(name)]


def pictures(at):
    return len(components(at, "gptviz_plot"))


def fields(at):
    """Every field of every form, by name, as the browser is told."""
    forms = [json.loads(form.bytes) for form in components(at, "gptviz_form")]
    return {field["name"]: field for form in forms for group in form["groups"] for field in group["fields"]}


@pytest.mark.parametrize(("view", "expected"), list(zip(VIEWS, [1, 1, 1, 3, 1], strict=True)))
def test_every_view_has_its_pictures_and_its_formula(page, view, expected):
    at = page(view=view)
    assert pictures(at) == expected
    assert any(expander.label == "The formula" for expander in at.expander)
    assert headline(at, "Parameters") == "124,439,808"


def test_every_field_has_its_meaning(page):
    told = fields(page(view="Compare"))
    assert {f"gpt2.{name}" for name in editor.FIELDS} | {f"B.gpt2.{name}" for name in editor.FIELDS} <= told.keys()
    assert all(len(field["help"]) > 10 for field in told.values())


def test_an_edit_is_followed_by_every_number(page):
    at = page(**{"gpt2.n_layer": 24})
    deeper = preset("gpt2", n_layer=24)
    assert headline(at, "Parameters") == f"{n_params(deeper):,}"
    assert headline(at, "Memory") == si(memory(deeper).total, "B")
    assert headline(at, "Prefill") == si(sizing.flops(deeper).total, "FLOP")
    assert "24 × 7,087,872" in html(at)


def test_another_view_draws_its_own_parts_and_none_of_the_fields_again(monkeypatch, page):
    monkeypatch.undo()  # parts are drawn alone here
    at = page()
    next(control for control in at.button_group if control.key == "view").set_value("Growth")
    assert pictures(shown(at.run())) == 3
    assert not fields(at)
    assert "gptviz-numbers'" not in html(at)


def test_a_field_left_empty_follows_the_others(page):
    at = page()
    assert fields(at)["gpt2.d_mlp"]["value"] is None
    assert fields(at)["gpt2.d_mlp"]["placeholder"] == "3,072"
    run(at, **{"gpt2.n_embd": 1536})
    assert headline(at, "Parameters") == f"{n_params(preset('gpt2', n_embd=1536)):,}"


def test_another_starting_point_brings_its_own_fields(page):
    at = page(configuration="llama3-8b")
    assert headline(at, "Parameters") == "8,030,261,248"
    assert fields(at)["llama3-8b.n_kv_head"]["value"] == 8
    assert "gpt2.n_layer" not in fields(at)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("n_head", 7, "does not divide"),
        ("n_layer", 0, "n_layer = 0 is out of range"),
        ("n_layer", None, "n_layer = null is not a whole number"),
        ("n_layer", 2.5, "n_layer = 2.5 is not a whole number"),
        ("n_layer", "1e400", 'n_layer = "1e400" is not a whole number'),
        ("n_embd", -768, "n_embd = -768 is out of range"),
        ("vocab_size", 10**12, "vocab_size = 1000000000000 is out of range"),
        ("n_embd", 12 * 10**8, "d_mlp = 4800000000 is out of range"),
        ("dropout", 1.0, "dropout = 1.0 is not a probability"),
    ],
)
def test_bad_input_says_so_and_keeps_what_was_there(page, field, value, complaint):
    at = page(**{"gpt2.n_layer": 13})
    before = headline(at, "Parameters")
    run(at, **{f"gpt2.{field}": value})
    (error,) = at.error
    assert complaint in error.value
    assert headline(at, "Parameters") == before
    assert pictures(at) == 1


@pytest.mark.parametrize("batch", [0, -1, "1e400", None, 1.5])
def test_a_batch_that_is_none_is_refused(page, batch):
    (error,) = page(batch=batch).error
    assert "batch = " in error.value


def test_the_largest_sizes_are_drawn_like_any_other(page):
    most = {f"gpt2.{field}": 2**31 - 1 for field in ("n_layer", "vocab_size", "block_size")}
    for view in VIEWS:
        assert not page(view=view, **most, **{"gpt2.n_embd": 12 * 10**7}).error


@pytest.mark.parametrize("view", VIEWS)
def test_the_smallest_sizes_are_drawn_too(page, view):
    least = {f"gpt2.{field}": 1 for field in ("n_layer", "n_head", "n_embd", "vocab_size", "block_size")}
    at = page(view=view, **least)
    assert not at.error
    assert headline(at, "Parameters") == "29"  # 2 embeddings, 2 + 6 + 2 + 2 + 8 + 5 in the block, a norm of 2
    assert pictures(at) == (3 if view == "Growth" else 1)


def test_more_context_than_positions_is_refused_with_a_remedy(page):
    (error,) = page(context=5000).error
    assert "raise block_size" in error.value


def test_training_takes_what_the_package_says(page):
    at = page(use="Training", batch=4, dtype="mixed", optimizer="Muon", kernel="explicit", checkpointing=True)
    workload = Workload(
        training=True, batch=4, dtype="mixed", optimizer="muon", attention="explicit", checkpointing=True
    )
    assert headline(at, "Memory") == si(memory(preset("gpt2"), workload).total, "B")


def test_what_plays_no_part_is_disabled_and_says_why(page):
    told = fields(page())
    assert told["optimizer"]["disabled"]
    assert "training alone" in told["optimizer"]["help"]
    told = fields(page(use="Training"))
    assert told["logits"]["disabled"]
    assert not told["optimizer"]["disabled"]


def test_the_course_ledger_and_the_difference_are_on_the_page(page):
    at = page(configuration="gpt_from_scratch", biases="left out")
    assert "3,314,176" in html(at)
    assert "9,216" in html(at)


def test_what_was_published_is_said_until_an_edit_makes_another_model_of_it(page):
    said = [caption.value for caption in page(configuration="gpt3-175b").caption]
    assert any("175.0B" in text and "174,604,259,328" in text for text in said)
    said = [caption.value for caption in page(configuration="llama2-7b").caption]
    assert any("6,738,415,616, the same" in text for text in said)
    edited = page(configuration="gpt3-175b", **{"gpt3-175b.n_layer": 95})
    assert not any("Published" in caption.value for caption in edited.caption)


def test_an_accelerator_can_be_edited_and_a_wrong_one_is_refused(page):
    at = page(view="Operations", **{"NVIDIA A100 80 GB.tflops": 1.0})
    assert not at.error
    assert "ridge: 0.49" in components(at, "gptviz_plot")[0].bytes.decode()
    for value in (-1.0, "1e400"):
        (error,) = run(at, **{"NVIDIA A100 80 GB.tflops": value}).error
        assert "must be a positive number" in error.value


@pytest.mark.parametrize("name", sizing.ACCELERATORS)
def test_an_accelerators_numbers_name_their_source(page, name):
    known = sizing.ACCELERATORS[name]
    at = page(view="Operations", accelerator=name)
    assert any(known.source in caption.value and known.arithmetic in caption.value for caption in at.caption)
    assert float(fields(at)[f"{name}.tflops"]["placeholder"]) * 1e12 == pytest.approx(known.flops, rel=1e-3)


def test_float32_is_said_to_reach_less_than_the_accelerators_16_bit_peak(page):
    assert "in float32 it reaches less" in html(page(view="Operations", dtype="float32"))
    assert "in float32 it reaches less" not in html(page(view="Operations"))


@pytest.mark.parametrize("other", ["gpt2", "minimal_decoder", "llama3-70b"])
def test_two_configurations_are_compared_under_one_workload(page, other):
    at = page(view="Compare", other=other)
    assert "A: gpt2" in html(at)
    assert f"B: {other}" in html(at)


def test_both_sides_of_a_comparison_can_be_edited(page):
    at = page(view="Compare", **{"gpt2.n_layer": 24, "B.gpt2.n_embd": 1536})
    assert "A: gpt2, edited" in html(at)
    assert "B: gpt2, edited" in html(at)
    mine, theirs = (n_params(preset("gpt2", **changes)) for changes in (dict(n_layer=24), dict(n_embd=1536)))
    assert f"<td>{si(mine, '')}</td><td>{si(theirs, '')}</td>" in html(at)
    assert "<td>768</td><td>1,536</td>" in html(at)


def test_a_second_configuration_that_is_none_is_said_and_the_one_before_stays(page):
    at = page(view="Compare", **{"B.gpt2.n_layer": 13})
    run(at, **{"B.gpt2.n_head": 7})
    (error,) = at.error
    assert "does not divide" in error.value
    assert f"<td>{si(n_params(preset('gpt2', n_layer=13)), '')}</td>" in html(at)


def test_a_link_reproduces_the_view(open_page):
    linked = {"llama3-8b.n_layer": "16", "llama3-8b.tie_weights": "true", "batch": "4", "dtype": "float32"}
    at = shown(open_page("sizing", configuration="llama3-8b", view="Memory", **linked))
    config = preset("llama3-8b", n_layer=16, tie_weights=True)
    assert headline(at, "Parameters") == f"{n_params(config):,}"
    assert headline(at, "Memory") == si(memory(config, Workload(batch=4, dtype="float32")).total, "B")
    assert "Fits on" in html(at)


@pytest.mark.parametrize(
    "linked",
    [
        {"configuration": "<b>x</b>", "dtype": "float7", "use": "", "kernel": "$5 _x_"},
        {"gpt2.tie_weights": "perhaps", "gpt2.norm": "batchnorm", "biases": "\0"},
    ],
)
def test_a_link_that_gives_what_no_field_has_is_passed_over(open_page, linked):
    at = shown(open_page("sizing", **{"configuration": "gpt2", **linked}))
    assert not at.error


@pytest.mark.parametrize("value", ["many", "<b>x</b>", "9" * 5000, "--3", "1e5"])
def test_a_link_that_gives_no_number_gets_a_sentence(open_page, value):
    at = shown(open_page("sizing", configuration="gpt2", **{"gpt2.n_layer": value}))
    (error,) = at.error
    assert "n_layer = " in error.value
    assert headline(at, "Parameters") == "124,439,808"


def test_the_page_does_without_torch_and_its_first_numbers_without_numpy():
    code = (
        "import sys; from gptviz.ui.sizing import controls, parts, redraw; "
        "heavy = {'torch', 'numpy', 'pandas', 'transformers'} & sys.modules.keys(); "
        "from streamlit.testing.v1 import AppTest; "
        f"at = AppTest.from_file({str(PAGE)!r}, default_timeout=60).run(); "
        "sys.exit(bool(heavy or at.exception or {'torch', 'pandas', 'transformers'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
