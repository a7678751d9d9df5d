"""How soon each page shows a new prompt, how fast Play goes there; what a sampling slider and a time-lapse step cost.

    python -m benchmarks.pages [--repeats 9] [--seconds 6]

A new prompt: milliseconds from Ctrl+Enter to the last change that can be seen (figures in sight, tokens, words), and
the part of them that is the model's forward pass with everything kept. Needs requirements-dev.txt.
"""

from __future__ import annotations

import argparse
import statistics
import time
from unittest import mock

from playwright.sync_api import Page, sync_playwright

from benchmarks.ui import CHROMIUM, FLAGS, HEATMAP, ROOT, Traffic, at_rest, generated, server

PAGES = ("", "embeddings", "attention", "feed_forward", "residual_stream", "sampling")
PROMPTS = ("The cat sat on a {} mat.", "Tom and Lily saw the {} dog.", "One day, a {} bird came.", "She had a {} hat.")
WORDS = ("big", "red", "sad", "fat", "new", "old", "wet", "shy", "bad", "mad")

# From the key press to the last thing that changed in sight before half a second in which nothing did.
WATCH = """() => { window.settled = new Promise((resolve) => {
  const main = document.querySelector('[data-testid=stMain]');
  const inSight = (node) => {
    const {top, bottom} = node.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  };
  const plots = () => [...main.querySelectorAll('.js-plotly-plot')].filter(inSight);
  document.addEventListener('keydown', () => {
    window.pictured = new Promise((resolve) => {
      const since = performance.now(), before = new Map(plots().map((plot) => [plot, plot.data]));
      const frame = () => {
        if ([...before].some(([plot, data]) => plot.data === data)) requestAnimationFrame(frame);
        else requestAnimationFrame(() => resolve(performance.now() - since));
      };
      frame();
    });
    const since = performance.now(), seen = new Map(plots().map((plot) => [plot, plot.data]));
    let last = null;
    const changed = () => (last = performance.now());
    const observer = new MutationObserver((records) => {
      if (records.some(({target}) => target.nodeType !== 1 || inSight(target))) changed();
    });
    observer.observe(main, {subtree: true, childList: true, characterData: true});
    const frame = () => {
      for (const plot of plots()) if (seen.get(plot) !== plot.data) { seen.set(plot, plot.data); changed(); }
      const now = performance.now();
      if ((last !== null && now - last > 500) || now - since > 20000) {
        observer.disconnect();
        resolve(last === null ? NaN : last - since);
      } else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }, {capture: true, once: true});
}); }"""


def open_page(page: Page, url: str, name: str) -> None:
    page.goto(f"{url}/{name}")
    page.wait_for_selector(".st-key-next_token .main-svg", timeout=90_000)
    at_rest(page)
    page.wait_for_timeout(1500)  # what is below the fold is drawn when the browser has nothing else to do


def new_prompt(page: Page, text: str) -> float:
    """Milliseconds until the page shows it."""
    box = page.get_by_test_id("stMain").get_by_label("Prompt", exact=True)
    box.fill(text)
    page.evaluate(WATCH)
    box.press("Control+Enter")
    milliseconds: float = page.evaluate("() => window.settled")
    at_rest(page)
    return milliseconds


def play(page: Page, seconds: float) -> tuple[float, float]:
    """Tokens a second, and how often a second one of the two pictures that Play draws ahead was another."""
    page.evaluate("""() => { window.draws = 0; let before = null; const count = () => {
      const plot = document.querySelector('.st-key-attention_heatmap .js-plotly-plot')
        ?? document.querySelector('.st-key-next_token .js-plotly-plot');
      if (plot && plot.data !== before) { before = plot.data; window.draws += 1; }
      requestAnimationFrame(count); }; count(); }""")
    matrix = page.locator(HEATMAP)
    if matrix.count():  # what nobody sees is not drawn
        matrix.scroll_into_view_if_needed()
    page.locator(".st-key-play button").dispatch_event("click")
    page.wait_for_selector(".chip.generated")
    page.wait_for_timeout(1000)
    tokens, draws, began = generated(page), page.evaluate("() => window.draws"), time.perf_counter()
    page.wait_for_timeout(seconds * 1000)
    took = time.perf_counter() - began
    rates = (generated(page) - tokens) / took, (page.evaluate("() => window.draws") - draws) / took
    page.locator(".st-key-stop button").click()
    at_rest(page)
    return rates


