"""How the app bears long prompts and many heads: memory, time and bytes by length, for a model of GPT-2's size.

    python benchmarks/scale.py [--lengths 64 128 256 512 1024] [--browser]

The model is made up: 12 layers of 12 heads (and one of 16), with weights that are random but for the queries' and keys'
size, so that patterns are not flat. What the Attention page needs is computed as the page does, each length in a
process of its own; memory is the process's own (VmHWM in /proc), beyond what it held before. --browser opens the pages
in Chromium, too, which needs requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
LENGTHS = (64, 128, 256, 512, 1024)
TEXT = "Once upon a time there was a big red dog who liked to run in the park with Tom and Lily. "
SHAPES = {"wide": (12, 12), "heads-16": (1, 16)}  # name -> layers, heads


def make_models(home: Path) -> None:
    """The models as the library keeps added ones, with the vocabulary of the bundled one, padded to GPT-2's."""
    import torch

    import gptviz

    tokenizer = gptviz.load("stories").tokenizer
    for name, (layers, heads) in SHAPES.items():
        torch.manual_seed(0)
        config = gptviz.GPTConfig(
            vocab_size=50257, block_size=1024, n_layer=layers, n_head=heads, n_embd=64 * heads, bos_token_id=0
        )
        model = gptviz.GPT(config).eval()
        with torch.no_grad():
            for layer in range(layers):
                model.block(layer).attn.qkv.weight[: 2 * 64 * heads] *= 3
        gptviz.save(gptviz.Checkpoint(model, tokenizer), home / "models" / name)


class Cost(NamedTuple):
    seconds: float
    peak: int  # bytes beyond those held before
    kept: int  # bytes that are still held after


def memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def cost(work: Callable[[], object]) -> Cost:
    """What a piece of work takes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before, began = memory("VmRSS"), time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return Cost(seconds, memory("VmHWM") - before, memory("VmRSS") - before)


def measure(name: str, length: int) -> None:
    """One line of the table: what the Attention page computes for a prompt of so many tokens."""
    logging.disable(logging.WARNING)  # Streamlit misses its server
    import numpy as np

    from gptviz.figures import style
    from gptviz.figures.attention import attention_heatmap
    from gptviz.ui import state
    from gptviz.ui.attention import heads
    from gptviz.ui.components import plot, tiles
    from gptviz.ui.selection import Selection

    state.import_torch()
    loaded = state.checkpoint(name)
    ids = tuple(loaded.tokenizer.encode(TEXT * (length // 16), bos=True)[:length].tolist())
    assert len(ids) == length
    labels = tuple(loaded.tokenizer.labels(ids))
    chosen = Selection(state.Variant(name, True, "learned"), loaded.model.config, ids, labels, 0, length, "light")
    state.trace(chosen.variant, ids[:16])  # what PyTorch sets up once

    def grid() -> None:
        rows = heads.thumbnails(chosen.variant, ids, chosen)
        ramps = {"attention": tuple(style.ramp("attention", "light", 255))}
        sizes["tiles"] = len(tiles.encode(rows, ramps, "0.0", {}))

    def one_head() -> None:
        from gptviz.analysis import attention_stages

        stages = attention_stages(chosen.run, 0, 0)
        figure = attention_heatmap(stages.pattern, labels, theme="light", masked=chosen.hidden(0))
        sizes["head"] = len(plot.encode(figure, {}))

    sizes: dict[str, int] = {}
    steps = {
        "trace": lambda: chosen.run,
        "scores": lambda: state.head_scores(chosen.variant, ids),
        "tiles": grid,
        "head": one_head,
    }
    costs = {step: cost(work) for step, work in steps.items()}
    kept = sum(tensor.numel() * 4 for tensor in (*chosen.run.activations.values(), chosen.run.logits))
    one_layer = np.prod(chosen.run["blocks.0.attn.hook_pattern"].shape) * 4
    numbers = [costs[step] for step in ("scores", "tiles", "head")]
    print(
        f"{length:6} {costs['trace'].seconds * 1e3:8.0f} {kept / 1e6:8.0f} {(costs['trace'].peak - kept) / 1e6:8.0f}"
        + "".join(f" {part.seconds * 1e3:8.0f}" for part in numbers)
        + f" {max(part.peak for part in numbers) / 1e6:8.0f} {2 * one_layer / 1e6:8.0f}"
        + f" {sizes['tiles'] / 1e3:8.0f} {sizes['head'] / 1e3:8.0f}",
        flush=True,
    )


HEADINGS = (
    "tokens  forward     kept   beyond   scores    tiles     head   beyond   budget    tiles     head\n"
    "             ms       MB       MB       ms       ms       ms       MB       MB       kB       kB"
)


def browse(home: Path) -> None:
    """Opening the Overview and the Attention page on a long prompt in Chromium, and another head."""
    from playwright.sync_api import sync_playwright

    from benchmarks import ui

    os.environ["GPTVIZ_HOME"] = str(home)
    with ui.server() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ui.CHROMIUM, args=ui.FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        traffic = ui.Traffic(page)
        for name in SHAPES:
            page.goto(f"{url}/attention?model={name}")  # reads the model and plotly.js
            ui.drawn(page)
            for length in (256, 1024):
                visit(page, traffic, f"{url}/?model={name}", length, ".st-key-pipeline canvas")
                visit(page, traffic, f"{url}/attention?model={name}", length, f"{ui.HEATMAP} .main-svg")
                before = traffic.bytes
                page.locator('[aria-label^="layer 0, head 2"]').first.click()
                page.wait_for_function("() => document.querySelector('[aria-label^=\"Layer 0, head 2\"]')")
                ui.at_rest(page)
                print(f"{'':12} another head: {(traffic.bytes - before) / 1e3:.0f} kB")
        browser.close()


def visit(page, traffic, address: str, length: int, last: str) -> None:
    """Open a page on a prompt of so many tokens that is new to the server for the first page of two."""
    from urllib.parse import quote

    before, began = traffic.bytes, time.perf_counter()
    page.goto(f"{address}&prompt={quote(prompt(length))}", wait_until="commit")
    page.wait_for_selector(last, timeout=120_000)
    painted = time.perf_counter() - began
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=120_000)
    rest = time.perf_counter() - began
    page.wait_for_timeout(400)
    print(
        f"{address[-40:]} {length}: painted {painted * 1e3:.0f} ms, at rest {rest * 1e3:.0f} ms, "
        f"{(traffic.bytes - before) / 1e3:.0f} kB",
        flush=True,
    )


def prompt(length: int) -> str:
    return TEXT * (length // 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--home", type=Path, help="where the made-up models are kept; else a temporary folder")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # a model and a length, in this process
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one[0], int(arguments.one[1]))
        return
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.home or Path(temporary)
        if not (home / "models").exists():
            make_models(home)
        for name, (layers, heads) in SHAPES.items():
            print(f"{layers} x {heads} heads\n{HEADINGS}")
            for length in arguments.lengths if name == "wide" else [256]:
                command = [sys.executable, __file__, "--one", name, str(length)]
                subprocess.run(command, env={**os.environ, "GPTVIZ_HOME": str(home)}, check=True)
        if arguments.browser:
            browse(home)


if __name__ == "__main__":
    main()
