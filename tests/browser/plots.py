"""Pointing at what a Plotly chart shows."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def chart(page: Page, key: str) -> Locator:
    """The chart that the plot component with that key hosts."""
    return page.get_by_test_id("stMain").locator(f".st-key-{key} .js-plotly-plot")


def click_at(page: Page, key: str, x: float, y: float) -> None:
    """Click the place (x, y) of a chart, in its axes' own numbers; of a category the number is its place."""
    node = chart(page, key)
    node.scroll_into_view_if_needed()
    script = """(node, [x, y]) => {
      const {xaxis, yaxis} = node._fullLayout, box = node.getBoundingClientRect();
      return [box.x + xaxis._offset + xaxis.l2p(x), box.y + yaxis._offset + yaxis.l2p(y)];
    }"""
    left, top = node.evaluate(script, [x, y])
    page.mouse.move(left, top)
    page.mouse.click(left, top)


def values(page: Page, key: str, trace: int, name: str) -> list[float]:
    """The float32 numbers of one property of one trace, as plotly.js holds them."""
    script = """(node, [trace, name]) => {
      const {bdata} = node.data[trace][name];
      return Array.from(new Float32Array(Uint8Array.from(atob(bdata), c => c.charCodeAt(0)).buffer));
    }"""
    return chart(page, key).evaluate(script, [trace, name])