def lapse_step(page: Page, url: str, repeats: int) -> tuple[float, float]:
    """Milliseconds from a key on the time-lapse's slider until the charts in sight are others, and to the last change.

    The prompt's runs have been computed.
    """
    page.goto(f"{url}/training")
    page.wait_for_selector(".st-key-lapse_attention .main-svg", timeout=90_000)
    at_rest(page)
    slider = page.get_by_test_id("stMain").get_by_role("slider", name="Step")
    charts, times = [], []
    for _ in range(repeats):
        page.evaluate(WATCH)
        slider.press("ArrowLeft")
        charts.append(page.evaluate("() => window.pictured"))
        times.append(page.evaluate("() => window.settled"))
        at_rest(page)
    return statistics.median(charts), statistics.median(times)


def forward(repeats: int) -> float:
    """Milliseconds of a trace of such a prompt."""
    import torch

    import gptviz

    torch.set_num_threads(max(1, torch.get_num_threads() // 2))  # as the app has it
    loaded, times = gptviz.load("stories"), []
    ids = loaded.tokenizer.encode(PROMPTS[0].format(WORDS[0]), bos=True)
    for _ in range(max(20, repeats)):
        began = time.perf_counter()
        gptviz.trace(loaded.model, ids)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def slider(repeats: int) -> tuple[float, float]:
    """Milliseconds of the server's rerun after the Sampling page's temperature has moved: the largest, the median."""
    from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
    from streamlit.testing.v1 import AppTest

    run_script, spent = ScriptRunner._run_script, []

    def timed(runner: ScriptRunner, data: object) -> None:
        began = time.perf_counter()
        run_script(runner, data)
        spent.append(time.perf_counter() - began)

    times = []
    with mock.patch.object(ScriptRunner, "_run_script", timed):
        for step in range(max(9, repeats)):
            at = AppTest.from_file(str(ROOT / "pages" / "sampling.py"), default_timeout=120).run()
            at.slider(key="temperature").set_value(0.5 + 0.05 * step)
            spent.clear()
            at.run()
            times.append(sum(spent))  # the callback's run and the one of the parts it asks for
    return max(times) * 1000, statistics.median(times) * 1000


def measure(url: str, repeats: int, seconds: float) -> None:
    texts = [prompt.format(word) for word in WORDS for prompt in PROMPTS]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        print(f"{'page':16} {'new prompt':>22} {'kB':>6} {'play: tokens/s':>16} {'draws/s':>8}")
        for name in PAGES:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            traffic = Traffic(page)
            open_page(page, url, name)
            new_prompt(page, "Once upon a time.")  # the first one also compiles the browser's code
            before = traffic.bytes
            times = [new_prompt(page, text) for text in texts[:repeats]]
            size = (traffic.bytes - before) / repeats / 1000
            rates = play(page, seconds)
            spread = f"{statistics.median(times):5.0f} ms (min {min(times):.0f})"
            print(f"{name or 'overview':16} {spread:>22} {size:6.0f} {rates[0]:16.1f} {rates[1]:8.1f}", flush=True)
            page.close()
        page = browser.new_page(viewport={"width": 1280, "height": 2400})
        open_page(page, url, "attention")
        rates = play(page, seconds)
        print(f"{'attention, 2,400 px of it in sight':46} {rates[0]:16.1f} {rates[1]:8.1f}", flush=True)
        page.close()
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        charts, everything = lapse_step(page, url, repeats)
        print(f"time-lapse, one step: charts {charts:.0f} ms, all that is written {everything:.0f} ms")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=6.0, help="of Play on each page")
    arguments = parser.parse_args()
    print(f"forward pass with everything kept: {forward(arguments.repeats):.0f} ms")
    largest, median = slider(arguments.repeats)
    print(f"Sampling, temperature moved, the server's rerun: {median:.0f} ms, at most {largest:.0f}")
    with server() as url:
        measure(url, arguments.repeats, arguments.seconds)


if __name__ == "__main__":
    main()
