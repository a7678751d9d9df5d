"""How fast the Sizing page opens and follows a change, in Chromium: python benchmarks/sizing.py [--runs 5]

Opening is timed on servers just started, so that a page that needs torch pays for it. A change is timed in the browser,
from the key pressed to the figure painted, with what the page's main thread computed for it: on a busy machine the
latter alone can be compared. Budgets: a change in 100 ms, opening in half the time of a torch page.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

ROOT = Path(__file__).parents[1]
VIEWS = ("Parameters", "Memory", "Operations", "Growth", "Compare")
PAINTED = "[data-testid=stMain] .js-plotly-plot .main-svg, [data-testid=stMain] canvas"
CHANGE_BUDGET, OPENING_BUDGET = 100, 0.5  # ms; share of the torch page's time

# What has to be there for the page to be of use: numbers on one, the heads on the other.
OPENED = {"sizing": ".gptviz-numbers .number", "attention": PAINTED}

# Resolves with the milliseconds from the key to two frames after the number and every figure have followed.
WATCH = """() => {
  window.followed = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('nothing followed within 30 seconds')), 30_000)
    const number = document.querySelector('.gptviz-numbers .number'), before = number.textContent
    const plots = [...document.querySelectorAll('.js-plotly-plot')]
    let start = 0, waiting = plots.length + 1
    const one = () => --waiting || requestAnimationFrame(
      () => requestAnimationFrame(() => resolve(performance.now() - start)))
    addEventListener('keydown', () => { start = performance.now() }, {capture: true, once: true})
    plots.forEach(plot => {
      let drawn = false
      plot.on('plotly_afterplot', () => { if (start && !drawn) { drawn = true; one() } })
    })
    const observer = new MutationObserver(() => {
      if (document.querySelector('.gptviz-numbers .number').textContent !== before) { observer.disconnect(); one() }
    })
    observer.observe(document.body, {subtree: true, childList: true, characterData: true})
  })
}"""


@contextmanager
def server(app: str) -> Iterator[str]:
    """The app, just started: its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", app, "--server.headless=true", f"--server.port={port}"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def wait_for(url: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def opening(browser: Browser, app: str, page_name: str, content: str) -> float:
    """Milliseconds from the address to the first content, on a server just started."""
    with server(app) as url:
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(f"{url}/{page_name}")
        page.wait_for_selector(content, state="attached", timeout=300_000)
        took = 1000 * (time.perf_counter() - start)
        page.close()
    return took


def change(page: Page) -> float:
    """Milliseconds from a key that adds a layer to the figures painted."""
    page.get_by_test_id("stSidebar").get_by_role("spinbutton", name="n_layer", exact=True).focus()
    page.evaluate(WATCH)
    page.keyboard.press("ArrowUp")
    return float(page.evaluate("() => window.followed"))


def changes(browser: Browser, app: str, runs: int) -> dict[str, tuple[float, float]]:
    """View -> medians of the milliseconds to the figures painted, and of those that the page's main thread worked."""
    with server(app) as url:
        page = browser.new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        medians = {}
        for view in VIEWS:
            page.goto(f"{url}/sizing?configuration=gpt2&view={view}")
            page.wait_for_selector(PAINTED, state="attached", timeout=300_000)
            page.wait_for_timeout(1000)
            change(page)
            took = [timed(page, session) for _ in range(runs)]
            medians[view] = statistics.median(all_ for all_, _ in took), statistics.median(own for _, own in took)
        page.close()
    return medians


def timed(page: Page, session: CDPSession) -> tuple[float, float]:
    """One change: all of its milliseconds, and those in which the page's main thread worked, rest included."""
    page.wait_for_timeout(300)
    before = worked(session)
    took = change(page)
    page.wait_for_timeout(200)
    return took, worked(session) - before


def worked(session: CDPSession) -> float:
    """Milliseconds of work of the page's main thread so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(1000 * float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def report(name: str, value: float, unit: str, budget: float) -> bool:
    held = value <= budget
    verdict = "held" if held else "MISSED"
    print(f"{name:44} {value:8.2f} {unit:3} budget {budget:g}  {verdict}", flush=True)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--app", default="app.py")
    args = parser.parse_args()
    system = "/usr/bin/chromium"
    chromium = os.environ.get("GPTVIZ_CHROMIUM") or (system if Path(system).exists() else None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        medians = changes(browser, args.app, args.runs)
        held = [report(f"a change, {view}", took, "ms", CHANGE_BUDGET) for view, (took, _) in medians.items()]
        print("main thread: " + ", ".join(f"{view} {own:,.0f} ms" for view, (_, own) in medians.items()))
        times = {
            name: statistics.median(opening(browser, args.app, name, content) for _ in range(args.runs))
            for name, content in OPENED.items()
        }
        picture = opening(browser, args.app, "sizing", PAINTED)
        browser.close()
    print("opened on a fresh server: " + ", ".join(f"{name} {took:,.0f} ms" for name, took in times.items()))
    print(f"sizing's first picture after {picture:,.0f} ms")
    held.append(
        report("opening, share of the attention page", times["sizing"] / times["attention"], "", OPENING_BUDGET)
    )
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
