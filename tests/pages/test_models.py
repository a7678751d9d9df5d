"""The Models page without a browser: cards, adding, removing, what is refused."""

import json
import shutil
from html import unescape
from pathlib import Path

import pytest
import streamlit as st
import torch
from streamlit.testing.v1 import AppTest

import gptviz
from gptviz import checkpoints, library
from gptviz.tokenizer import IdsTokenizer, train_bpe
from tests.conftest import MakeModel
from tests.pages.conftest import OpenPage
from tests.test_hostile import nanogpt


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path / "home"))
    st.cache_resource.clear()
    st.cache_data.clear()
    return tmp_path / "home"


@pytest.fixture
def cats(tmp_path: Path, make_model: MakeModel) -> Path:
    words = train_bpe(["Once upon a time there was a cat. "], 260)
    model = make_model(vocab_size=262, bos_token_id=0, n_layer=1, norm="rmsnorm", gated_mlp=True, activation="silu")
    card = {"name": "cats", "licence": "MIT <b>x</b>", "steps": 7, "validation": {"nats_per_token": 1.5}}
    return gptviz.save(checkpoints.Checkpoint(model, words, card), tmp_path / "cats")


def said(at: AppTest) -> str:
    kinds = at.markdown, at.text, at.caption, at.error, at.success
    words = [element.value for kind in kinds for element in kind]
    return "\n".join(words + [unescape(element.proto.body) for element in at.get("html")])


def add_folder(at: AppTest, path: object) -> AppTest:
    at.text_input(key="add_path").set_value(str(path)).run()
    return at.button(key="add_folder_now").click().run()


def test_the_bundled_model_has_a_card(open_page: OpenPage):
    at = open_page("models")
    assert not at.exception
    for words in ("3,323,392", "4 layers × 4 heads", "learned positions, LayerNorm, GELU", "1.54 nats"):
        assert words in said(at), words
    assert at.button(key="first stories").disabled


def test_a_folder_is_added_checked_and_listed(open_page: OpenPage, cats: Path):
    at = add_folder(open_page("models", add_way="Folder"), cats)
    assert not at.exception
    assert "`cats` was added" in said(at)
    assert "RMSNorm, SwiGLU" in said(at)
    bodies = [element.proto.body for element in at.get("html")]
    assert any("<dd>MIT &lt;b&gt;x&lt;/b&gt;</dd>" in body for body in bodies)
    report = next(e.proto.body for e in at.get("html") if "none missing, none left over" in e.proto.body)
    assert f"{gptviz.sizing.n_params(gptviz.load('cats').model.config):,}" in report
    assert library.added() == ["cats"]


def test_an_added_model_is_in_every_sidebar_and_may_come_first(open_page: OpenPage, cats: Path):
    at = add_folder(open_page("models", add_way="Folder"), cats)
    at.button(key="first cats").click().run()
    assert library.default() == "cats"
    page = open_page("attention", prompt="a cat")
    assert not page.exception
    assert page.selectbox(key="model").options == ["cats", *gptviz.bundled()]
    assert page.selectbox(key="model").value == "cats"


def test_a_model_can_be_removed(open_page: OpenPage, cats: Path):
    at = add_folder(open_page("models", add_way="Folder"), cats)
    at.button(key="remove cats").click().run()
    assert not at.exception
    assert library.added() == []
    assert "remove cats" not in [button.key for button in at.button]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda folder: (folder / "config.json").write_text("{"), "is not JSON"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b""), "it is empty"),
        (lambda folder: (folder / "config.json").write_text(json.dumps({"model_type": "t5"})), "can't be read"),
        (lambda folder: (folder / "config.json").unlink(), "no checkpoint"),
    ],
    ids=range(4),
)
def test_what_can_t_be_read_says_why_and_the_page_stays(open_page: OpenPage, cats: Path, spoil, sentence: str):
    spoil(cats)
    at = add_folder(open_page("models", add_way="Folder"), cats)
    assert not at.exception
    assert len(at.error) == 1
    assert sentence in at.error[0].value.replace("\\", "")
    assert library.added() == []
    assert "stories" in said(at)


def test_a_nanogpt_without_a_vocabulary_is_ids(open_page: OpenPage, tmp_path: Path):
    at = add_folder(open_page("models", add_way="Folder"), nanogpt(tmp_path / "ckpt.pt"))
    assert "`ckpt` was added" in said(at)
    assert any("a prompt is token ids" in element.proto.body for element in at.get("html"))


def test_a_name_on_the_hub_that_can_t_be_fetched(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    at = open_page("models", add_way="Hugging Face Hub")
    at.text_input(key="add_hub").set_value("someone/dogs").run()
    at.button(key="add_hub_now").click().run()
    assert not at.exception
    assert "could not be fetched from the Hub" in at.error[0].value


def test_a_folder_that_someone_spoilt_keeps_the_page(open_page: OpenPage, home: Path):
    folder = home / "models" / "broken"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"n_layer": "<b>x</b>"}')
    at = open_page("models")
    assert not at.exception
    assert "n_layer" in at.error[0].value.replace("\\", "")
    at.button(key="remove broken").click().run()
    assert not folder.exists()


KINDS = {
    "llama": dict(
        pos_encoding="rotary",
        norm="rmsnorm",
        gated_mlp=True,
        activation="silu",
        n_kv_head=2,
        tie_weights=False,
        rope_scaling="llama3",
        rope_factor=8.0,
    ),
    "neox": dict(pos_encoding="rotary", d_rotary=4, parallel_residual=True, tie_weights=False),
    "neo": dict(attn_scale=1.0, windows=(0, 4), qkv_bias=False),
    "qwen3": dict(pos_encoding="rotary", norm="rmsnorm", gated_mlp=True, activation="silu", n_kv_head=1, qk_norm=True),
    "nanogpt": dict(qkv_bias=False, out_bias=False, mlp_bias=False, norm_bias=False),
    "gpt2": dict(activation="gelu_tanh", scale_by_layer=True),
}
PAGES = ("overview", "embeddings", "attention", "feed_forward", "residual_stream", "sampling")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_is_shown_by_every_page(open_page: OpenPage, tmp_path: Path, make_model: MakeModel, kind, page):
    model = make_model(**KINDS[kind])
    made = gptviz.save(checkpoints.Checkpoint(model, IdsTokenizer(50)), tmp_path / kind)
    checkpoints.add(made)
    at = open_page(page, model=kind, prompt="7 31 2 48 7 0 19")
    assert not at.exception
    assert not at.error
    assert torch.equal(gptviz.load(kind).model.embed.weight, model.embed.weight)


def test_a_zip_on_this_machine_is_added_like_one_that_is_uploaded(open_page: OpenPage, cats: Path):
    packed = shutil.make_archive(str(cats.parent / "packed"), "zip", cats)
    at = add_folder(open_page("models", add_way="Folder"), packed)
    assert not at.exception
    assert "`packed` was added" in said(at)
    assert "1 layer × " in said(at)


def test_a_refusal_empties_the_uploader_and_stays_said(open_page: OpenPage):
    at = open_page("models")
    at.file_uploader[0].set_value(("notes.docx", b"x", "application/octet-stream")).run()
    at.button(key="add_files_now").click().run()
    assert "is no part of a checkpoint" in said(at)
    assert at.session_state["models_count"] == 1
    assert at.button(key="add_files_now").disabled  # nothing is left to be refused again
