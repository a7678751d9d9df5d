"""What tracing and generating cost, as ratios of runs side by side: medians.

    python -m benchmarks.core [--repeats 20]

The trace against the model's own forward, generation with and without the KV cache, and against Hugging Face's GPT-2 of
the same configuration. The encoding of a 1 MB text. Needs requirements-dev.txt for transformers.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import transformers

import gptviz


def medians(repeats: int, *functions: Callable[[], object]) -> list[float]:
    """Seconds of each, taken in turns so that a busy moment strikes all alike."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for function, mine in zip(functions, times, strict=True):
            began = time.perf_counter()
            function()
            mine.append(time.perf_counter() - began)
    return [statistics.median(mine) for mine in times]


def hugging_face(config: gptviz.GPTConfig) -> transformers.GPT2LMHeadModel:
    same = transformers.GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.block_size,
        n_embd=config.n_embd,
        n_layer=config.n_layer,
        n_head=config.n_head,
        activation_function="gelu",
        bos_token_id=0,
        eos_token_id=None,
    )
    return transformers.GPT2LMHeadModel(same).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    checkpoint = gptviz.load("stories")
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    ids = tokenizer.encode("Once upon a time there was a big dog. " * 20, bos=True)[: model.config.block_size]
    with torch.no_grad():
        forward, traced = medians(repeats, lambda: model(ids[None]), lambda: gptviz.trace(model, ids))
    print(f"forward {forward * 1e3:.1f} ms, trace {traced * 1e3:.1f} ms: ratio {traced / forward:.2f}")
    start, other = ids[:16], hugging_face(model.config)

    def theirs() -> object:
        return other.generate(start[None], max_new_tokens=100, do_sample=False, pad_token_id=0)

    def mine(cache: bool) -> list[gptviz.Step]:
        return list(gptviz.generate(model, start, 100, temperature=0, cache=cache))

    cached, full, foreign = medians(max(3, repeats // 4), lambda: mine(True), lambda: mine(False), theirs)
    print(
        f"100 tokens: cached {100 / cached:.0f}/s, without cache {100 / full:.0f}/s, Hugging Face {100 / foreign:.0f}/s"
    )
    print(f"cached / Hugging Face: {foreign / cached:.2f} x")
    text = "Once upon a time there was a big dog. " * 27_000
    (encoding,) = medians(3, lambda: tokenizer.encode(text))
    print(f"encoding {len(text) / 1e6:.1f} MB: {encoding:.2f} s")


if __name__ == "__main__":
    main()
