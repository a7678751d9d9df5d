"""Models on disk: what was saved comes back, a failure leaves what was there, and untrusted files get a sentence."""

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz import GPT, Checkpoint, GptvizError, checkpoints
from gptviz.checkpoints import saving
from gptviz.tokenizer import IdsTokenizer, Tokenizer, train_bpe

IDS = torch.tensor([[7, 31, 2, 48, 7, 0]])


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe(["Once upon a time there was a cat. "], 260)


@pytest.fixture
def model(make_model: Callable[..., GPT]) -> GPT:
    return make_model(vocab_size=262, bos_token_id=0)


@pytest.fixture
def folder(tmp_path: Path, model: GPT, tokenizer: Tokenizer) -> Path:
    card = {"name": "a model", "text": "Märchen", "validation": {"nats_per_token": 1.5}}
    return gptviz.save(Checkpoint(model, tokenizer, card), tmp_path / "saved")


def test_what_was_saved_comes_back(folder: Path, model: GPT, tokenizer: Tokenizer):
    again = gptviz.load(folder)
    assert again.model.config == model.config
    assert torch.equal(again.model(IDS), model(IDS))
    assert not again.model.training
    assert again.tokenizer.encode("a cat", bos=True).tolist() == tokenizer.encode("a cat", bos=True).tolist()
    assert again.card == {"name": "a model", "text": "Märchen", "validation": {"nats_per_token": 1.5}}


@pytest.mark.parametrize(
    "changes",
    [
        {"tie_weights": False, "unembed_bias": True, "pos_encoding": "sinusoidal"},
        {"pos_encoding": "rotary", "norm": "rmsnorm", "gated_mlp": True, "n_kv_head": 2, "qk_norm": True},
        {"pos_encoding": "alibi", "parallel_residual": True, "qkv_bias": False, "d_head": 5},
        {"pos_encoding": "none", "causal": False, "norm_bias": False, "mlp_bias": False},
    ],
    ids=str,
)
def test_every_architecture_comes_back(tmp_path: Path, make_model: Callable[..., GPT], changes: dict[str, Any]):
    model = make_model(**changes)
    again = gptviz.load(gptviz.save(Checkpoint(model, IdsTokenizer(50)), tmp_path / "m")).model
    assert torch.equal(again(IDS), model(IDS))


def test_sixteen_bits_are_half_the_size_and_close(tmp_path: Path, folder: Path, model: GPT):
    half = gptviz.save(Checkpoint(model, IdsTokenizer(262)), tmp_path / "half", torch.float16)
    again = gptviz.load(half).model
    assert {p.dtype for p in again.parameters()} == {torch.float32}
    torch.testing.assert_close(again(IDS), model(IDS), atol=0.05, rtol=0.01)
    assert (half / "model.safetensors").stat().st_size < 0.6 * (folder / "model.safetensors").stat().st_size


def test_tied_weights_are_stored_once_and_are_one_tensor(folder: Path):
    assert "unembed.weight" not in load_file(folder / "model.safetensors")
    again = gptviz.load(folder).model
    assert again.unembed.weight is again.embed.weight


def test_without_a_vocabulary_a_prompt_is_ids(folder: Path):
    (folder / "tokenizer.json").unlink()
    assert gptviz.load(folder).tokenizer.encode("3 4", bos=True).tolist() == [0, 3, 4]


def test_a_file_is_loaded_by_its_own_name(folder: Path, model: GPT):
    other = (folder / "model.safetensors").rename(folder / "other.safetensors")
    (folder / "card.json").unlink()
    loaded = gptviz.load(other)
    assert torch.equal(loaded.model(IDS), model(IDS))
    assert loaded.card["name"] == "other"


