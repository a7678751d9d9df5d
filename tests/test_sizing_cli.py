"""python -m gptviz.sizing: what it prints, and one sentence with exit code 2 for what it can't size."""

import json
import os
import subprocess
import sys

import pytest

from gptviz.config import PRESETS, preset
from gptviz.sizing.__main__ import main


@pytest.fixture
def run(capsys):
    """run(*arguments) -> (exit code, standard output, standard error)."""

    def call(*arguments):
        try:
            code = main(arguments)
        except SystemExit as exit_:  # argparse's way
            code = exit_.code
        return (code, *capsys.readouterr())

    return call


def test_the_table_has_the_courses_ledger_and_explains_the_difference(run):
    code, out, err = run("gpt_from_scratch")
    assert (code, err) == (0, "")
    for words in ("3,323,392", "3,314,176", "9,216", "KV cache", "Rule of thumb 2 N D", "memory-bound", "fits"):
        assert words in out


def test_what_was_published_is_said_of_a_preset_as_it_is(run):
    assert "Published: 175.0B (Brown et al. 2020" in run("gpt3-175b")[1]
    assert "8,030,261,248, the same" in json.loads(run("llama3-8b", "--json")[1])["published"]
    assert json.loads(run("llama3-8b", "--json", "--set", "n_layer=8")[1])["published"] is None


def test_an_accelerators_numbers_come_with_their_source(run):
    report = json.loads(run("gpt2", "--json", "--accelerator", "NVIDIA L4")[1])
    assert report["accelerator"]["flops"] == 121e12
    assert "nvidia.com" in report["accelerator"]["source"]
    assert json.loads(run("gpt2", "--json", "--bandwidth", "1e12")[1])["accelerator"]["source"] == ""


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_printed(run, name):
    code, out, _ = run(name)
    assert code == 0
    assert "Total" in out


def test_json_holds_every_tensor_and_every_number(run):
    code, out, _ = run("gpt2", "--json", "--training", "--dtype", "mixed", "--batch", "2", "--optimizer", "muon")
    report = json.loads(out)
    assert code == 0
    assert report["n_params"] == sum(row["count"] for row in report["parameters"]) == 124_439_808
    assert report["memory_bytes"]["total"] == sum(v for k, v in report["memory_bytes"].items() if k != "total")
    assert report["flops"]["total"] == report["flops"]["linear"] + report["flops"]["quadratic"]
    assert report["workload"] | {"batch": 2, "context": 1024, "optimizer": "muon"} == report["workload"]
    assert {pace["phase"] for pace in report["roofline"]} == {"prefill", "decode"}


def test_fields_can_be_changed_and_what_depends_on_them_follows(run):
    report = json.loads(run("gpt2", "--json", "--set", "n_embd=1024", "--set", "n_head=16", "--set", "n_layer=24")[1])
    assert report["n_params"] == 354_823_168


def test_a_configuration_is_read_from_a_file_and_from_its_folder(run, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(preset("gpt2-medium").to_dict()), encoding="utf-8")
    for source in (path, tmp_path):
        assert json.loads(run(str(source), "--json")[1])["n_params"] == 354_823_168


def test_an_accelerator_can_be_given_in_numbers(run):
    report = json.loads(run("gpt2", "--json", "--flops-per-second", "1e12", "--bandwidth", "1e11")[1])
    assert report["accelerator"]["ridge"] == 10


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["nothing-like-it"],
            "'nothing-like-it' is neither a preset nor a configuration file. Presets: minimal_decoder",
        ),
        (["/dev/zero"], "is neither a preset nor a configuration file"),
        (["x" * 5000], "..."),
        (["\0"], "is neither a preset nor a configuration file"),
        (["gpt2", "--set", "n_head=7"], "n_embd = 768 does not divide into n_head = 7 equal heads"),
        (["gpt2", "--set", "n_layer=0"], "n_layer = 0 is out of range"),
        (["gpt2", "--set", "n_layer=-1"], "n_layer = -1 is out of range"),
        (["gpt2", "--set", "n_layer=" + "9" * 30], "is out of range"),
        (["gpt2", "--set", "n_layer=" + "9" * 9000], "n_layer"),
        (["gpt2", "--set", "n_layer=many"], 'n_layer = "many" is not a whole number'),
        (["gpt2", "--set", "n_layers=3"], "'n_layers'"),
        (["gpt2", "--set", "n_layer"], "'n_layer' is not of the form FIELD=VALUE"),
        (["gpt2", "--json", "--set", "n_layer=2000000000"], "n_layer = 2,000,000,000"),
        (["gpt2", "--context", "5000"], "context = 5,000 is more than the 1,024 learned positions"),
        (["gpt2", "--batch", "0"], "batch = 0 is not a whole number between"),
        (["gpt2", "--batch", "two"], "invalid int value: 'two'"),
        (["gpt2", "--dtype", "float7"], "invalid choice: 'float7'"),
        (["gpt2", "--training", "--dtype", "int4"], "can't be trained"),
        (["gpt2", "--bandwidth", "nan"], "bandwidth = nan must be a positive number"),
        (["gpt2", "--frobnicate"], "nrecognized arguments: --frobnicate"),
        ([], "required: CONFIG_OR_PRESET"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value)[:30],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(run, arguments, complaint):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1
    assert err.endswith(".\n")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "can't be read as JSON"),
        (b"[1, 2]", "holds list, not an object"),
        (b'{"n_layer": 2, "hidden": 5}', "does not know: 'hidden'"),
        (b"[" * 100_000, "can't be read as JSON"),
        (b"\xff\xfe\x00", "can't be read as JSON"),
        (b" " * 1_000_001, "is larger than 1,000,000 bytes"),
        (b'{"n_embd": NaN}', "n_embd = NaN is not a whole number"),
    ],
)
def test_a_file_that_holds_no_configuration_gets_one_sentence(run, tmp_path, content, complaint):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    code, out, err = run(str(path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert run(str(tmp_path / "pipe"))[0] == 2


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "gptviz.sizing", "gpt2", "--set", "n_head=7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
