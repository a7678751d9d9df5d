"""Training: text in, a checkpoint out. `python -m gptviz.training --help` is the same from the command line."""

from .data import read_stories, split_stories
from .evaluate import Evaluation, evaluate
from .loop import Options, Progress, Run, train

__all__ = ["Evaluation", "Options", "Progress", "Run", "evaluate", "read_stories", "split_stories", "train"]
