"""How quickly the app answers, in Chromium: medians of click to painted, and the bytes that crossed the websocket.

    python benchmarks/ui.py [--repeats 9] [--url http://127.0.0.1:8501]

Without --url it starts a server of its own. Painted: the first animation frame after the figure has changed and the
script has come to rest. Needs requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, WebSocket, sync_playwright

ROOT = Path(__file__).parents[1]
CHROMIUM = os.environ.get("GPTVIZ_CHROMIUM") or ("/usr/bin/chromium" if Path("/usr/bin/chromium").exists() else None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
LONG = "Once upon a time there was a big red dog who liked to run in the park with Tom and Lily. " * 4
HEATMAP = ".st-key-attention_heatmap .js-plotly-plot"

# Made before a click: the milliseconds from it to the second frame after plotly.js has been given other data (it draws
# before it lets the browser go on).
WATCH = """node => { window.painted = new Promise((resolve, reject) => {
  const before = node.data;
  document.addEventListener('click', () => {
    const since = performance.now();
    const frame = () => {
      if (performance.now() - since > 20000) return reject(new Error('nothing was painted'));
      if (node.data === before) return requestAnimationFrame(frame);
      requestAnimationFrame(() => resolve(performance.now() - since));
    };
    requestAnimationFrame(frame);
  }, {capture: true, once: true});
}); }"""


class Traffic:
    """Bytes received over the page's websocket."""

    def __init__(self, page: Page):
        self.bytes = 0
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: self._count(payload))

    def _count(self, payload: bytes | str) -> None:
        self.bytes += len(payload)


@contextmanager
def server() -> Iterator[str]:
    """The app on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def drawn(page: Page, last: str = HEATMAP) -> None:
    page.wait_for_selector(f"{last} .main-svg", timeout=90_000)
    at_rest(page)


def at_rest(page: Page) -> None:
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=60_000)
    page.wait_for_timeout(400)


def timed(page: Page, traffic: Traffic, click: str) -> tuple[float, int]:
    """Milliseconds from the click to the painted heatmap, and the bytes received until all is at rest."""
    before = traffic.bytes
    page.locator(HEATMAP).evaluate(WATCH)
    page.locator(click).first.click()
    milliseconds = page.evaluate("() => window.painted")
    at_rest(page)
    return milliseconds, traffic.bytes - before


def report(name: str, results: list[tuple[float, int]]) -> None:
    times, sizes = (statistics.median(column) for column in zip(*results, strict=True))
    fastest = min(milliseconds for milliseconds, _ in results)
    print(f"{name:34} {times:6.0f} ms (min {fastest:.0f}) {sizes / 1000:8.0f} kB")


def switch_heads(page: Page, traffic: Traffic, repeats: int) -> list[tuple[float, int]]:
    heads = [(n // 4 % 4, n % 4) for n in range(1, repeats + 1)]
    return [timed(page, traffic, f'[aria-label^="layer {layer}, head {head}"]') for layer, head in heads]


def toggle_mask(page: Page, traffic: Traffic, repeats: int) -> list[tuple[float, int]]:
    return [timed(page, traffic, ".st-key-causal label") for _ in range(repeats)]


def generated(page: Page) -> int:
    return page.locator(".chip.generated").count()


def play(page: Page, seconds: float = 6.0) -> float:
    """Tokens per second with the page's figures following."""
    page.locator(".st-key-play button").click()
    page.wait_for_selector(".chip.generated")
    start, began = generated(page), time.perf_counter()
    page.wait_for_timeout(seconds * 1000)
    rate = (generated(page) - start) / (time.perf_counter() - began)
    page.locator(".st-key-stop button").click()
    at_rest(page)
    return rate


def first_visit(browser: Browser, url: str) -> tuple[float, float]:
    """Milliseconds to the title and to the first picture, the server warm, the browser's cache cold."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    began = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_selector("h1")
    title = time.perf_counter() - began
    page.wait_for_selector(".st-key-pipeline canvas", timeout=60_000)
    picture = time.perf_counter() - began
    page.context.close()
    return title * 1000, picture * 1000


@contextmanager
def training(browser: Browser, url: str) -> Iterator[None]:
    """The server trains a model meanwhile, as the Training page starts it; the library then has one more."""
    page = browser.new_page()
    page.goto(f"{url}/training?training_view=Live&live_steps=100000")
    page.get_by_role("button", name="Start").click(timeout=60_000)
    page.get_by_text(re.compile(r"Step [1-9]\d* of 100,000")).wait_for(timeout=180_000)
    yield
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Training is going on").wait_for(state="hidden", timeout=60_000)
    page.close()


def measure(url: str, repeats: int) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        traffic = Traffic(page)
        for name, prompt in (("15 tokens", ""), ("128 tokens", LONG)):
            page.goto(f"{url}/attention" + (f"?prompt={prompt}" if prompt else ""))
            drawn(page)
            toggle_mask(page, traffic, 2)  # the first time both are computed
            report(f"head switch, {name}", switch_heads(page, traffic, repeats))
            report(f"mask toggle, {name}", toggle_mask(page, traffic, repeats))
        page.goto(f"{url}/attention")
        drawn(page)
        print(f"{'play, Attention page':34} {play(page):6.1f} tokens/s")
        page.goto(f"{url}/attention")
        drawn(page)
        report("head switch, 15 tokens", switch_heads(page, traffic, repeats))
        with training(browser, url):
            report("the same, a model in training", switch_heads(page, traffic, repeats))
        visits = [first_visit(browser, url) for _ in range(max(3, repeats // 3))]
        titles, pictures = (statistics.median(column) for column in zip(*visits, strict=True))
        print(f"{'opening: title, first picture':34} {titles:6.0f} ms, {pictures:.0f} ms")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--url", help="a server that runs already")
    arguments = parser.parse_args()
    if arguments.url:
        measure(arguments.url, arguments.repeats)
        return
    with tempfile.TemporaryDirectory() as home:
        os.environ["GPTVIZ_HOME"] = home  # what the training leaves is not the user's
        with server() as url:
            measure(url, arguments.repeats)


if __name__ == "__main__":
    main()
