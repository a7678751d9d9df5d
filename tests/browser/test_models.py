"""The Models page in a real browser: a model is dropped in, used, and removed."""

import itertools
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import gptviz
from gptviz.checkpoints import Checkpoint
from gptviz.tokenizer import train_bpe
from tests.browser.conftest import Serve, Visit
from tests.conftest import MakeModel

APP = Path(__file__).parents[2] / "app.py"
SIZES = itertools.count(64)  # MB; another option makes another server
PATIENT = 60_000  # ms: the first visit reads torch


@pytest.fixture
def folder(tmp_path: Path, make_model: MakeModel) -> Path:
    words = train_bpe(["Once upon a time there was a cat. "], 260)
    model = make_model(vocab_size=262, bos_token_id=0, pos_encoding="rotary", norm="rmsnorm", n_kv_head=2)
    return gptviz.save(Checkpoint(model, words, {"name": "cats"}), tmp_path / "cats")


def drop(page: Page, *files: Path) -> None:
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(list(files))
    page.get_by_role("button", name="Add these files").click(timeout=PATIENT)


@pytest.fixture
def library(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a server that has its own, empty library."""
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path / "home"))
    return serve(APP, f"--server.maxUploadSize={next(SIZES)}")


def test_a_model_is_dropped_in_used_and_removed(library: str, visit: Visit, folder: Path):
    page = visit(f"{library}/models")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_role("heading", name=re.compile(r"^stories(?!-)"))).to_be_visible(timeout=PATIENT)
    page.get_by_label("Name (optional)").fill("my cats")
    page.get_by_label("Name (optional)").press("Enter")
    drop(page, *sorted(folder.iterdir()))
    expect(main.get_by_text("was added")).to_be_visible(timeout=PATIENT)
    expect(main.get_by_text("rotary positions, RMSNorm")).to_be_visible()
    other = visit(f"{library}/attention?model=my-cats")
    expect(other.get_by_text("2 layers × 4 heads")).to_be_visible(timeout=PATIENT)
    expect(other.get_by_text("every row sums to 1")).to_be_visible(timeout=PATIENT)
    main.get_by_test_id("stPopoverButton").click()
    page.get_by_role("button", name="Delete").click()
    expect(main.get_by_text("rotary positions, RMSNorm")).to_have_count(0)


def test_what_can_t_be_read_says_why_and_the_page_stays(library: str, visit: Visit, tmp_path: Path):
    page = visit(f"{library}/models")
    main = page.get_by_test_id("stMain")
    (tmp_path / "ckpt.pt").write_bytes(b"PK not really")
    drop(page, tmp_path / "ckpt.pt")
    expect(main.get_by_text("ckpt.pt is not a whole PyTorch file")).to_be_visible(timeout=PATIENT)
    expect(main.get_by_role("heading", name=re.compile(r"^stories(?!-)"))).to_be_visible()
