"""The Training page as a person uses it, without a browser: the time-lapse against its snapshots; the live form."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz import GPTConfig, library
from gptviz.analysis.timelapse import moment
from gptviz.tokenizer import train_bpe
from gptviz.training import Options, Snapshots, grammar, train
from gptviz.training.live import Live
from tests.figures.spec import array, cells, read

from .conftest import _component, chip_texts, figure

PAGE = Path(__file__).parents[2] / "pages" / "training.py"
STEPS = (0, 2, 5)
BLOCK = 32


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the snapshots of a run of five steps."""
    home = tmp_path_factory.mktemp("home")
    stories = grammar.stories(60)
    tokenizer = train_bpe(stories, 300)
    shape = dict(n_layer=2, n_head=2, n_embd=16, block_size=BLOCK, dropout=0.0, pos_encoding="rotary")
    config = GPTConfig(vocab_size=len(tokenizer), bos_token_id=tokenizer.bos_id, **shape)
    options = Options(steps=5, batch_size=2, warmup=0, eval_every=2)
    kept = Snapshots(home / "runs" / "timelapse" / "tried", STEPS)
    list(train(config, stories[:-5], tokenizer, options, validation=stories[-5:], snapshots=kept))
    return home


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path))
    monkeypatch.setattr("gptviz.library.BUNDLED", tmp_path)
    return tmp_path


