"""Tokens a second while training, of runs side by side on the same configuration and batch: medians of steps in turns.

    python -m benchmarks.training [--steps 20] [--batch-size 16] [--threads 1] [--optimizer adamw]

Ours is gptviz.training.train, as the command line runs it. Beside it a loop of the shape that nanoGPT made common, with
a model like its (written out here, apart from the package), and Hugging Face's GPT-2. Needs requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

import gptviz
from gptviz.tokenizer import train_bpe
from gptviz.training import Options, grammar, train


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (part.view(B, T, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).contiguous().view(B, T, C))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.ln_1, self.ln_2, self.attn = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Nano(nn.Module):
    """A GPT as small courses write it."""

    def __init__(self, config: gptviz.GPTConfig):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.Sequential(*(Layer(config.n_embd, config.n_head) for _ in range(config.n_layer)))
        self.ln_f, self.lm_head = (
            nn.LayerNorm(config.n_embd),
            nn.Linear(config.n_embd, config.vocab_size, bias=False),
        )
        self.lm_head.weight = self.wte.weight

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        logits = self.lm_head(self.ln_f(self.h(x)))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def loop(model: nn.Module, loss_of: object, stream: np.ndarray, length: int, batch_size: int) -> Iterator[float]:
    """get a batch, forward, backward, clip, step: yields the loss."""
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    groups = [{"params": decayed, "weight_decay": 0.1}]
    groups.append({"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0})
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95))
    model.train()
    while True:
        at = torch.randint(len(stream) - length - 1, (batch_size,)).tolist()
        ids = torch.stack([torch.from_numpy(stream[i : i + length]) for i in at])
        targets = torch.stack([torch.from_numpy(stream[i + 1 : i + 1 + length]) for i in at])
        loss = loss_of(ids, targets)  # type: ignore[operator]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()


def hugging_face(config: gptviz.GPTConfig) -> transformers.GPT2LMHeadModel:
    shape = dict(n_positions=config.block_size, n_embd=config.n_embd, n_layer=config.n_layer, n_head=config.n_head)
    off = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=None)
    same = transformers.GPT2Config(vocab_size=config.vocab_size, activation_function="gelu", **shape, **off)
    return transformers.GPT2LMHeadModel(same)


def seconds(runs: dict[str, Iterator[object]], steps: int) -> dict[str, float]:
    """Median of a step of each, taken in turns, so that a busy moment strikes all alike. Two steps warm up."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(steps + 2):
        for name, run in runs.items():
            began = time.perf_counter()
            next(run)
            if turn >= 2:
                times[name].append(time.perf_counter() - began)
    return {name: statistics.median(mine) for name, mine in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--optimizer", choices=("adamw", "muon"), default="adamw", help="ours; the others have AdamW")
    said = parser.parse_args()
    torch.set_num_threads(said.threads)
    stories = grammar.stories(500)
    tokenizer = train_bpe(stories, 512)
    config = gptviz.preset("gpt_from_scratch", vocab_size=len(tokenizer), bos_token_id=tokenizer.bos_id, dropout=0.0)
    stream = np.concatenate([tokenizer.encode(story, bos=True).numpy() for story in stories])
    options = Options(steps=said.steps + 10, batch_size=said.batch_size, optimizer=said.optimizer)
    nano, theirs = Nano(config), hugging_face(config)
    counts = {sum(p.numel() for p in model.parameters()) for model in (gptviz.GPT(config), nano, theirs)}
    assert len(counts) == 1, f"not the same model: {counts} parameters"

    def of_theirs(ids: Tensor, targets: Tensor) -> Tensor:
        logits = theirs(input_ids=ids, use_cache=False).logits
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    runs: dict[str, Iterator[object]] = {
        "gptviz": train(config, stories, tokenizer, options),
        "nanoGPT's loop": loop(nano, nano, stream, config.block_size, said.batch_size),
        "Hugging Face": loop(theirs, of_theirs, stream, config.block_size, said.batch_size),
    }
    tokens = said.batch_size * config.block_size
    speeds = {name: tokens / each for name, each in seconds(runs, said.steps).items()}
    for name, speed in speeds.items():
        print(f"{name}: {speed:,.0f} tokens/s")
    best = max(speed for name, speed in speeds.items() if name != "gptviz")
    print(f"gptviz / the better of the others: {speeds['gptviz'] / best:.2f} x")


if __name__ == "__main__":
    main()
