"""A matrix of more cells than pixels in a real browser: drawn, hovered and clicked (apps/large_matrix.py)."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .plots import chart, click_at

APP = Path(__file__).parent / "apps" / "large_matrix.py"
QUERY, KEY = 901, 302

# How many drawn pixels are far from the page's background, by the picture that stands in the chart.
BRIGHT = """async node => {
  const image = new Image();
  image.src = node.querySelector('.heatmaplayer image').getAttribute('href');
  await image.decode();
  const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const {data} = context.getImageData(0, 0, image.width, image.height);
  const zero = data.slice(0, 3);
  let bright = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] && Math.abs(data[i] - zero[0]) + Math.abs(data[i + 2] - zero[2]) > 40) bright++;
  }
  return [image.width, bright];
}"""


@pytest.fixture
def large(serve, visit):
    def open_page(**options) -> Page:
        page = visit(serve(APP, "--server.enableStaticServing=true"), **options)
        expect(chart(page, "large").locator(".heatmaplayer image")).to_be_visible(timeout=30_000)
        return page

    return open_page


def wait_for_picture(page: Page, narrow: bool) -> list[int]:
    """The drawn picture's width and bright pixels, once it has as few pixels as the screen, or all of its cells."""
    width = f"(await ({BRIGHT})(document.querySelector('.js-plotly-plot')))[0]"
    page.wait_for_function(f"async () => {width} {'<' if narrow else '==='} 1200")
    return chart(page, "large").evaluate(BRIGHT)


def zoom(page: Page, x: tuple[float, float], y: tuple[float, float]) -> None:
    ranges = {"xaxis.range": x, "yaxis.range": y[::-1]}
    chart(page, "large").evaluate("(node, ranges) => Plotly.relayout(node, ranges)", ranges)


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_a_lone_bright_cell_is_drawn_though_there_are_fewer_pixels(large, color_scheme):
    width, bright = wait_for_picture(large(color_scheme=color_scheme), narrow=True)
    assert width < 600
    assert bright == 1


def test_every_cell_is_drawn_once_there_is_room(large):
    page = large()
    wait_for_picture(page, narrow=True)
    zoom(page, (KEY - 50, KEY + 50), (QUERY - 50, QUERY + 50))
    assert wait_for_picture(page, narrow=False) == [1200, 1]
    zoom(page, (-0.5, 1199.5), (-0.5, 1199.5))
    assert wait_for_picture(page, narrow=True)[1] == 1


def test_hover_says_that_the_number_is_rounded_and_a_click_gives_the_cell(large):
    page = large()
    zoom(page, (KEY - 5, KEY + 5), (QUERY - 5, QUERY + 5))
    click_at(page, "large", KEY, QUERY)
    expect(page.get_by_text(f"clicked=('{QUERY}', '{KEY}')")).to_be_visible()
    expect(chart(page, "large").locator(".hoverlayer")).to_contain_text(f"‘a’ ({QUERY}) attends to ‘a’ ({KEY}): ≈ 0.41")
