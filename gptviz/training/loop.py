"""train(): one implementation behind the command line, the app and the tests."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ..config import GPTConfig
from ..errors import GptvizError
from ..model import GPT
from ..tokenizer import Tokenizer
from .data import Corpus, split_stories
from .evaluation import evaluate
from .optim import optimizers
from .options import Options, Progress
from .processes import check_agreed, rank_and_world
from .run import Run, read, write
from .sharding import gathered, shard, whole
from .snapshots import Snapshots

SLICE = 40  # training stories that a snapshot's loss is measured on where there are none for validation


class _Loss(nn.Module):
    """model.loss as a forward, which DistributedDataParallel can wrap."""

    def __init__(self, model: GPT):
        super().__init__()
        self.model = model

    def forward(self, windows: Tensor) -> Tensor:
        return self.model.loss(windows[:, :-1], windows[:, 1:])


def train(
    config: GPTConfig,
    text: str | Sequence[str],
    tokenizer: Tokenizer,
    options: Options,
    *,
    validation: Sequence[str] = (),
    resume: Path | None = None,
    save_every: int = 100,
    device: str | torch.device = "cpu",
    snapshots: Snapshots | None = None,
    compiled: bool = False,
    sharded: bool = False,
    on_start: Callable[[Run], None] | None = None,
) -> Generator[Progress]:
    """Trains a new GPT, or goes on with the run saved in the file `resume`; yields a Progress after every step.

    text: stories, or one text in which a line `<|endoftext|>` separates them. validation: stories to watch the loss on.
    compiled: by torch.compile. sharded: over the processes that torchrun has started, by FSDP2; else each has a copy.

    `on_start` is called once, before the first step, with the Run, whose model is then trained in place. The state is
    written to `resume` every `save_every` steps, at the end, and where the iteration is broken off; an exception in the
    middle of a step leaves what the last save wrote. Raises GptvizError where the saved run is another or the loss NaN.
    A snapshot is written before the state that knows its step, so that a kill between the two costs none.
    """
    stories = split_stories(text) if isinstance(text, str) else text
    run = begin(config, stories, tokenizer, options, resume=resume, device=device, compiled=compiled, sharded=sharded)
    if snapshots is not None:
        snapshots.check(run.step)
    if on_start is not None:
        on_start(run)
    watched = {"training": stories[: len(validation) or SLICE], "validation": validation}
    if run.step == 0:
        _snapshot(run, tokenizer, snapshots, watched)
    while run.step < options.steps:
        progress = _step(run, tokenizer, validation)
        _snapshot(run, tokenizer, snapshots, watched)
        if run.step % save_every == 0 or run.step == options.steps:
            write(run, resume)
        try:
            yield progress
        except GeneratorExit:
            write(run, resume)
            raise


def begin(
    config: GPTConfig,
    stories: Sequence[str],
    tokenizer: Tokenizer,
    options: Options,
    *,
    resume: Path | None = None,
    device: str | torch.device = "cpu",
    compiled: bool = False,
    sharded: bool = False,
) -> Run:
    """A new run, or the one that was saved, where it is. The arguments are those of `train`."""
    run = _start(config, options, Corpus.of(stories, tokenizer), torch.device(device), compiled, sharded)
    if resume is not None and resume.exists():
        run.restore(read(resume, device))
    check_agreed(run.step, "the steps they have done")
    return run


def _start(
    config: GPTConfig, options: Options, corpus: Corpus, device: torch.device, compiled: bool, sharded: bool
) -> Run:
    _, world = rank_and_world()
    if options.batch_size % world:
        raise GptvizError(f"batch_size = {options.batch_size} does not divide among {world} processes.")
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        model = GPT(config)
    if sharded:
        shard(model, device, options.optimizer)
    loss: nn.Module = _Loss(model.to(device))
    if dist.is_initialized() and not sharded:
        loss = DistributedDataParallel(loss)
    if compiled:
        loss.compile()
    made = optimizers(model, options.optimizer, options.learning_rate, options.matrix_rate)
    return Run(model, loss, made, options, corpus)


def _step(run: Run, tokenizer: Tokenizer, validation: Sequence[str]) -> Progress:
    began, options, model = time.perf_counter(), run.options, run.model
    factor, before = options.rate(run.step), run.tokens
    loss = _backward(run, _batch(run))
    if not math.isfinite(loss):
        raise GptvizError(f"The loss is {loss} after {run.step} steps: start again with a lower learning rate.")
    norm = gathered(torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip))
    for optimizer in run.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = factor * group.setdefault("base_lr", group["lr"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    run.step += 1
    speed = (run.tokens - before) / (time.perf_counter() - began)
    due = validation and (run.step % options.eval_every == 0 or run.step == options.steps)
    val_loss = _measured(model, tokenizer, validation) if due else None
    run.seconds += time.perf_counter() - began
    run.history.append({"step": run.step, "loss": round(loss, 5), "val_loss": val_loss})
    return Progress(run.step, loss, val_loss, factor * options.learning_rate, float(norm), speed, run.tokens)


def _measured(model: GPT, tokenizer: Tokenizer, validation: Sequence[str]) -> float | None:
    """Nats per token, in the first process; the others only lend their share of the weights."""
    model = whole(model)
    return evaluate(model, tokenizer, validation).nats_per_token if rank_and_world()[0] == 0 else None


def _snapshot(run: Run, tokenizer: Tokenizer, snapshots: Snapshots | None, texts: Mapping[str, Sequence[str]]) -> None:
    if snapshots is None or run.step not in snapshots.steps:
        return
    complete = dataclasses.replace(run, model=whole(run.model))
    if rank_and_world()[0] == 0:
        snapshots.write(complete, tokenizer, texts)


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
