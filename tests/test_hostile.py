"""Files that lie: one sentence each, nothing run, no memory taken, nothing left behind."""

import io
import json
import os
import pickle
import shutil
import struct
import tracemalloc
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import gptviz
from gptviz import Checkpoint, GptvizError
from gptviz.checkpoints import memory, pickles, torchfile
from gptviz.checkpoints import tensors as tensor_files
from gptviz.tokenizer import CharTokenizer

ARGS = dict(n_layer=2, n_head=4, n_embd=32, block_size=16, bias=True, vocab_size=65, dropout=0.1)


class Bomb:
    """Unpickling it would make a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def tensors(n_layer: int = 2, width: int = 32, bias: bool = True) -> dict[str, torch.Tensor]:
    """A nanoGPT state dict, by its names."""
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (65, width), "wpe.weight": (16, width), "ln_f.weight": (width,)}
    for layer in range(n_layer):
        for name, shape in {
            "ln_1": (width,),
            "attn.c_attn": (3 * width, width),
            "attn.c_proj": (width, width),
            "ln_2": (width,),
            "mlp.c_fc": (4 * width, width),
            "mlp.c_proj": (width, 4 * width),
        }.items():
            shapes[f"h.{layer}.{name}.weight"] = shape
    biases = {
        name.replace("weight", "bias"): shape[:1] for name, shape in shapes.items() if "w" not in name.split(".")[0]
    }
    made = {
        f"transformer.{name}": 0.3 * torch.randn(shape) for name, shape in (shapes | (biases if bias else {})).items()
    }
    made["lm_head.weight"] = made["transformer.wte.weight"]
    return made


def nanogpt(path: Path, **changes: Any) -> Path:
    state = OrderedDict(tensors())
    whole = dict(
        model=state,
        optimizer={
            "state": {0: {"step": torch.tensor(5.0), "exp_avg": torch.zeros(3)}},
            "param_groups": [{"lr": 1e-3}],
        },
        model_args=ARGS,
        iter_num=2000,
        best_val_loss=torch.tensor(1.47),
        config={"dataset": "shakespeare_char"},
    )
    torch.save(whole | changes, path)
    return path


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Path]:
    """A folder; afterwards there must be nothing in it but what the test put there, and little memory taken."""
    folder = tmp_path / "model"
    folder.mkdir()
    tracemalloc.start()
    yield folder
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
    assert not list(tmp_path.glob("**/executed"))


def edited(path: Path, edit: Callable[[bytes], bytes]) -> Path:
    """The archive with another data.pkl."""
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(name, edit(content) if name.endswith("data.pkl") else content)
    return path


def compressed(path: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        archive.writestr("archive/data/99", bytes(10**7))
    return path


def huge_tensor(path: Path) -> Path:
    """A kilobyte that declares 10^10 numbers, as an expanded tensor and as a long storage."""
    torch.save({"model": {"w": torch.zeros(1).expand(10**10)}, "model_args": ARGS}, path)
    return path


def long_storage(path: Path) -> Path:
    torch.save({"model": {"w": torch.zeros(77)}, "model_args": ARGS}, path)
    return edited(
        path, lambda pkl: pkl.replace(b"K\x4dt", b"J\x00\xff\xff\x7ft").replace(b"K\x4d\x85", b"J\x00\xff\xff\x7f\x85")
    )


def with_bomb(path: Path) -> Path:
    torch.save({"model": tensors(), "model_args": ARGS, "note": Bomb(path.parent / "executed")}, path)
    return path


PICKLED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "runs code": (with_bomb, "is code and not data: nothing of it was run"),
    "expanded": (huge_tensor, r"declares a tensor of shape \(10000000000,\) over 1 numbers"),
    "long storage": (long_storage, "declares .* numbers of which the file holds 308 bytes"),
    "compressed": (lambda path: compressed(nanogpt(path)), "compressed, which torch.save never does"),
    "empty": (lambda path: path.write_bytes(b""), "is not a whole PyTorch file"),
    "cut": (lambda path: os.truncate(nanogpt(path), 9000), "is not a whole PyTorch file"),
    "text": (lambda path: path.write_text("hello"), "is not a whole PyTorch file"),
    "JSON": (lambda path: path.write_text('{"model": 1}'), "is not a whole PyTorch file"),
    "bare pickle": (lambda path: path.write_bytes(pickle.dumps({"model": 1})), "is not a whole PyTorch file"),
    "safetensors": (lambda path: save_file({"a": torch.ones(2)}, path), "is not a whole PyTorch file"),
    "a zip of something else": (lambda path: zipfile.ZipFile(path, "w").writestr("a.txt", "a"), "none that torch.save"),
    "no model_args": (lambda path: torch.save({"model": tensors()}, path), "has no 'model_args'"),
    "a state dict alone": (lambda path: torch.save(tensors(), path), "has no 'model_args'"),
    "a tensor alone": (lambda path: torch.save(torch.ones(3), path), "has no 'model_args'"),
    "no model": (lambda path: torch.save({"model_args": ARGS}, path), "holds no table of tensors"),
    "model is a list": (lambda path: nanogpt(path, model=[torch.ones(2)]), "holds no table of tensors"),
    "another width": (
        lambda path: nanogpt(path, model_args=ARGS | {"n_embd": 64}),
        r"wte\.weight has the shape \(65, 32\)",
    ),
    "absurd width": (lambda path: nanogpt(path, model_args=ARGS | {"n_embd": 2**30}), r"wte\.weight has the shape"),
    "absurd depth": (
        lambda path: nanogpt(path, model_args=ARGS | {"n_layer": 10**9}),
        "n_layer = 1000000000; the file holds",
    ),
    "negative": (lambda path: nanogpt(path, model_args=ARGS | {"n_layer": -1}), "n_layer = -1 is out of range"),
    "word for a number": (lambda path: nanogpt(path, model_args=ARGS | {"n_head": "4"}), 'n_head = "4" is not a whole'),
    "unknown field": (lambda path: nanogpt(path, model_args=ARGS | {"n_expert": 8}), "n_expert = 8"),
    "missing field": (lambda path: nanogpt(path, model_args={"n_layer": 2}), "lacks 'vocab_size'"),
    "NaN": (
        lambda path: nanogpt(path, model=tensors() | {"transformer.ln_f.weight": torch.full((32,), torch.nan)}),
        r"ln_f\.weight holds NaN",
    ),
    "integers": (
        lambda path: nanogpt(path, model=tensors() | {"transformer.ln_f.weight": torch.ones(32, dtype=torch.int64)}),
        r"ln_f\.weight holds int64, not floating-point",
    ),
    "one tensor more": (lambda path: nanogpt(path, model=tensors() | {"lora": torch.ones(2)}), "holds lora, which"),
    "the same twice": (
        lambda path: nanogpt(path, model=tensors() | {"_orig_mod.transformer.ln_f.weight": torch.ones(32)}),
        r"holds 'ln_f\.weight' twice",
    ),
    "another unembedding": (
        lambda path: nanogpt(path, model=tensors() | {"lm_head.weight": torch.ones(65, 32)}),
        "differs from the embedding",
    ),
}


@pytest.mark.parametrize("case", PICKLED)
def test_a_pt_file_that_lies_gets_a_sentence(watched: Path, case: str):
    spoil, sentence = PICKLED[case]
    spoil(watched / "ckpt.pt")
    for source in (watched / "ckpt.pt", watched):
        with pytest.raises(GptvizError, match=sentence) as error:
            gptviz.load(source)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 500


def test_the_trap_would_have_worked(tmp_path: Path):
    with_bomb(tmp_path / "ckpt.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "ckpt.pt", weights_only=True)
    torch.load(tmp_path / "ckpt.pt", weights_only=False)
    assert (tmp_path / "executed").exists()


def test_what_torch_load_would_have_believed(tmp_path: Path):
    """The reason for reading declarations first."""
    believed = torch.load(huge_tensor(tmp_path / "ckpt.pt"), weights_only=True)["model"]["w"]
    assert believed.numel() == 10**10
    assert (tmp_path / "ckpt.pt").stat().st_size < 3000


class TestPickles:
    """nanoGPT's meta.pkl as data."""

    def test_plain_values_are_read(self):
        value = {
            "vocab_size": 3,
            "itos": {0: "\n", 1: "a", 2: "é"},
            "stoi": {"\n": 0, "a": 1, "é": 2},
            "x": [1.5, None, True],
        }
        for protocol in range(5):
            assert pickles.read(pickle.dumps(value, protocol=protocol), "meta.pkl") == value

    @pytest.mark.parametrize(
        ("data", "sentence"),
        [
            (pickle.dumps(Bomb(Path("executed"))), "is code and not data"),
            (b"cos\nsystem\n(S'true'\ntR.", r"it asks for (os|posix|nt)\.system"),
            (b"cbuiltins\neval\n(S'1'\ntR.", "builtins.eval"),
            (b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93.", "builtins.exec"),
            (b"(ibuiltins\nlist\n.", "it uses INST"),
            (b"\x82\x01.", "it uses EXT1"),
            (b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.", "no whole pickle|BYTEARRAY8"),
            (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx.", "no whole pickle"),
            (b"\x80\x02Nr\xff\xff\xff\x7f.", "numbers more values than a real one holds"),
            (b"Np999999999999\n.", "numbers more values than a real one holds"),
            (b"I" + b"9" * 100_000 + b"\n.", "no whole pickle"),
            (b"", "no whole pickle"),
            (b"\x80", "no whole pickle"),
            (b"hello", "it uses OBJ"),
            (pickle.dumps({"a": 1})[:-3], "no whole pickle"),
            (b"Pid\n.", "it uses PERSID"),
            (b"NQ.", "it points outside of itself"),
        ],
        ids=range(17),
    )
    def test_anything_else_is_refused_unrun(self, data: bytes, sentence: str, tmp_path: Path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(GptvizError, match=sentence):
            pickles.read(data, "meta.pkl")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("value", "sentence"),
        [
            ([1, 2], "holds no table"),
            ({}, "holds no table"),
            ({"stoi": {}}, "holds no table"),
            ({"stoi": {"ab": 0}}, "'ab', which is not one character"),
            ({"stoi": {"a": "0"}}, "id '0', which is no small whole number"),
            ({"stoi": {"a": -1}}, "id '-1'"),
            ({"stoi": {"a": 10**9}}, "no small whole number"),
            ({"stoi": {"a": 0, "b": 0}}, "two characters the same id"),
            ({"stoi": {"a": 70}}, "71 entries, more than the 65 rows"),
        ],
        ids=str,
    )
    def test_a_vocabulary_that_is_none(self, watched: Path, value: Any, sentence: str):
        nanogpt(watched / "ckpt.pt")
        (watched / "meta.pkl").write_bytes(pickle.dumps(value))
        with pytest.raises(GptvizError, match=sentence):
            gptviz.load(watched)
        (watched / "meta.pkl").unlink()
        (watched / "meta.json").write_text(json.dumps(value))
        with pytest.raises(GptvizError, match=f"{sentence}|holds no JSON object"):
            gptviz.load(watched)


@pytest.fixture
def folder(tmp_path: Path, make_model: Callable[..., Any]) -> Path:
    return gptviz.save(Checkpoint(make_model(), CharTokenizer({"a": 0, " ": 1})), tmp_path / "model")


MISLABELLED: dict[str, tuple[bytes, str]] = {
    "a zip": (b"PK\x03\x04" + bytes(100), "it is an archive"),
    "a pickle": (pickle.dumps([1] * 50), "it is a pickle, which may hold code"),
    "JSON": (b'{"a": [1, 2, 3, 4, 5, 6, 7, 8]}', "it is JSON"),
    "empty": (b"", "it is empty"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "pointer of Git LFS"),
    "a web page": (b"<!doctype html><html><body>Not found</body></html>", "it is a web page"),
    "GGUF": (b"GGUF\x03\0\0\0" + bytes(50), "it is a GGUF file"),
    "noise": (bytes(range(256)), "not a whole safetensors file"),
    "a header of a terabyte": (struct.pack("<Q", 2**40) + b"{}", "not a whole safetensors file"),
}


@pytest.mark.parametrize("case", MISLABELLED)
def test_a_file_under_another_name_is_recognised(folder: Path, case: str):
    content, sentence = MISLABELLED[case]
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(GptvizError, match=sentence):
        gptviz.load(folder)


def header(**entries: Any) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "content",
    [
        header(a=dict(dtype="F32", shape=[10**6], data_offsets=[0, 4 * 10**6])),
        header(a=dict(dtype="F32", shape=[2], data_offsets=[0, 4])) + bytes(4),
        header(a=dict(dtype="F32", shape=[2**62, 4], data_offsets=[0, 8])) + bytes(8),
        header(a=dict(dtype="F32", shape=[-1], data_offsets=[0, 4])) + bytes(4),
        header(a=dict(dtype="F32", shape=[1], data_offsets=[0, 4]), b=dict(dtype="F32", shape=[1], data_offsets=[0, 4]))
        + bytes(4),
        header(a=[1]),
        struct.pack("<Q", 2) + b"[]",
    ],
    ids=["short", "dtype", "overflow", "negative", "overlap", "no entry", "no object"],
)
def test_a_header_that_does_not_fit_its_file_is_refused(folder: Path, content: bytes):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(GptvizError, match="not a whole safetensors file"):
        gptviz.load(folder)


def test_infinity_in_one_of_many_numbers_is_found(folder: Path):
    for value in (torch.inf, -torch.inf, torch.nan):
        weights = load_file(folder / "model.safetensors")
        weights["blocks.1.mlp.w_in.weight"][5, 7] = value
        save_file(weights, folder / "model.safetensors")
        with pytest.raises(GptvizError, match=r"blocks\.1\.mlp\.w_in\.weight holds NaN, or more than"):
            gptviz.load(folder)


def test_large_finite_numbers_are_let_through(folder: Path):
    weights = load_file(folder / "model.safetensors")
    weights["blocks.1.mlp.w_in.weight"][5, 7] = 3e38  # its square is more than a float32 can hold
    save_file(weights, folder / "model.safetensors")
    assert float(gptviz.load(folder).model.blocks[1].mlp.w_in.weight.detach().max()) > 2.9e38
    with pytest.raises(GptvizError, match="more than float16 can hold"):
        gptviz.load(folder, dtype="float16")


class TestShards:
    @pytest.fixture
    def sharded(self, folder: Path) -> Path:
        weights = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        names = sorted(weights)
        halves = {"one.safetensors": names[:5], "two.safetensors": names[5:]}
        for file, mine in halves.items():
            save_file({name: weights[name] for name in mine}, folder / file)
        self.index(folder, {name: file for file, mine in halves.items() for name in mine})
        return folder

    def index(self, folder: Path, weight_map: Any) -> None:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))

    def test_they_are_one_model(self, sharded: Path, make_model: Callable[..., Any], ids: torch.Tensor):
        assert torch.equal(gptviz.load(sharded).model(ids[None]), make_model()(ids[None]))

    @pytest.mark.parametrize(
        "file",
        [
            "../one.safetensors",
            "/etc/passwd",
            "sub/one.safetensors",
            "..\\one.safetensors",
            "one.bin",
            "",
            5,
            None,
            "..",
        ],
        ids=str,
    )
    def test_a_path_that_leads_elsewhere_is_refused(self, sharded: Path, file: Any):
        self.index(sharded, {"embed.weight": file})
        with pytest.raises(GptvizError, match=r"which is no \.safetensors file beside it"):
            gptviz.load(sharded)

    @pytest.mark.parametrize("weight_map", [None, [], {}, "x"])
    def test_an_index_without_a_map(self, sharded: Path, weight_map: Any):
        self.index(sharded, weight_map)
        with pytest.raises(GptvizError, match="no weight_map"):
            gptviz.load(sharded)

    def test_a_missing_shard_is_named(self, sharded: Path):
        (sharded / "two.safetensors").unlink()
        with pytest.raises(GptvizError, match=r"no two\.safetensors in"):
            gptviz.load(sharded)

    def test_a_tensor_that_is_not_where_the_index_says(self, sharded: Path):
        index = json.loads((sharded / "model.safetensors.index.json").read_text())["weight_map"]
        self.index(sharded, index | {"extra": "one.safetensors"})
        with pytest.raises(GptvizError, match=r"None of the shards has.* lacks extra|shards.*extra"):
            gptviz.load(sharded)

    def test_the_same_tensor_in_two_shards(self, sharded: Path):
        shutil.copy(sharded / "one.safetensors", sharded / "three.safetensors")
        index = json.loads((sharded / "model.safetensors.index.json").read_text())["weight_map"]
        self.index(sharded, index | {"embed.weight": "three.safetensors"})
        with pytest.raises(GptvizError, match="Two of the files"):
            gptviz.load(sharded)


