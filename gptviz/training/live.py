"""The one training that a server may have going: started, paused, stopped and watched from a page. Knows no torch.

All that is known stands in a folder, so that a reload, another session or another server sees the same. The worker is
alive exactly as long as it holds the lock on FOLDER/lock, which it inherits: no process number can be mistaken.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from .. import library
from ..errors import GptvizError
from .job import ROOT, Job, lapses, runs, write_text
from .report import read_report

Phase = Literal["none", "running", "stopping", "paused", "finished", "failed"]
FINISHED, INTERRUPTED = 0, 130  # the worker's exit status, as the command line's
PATIENCE = 1.0  # seconds to wait for another session that looks at the same moment
SILENT = "The worker ended without a word: it was killed, or the machine ran out of memory."
_children: list[subprocess.Popen[bytes]] = []  # kept until they have ended, as their parent must


@dataclass(frozen=True)
class Status:
    """How the training stands."""

    phase: Phase
    name: str = ""
    steps: int = 0  # in all
    text_name: str = ""
    lines: list[dict[str, Any]] = field(default_factory=list)  # of the report
    reason: str = ""  # why it failed
    kept: bool = False  # a state to go on from is saved
    out: Path | None = None  # the checkpoint, once it is there

    @property
    def step(self) -> int:
        return int(self.lines[-1]["step"]) if self.lines else 0


class Live:
    """The training that is kept in a folder."""

    def __init__(self, folder: Path | None = None):
        self.folder = folder or runs() / "live"

    def start(self, job: Job) -> None:
        """Raises GptvizError where one is going on, or is unfinished, or the job can't be done."""
        words = job.words()
        with self._lock() as lock:
            if self._ended().phase in ("paused", "failed"):
                raise GptvizError("There is a training that is not finished: resume it, save it or discard it first.")
            self._clear()
            shutil.rmtree(lapses() / job.name, ignore_errors=True)
            if job.text is not None:
                words = [*write_text(job.text, self.folder / "text.txt"), *words]
            words += ["--state", str(self.folder / "state"), "--report", str(self.folder / "report.jsonl")]
            about = {"words": words, "name": job.name, "steps": job.steps, "text_name": job.text_name}
            (self.folder / "job.json").write_text(json.dumps(about), encoding="utf-8")
            self._spawn(lock)

    def resume(self) -> None:
        """Go on where it was paused, or from the last save where it failed."""
        self._again()

    def pause(self) -> None:
        """The worker saves its state after the step at hand, and ends."""
        self._signal()

    def stop(self) -> None:
        """What was learned so far becomes a checkpoint."""
        (self.folder / "stop").touch()
        if not self._signal():
            self._again("--finish")

    def discard(self) -> None:
        """Forget a training that has ended. What it made of itself, a model and its snapshots, stays."""
        with self._lock():
            ended = self._ended()
            if ended.phase in ("paused", "failed"):
                shutil.rmtree(lapses() / ended.name, ignore_errors=True)
            self._clear()

    def status(self) -> Status:
        for child in list(_children):
            if child.poll() is not None:
                _children.remove(child)
        if self._alive():
            return self._described("stopping" if (self.folder / "stop").exists() else "running")
        return self._ended()

    def _again(self, *more: str) -> None:
        with self._lock() as lock:
            if not (self.folder / "job.json").exists():
                raise GptvizError("There is no training to go on with.")
            for name in ("result.json", "log.txt", *([] if more else ["stop"])):
                (self.folder / name).unlink(missing_ok=True)
            self._spawn(lock, *more)

    def _clear(self) -> None:
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()

    def _spawn(self, lock: IO[str], *more: str) -> None:
        """A process of its own session: it outlives the page, and a server that is stopped."""
        environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with (self.folder / "log.txt").open("wb") as log:
            command = [sys.executable, "-m", "gptviz.training.worker", str(self.folder), *more]
            with _signals_wait():
                child = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=[lock.fileno()],
                )
        _children.append(child)
        (self.folder / "pid").write_text(str(child.pid), encoding="utf-8")

    def _signal(self) -> bool:
        """Ask the worker to end; False where there is none."""
        if not self._alive():
            return False
        with contextlib.suppress(OSError, ValueError):  # it has ended this moment, or is only being started
            os.kill(int((self.folder / "pid").read_text(encoding="utf-8")), signal.SIGTERM)
        return True

    @contextlib.contextmanager
    def _lock(self) -> Iterator[IO[str]]:
        """Held by a worker for its lifetime; here to make sure that there is none, and to hand it to the next."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "lock").touch()
        except OSError as error:
            raise GptvizError(f"A training can't be kept in {self.folder}: {error.strerror}.") from error
        with (self.folder / "lock").open("w", encoding="utf-8") as file:
            if not _locked(file, fcntl.LOCK_EX, PATIENCE):
                raise GptvizError("A training is going on, and a server has one at a time: wait for it, or stop it.")
            yield file

    def _alive(self) -> bool:
        if not (self.folder / "lock").exists():
            return False
        with (self.folder / "lock").open(encoding="utf-8") as file:
            return not _locked(file, fcntl.LOCK_SH, 0)

    def _ended(self) -> Status:
        if not (self.folder / "job.json").exists():
            return Status("none")
        result = _json(self.folder / "result.json")
        if result.get("status") == FINISHED:
            return self._described("finished")
        if result.get("status") == INTERRUPTED:
            return self._described("paused")
        return self._described("failed", result.get("reason") or self._last_words())

    def _last_words(self) -> str:
        log = self.folder / "log.txt"
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
        said = [line.removeprefix("gptviz.training: ") for line in lines if line.strip()]
        return said[-1] if said else SILENT

    def _described(self, phase: Phase, reason: str = "") -> Status:
        job, out = _json(self.folder / "job.json"), None
        if phase == "finished":
            out = library.folder(job["name"])
        lines = read_report(self.folder / "report.jsonl")
        kept = (self.folder / "state" / "last.pt").exists()
        about = (job.get("name", ""), job.get("steps", 0), job.get("text_name", ""))
        return Status(phase, *about, lines=lines, reason=reason, kept=kept, out=out)


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """A process started within is born deaf to SIGTERM, which waits until the worker knows what to do about it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _locked(file: IO[str], kind: int, patience: float) -> bool:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        else:
            return True


def _json(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where it is not there, or not whole."""
    try:
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read
