"""Training: text in, a checkpoint out. `python -m gptviz.training --help` is the same from the command line.

Names are resolved on first use: what a page needs to start a run and to watch it does not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import read_stories, split_stories
    from .evaluation import Evaluation, evaluate
    from .loop import train
    from .options import Options, Progress
    from .run import Run
    from .snapshots import Snapshots, log_spaced

_HOME = {
    "Evaluation": "evaluation",
    "Options": "options",
    "Progress": "options",
    "Run": "run",
    "evaluate": "evaluation",
    "Snapshots": "snapshots",
    "log_spaced": "snapshots",
    "read_stories": "data",
    "split_stories": "data",
    "train": "loop",
}

__all__ = [
    "Evaluation",
    "Options",
    "Progress",
    "Run",
    "Snapshots",
    "evaluate",
    "log_spaced",
    "read_stories",
    "split_stories",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
