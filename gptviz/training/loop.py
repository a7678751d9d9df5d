"""train(): one implementation behind the command line, the app and the tests."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

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


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to train. The same options, configuration, text and seed give the same weights, interrupted or not."""

    steps: int = 1000
    batch_size: int = 16
    optimizer: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = 2e-3  # AdamW's
    matrix_rate: float = 0.02  # Muon's
    warmup: int = 50  # steps
    decay: float = 0.45  # share of the steps over which the rate falls to 1 %
    clip: float = 1.0  # largest norm of the gradient
    aligned: float = 0.25  # share of windows that begin with a story
    repeats: float = 0.0  # share of windows that are one segment repeated
    seed: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    eval_every: int = 500  # steps

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "learning_rate", "matrix_rate", "clip", "eval_every"):
            if getattr(self, name) <= 0:
                raise GptvizError(f"{name} = {getattr(self, name)} must be positive.")
        if self.warmup < 0 or min(self.decay, self.aligned, self.repeats) < 0 or self.aligned + self.repeats > 1:
            raise GptvizError("warmup, decay, aligned and repeats are not negative, and the last two are at most 1 together.")
        if self.optimizer not in ("adamw", "muon") or self.precision not in ("float32", "bfloat16"):
            raise GptvizError("optimizer is 'adamw' or 'muon', precision is 'float32' or 'bfloat16'.")

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


def _rank_and_world() -> tuple[int, int]:
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


@dataclass
class _Run:
    """Everything that a run needs to go on from where it is."""

    model: GPT
    loss: nn.Module
    optimizers: list[torch.optim.Optimizer]
    options: Options
    step: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        return {
            "config": self.model.config.to_dict(),
            "options": dataclasses.asdict(self.options),
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "history": self.history,
        }

    def restore(self, state: dict[str, Any]) -> None:
        _check_same(self.model.config.to_dict(), state["config"], "configuration")
        self._check_options(Options(**state["options"]), state["step"])
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.history = state["step"], state["history"]

    def _check_options(self, old: Options, done: int) -> None:
        """More or fewer steps are the same run as long as no step that is done would have been another."""
        mine, theirs = dataclasses.asdict(self.options), dataclasses.asdict(old)
        if all(self.options.rate(step) == old.rate(step) for step in range(done)):
            mine["steps"] = theirs["steps"]
        _check_same(mine, theirs, "options")


def _check_same(new: dict[str, Any], old: dict[str, Any], what: str) -> None:
    changed = [f"{name} was {old.get(name)!r}, now {value!r}" for name, value in new.items() if old.get(name) != value]
    if changed:
        raise GptvizError(f"The run in this folder has other {what}: {'; '.join(changed)}. Use another folder, or the same.")


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
    on_model: Any = None,
) -> Iterator[Progress]:
    """Trains a new GPT, or goes on with the run saved in the file `resume`; yields a Progress after every step.

    `on_model` is called once with the model, which is then trained in place. The state is written to `resume` every
    `save_every` steps, at the end, and when the iteration is broken off. Raises GptvizError where the saved run is another.
    """
    run = _start(config, options, device)
    if on_model is not None:
        on_model(run.model)
    if resume is not None and resume.exists():
        run.restore(torch.load(resume, map_location=device, weights_only=True))
    corpus = Corpus.of(stories, tokenizer)
    try:
        while run.step < options.steps:
            yield _step(run, corpus, tokenizer, validation)
            if resume is not None and run.step % save_every == 0:
                _write(run, resume)
    finally:
        if resume is not None:
            _write(run, resume)


def _start(config: GPTConfig, options: Options, device: str | torch.device) -> _Run:
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        model = GPT(config).to(device)
    loss: nn.Module = _Loss(model)
    if dist.is_initialized():
        loss = DistributedDataParallel(loss)
    return _Run(model, loss, optimizers(model, options.optimizer, options.learning_rate, options.matrix_rate), options)


def _step(run: _Run, corpus: Corpus, tokenizer: Tokenizer, validation: Sequence[str]) -> Progress:
    began, options, model, (rank, _) = time.perf_counter(), run.options, run.model, _rank_and_world()
    factor = options.rate(run.step)
    loss = _backward(run, _batch(run, corpus))
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
    for optimizer in run.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = factor * group.setdefault("base_lr", group["lr"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    run.step += 1
    tokens = options.batch_size * model.config.block_size
    speed = tokens / (time.perf_counter() - began)
    due = validation and rank == 0 and (run.step % options.eval_every == 0 or run.step == options.steps)
    val_loss = evaluate(model, tokenizer, validation).nats_per_token if due else None
    progress = Progress(
        run.step, loss, val_loss, factor * options.learning_rate, float(norm), speed, run.step * tokens
    )
    run.history.append({"step": progress.step, "loss": round(loss, 5), "val_loss": val_loss})
    return progress


def _batch(run: _Run, corpus: Corpus) -> Tensor:
    options = run.options
    windows = corpus.batch(
        options.batch_size,
        run.model.config.block_size,
        seed=options.seed,
        step=run.step,
        aligned=options.aligned,
        repeats=options.repeats,
    )
    rank, world = _rank_and_world()
    return torch.from_numpy(windows[rank::world]).to(run.model.embed.weight.device)


def _backward(run: _Run, windows: Tensor) -> float:
    """The loss of a batch (B, T + 1), its gradient left in the parameters. Dropout's randomness depends on seed and step."""
    run.model.train()
    device, (rank, world) = windows.device.type, _rank_and_world()
    with torch.random.fork_rng(devices=[windows.device] if device == "cuda" else []):
        torch.manual_seed((run.options.seed * 1_000_003 + run.step) * world + rank)
        with torch.autocast(device, torch.bfloat16, enabled=run.options.precision == "bfloat16"):
            loss = run.loss(windows)
        loss.backward()
    mean = loss.detach()
    if dist.is_initialized():
        dist.all_reduce(mean)
    return mean.item() / world


def _write(run: _Run, path: Path) -> None:
    """Whole or not at all: a kill in the middle leaves the file that was there. Of several processes the first writes."""
    if _rank_and_world()[0] != 0:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(run.state(), partial)
    os.replace(partial, path)
