"""train(): one implementation behind the command line, the app and the tests."""

from __future__ import annotations

import dataclasses
import math
import pickle
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ..config import GPTConfig
from ..errors import GptvizError
from ..model import GPT
from ..tokenizer import Tokenizer
from .data import Corpus
from .evaluate import evaluate
from .optim import optimizers, schedule
from .processes import check_agreed, rank_and_world

Optimizer = Literal["adamw", "muon"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to train. The same options, configuration, text and seed give the same weights, interrupted or not."""

    steps: int = 1000
    batch_size: int = 16
    optimizer: Optimizer = "adamw"
    learning_rate: float = 2e-3  # AdamW's
    matrix_rate: float = 0.02  # Muon's
    warmup: int = 50  # steps
    decay: float = 0.45  # share of the steps over which the rate falls to 1 %
    clip: float = 1.0  # largest norm of the gradient
    aligned: float = 0.25  # share of windows that begin with a story
    repeats: float = 0.0  # share of windows that are one segment repeated
    seed: int = 0
    precision: Precision = "float32"
    eval_every: int = 500  # steps

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "learning_rate", "matrix_rate", "clip", "eval_every"):
            self._check(name, 0 < getattr(self, name) < math.inf, "must be positive")
        for name in ("decay", "aligned", "repeats"):
            self._check(name, 0 <= getattr(self, name) <= 1, "is a share, from 0 to 1")
        for name in ("warmup", "seed"):
            self._check(name, getattr(self, name) >= 0, "must not be negative")
        self._check(
            "repeats", self.aligned + self.repeats <= 1, f"and aligned = {self.aligned} are more than 1 together"
        )
        for name, kind in (("optimizer", Optimizer), ("precision", Precision)):
            self._check(name, getattr(self, name) in get_args(kind), f"is not one of {', '.join(get_args(kind))}")

    def _check(self, name: str, right: bool, sentence: str) -> None:
        if not right:
            raise GptvizError(f"{name} = {getattr(self, name)} {sentence}.")

    def rate(self, step: int) -> float:
        """Factor on both learning rates at a step."""
        return schedule(step, self.steps, self.warmup, self.decay)


@dataclass(frozen=True)
class Progress:
    """What one step did. val_loss is there at evaluations only."""

    step: int  # steps done
    loss: float  # nats per token, of this batch before the step
    val_loss: float | None  # nats per token
    learning_rate: float
    gradient_norm: float  # before clipping
    tokens_per_second: float
    tokens: int  # seen so far


class _Loss(nn.Module):
    """model.loss as a forward, which DistributedDataParallel can wrap."""

    def __init__(self, model: GPT):
        super().__init__()
        self.model = model

    def forward(self, windows: Tensor) -> Tensor:
        return self.model.loss(windows[:, :-1], windows[:, 1:])


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
        return {
            "config": self.model.config.to_dict(),
            "options": dataclasses.asdict(self.options),
            "text": self.corpus.fingerprint(),
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
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
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
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


def train(
    config: GPTConfig,
    stories: Sequence[str],
    tokenizer: Tokenizer,
    options: Options,
    *,
    validation: Sequence[str] = (),
    resume: Path | None = None,
    save_every: int = 100,
    device: str | torch.device = "cpu",
    on_start: Callable[[Run], None] | None = None,
) -> Generator[Progress]:
    """Trains a new GPT, or goes on with the run saved in the file `resume`; yields a Progress after every step.

    `on_start` is called once, before the first step, with the Run, whose model is then trained in place. The state is
    written to `resume` every `save_every` steps, at the end, and where the iteration is broken off; an exception in the
    middle of a step leaves what the last save wrote. Raises GptvizError where the saved run is another or the loss NaN.
    """
    run = _start(config, options, Corpus.of(stories, tokenizer), device)
    if resume is not None and resume.exists():
        run.restore(_read(resume, device))
    check_agreed(run.step, "the steps they have done")
    if on_start is not None:
        on_start(run)
    while run.step < options.steps:
        progress = _step(run, tokenizer, validation)
        if run.step % save_every == 0 or run.step == options.steps:
            _write(run, resume)
        try:
            yield progress
        except GeneratorExit:
            _write(run, resume)
            raise


def _start(config: GPTConfig, options: Options, corpus: Corpus, device: str | torch.device) -> Run:
    _, world = rank_and_world()
    if options.batch_size % world:
        raise GptvizError(f"batch_size = {options.batch_size} does not divide among {world} processes.")
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        model = GPT(config).to(device)
    loss: nn.Module = _Loss(model)
    if dist.is_initialized():
        loss = DistributedDataParallel(loss)
    made = optimizers(model, options.optimizer, options.learning_rate, options.matrix_rate)
    return Run(model, loss, made, options, corpus)


def _step(run: Run, tokenizer: Tokenizer, validation: Sequence[str]) -> Progress:
    began, options, model = time.perf_counter(), run.options, run.model
    factor, before = options.rate(run.step), run.tokens
    loss = _backward(run, _batch(run))
    if not math.isfinite(loss):
        raise GptvizError(f"The loss is {loss} after {run.step} steps: start again with a lower learning rate.")
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
    for optimizer in run.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = factor * group.setdefault("base_lr", group["lr"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    run.step += 1
    speed = (run.tokens - before) / (time.perf_counter() - began)
    due = validation and rank_and_world()[0] == 0 and (run.step % options.eval_every == 0 or run.step == options.steps)
    val_loss = evaluate(model, tokenizer, validation).nats_per_token if due else None
    run.seconds += time.perf_counter() - began
    run.history.append({"step": run.step, "loss": round(loss, 5), "val_loss": val_loss})
    return Progress(run.step, loss, val_loss, factor * options.learning_rate, float(norm), speed, run.tokens)


def _batch(run: Run) -> Tensor:
    options = run.options
    windows = run.corpus.batch(
        options.batch_size,
        run.model.config.block_size,
        seed=options.seed,
        step=run.step,
        aligned=options.aligned,
        repeats=options.repeats,
    )
    rank, world = rank_and_world()
    return torch.from_numpy(windows[rank::world]).to(run.model.embed.weight.device)


def _backward(run: Run, windows: Tensor) -> float:
    """The loss of a batch (B, T + 1), its gradient left in the parameters. Dropout depends on the seed and the step."""
    run.model.train()
    device, (rank, world) = windows.device.type, rank_and_world()
    with torch.random.fork_rng(devices=[windows.device] if device == "cuda" else []):
        torch.manual_seed((run.options.seed * 1_000_003 + run.step) * world + rank)
        with torch.autocast(device, torch.bfloat16, enabled=run.options.precision == "bfloat16"):
            loss = run.loss(windows)
        loss.backward()
    mean = loss.detach()
    if dist.is_initialized():
        dist.all_reduce(mean)
    return mean.item() / world


def _write(run: Run, path: Path | None) -> None:
    """Whole or not at all: a kill in the middle leaves the file that was there. Of several processes one writes."""
    if path is None or rank_and_world()[0] != 0:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(run.state(), partial)
    partial.replace(path)


def _read(path: Path, device: str | torch.device) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, LookupError, ValueError) as error:
        raise GptvizError(f"{path.name} is not the whole state of a run: remove it to start over.") from error
    return state
