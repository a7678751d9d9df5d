"""What is measured on a finished model and written on its card: figures of the weights as they are stored."""

from __future__ import annotations

import copy
import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import torch

from ..config import GPTConfig
from ..library import many
from ..model import GPT
from ..sizing import n_params
from ..tokenizer import Tokenizer
from .evaluation import Evaluation, evaluate, rounded_figures
from .heads import best_heads
from .options import Options
from .run import Run

HARMLESS = 0.001  # nats per token by which storing in 16 bits may move the loss


class Stored(NamedTuple):
    """A model with the weights that a file of `dtype` will give back, and how well it predicts each of some texts."""

    model: GPT
    dtype: torch.dtype
    moved: float | None  # nats per token by which float16 moves the loss; None where there was nothing to measure it on
    evaluations: Mapping[str, Evaluation]


def choose_storage(model: GPT, tokenizer: Tokenizer, texts: Mapping[str, Sequence[str]]) -> Stored:
    """float16, half the size, where the loss on the first of the texts moves by less than HARMLESS; else float32."""
    if not texts:
        return Stored(model, torch.float32, None, {})
    (first, stories), *others = texts.items()
    rounded = _rounded(model)
    whole, half = evaluate(model, tokenizer, stories), evaluate(rounded, tokenizer, stories)
    moved = half.nats_per_token - whole.nats_per_token
    harmless = abs(moved) < HARMLESS
    chosen, dtype = (rounded, torch.float16) if harmless else (model, torch.float32)
    evaluations = {name: evaluate(chosen, tokenizer, stories) for name, stories in others}
    return Stored(chosen, dtype, moved, {first: half if harmless else whole} | evaluations)


def _rounded(model: GPT) -> GPT:
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.copy_(parameter.half())
    return twin


def facts(run: Run, stored: Stored, processes: int) -> dict[str, Any]:
    """What the run itself tells: how it was trained, on how much, how long, and what came of it."""
    config, options = run.model.config, run.options
    return {
        "parameters": n_params(config),
        "steps": run.step,
        "tokens_seen": run.tokens,
        "epochs": round(run.tokens / len(run.corpus.stream), 2),
        "seed": options.seed,
        "processes": processes,
        "wall_minutes": None if math.isnan(run.seconds) else round(run.seconds / 60, 1),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "optimizer": optimizer_in_words(options),
        "repeats": repeats_in_words(options.repeats),
        "options": asdict(options),
        "training_loss": _last_losses(run),
        **{name: rounded_figures(result) for name, result in stored.evaluations.items()},
        "head_scores": best_heads(stored.model),
        "storage": {
            "dtype": str(stored.dtype).removeprefix("torch."),
            "float16_moves_loss_by": stored.moved and round(stored.moved, 7),
        },
        "torch": str(torch.__version__),
    }


def _last_losses(run: Run, steps: int = 100) -> dict[str, Any]:
    """Mean over the last batches, before each step."""
    losses = [entry["loss"] for entry in run.history[-steps:]]
    return {"nats_per_token": round(float(np.mean(losses)), 5), "batches": len(losses)}


def described(config: GPTConfig, text: str) -> str:
    """The model in a sentence."""
    shape = f"{many(config.n_layer, 'layer')}, {many(config.n_head, 'head')}, width {config.n_embd}"
    mask = "" if config.causal else " and no causal mask"
    positions = "no positions" if config.pos_encoding == "none" else f"{config.pos_encoding} positions"
    return f"{shape}, context {config.block_size}, with {positions}{mask}; trained on {text}."


def optimizer_in_words(options: Options) -> str:
    adamw = f"AdamW at {options.learning_rate:g}"
    muon = f"Muon at {options.matrix_rate:g} for the blocks' matrices, {adamw} for the other parameters"
    rate = f"{options.warmup} steps of warm-up, then constant, down to 1 % over the last {options.decay * 100:g} %"
    return f"{muon if options.optimizer == 'muon' else adamw}; {rate}"


def repeats_in_words(share: float) -> str:
    if share == 0:
        return "none: every training window is text as it stands"
    return (
        f"{share:.3g} of the training windows are one segment of 6 to 64 tokens (half of them text, half random), "
        "repeated to fill the window, which makes induction heads form early"
    )
