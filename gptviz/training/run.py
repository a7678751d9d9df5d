"""A run as it stands: all that it needs to go on, and the file that keeps it through a kill."""

from __future__ import annotations

import dataclasses
import math
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..config import GPTConfig
from ..errors import GptvizError
from ..model import GPT
from .data import Corpus
from .options import Options
from .processes import rank_and_world
from .sharding import gathered, is_sharded, load, load_optimizer


@dataclass
class Run:
    """Everything that a run needs to go on from where it is."""

    model: GPT
    loss: nn.Module
    optimizers: list[torch.optim.Optimizer]
    options: Options
    corpus: Corpus
    step: int = 0  # steps done
    seconds: float = 0.0  # spent on them
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Targets seen so far."""
        return self.step * self.options.batch_size * self.model.config.block_size

    def state(self) -> dict[str, Any]:
        """Of a sharded model, all processes must ask at once."""
        return {
            "config": self.model.config.to_dict(),
            "options": dataclasses.asdict(self.options),
            "text": self.corpus.fingerprint(),
            "model": gathered(self.model.state_dict()),
            "optimizers": [gathered(optimizer.state_dict()) for optimizer in self.optimizers],
            "step": self.step,
            "seconds": self.seconds,
            "history": self.history,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises GptvizError where the state is another run's."""
        config = GPTConfig.from_dict(state["config"])
        _check_same(self.model.config.to_dict(), config.to_dict(), "another configuration")
        self._check_options(Options(**state["options"]), state["step"])
        text = {"its fingerprint": self.corpus.fingerprint()}
        _check_same(text, {"its fingerprint": state.get("text", text["its fingerprint"])}, "another text")
        load(self.model, state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            load_optimizer(optimizer, saved)
        self.step, self.history = state["step"], state["history"]
        self.seconds = state.get("seconds", math.nan)  # a state that does not say

    def _check_options(self, old: Options, done: int) -> None:
        """More or fewer steps are the same run as long as no step that is done would have been another."""
        mine, theirs = dataclasses.asdict(self.options), dataclasses.asdict(old)
        mine["eval_every"] = theirs["eval_every"]
        if all(self.options.rate(step) == old.rate(step) for step in range(done)):
            mine["steps"] = theirs["steps"]
        _check_same(mine, theirs, "other options")


def _check_same(new: dict[str, Any], old: dict[str, Any], what: str) -> None:
    changed = [f"{name} was {old.get(name)!r}, now {value!r}" for name, value in new.items() if old.get(name) != value]
    if changed:
        raise GptvizError(f"The run in this folder has {what}: {'; '.join(changed)}. Use another folder, or the same.")


def write(run: Run, path: Path | None) -> None:
    """Whole or not at all: a kill in the middle leaves the file that was there. Of several processes one writes."""
    writes = rank_and_world()[0] == 0
    if path is None or not (writes or is_sharded(run.model)):
        return
    state = run.state()
    if not writes:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)


def read(path: Path, device: str | torch.device) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError) as error:
        raise GptvizError(f"{path.name} is not the whole state of a run: remove it to start over.") from error
    return state
