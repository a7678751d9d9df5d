"""The process that trains for the app: `python -m gptviz.training.worker FOLDER`, started by live.py.

It is the command line's own main() with what FOLDER/job.json asks for, at a low priority; what came of it stands in
FOLDER/result.json. Where FOLDER/stop is there when a signal has ended the run, what was learned so far is saved.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from .live import INTERRUPTED

NICE = 10  # the app's own work goes first


class _Asked(BaseException):
    """A signal outside of the steps, which know by themselves how to end."""


def main(folder: Path, more: Sequence[str]) -> int:
    os.nice(NICE)
    try:
        signal.signal(signal.SIGTERM, _leave)
        status, reason = _train(folder, more), ""
    except _Asked:
        status, reason = INTERRUPTED, ""
    except Exception as error:  # whatever it is, the page is to say it
        traceback.print_exc()
        status, reason = 1, f"{type(error).__name__}: {error}"
    partial = folder / "result.partial"
    partial.write_text(json.dumps({"status": status, "reason": reason}), encoding="utf-8")
    partial.replace(folder / "result.json")
    return status


def _leave(kind: int, frame: FrameType | None) -> None:
    raise _Asked


def _train(folder: Path, more: Sequence[str]) -> int:
    from .__main__ import main  # torch, which takes a while, and is not to be broken off: it would name other errors

    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # live.py starts the process without it
    words = [*json.loads((folder / "job.json").read_text(encoding="utf-8"))["words"], *more]
    status = main(words)
    saved = (folder / "state" / "last.pt").exists() and (folder / "stop").exists()
    return main([*words, "--finish"]) if status == INTERRUPTED and saved else status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