def test_a_model_larger_than_the_memory_says_so_before_it_reads(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def never(*arguments: Any) -> None:
        raise AssertionError("a tensor was read")

    monkeypatch.setattr(memory, "available", lambda device: memory.SPARE + 50_000)
    monkeypatch.setattr(tensor_files, "_read", never)
    with pytest.raises(GptvizError, match="The weights take"):
        gptviz.load(folder)


def test_the_size_in_question_depends_on_the_dtype(folder: Path, monkeypatch: pytest.MonkeyPatch):
    size = 4 * gptviz.sizing.n_params(gptviz.load(folder).model.config)
    monkeypatch.setattr(memory, "available", lambda device: memory.SPARE + size * 3 // 4)
    with pytest.raises(
        GptvizError, match=r"take 0\.00 GB of memory, and 0\.20 GB are free: choose a smaller model, a 16-bit"
    ):
        gptviz.load(folder)
    gptviz.load(folder, dtype="bfloat16")


def test_a_config_of_a_model_beyond_all_memory_is_no_reason_to_allocate(tmp_path: Path):
    """A sparse file that really is as long as it says."""
    config = dict(vocab_size=2**15, block_size=4, n_layer=1, n_head=1, n_embd=2**20, d_head=4, d_mlp=1, norm="rmsnorm")
    bare = dict(pos_encoding="none", qkv_bias=False, out_bias=False, mlp_bias=False)
    rows = gptviz.sizing.parameter_table(gptviz.GPTConfig(**config, **bare))
    entries, at = {}, 0
    for row in rows:
        entries[row.name] = dict(dtype="F32", shape=row.shape, data_offsets=[at, at + 4 * row.count])
        at += 4 * row.count
    (tmp_path / "config.json").write_text(json.dumps(config | bare))
    with (tmp_path / "model.safetensors").open("wb") as file:
        start = header(**entries)
        file.write(start)
        file.truncate(len(start) + at)
    with pytest.raises(GptvizError, match=r"The weights take 137\.\d+ GB of memory"):
        gptviz.load(tmp_path)


def test_how_much_memory_there_is_can_be_told():
    room = memory.available()
    assert room is None or room > 10**6


@pytest.mark.parametrize(
    ("choice", "sentence"), [("int8", "dtype = 'int8' is not one of float32"), (torch.int64, "int64")]
)
def test_a_dtype_that_is_none(choice: Any, sentence: str):
    with pytest.raises(GptvizError, match=sentence):
        gptviz.load("stories", dtype=choice)


@pytest.mark.parametrize("device", ["cuda:99", "nonsense", ""])
def test_a_device_that_is_not_there(device: str):
    with pytest.raises(GptvizError, match=rf"device = '{device}' can't be used here"):
        gptviz.load("stories", device=device)


def test_the_declarations_of_an_honest_file(tmp_path: Path):
    told = torchfile.declared(nanogpt(tmp_path / "ckpt.pt"))
    assert told["model"]["transformer.wte.weight"].shape == (65, 32)
    assert told["model_args"] == ARGS


def test_a_file_in_torch_s_format_of_before_2020_says_so(tmp_path: Path):
    torch.save({"model": tensors()}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(GptvizError, match=r"before PyTorch 1\.6"):
        gptviz.load(tmp_path / "old.pt")


def test_bytes_that_are_not_there_any_more(folder: Path):
    stream = io.BytesIO((folder / "model.safetensors").read_bytes())
    (folder / "model.safetensors").write_bytes(stream.getvalue()[:-4])
    with pytest.raises(GptvizError, match="not a whole safetensors file"):
        gptviz.load(folder)
