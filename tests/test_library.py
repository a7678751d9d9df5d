"""Models that were added: kept whole or not at all, by names that lead nowhere else."""

import io
import json
import os
import pickle
import stat
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gptviz
from gptviz import Checkpoint, GptvizError, checkpoints, library
from gptviz.tokenizer import CharTokenizer, IdsTokenizer, train_bpe
from tests.test_hostile import nanogpt
from tests.test_hostile import with_bomb as bomb


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path / "home"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path, make_model: Callable[..., Any]) -> Path:
    words = train_bpe(["Once upon a time there was a cat. "], 260)
    card = {"name": "cats", "licence": "MIT"}
    return gptviz.save(Checkpoint(make_model(vocab_size=262, bos_token_id=0), words, card), tmp_path / "cats")


def files(folder: Path) -> list[tuple[str, io.BytesIO]]:
    return [(path.name, io.BytesIO(path.read_bytes())) for path in sorted(folder.iterdir())]


def zipped(folder: Path, inside: str = "", compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, inside + path.name)
    return made


def left_behind(home: Path) -> list[str]:
    return [str(path) for path in [*home.glob("**/*"), *(home.parent / "temporary").iterdir()] if path.is_file()]


def test_an_added_model_is_loaded_by_its_name(folder: Path, home: Path):
    report = checkpoints.add(folder)
    assert (report.name, report.entries) == ("cats", 260)
    assert report.parameters == gptviz.sizing.n_params(gptviz.load(folder).model.config)
    assert report.perplexity is not None
    assert report.perplexity > 1
    loaded, ids = gptviz.load("cats"), torch.tensor([[1, 2, 3]])
    assert torch.equal(loaded.model(ids), gptviz.load(folder).model(ids))
    assert loaded.card["licence"] == "MIT"
    assert library.added() == ["cats"]
    entry = next(entry for entry in library.entries() if entry.name == "cats")
    assert entry.added
    assert entry.config == loaded.model.config
    assert (home / "models" / "cats" / "model.safetensors").is_file()


def test_the_same_name_again_gets_a_number_and_a_bundled_one_is_never_shadowed(folder: Path):
    assert [checkpoints.add(folder).name for _ in range(2)] == ["cats", "cats-2"]
    assert checkpoints.add(folder, "stories").name == "stories-2"
    assert checkpoints.add(folder, "../../etc/<b>passwd</b>").name == "b"
    assert checkpoints.add(folder, "..").name == "model"
    assert checkpoints.add(folder, "x" * 300).name == "x" * 56


def test_a_removed_model_is_gone_and_nothing_else_can_be_removed(folder: Path, home: Path):
    checkpoints.add(folder)
    library.set_default("cats")
    assert library.default() == "cats"
    library.remove("cats")
    assert library.added() == []
    assert library.default() is None
    for name in ("stories", "cats", "../cats", "", "."):
        with pytest.raises(GptvizError, match="can't be removed"):
            library.remove(name)
        with pytest.raises(GptvizError, match="There is no model"):
            library.set_default("nothing")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "a" * 65, "a\0b", "-x", ".hidden"])
def test_a_name_that_could_lead_elsewhere_is_refused(name: str):
    with pytest.raises(GptvizError, match="is no name for a model"):
        library.folder(name)


def test_the_files_of_a_folder_can_be_uploaded(folder: Path, home: Path):
    report = checkpoints.add_uploads(files(folder), "mine")
    assert report.name == "mine"
    assert (
        gptviz.load("mine").tokenizer.encode("a cat").tolist() == gptviz.load(folder).tokenizer.encode("a cat").tolist()
    )
    assert not list((home.parent / "temporary").iterdir())