@pytest.fixture
def lapse(snapshots: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the snapshots; there are no others."""
    monkeypatch.setenv("GPTVIZ_HOME", str(snapshots))
    monkeypatch.setattr("gptviz.library.BUNDLED", snapshots)
    return snapshots / "runs" / "timelapse" / "tried"


def opened(open_page, **params: str) -> AppTest:
    at = open_page("training", **params)
    assert not at.exception
    return at


def moved_to(at: AppTest, step: int) -> AppTest:
    at.session_state["lapse step"] = step
    assert not at.run().exception
    return at


@pytest.mark.parametrize("step", STEPS)
def test_a_step_shows_what_that_snapshot_computes(open_page, lapse: Path, step: int):
    at = moved_to(opened(open_page, prompt="Lily saw a red ball", lapse_layer="1", lapse_head="1"), step)
    ckpt = gptviz.load(lapse / f"{step:06d}")
    ids = ckpt.tokenizer.encode("Lily saw a red ball", bos=True)
    run = gptviz.trace(ckpt.model, ids)
    pattern = run["blocks.1.attn.hook_pattern"][1].numpy()
    shown = cells(figure(at, "lapse_attention"))
    assert len(shown) == len(ids) * (len(ids) + 1) // 2  # the future is blank
    assert all(value == pytest.approx(pattern[at_], abs=1e-5) for at_, value in shown.items())
    best = run.logits[-1, : len(ckpt.tokenizer)].softmax(-1).sort(descending=True).values[:7]
    assert np.allclose(array(read(figure(at, "lapse_next"))["data"][0]["x"]), best, atol=1e-5)
    scores = gptviz.analysis.head_scores(run)["previous_token"]
    assert np.allclose(array(read(figure(at, "lapse_heads"))["data"][0]["z"]), scores, atol=1e-5)
    (facts,) = [block.value for block in at.markdown if block.value.startswith("**Step")]
    assert facts.startswith(f"**Step {step}** · {step * 2 * BLOCK:,} tokens seen · training loss")


def test_the_marker_follows_the_slider(open_page, lapse: Path):
    at = opened(open_page)
    for step in (5, 0, 2):
        moved_to(at, step)
        for key in ("lapse_loss", "lapse_scores"):
            assert read(figure(at, key))["layout"]["annotations"][0]["text"] == f"step {step}"


def test_what_is_sent_ahead_is_what_each_step_shows(open_page, lapse: Path):
    at = opened(open_page, prompt="Lily saw the ball. Lily saw", lapse_layer="1")
    places = json.loads(_component(at, "reel").bytes)["places"]
    assert len(places) == len(STEPS)
    for place, step in zip(places, STEPS, strict=True):
        moved_to(at, step)
        assert set(place) == {"lapse_loss", "lapse_scores", "lapse_attention", "lapse_next", "lapse_heads"}
        assert all(text.encode() == _component(at, key).bytes for key, text in place.items())


def test_what_is_sent_ahead_follows_the_chosen_head(open_page, lapse: Path):
    at = opened(open_page, prompt="Lily saw the ball.")
    before = json.loads(_component(at, "reel").bytes)["places"]
    at.selectbox(key="lapse_head").set_value(1).run()
    after = json.loads(_component(at, "reel").bytes)["places"]
    assert before[1]["lapse_attention"] != after[1]["lapse_attention"]
    assert before[1]["lapse_loss"] == after[1]["lapse_loss"]


def test_the_prompt_runs_through_the_snapshots_once(open_page, lapse: Path, monkeypatch: pytest.MonkeyPatch):
    computed = []

    def counting(*args):
        computed.append(args)
        return moment(*args)

    monkeypatch.setattr("gptviz.analysis.timelapse.moment", counting)
    at = opened(open_page, prompt="A prompt of its own, never seen before")
    assert len(computed) == len(STEPS)
    for step in STEPS:
        moved_to(at, step)
    at.selectbox(key="lapse_head").set_value(1).run()
    assert len(computed) == len(STEPS)


def test_the_lens_ends_with_the_model_s_own_token(open_page, lapse: Path):
    at = opened(open_page, prompt="Lily saw")
    (html,) = [e.proto.body for e in at.get("html") if "gptviz-table" in e.proto.body and "embedding" in e.proto.body]
    ckpt = gptviz.load(lapse / "000005")
    best = int(gptviz.trace(ckpt.model, ckpt.tokenizer.encode("Lily saw", bos=True)).logits[-1].argmax())
    (label,) = ckpt.tokenizer.labels([best])
    assert html.rsplit("block 1", 1)[1].split("<td>")[1].split("</td>")[0] == label
    assert any(c.value.startswith("Check: the last row is the model’s own output") for c in at.caption)


@pytest.mark.parametrize(
    "prompt", ["🤗", "<b>x</b> <img src=x onerror=alert(1)>", "$5 _x_ :red[w]", "   ", "a\0b", "the the the"]
)
def test_awkward_prompts_are_shown_as_they_are(open_page, lapse: Path, prompt: str):
    at = opened(open_page, prompt=prompt)
    assert not at.error
    assert chip_texts(at)[0] == "<|endoftext|>"
    assert not [block for block in at.markdown if prompt.strip() and prompt in block.value]


def test_one_token_and_the_longest_prompt(open_page, lapse: Path):
    at = opened(open_page, prompt="")
    assert len(cells(figure(at, "lapse_attention"))) == 1
    assert any("nothing to measure" in info.value for info in at.info)
    at = opened(open_page, prompt="Lily saw a red ball. " * 40)
    assert len(chip_texts(at)) == BLOCK
    assert any("only the end is shown" in caption.value for caption in at.caption)


def test_without_snapshots_the_page_says_how_to_get_some(open_page, own_home: Path):
    at = opened(open_page)
    assert "There are no snapshots yet" in at.info[0].value


def test_a_link_opens_at_its_step(open_page, lapse: Path):
    for link, step in (("2", 2), ("0", 0), ("3", 5), ("x", 5)):  # what there is no snapshot of is the last
        at = opened(open_page, step=link)
        assert read(figure(at, "lapse_loss"))["layout"]["annotations"][0]["text"] == f"step {step}"
        assert scrubbed(at)["at"] == STEPS.index(step)


def scrubbed(at: AppTest) -> dict:
    """What the slider was told."""
    (proto,) = [e.proto for e in at.get("bidi_component") if e.proto.id.endswith("-scrubber")]
    return json.loads(proto.bytes)


def test_the_live_form_and_its_refusals(open_page, own_home: Path):
    at = opened(open_page, training_view="Live")
    assert at.text_input(key="live_name").value == "mine"
    at.text_input(key="live_name").set_value("no/such").run()
    at.button(key="live_start").click().run()
    assert "is no name for a model" in at.error[0].value
    at.text_input(key="live_name").set_value("fine")
    at.segmented_control(key="live_source").set_value("Pasted text").run()
    at.text_area(key="live_text").set_value("<b>short</b>")
    at.button(key="live_start").click().run()
    assert "too few to learn from" in at.error[0].value
    at.segmented_control(key="live_source").set_value("A file").run()
    at.button(key="live_start").click().run()
    assert "There is no file yet" in at.error[0].value
    assert Live().status().phase == "none"


@pytest.fixture
def going_on(own_home: Path) -> Iterator[Live]:
    yield Live()
    Live().pause()
    while Live().status().phase in ("running", "stopping"):
        pass


def test_what_the_form_says_is_what_is_trained(open_page, going_on: Live):
    tiny = "tiny: 1 layer, 2 heads, width 64"
    at = opened(open_page, training_view="Live", live_preset=tiny, live_steps="3")
    at.selectbox(key="live_encoding").set_value("alibi")
    at.toggle(key="live_causal").set_value(False)
    at.button(key="live_start").click().run()
    assert not at.exception
    assert at.subheader[0].value == "Training is going on"
    while going_on.status().phase == "running":
        pass
    assert going_on.status().phase == "finished", going_on.status()
    at = opened(open_page, training_view="Live")
    assert at.subheader[0].value == "Training has finished"
    config = gptviz.load(library.folder("mine")).model.config
    assert (config.n_layer, config.n_embd, config.pos_encoding, config.causal) == (1, 64, "alibi", False)
    assert read(figure(at, "live_loss"))["data"][0]["name"] == "training"
    at = opened(open_page)  # its snapshots are a time-lapse
    assert scrubbed(at)["words"] == ["0", "1", "2", "3"]
    assert "has finished: see Live" in at.info[0].value
    at = opened(open_page, training_view="Live")
    at.button(key="live_train_another").click().run()
    assert at.text_input(key="live_name").value == "mine-2"


def test_the_live_half_does_without_torch():
    code = (
        "import sys; from streamlit.testing.v1 import AppTest; "
        f"at = AppTest.from_file({str(PAGE)!r}, default_timeout=60); "
        "at.query_params['training_view'] = 'Live'; at.run(); "
        "sys.exit(bool(at.exception) or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
