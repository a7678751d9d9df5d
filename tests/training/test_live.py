"""The worker process behind the page: it goes on by itself, is paused, resumed, stopped, and survives its own death."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gptviz
from gptviz import GptvizError, library
from gptviz.training.job import Job, lapses
from gptviz.training.live import Live, Status

TINY = dict(n_layer=1, n_head=2, n_embd=16, block_size=24, dropout=0.0)
TEXT = "\n\n".join(f"Lily has {n} red balls. She gives Ben one, and Ben has a red ball too." for n in range(30))


def job(name: str = "mine", steps: int = 20, text: str | None = TEXT) -> Job:
    options = dict(steps=steps, batch_size=2, warmup=0)
    return Job(name=name, changes=TINY, options=options, text=text, text_name="balls")


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path))
    made = Live()
    yield made
    made.pause()
    until(made, lambda status: status.phase not in ("running", "stopping"))


def until(live: Live, wanted: Callable[[Status], bool], seconds: float = 180) -> Status:
    end = time.monotonic() + seconds
    while not wanted(status := live.status()):
        assert time.monotonic() < end, status
        time.sleep(0.05)
    return status


def ended(status: Status) -> bool:
    return status.phase not in ("running", "stopping")


def test_a_training_ends_in_the_library(live: Live):
    assert live.status() == Status("none")
    live.start(job())
    assert live.status().phase == "running"
    with pytest.raises(GptvizError, match="a server has one at a time"):
        Live().start(job("another"))
    done = until(live, ended)
    assert (done.phase, done.step, done.steps, done.name, done.text_name) == ("finished", 20, 20, "mine", "balls"), done
    assert done.out == library.folder("mine")
    loaded = gptviz.load(done.out)
    assert loaded.card["steps"] == 20
    assert loaded.card["text"] == "balls"
    assert loaded.card["held_out"]["bytes"] > 0
    assert [line["step"] for line in done.lines if "sample" in line] == [5, 10, 15, 20]
    assert str(live.folder.parent) not in json.dumps(loaded.card)
    live.discard()
    assert live.status() == Status("none")
    assert (library.folder("mine")).is_dir()


def test_pause_and_resume_end_with_the_weights_of_a_straight_run(live: Live):
    live.start(job(steps=3000))
    until(live, lambda status: status.step > 0)
    live.pause()
    paused = until(live, ended)
    assert paused.phase == "paused", paused
    assert paused.kept
    assert 0 < paused.step < 3000
    with pytest.raises(GptvizError, match="is not finished: resume it, save it or discard it first"):
        live.start(job("another"))
    Live().resume()  # as another session would
    assert until(live, lambda status: status.step > paused.step).phase == "running"
    live.stop()
    stopped = until(live, ended)
    assert stopped.phase == "finished", stopped
    assert paused.step < gptviz.load(library.folder("mine")).card["steps"] < 3000


def test_a_killed_worker_is_told_and_its_last_save_kept(live: Live):
    live.start(job(steps=3000))
    until(live, lambda status: status.kept)
    os.kill(int((live.folder / "pid").read_text()), signal.SIGKILL)
    failed = until(live, ended)
    assert failed.phase == "failed"
    assert failed.kept
    assert failed.reason == "The worker ended without a word: it was killed, or the machine ran out of memory."
    live.stop()  # save what there is
    done = until(live, ended)
    assert done.phase == "finished", done
    assert gptviz.load(library.folder("mine")).card["steps"] % 20 == 0  # it saves every 20


def test_a_worker_s_own_words_are_the_reason(live: Live):
    options = dict(steps=50, batch_size=2, warmup=0, learning_rate=1e30)
    live.start(Job(name="mine", changes=TINY, options=options, text=TEXT, snapshots=True))
    failed = until(live, ended)
    assert failed.phase == "failed"
    assert failed.reason.startswith("The weights are beyond 65,504 after 1 steps")
    assert "start again with a lower learning rate" in failed.reason
    assert (lapses() / "mine").is_dir()
    live.discard()
    assert live.status().phase == "none"
    assert not (lapses() / "mine").exists()


def test_a_folder_that_can_t_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(GptvizError, match=r"A training can't be kept in .*file/live: Not a directory"):
        Live(tmp_path / "file" / "live").start(job())


def test_a_pause_before_the_first_step_loses_nothing(live: Live):
    live.start(job())
    time.sleep(0.3)
    live.pause()
    assert until(live, ended).phase == "paused"
    live.resume()
    assert until(live, ended).phase == "finished"


def test_what_can_t_be_started_leaves_nothing_behind(live: Live):
    with pytest.raises(GptvizError, match="too few to learn from"):
        live.start(job(text="short"))
    assert live.status().phase == "none"
    with pytest.raises(GptvizError, match="no training to go on with"):
        live.resume()