@pytest.mark.parametrize("inside", ["", "cats/", "a/b/cats/"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_of_a_folder_can_be_uploaded(folder: Path, inside: str, compression: int):
    made = zipped(folder, inside, compression)
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("__MACOSX/._config.json", "x")
        archive.writestr(f"{inside}README.md", "hello")
    assert checkpoints.add_uploads([("my cats.zip", made)]).name == "my-cats"


def test_a_nanogpt_with_its_characters_can_be_uploaded(tmp_path: Path):
    content = io.BytesIO(nanogpt(tmp_path / "ckpt.pt").read_bytes())
    characters = {chr(33 + i): i for i in range(65)}
    report = checkpoints.add_uploads(
        [("ckpt.pt", content), ("meta.pkl", io.BytesIO(pickle.dumps({"stoi": characters})))]
    )
    assert report.perplexity is None  # the sample has spaces, this vocabulary none
    assert gptviz.load(report.name).tokenizer.encode("AZ").tolist() == [characters["A"], characters["Z"]]


def test_one_weights_file_may_have_any_name(folder: Path):
    given = [(name.replace("model.safe", "my weights.safe"), content) for name, content in files(folder)]
    assert checkpoints.add_uploads(given).perplexity is not None


def test_16_bits_are_kept_as_16_bits(tmp_path: Path, make_model: Callable[..., Any], home: Path):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        half = gptviz.save(Checkpoint(make_model(), IdsTokenizer(50)), tmp_path / str(dtype).split(".")[1], dtype)
        name = checkpoints.add(half).name
        sizes = [(where / "model.safetensors").stat().st_size for where in (half, home / "models" / name)]
        assert sizes[0] == pytest.approx(sizes[1], rel=0.1)
        ids = torch.tensor([[1, 2]])
        assert torch.equal(gptviz.load(name).model(ids), gptviz.load(half).model(ids))


def entry(made: io.BytesIO, name: str, content: bytes = b"x", mode: int = 0) -> io.BytesIO:
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, mode << 16
        archive.writestr(info, content)
    return made


BAD_ZIPS: dict[str, tuple[Callable[[Path], io.BytesIO], str]] = {
    "up": (lambda folder: entry(zipped(folder), "../../evil.txt"), "which leads out of the archive"),
    "up, Windows": (lambda folder: entry(zipped(folder), "..\\..\\evil.txt"), "which leads out of the archive"),
    "absolute": (lambda folder: entry(zipped(folder), "/etc/cron.d/evil"), "which leads out of the archive"),
    "drive": (lambda folder: entry(zipped(folder), "C:\\evil"), "which leads out of the archive"),
    "link": (
        lambda folder: entry(zipped(folder), "card2.json", b"/etc/passwd", stat.S_IFLNK | 0o777),
        "which leads out of the archive",
    ),
    "bomb": (lambda folder: entry(zipped(folder / ".."), "ckpt.pt", bytes(300_000_000)), "that is a bomb"),
    "two models": (lambda folder: entry(zipped(folder), "other/model.safetensors"), "holds 2 folders with weights"),
    "none": (lambda folder: entry(io.BytesIO(), "README.md"), "holds 0 folders with weights"),
    "twice": (lambda folder: entry(zipped(folder), "config.json"), "can't be unpacked"),
    "cut": (lambda folder: io.BytesIO(zipped(folder).getvalue()[:-50]), "can't be unpacked"),
    "empty": (lambda folder: io.BytesIO(), "can't be unpacked"),
    "text": (lambda folder: io.BytesIO(b"hello"), "can't be unpacked"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", BAD_ZIPS)
def test_a_zip_that_lies_leaves_nothing(folder: Path, home: Path, case: str, monkeypatch: pytest.MonkeyPatch):
    make, sentence = BAD_ZIPS[case]
    if case == "bomb":
        empty = folder.parent / "empty" / "sub"
        empty.mkdir(parents=True)
        made = entry(io.BytesIO(), "ckpt.pt", bytes(300_000_000))
    else:
        made = make(folder)
    with pytest.raises(GptvizError, match=sentence) as error:
        checkpoints.add_uploads([("cats.zip", made)])
    assert "\n" not in str(error.value)
    assert left_behind(home) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "no file was given"),
        ([("evil.sh", b"rm")], "is no part of a checkpoint"),
        ([("../../.bashrc", b"x")], r"'\.bashrc' is no part of a checkpoint"),
        ([("config.json", b"{}")], "no weights among the files"),
        ([("config.json", b"{}"), ("x/config.json", b"{}")], "Two of the files are called 'config.json'"),
        ([("model.safetensors", b"")], r"no config\.json"),
        ([("ckpt.pt", b"")], "not a whole PyTorch file"),
        ([("config.json", b"{}"), ("model.safetensors", b"{}")], "not a whole safetensors file"),
    ],
    ids=str,
)
def test_uploads_that_are_no_model_leave_nothing(home: Path, given: list[tuple[str, bytes]], sentence: str):
    with pytest.raises(GptvizError, match=sentence):
        checkpoints.add_uploads([(name, io.BytesIO(content)) for name, content in given])
    assert left_behind(home) == []


def test_an_uploaded_pickle_with_code_runs_nothing(tmp_path: Path, home: Path):
    (tmp_path / "upload").mkdir()
    content = io.BytesIO(bomb(tmp_path / "upload" / "ckpt.pt").read_bytes())
    with pytest.raises(GptvizError, match="nothing of it was run"):
        checkpoints.add_uploads([("ckpt.pt", content)])
    assert not list(tmp_path.glob("**/executed"))
    assert left_behind(home) == []


def test_a_disk_that_is_full_leaves_nothing(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(checkpoints.saving, "save_file", full)
    with pytest.raises(GptvizError, match=r"could not be kept in .*No space left"):
        checkpoints.add(folder)
    assert left_behind(home) == []


def test_a_folder_that_someone_else_spoilt_is_listed_with_its_fault(folder: Path, home: Path):
    checkpoints.add(folder)
    (home / "models" / "cats" / "config.json").write_text(json.dumps({"n_layer": "x"}))
    entry = next(entry for entry in library.entries() if entry.name == "cats")
    assert entry.config is None
    assert "n_layer" in entry.fault


def test_characters_and_the_place_of_the_library(tmp_path: Path, make_model: Callable[..., Any], monkeypatch):
    letters = CharTokenizer({chr(32 + i): i for i in range(95)})
    made = gptviz.save(Checkpoint(make_model(vocab_size=95), letters), tmp_path / "letters")
    report = checkpoints.add(made)
    assert report.perplexity is not None
    monkeypatch.delenv("GPTVIZ_HOME")
    assert library.home() == Path(os.path.expanduser("~")) / ".gptviz"  # noqa: PTH111 - what the docs say
