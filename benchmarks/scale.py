"""How the app bears long prompts and many heads: memory, time and bytes by length, for a model of GPT-2's size.

    python benchmarks/scale.py [--lengths 64 128 256 512 1024] [--browser]

The model is made up: 12 layers of 12 heads (and one of 16), with weights that are random but for the queries' and keys'
size, so that patterns are not flat. What the Attention page needs is computed as the page does, each length in a
process of its own. Memory is the process's own (/proc): "+needed" is the peak beyond what was held before, for the
forward pass beyond the trace that is kept, too; the budget is twice a layer's patterns. --browser opens the pages in
Chromium, too, which needs requirements-dev.txt. Linux alone.
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
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from benchmarks.ui import Traffic
    from gptviz.ui.selection import Selection

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
    from gptviz.ui import state

    state.import_torch()
    for work in steps(selection(name, 16), {}).values():  # pays for what is set up once
        work()
    sizes: dict[str, int] = {}
    chosen = selection(name, length)
    costs = {step: cost(work) for step, work in steps(chosen, sizes).items()}
    trace, numbers = costs.pop("trace"), costs.values()
    layer = chosen.run["blocks.0.attn.hook_pattern"].nbytes
    columns = [
        *(trace.seconds * 1e3, chosen.run.nbytes / 1e6, (trace.peak - chosen.run.nbytes) / 1e6),
        *(part.seconds * 1e3 for part in numbers),
        *(max(part.peak for part in numbers) / 1e6, 2 * layer / 1e6),
        *(sizes["tiles"] / 1e3, sizes["head"] / 1e3),
    ]
    print(f"{length:6}" + "".join(f"{column:9.0f}" for column in columns), flush=True)


def selection(name: str, length: int) -> Selection:
    from gptviz.ui import state
    from gptviz.ui.selection import Selection

    loaded = state.checkpoint(name)
    ids = tuple(loaded.tokenizer.encode(prompt(length), bos=True)[:length].tolist())
    assert len(ids) == length
    variant, labels = state.Variant(name, True, "learned"), tuple(loaded.tokenizer.labels(ids))
    return Selection(variant, loaded.model.config, ids, labels, 0, ids, ids, "light")


def steps(chosen: Selection, sizes: dict[str, int]) -> dict[str, Callable[[], object]]:
    """The parts of the page's work in turn; sizes takes the bytes of what would be sent."""
    from gptviz.figures import style
    from gptviz.ui import state
    from gptviz.ui.attention import heads
    from gptviz.ui.components import plot, tiles

    def grid() -> None:
        rows = heads.thumbnails(chosen.variant, chosen.ids, chosen)
        ramps = {"attention": tuple(style.ramp("attention", "light", 255))}
        sizes["tiles"] = len(tiles.encode(rows, ramps, "0.0", {}))

    def one_head() -> None:
        from gptviz.analysis import attention_stages
        from gptviz.figures.attention import attention_heatmap

        stages = attention_stages(chosen.run, 0, 0)
        figure = attention_heatmap(stages.pattern, chosen.labels, theme="light", masked=chosen.hidden(0))
        sizes["head"] = len(plot.encode(figure, {}))

    return {
        "trace": lambda: chosen.run,
        "scores": lambda: state.head_scores(chosen.variant, chosen.ids),
        "tiles": grid,
        "head": one_head,
    }


HEADINGS = """\
tokens  forward     kept  +needed   scores    tiles     head  +needed   budget    tiles     head
             ms       MB       MB       ms       ms       ms       MB       MB       kB       kB"""


def browse(home: Path) -> None:
    """The Overview and the Attention page in Chromium, opened once the forward pass of a long prompt has been made."""
    from playwright.sync_api import sync_playwright

    from benchmarks import ui

    os.environ["GPTVIZ_HOME"] = str(home)
    with ui.server() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=ui.CHROMIUM, args=ui.FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        traffic = ui.Traffic(page)
        page.goto(f"{url}/attention")  # plotly.js is there once it has been drawn
        ui.drawn(page)
        for name, length in (("wide", 256), ("wide", 1024), ("heads-16", 256)):
            link = f"model={name}&prompt={quote(exactly(length))}"
            page.goto(f"{url}/feed_forward?{link}")
            page.locator(".st-key-neurons .main-svg").first.wait_for(timeout=120_000)
            ui.at_rest(page)
            said = page.get_by_text("tokens (block_size)").first.text_content()
            print(f"{name}: {(said or '').split(' at most')[0]} {length} tokens")
            report(page, traffic, f"{url}/?{link}", ".st-key-pipeline canvas")
            report(
                page, traffic, f"{url}/attention?{link}", ".st-key-heads canvas", f"{ui.HEATMAP} .heatmaplayer image"
            )
            ui.toggle_mask(page, traffic, 2)  # now both forward passes are kept
            ui.report("  mask toggle, forward pass kept", ui.toggle_mask(page, traffic, 5))
        browser.close()


def report(page: Page, traffic: Traffic, address: str, *pictures: str) -> None:
    """From the address to the title and each of the pictures, and what was received until all was at rest."""
    from benchmarks import ui

    before, began = traffic.bytes, time.perf_counter()
    page.goto(address, wait_until="commit")
    painted = []
    for picture in ("h1", *pictures):
        page.wait_for_selector(picture, timeout=120_000)
        page.evaluate("() => new Promise(requestAnimationFrame)")
        painted.append(f"{(time.perf_counter() - began) * 1e3:.0f}")
    page.wait_for_timeout(3000)
    ui.at_rest(page)
    where = address.partition("?")[0].rpartition("/")[2] or "overview"
    print(
        f"  {where:10} title, pictures after {', '.join(painted)} ms; {(traffic.bytes - before) / 1e3:.0f} kB",
        flush=True,
    )


def prompt(length: int) -> str:
    return TEXT * (length // 16)


def exactly(length: int) -> str:
    """A prompt of so many tokens, the first token among them."""
    import gptviz

    tokenizer = gptviz.load("stories").tokenizer
    return str(tokenizer.decode(tokenizer.encode(prompt(length))[: length - 1]))


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