class TestSaving:
    def contents(self, folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def test_replaces_the_whole_folder(self, folder: Path, model: GPT):
        gptviz.save(Checkpoint(model, IdsTokenizer(262), {"name": "new"}), folder)
        assert sorted(self.contents(folder)) == ["card.json", "config.json", "model.safetensors"]
        assert gptviz.load(folder).card["name"] == "new"
        assert [path.name for path in folder.parent.iterdir()] == ["saved"]

    @pytest.mark.parametrize("broken", ["save_file", "_swap"])
    def test_a_failure_leaves_what_was_there(
        self, folder: Path, model: GPT, broken: str, monkeypatch: pytest.MonkeyPatch
    ):
        def fail(*arguments: Any) -> None:
            raise OSError("No space left on device")

        before = self.contents(folder)
        monkeypatch.setattr(saving, broken, fail)
        with pytest.raises(OSError, match="No space"):
            gptviz.save(Checkpoint(model, IdsTokenizer(262)), folder)
        assert self.contents(folder) == before
        assert [path.name for path in folder.parent.iterdir()] == ["saved"]

    def test_a_folder_that_can_t_be_put_there_leaves_what_was_there(
        self, folder: Path, model: GPT, monkeypatch: pytest.MonkeyPatch
    ):
        before, replace = self.contents(folder), Path.replace

        def refuse(self: Path, target: Path) -> Path:
            if target == folder and "-old" not in self.name:
                raise PermissionError("not here")
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", refuse)
        with pytest.raises(PermissionError):
            gptviz.save(Checkpoint(model, IdsTokenizer(262)), folder)
        assert self.contents(folder) == before
        assert [path.name for path in folder.parent.iterdir()] == ["saved"]

    def test_never_removes_what_is_no_checkpoint(self, tmp_path: Path, model: GPT):
        (tmp_path / "thesis.tex").write_text("years of work")
        with pytest.raises(GptvizError, match=r"holds 'thesis\.tex', which saving here would remove"):
            gptviz.save(Checkpoint(model, IdsTokenizer(262)), tmp_path)
        with pytest.raises(GptvizError, match="is a file"):
            gptviz.save(Checkpoint(model, IdsTokenizer(262)), tmp_path / "thesis.tex")
        assert (tmp_path / "thesis.tex").read_text() == "years of work"

    def test_refuses_weights_that_the_type_can_t_hold(self, tmp_path: Path, make_model: Callable[..., GPT]):
        large = make_model(init_std=1e5)
        with pytest.raises(GptvizError, match=r"embed\.weight holds NaN, or more than float16 can hold"):
            gptviz.save(Checkpoint(large, IdsTokenizer(50)), tmp_path / "m", torch.float16)
        assert not list(tmp_path.iterdir())


def test_bundled_models_come_with_the_default_first(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("zebra", "stories", "alpha"):
        shutil.copytree(folder, tmp_path / "bundle" / name)
    (tmp_path / "bundle" / "no-model").mkdir()
    monkeypatch.setattr(checkpoints, "BUNDLED", tmp_path / "bundle")
    assert gptviz.bundled() == ["stories", "alpha", "zebra"]
    assert gptviz.load("zebra").card["name"] == "a model"


Spoil = Callable[[Path], Any]


def change(name: str, **values: Any) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return spoil


def write(name: str, content: bytes) -> Spoil:
    return lambda folder: (folder / name).write_bytes(content)


def remove(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def weights(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Spoil:
    def spoil(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        edit(tensors)
        save_file(tensors, folder / "model.safetensors")

    return spoil


def cut(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", (folder / "model.safetensors").stat().st_size // 2)


def oversized(folder: Path) -> None:
    with (folder / "tokenizer.json").open("wb") as file:
        file.truncate(checkpoints.LARGEST_JSON + 1)  # sparse: takes no room


SPOILT: dict[str, tuple[Spoil, str]] = {
    "no config": (remove("config.json"), r"no config\.json in .*no checkpoint"),
    "no weights": (remove("model.safetensors"), r"no model\.safetensors in"),
    "unknown field": (change("config.json", n_experts=8), "does not know: 'n_experts'. Remove them"),
    "wrong type": (change("config.json", n_layer="2"), 'n_layer = "2" is not a whole number'),
    "unknown encoding": (change("config.json", pos_encoding="xpos"), "pos_encoding = \"xpos\" is not one of 'learned'"),
    "unknown family": (
        change("config.json", model_type="mamba"),
        "type 'mamba' can't be read; these can: gpt2, gpt_neo",
    ),
    "unhashable family": (change("config.json", model_type=["gpt2"]), "can't be read"),
    "config is a list": (write("config.json", b"[]"), "holds no JSON object, but a list"),
    "config is no JSON": (write("config.json", b"{"), r"config\.json is not JSON"),
    "config is binary": (write("config.json", b"\xff\xfe\0"), r"config\.json can't be read"),
    "config is nested": (write("config.json", b"[" * 100_000), r"config\.json is not JSON"),
    "config has a huge number": (
        write("config.json", b'{"n_layer": ' + b"9" * 5000 + b"}"),
        r"config\.json is not JSON",
    ),
    "card is no JSON": (write("card.json", b"hello"), r"card\.json is not JSON"),
    "tokenizer is broken": (write("tokenizer.json", b"{}"), r"tokenizer\.json is not one"),
    "tokenizer is oversized": (oversized, r"tokenizer\.json is 64 MB: no real one is over 64 MB"),
    "tokenizer of another model": (change("config.json", vocab_size=256), "260 entries, more than the 256 rows"),
    "cut off": (cut, r"model\.safetensors is not a whole safetensors file"),
    "empty": (write("model.safetensors", b""), "not a whole safetensors file"),
    "JSON for weights": (write("model.safetensors", b'{"embed.weight": [1.0, 2.0]}'), "not a whole safetensors file"),
    "header of a terabyte": (
        write("model.safetensors", struct.pack("<Q", 2**40) + b"{}"),
        "not a whole safetensors file",
    ),
    "absurd depth": (change("config.json", n_layer=10**9), "n_layer = 1000000000; the file holds only"),
    "absurd width": (change("config.json", n_embd=10**9), r"embed\.weight has the shape \(262, 32\) in the file and"),
    "beyond any integer": (change("config.json", n_embd=10**12), "n_embd = 1000000000000 is out of range"),
    "one head more": (
        change("config.json", n_layer=1),
        r"holds blocks\.1\.attn.* and \d+ more, which this architecture",
    ),
    "other shape": (change("config.json", block_size=33), r"pos_embed\.weight has the shape \(32, 32\) .* \(33, 32\)"),
    "missing tensor": (weights(lambda t: t.pop("blocks.1.mlp.w_in.bias")), r"lacks blocks\.1\.mlp\.w_in\.bias, which"),
    "extra tensor": (
        weights(lambda t: t.update(lora=torch.ones(2))),
        "holds lora, which this architecture does not have",
    ),
    "NaN": (weights(lambda t: t["ln_final.weight"].fill_(torch.nan)), r"ln_final\.weight holds NaN"),
    "integers": (
        weights(lambda t: t.update({"ln_final.bias": torch.ones(32, dtype=torch.int8)})),
        r"ln_final\.bias holds I8, not floating-point weights",
    ),
}


@pytest.mark.parametrize("case", SPOILT)
def test_what_can_t_be_a_model_gets_a_sentence(folder: Path, case: str):
    spoil, sentence = SPOILT[case]
    spoil(folder)
    if case == "tokenizer of another model":
        weights(lambda t: t.update({"embed.weight": t["embed.weight"][:256].clone()}))(folder)
    with pytest.raises(GptvizError, match=sentence):
        gptviz.load(folder)


class Bomb:
    """Unpickling it would make a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_pickle_is_never_executed(folder: Path, tmp_path: Path):
    trap = tmp_path / "executed"
    (folder / "model.safetensors").write_bytes(pickle.dumps(Bomb(trap)))
    with pytest.raises(GptvizError, match="not a whole safetensors file"):
        gptviz.load(folder)
    torch.save(Bomb(trap), folder / "model.safetensors")
    with pytest.raises(GptvizError, match="not a whole safetensors file"):
        gptviz.load(folder)
    with pytest.raises(GptvizError, match=r"model\.pt can't be read: it asks for .*nothing of it was run"):
        gptviz.load((folder / "model.safetensors").rename(folder / "model.pt"))
    assert not trap.exists()
    pickle.loads(pickle.dumps(Bomb(trap)))  # the trap would have worked
    assert trap.exists()


@pytest.mark.parametrize("source", ["no-such-model", "/no/such/folder", "a\0b", "x" * 5000, "~"])
def test_a_place_where_nothing_is(source: str):
    with pytest.raises(GptvizError, match=r"There is no checkpoint|can't be looked at"):
        gptviz.load(source)


def test_a_vocabulary_smaller_than_the_embedding_is_padding(folder: Path):
    loaded = gptviz.load(folder)
    assert (len(loaded.tokenizer), loaded.model.config.vocab_size) == (260, 262)


class TestHub:
    @pytest.fixture(autouse=True)
    def _offline(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))

    def test_a_model_in_the_cache_loads_without_a_network(self, folder: Path, tmp_path: Path, model: GPT):
        cached, commit = tmp_path / "hub" / "models--someone--cats", "0" * 40
        shutil.copytree(folder, cached / "snapshots" / commit)
        (cached / "refs").mkdir()
        (cached / "refs" / "main").write_text(commit)
        assert torch.equal(gptviz.load("hf:someone/cats").model(IDS), model(IDS))

    def test_a_model_that_is_not_there_explains_itself(self):
        with pytest.raises(GptvizError, match="'someone/dogs' could not be fetched from the Hub: "):
            gptviz.load("hf:someone/dogs")

    @pytest.mark.parametrize("name", ["", "a/b/c", "no such"])
    def test_a_name_that_is_none(self, name: str):
        with pytest.raises(GptvizError, match="could not be fetched from the Hub: "):
            gptviz.load(f"hf:{name}")

    @pytest.mark.parametrize("name", ["../x", "a/../b", "a--b/c", "/etc/passwd", "a b/c", "x" * 5000 + "/"])
    def test_a_name_that_could_lead_elsewhere(self, name: str):
        with pytest.raises(GptvizError, match="could not be fetched from the Hub: a name there reads like"):
            gptviz.load(f"hf:{name}")

    @pytest.mark.parametrize(
        ("error", "sentence"),
        [
            ("GatedRepoError", "it is gated. Accept its terms.*hf auth login"),
            ("RepositoryNotFoundError", "there is no such model, or it is private"),
            ("RevisionNotFoundError", "it has no such revision"),
            ("LocalEntryNotFoundError", "the Hub can't be reached, and the model is not in the cache"),
        ],
    )
    def test_what_the_hub_says_is_explained(self, error: str, sentence: str, monkeypatch: pytest.MonkeyPatch):
        import huggingface_hub
        from huggingface_hub import errors

        kind = getattr(errors, error)
        raised = kind.__new__(kind, "no")  # its own __init__ wants a response of the Hub

        def refuse(*arguments: Any, **more: Any) -> str:
            raise raised

        monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
        with pytest.raises(GptvizError, match=f"'someone/dogs' could not be fetched from the Hub: {sentence}"):
            gptviz.load("hf:someone/dogs")

    def test_only_weights_that_are_data_are_asked_for_and_progress_is_told(
        self, folder: Path, model: GPT, monkeypatch: pytest.MonkeyPatch
    ):
        import huggingface_hub

        asked: dict[str, Any] = {}

        def download(name: str, *, tqdm_class: Any, **more: Any) -> str:
            asked.update(more, name=name)
            with tqdm_class(total=100, unit="B", unit_scale=True, name="x") as bar:
                bar.update(40)
                bar.update(60)
            with tqdm_class(range(3), desc="Fetching 3 files") as files:
                list(files)
            return str(folder)

        told: list[tuple[int, int]] = []
        monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
        loaded = gptviz.load("hf:someone/cats@v1", progress=lambda done, total: told.append((done, total)))
        assert torch.equal(loaded.model(IDS), model(IDS))
        assert told == [(40, 100), (100, 100)]
        assert (asked["name"], asked["revision"]) == ("someone/cats", "v1")
        assert not [pattern for pattern in asked["allow_patterns"] if pattern.endswith((".bin", ".pt", ".py"))]

    def test_a_repository_with_pytorch_s_own_file_only(self, folder: Path, model: GPT, monkeypatch: pytest.MonkeyPatch):
        import huggingface_hub

        weights = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()

        def download(name: str, *, allow_patterns: list[str], **more: Any) -> str:
            if "pytorch_model.bin" in allow_patterns:
                torch.save(weights, folder / "pytorch_model.bin")
            return str(folder)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
        assert torch.equal(gptviz.load("hf:someone/cats").model(IDS), model(IDS))
