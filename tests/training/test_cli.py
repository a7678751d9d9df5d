"""`python -m gptviz.training`: from a text to a checkpoint, through kills, bad input and several processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import gptviz
from gptviz.model import GPT
from gptviz.tokenizer import Tokenizer
from gptviz.training import __main__ as cli
from gptviz.training import card, evaluate, grammar, read_stories
from gptviz.training.evaluation import Evaluation

ROOT = Path(__file__).parents[2]
MODEL = ["--set", "n_layer=2", "n_head=2", "n_embd=16", "block_size=24", "dropout=0.1", "--vocab-size", "280"]
SHORT = [
    *MODEL,
    "--steps",
    "6",
    "--batch-size",
    "4",
    "--warmup",
    "2",
    "--eval-every",
    "3",
    "--threads",
    "1",
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are kept in runs/ of the working directory; threads are put back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)


def spawn(words: list[str], *before: str, **environment: str) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | environment
    command = [sys.executable, *before, "-m", "gptviz.training", *words]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def state(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = torch.load(path, weights_only=True)
    return read


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "the run never saved its state"
        time.sleep(0.02)


def test_a_text_becomes_a_checkpoint_with_a_complete_card(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    validation = tmp_path / "validation.txt"
    validation.write_text("Ben saw a cake.\n<|endoftext|>\nLily went home.\n", encoding="utf-8")
    words = [str(text_file), "--out", str(tmp_path / "out" / "tiny"), "--held-out", "5", "--repeats", "0.1", *SHORT]
    words += ["--validation", str(validation), "--text-name", "Made up", "--licence", "CC0-1.0", "--source", "a test"]
    assert cli.main([*words, "--optimizer", "muon"]) == 0
    shown = capsys.readouterr()
    assert "step 3: loss" in shown.out
    assert "validation: {" in shown.out

    loaded = gptviz.load(tmp_path / "out" / "tiny")
    made = dict(loaded.card)
    assert (made["name"], made["text"], made["licence"], made["source"]) == ("tiny", "Made up", "CC0-1.0", "a test")
    assert made["description"] == "2 layers, 2 heads, width 16, context 24, with learned positions; trained on Made up."
    assert (made["steps"], made["seed"], made["tokens_seen"], made["processes"]) == (6, 0, 6 * 4 * 24, 1)
    assert made["parameters"] == sum(p.numel() for p in loaded.model.parameters())
    assert made["optimizer"].startswith("Muon at 0.02 for the blocks' matrices, AdamW at 0.002")
    assert made["repeats"].startswith("0.1 of the training windows are one segment")
    assert made["wall_minutes"] >= 0
    assert made["torch"] == torch.__version__
    assert len(made["date"]) == 10
    assert made["command"].startswith("python -m gptviz.training stories.txt --out tiny --held-out 5")
    assert "--validation validation.txt" in made["command"]
    assert str(tmp_path) not in json.dumps(made)

    stories = read_stories(text_file)
    for name, some in (("validation", read_stories(validation)), ("held_out", stories[-5:])):
        again = evaluate(loaded.model, loaded.tokenizer, some)
        assert (made[name]["tokens"], made[name]["bytes"]) == (again.tokens, again.bytes)
        assert made[name]["nats_per_token"] == pytest.approx(again.nats_per_token, abs=1e-5)
        assert made[name]["bits_per_byte"] == pytest.approx(again.bits_per_byte, abs=1e-5)
    assert made["storage"]["dtype"] == "float16"
    assert abs(made["storage"]["float16_moves_loss_by"]) < 0.001
    for kind in ("previous_token", "induction"):
        assert 0 <= made["head_scores"][kind]["score"] <= 1
        assert made["head_scores"][kind]["head"] in {"L0H0", "L0H1", "L1H0", "L1H1"}
    assert loaded.model.config.bos_token_id == loaded.tokenizer.bos_id == 0
    assert loaded.model.config.vocab_size == len(loaded.tokenizer) == 280
    assert not (tmp_path / "out" / "tiny" / "last.pt").exists()
    assert (tmp_path / "runs" / "tiny" / "last.pt").exists()


def test_the_vocabulary_is_learned_from_what_is_trained_on_and_can_be_given(text_file: Path, tmp_path: Path):
    assert cli.main([str(text_file), "--out", "first", *SHORT]) == 0
    given = tmp_path / "first" / "tokenizer.json"
    rest = ["--set", "n_layer=1", "n_head=1", "n_embd=8", "block_size=8", "vocab_size=300", "pos_encoding=rotary"]
    assert cli.main([str(text_file), "--out", "second", "--tokenizer", str(given), *rest, "--steps", "1"]) == 0
    loaded = gptviz.load(tmp_path / "second")
    assert loaded.tokenizer.to_json() == gptviz.load(tmp_path / "first").tokenizer.to_json()
    assert (loaded.model.config.vocab_size, loaded.model.config.pos_encoding) == (300, "rotary")
    assert "validation" not in loaded.card
    assert loaded.card["storage"] == {"dtype": "float32", "float16_moves_loss_by": None}
    assert loaded.card["licence"] is None
    assert loaded.card["repeats"].startswith("none")


def test_a_signal_stops_the_run_and_the_same_command_goes_on(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    words, show = [str(text_file), "--out", "tiny", *SHORT, "--save-every", "1000"], cli._show

    def stop_at_four(bar: Any, progress: Any) -> None:
        show(bar, progress)
        if progress.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(cli, "_show", stop_at_four)
    assert cli.main(words) == 130
    assert "Stopped after 4 of 6 steps: the same command goes on" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGTERM) == before
    assert not (tmp_path / "tiny").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 0
    assert cli.main([*words, "--out", "straight"]) == 0
    one, other = state(tmp_path / "runs/tiny/last.pt"), state(tmp_path / "runs/straight/last.pt")
    assert all(torch.equal(one["model"][name], other["model"][name]) for name in other["model"])


def test_a_killed_run_ends_with_the_same_weights(text_file: Path, tmp_path: Path):
    words = [str(text_file), "--out", "tiny", *SHORT, "--steps", "200", "--optimizer", "muon", "--save-every", "4"]
    process = spawn(words)
    wait_for(tmp_path / "runs/tiny/last.pt", process)
    process.kill()
    process.communicate()
    assert 0 < state(tmp_path / "runs/tiny/last.pt")["step"] < 200
    assert cli.main(words) == 0
    assert cli.main([*words, "--out", "straight"]) == 0
    one, other = gptviz.load(tmp_path / "tiny").model, gptviz.load(tmp_path / "straight").model
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_a_finished_run_is_evaluated_and_saved_again(text_file: Path, tmp_path: Path):
    words = [str(text_file), "--out", "tiny", *SHORT, "--held-out", "5"]
    assert cli.main(words) == 0
    first = gptviz.load(tmp_path / "tiny")
    assert cli.main(words) == 0
    again = gptviz.load(tmp_path / "tiny")
    assert first.card["held_out"] == again.card["held_out"]
    assert torch.equal(first.model.embed.weight, again.model.embed.weight)


def two_processes() -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def test_two_processes_learn_as_one_with_the_whole_batch(text_file: Path, tmp_path: Path):
    words = [str(text_file), "--out", "one", "--held-out", "5", *SHORT, "--optimizer", "muon", "--steps", "12"]
    words[words.index("dropout=0.1")] = "dropout=0.0"
    assert cli.main(words) == 0
    process = spawn([*words, "--out", "two"], *two_processes())
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    assert out.count("step 12: loss") == 1  # one of them speaks
    one, two = (state(tmp_path / "runs" / name / "last.pt")["history"] for name in ("one", "two"))
    assert [e["loss"] for e in two] == pytest.approx([e["loss"] for e in one], abs=1e-4)
    assert two[-1]["val_loss"] == pytest.approx(one[-1]["val_loss"], abs=1e-4)
    made = gptviz.load(tmp_path / "two").card
    assert made["processes"] == 2
    assert made["command"].startswith("torchrun --nproc-per-node 2 -m gptviz.training stories.txt")


def test_a_killed_worker_ends_the_run_with_a_sentence(text_file: Path, tmp_path: Path):
    words = [str(text_file), "--out", "tiny", *SHORT, "--steps", "5000", "--save-every", "4"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    first, second = (spawn(words, RANK=rank, LOCAL_RANK=rank, **group) for rank in "01")
    wait_for(tmp_path / "runs/tiny/last.pt", first)
    second.kill()
    second.communicate()
    _, error = first.communicate(timeout=120)
    assert first.returncode == 2, error
    assert error.splitlines()[-1] == (
        "gptviz.training: Another process of this run ended: the same command goes on from the last save."
    )
    saved = state(tmp_path / "runs/tiny/last.pt")  # of a fourth step, or where it broke off
    assert [entry["step"] for entry in saved["history"]] == list(range(1, saved["step"] + 1))


def test_with_no_text_the_built_in_grammar_is_learned(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--out", "tiny", "--stories", "120", *SHORT]) == 0  # a tenth of them is kept from training
    made = gptviz.load("tiny").card
    assert made["text"] == "the built-in story grammar"
    assert made["command"].startswith("python -m gptviz.training --out tiny --stories 120")
    assert made["held_out"]["bytes"] == sum(map(len, grammar.stories(120)[-12:]))


def test_two_processes_share_out_the_model(text_file: Path, tmp_path: Path):
    """--fsdp: the same losses as in one process, and a state in which every tensor is whole again."""
    words = [str(text_file), "--out", "one", "--held-out", "5", *SHORT, "--steps", "12"]
    words[words.index("dropout=0.1")] = "dropout=0.0"
    assert cli.main(words) == 0
    shared = [*words, "--out", "two", "--fsdp", "--snapshots", "lapse", "--snapshot-steps", "2"]
    process = spawn(shared, *two_processes())
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    one, two = (state(tmp_path / "runs" / name / "last.pt") for name in ("one", "two"))
    losses = [[entry["loss"] for entry in run["history"]] for run in (one, two)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
    assert two["history"][-1]["val_loss"] == pytest.approx(one["history"][-1]["val_loss"], abs=1e-4)
    for kind in ("model", "optimizers"):
        torch.testing.assert_close(two[kind], one[kind], atol=1e-4, rtol=1e-3)
    assert sorted(path.name for path in (tmp_path / "lapse").iterdir() if path.is_dir()) == [
        "000000",
        "000002",
        "000012",
    ]


def test_a_sharded_run_resumes_exactly(text_file: Path, tmp_path: Path):
    words = [str(text_file), "--out", "tiny", *SHORT, "--steps", "40", "--save-every", "4", "--fsdp"]
    process = spawn(words, *two_processes())
    wait_for(tmp_path / "runs/tiny/last.pt", process)
    process.terminate()  # torchrun hands the signal to both, which stop after the same step
    process.communicate(timeout=120)
    assert 0 < state(tmp_path / "runs/tiny/last.pt")["step"] < 40
    for out in ("tiny", "straight"):
        process = spawn([*words, "--out", out], *two_processes())
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
    one, other = gptviz.load(tmp_path / "tiny").model, gptviz.load(tmp_path / "straight").model
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.slow
def test_a_compiled_run_learns_the_same(text_file: Path, tmp_path: Path):
    words = [str(text_file), "--out", "plain", *SHORT, "--steps", "2"]
    words[words.index("dropout=0.1")], words[words.index("n_layer=2")] = "dropout=0.0", "n_layer=1"
    assert cli.main(words) == 0
    process = spawn([*words, "--out", "compiled", "--compile"])
    _, error = process.communicate(timeout=900)
    assert process.returncode == 0, error
    one, two = (state(tmp_path / "runs" / name / "last.pt")["history"] for name in ("plain", "compiled"))
    assert [e["loss"] for e in two] == pytest.approx([e["loss"] for e in one], abs=1e-4)


BAD: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "The following arguments are required: --out. --help lists what there is."),
    "unknown flag": (["TEXT", "--out", "x", "--stepz", "3"], "Unrecognized arguments: --stepz 3."),
    "not a number": (["TEXT", "--out", "x", "--steps", "many"], "Argument --steps: invalid int value: 'many'."),
    "no such preset": (["TEXT", "--out", "x", "--preset", "gpt5"], "Argument --preset: invalid choice: 'gpt5'"),
    "no such file": (["none.txt", "--out", "x"], "none.txt can't be read as UTF-8 text"),
    "no such field": (["TEXT", "--out", "x", "--set", "n_layers=2"], "fields this version does not know: 'n_layers'"),
    "no value": (["TEXT", "--out", "x", "--set", "n_layer"], "--set n_layer: write FIELD=VALUE, as in n_layer=4"),
    "no such encoding": (["TEXT", "--out", "x", "--set", "pos_encoding=xpos"], 'pos_encoding = "xpos" is not one of'),
    "bad rate": (["TEXT", "--out", "x", "--learning-rate", "-1"], "learning_rate = -1.0 must be positive"),
    "too many held out": (["TEXT", "--out", "x", "--held-out", "60"], "leaves nothing of the text's 60 stories"),
    "too few threads": (["TEXT", "--out", "x", "--threads", "0"], "--threads 0 is too few: at least 1"),
    "no vocabulary": (["TEXT", "--out", "x", "--tokenizer", "none.json"], "none.json"),
    "small vocabulary": (["TEXT", "--out", "x", "--vocab-size", "100"], "vocab_size = 100 is too small"),
    "small embedding": (["TEXT", "--out", "x", "--set", "vocab_size=100"], "vocab_size = 100 is less than the"),
    "out is a file": (["TEXT", "--out", "full/notes.txt"], "is a file: a checkpoint is a folder"),
    "out is full": (["TEXT", "--out", "full"], "holds 'notes.txt', which saving here would remove"),
    "no data set": (["hf:", "--out", "x"], "could not be fetched from the Hub"),
    "sharded alone": (["TEXT", "--out", "x", *MODEL, "--fsdp"], "Sharding needs several processes: start them with"),
    "run within out": (["TEXT", "--out", "x", "--state", "x/run"], "--state x/run is in --out x, which is replaced"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    words, sentence = BAD[case]
    assert cli.main([str(text_file) if word == "TEXT" else word for word in words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("gptviz.training: ")
    assert shown.err.count("\n") == 1
    assert sentence in shown.err
    assert not (tmp_path / "x").exists()


def test_another_vocabulary_than_the_run_s_is_refused(
    text_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = [str(text_file), "--out", "tiny", *SHORT]
    assert cli.main(words) == 0
    assert cli.main([*words, "--vocab-size", "270"]) == 2
    assert "has another vocabulary, of 280 entries: use another --state" in capsys.readouterr().err


def test_the_exit_status_of_the_process():
    process = spawn(["text.txt"])
    out, error = process.communicate(timeout=120)
    assert (process.returncode, out) == (2, "")
    assert error == "gptviz.training: The following arguments are required: --out. --help lists what there is.\n"


def test_weights_that_sixteen_bits_would_hurt_stay_in_32(
    monkeypatch: pytest.MonkeyPatch, tiny_model: GPT, tokenizer: Tokenizer
):
    losses = iter([2.0, 2.002, 2.1])
    monkeypatch.setattr(card, "evaluate", lambda *rest: Evaluation(10, 20, next(losses), 1.0))
    stored = card.choose_storage(tiny_model, tokenizer, {"validation": ["a"], "held_out": ["b"]})
    assert stored.model is tiny_model
    assert stored.dtype is torch.float32
    assert stored.moved == pytest.approx(0.002)
    assert [e.nats_per_token for e in stored.evaluations.values()] == [2.0, 2.1]
