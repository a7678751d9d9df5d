"""The components in a real browser, on a page of their own (apps/components_demo.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

DEMO = Path(__file__).parent / "apps" / "components_demo.py"
HOSTILE = "<img src=x onerror=alert(1)>"
MARKDOWN = "$5 **x**"


@pytest.fixture
def demo(serve, visit):
    """demo(query="", width=1280, ...) -> the page with both components drawn."""
    url = serve(DEMO, "--server.enableStaticServing=true")

    def open_page(query: str = "", **options) -> Page:
        page = visit(f"{url}/?{query}", **options)
        expect(page.locator(".heatmaplayer image")).to_be_visible(timeout=30_000)
        expect(page.get_by_role("option").first).to_be_visible()
        return page

    return open_page


def node(page: Page):
    return page.get_by_role("img", name="heatmap of run")


def next_run(page: Page, run: int) -> None:
    page.get_by_role("button", name="Next").click()
    expect(node(page)).to_have_attribute("aria-label", f"heatmap of run {run}")


def axes(page: Page) -> list[float]:
    return node(page).evaluate("node => [...node._fullLayout.xaxis.range, ...node._fullLayout.yaxis.range]")


def wait_for_z(page: Page, old: float) -> None:
    page.wait_for_function("old => document.querySelector('.js-plotly-plot').calcdata[0][0].z[5][0] !== old", arg=old)


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    box = node(page).locator(".nsewdrag").bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=4)
    page.mouse.up()


def cell(page: Page, row: int, column: int) -> tuple[float, float]:
    """Where a cell's middle is on the page, in pixels, from plotly's own axes."""
    return node(page).evaluate(
        """(node, [row, column]) => {
            const { xaxis, yaxis } = node._fullLayout;
            const box = node.getBoundingClientRect();
            return [box.x + xaxis._offset + xaxis.d2p(column), box.y + yaxis._offset + yaxis.d2p(row)];
        }""",
        [row, column],
    )


def selected(page: Page):
    return page.locator('[role="option"][aria-selected="true"]')


def tile(page: Page, name: str):
    return page.get_by_role("option").filter(has_text=name)


def test_a_rerun_keeps_the_node_and_the_zoom(demo):
    page = demo()
    node(page).evaluate("node => (node.mine = true)")
    whole = axes(page)
    drag(page, (0.1, 0.1), (0.5, 0.5))
    zoomed = axes(page)
    old = node(page).evaluate("node => node.calcdata[0][0].z[5][0]")
    next_run(page, 1)
    wait_for_z(page, old)
    assert zoomed != whole
    assert axes(page) == zoomed
    assert node(page).evaluate("node => node.mine")


def test_a_click_reports_its_cell_once(demo):
    page = demo()
    page.mouse.click(*cell(page, row=100, column=20))
    expect(page.get_by_text("clicks=[(100, 20)]")).to_be_visible()
    next_run(page, 1)
    page.mouse.click(*cell(page, row=9, column=3))
    expect(page.get_by_text("clicks=[(100, 20), (9, 3)]")).to_be_visible()


def test_a_bar_reports_its_customdata_and_its_ticks_are_literal(demo):
    page = demo()
    chart = page.get_by_role("img", name="two bars")
    expect(chart.locator(".xtick").first).to_have_text(HOSTILE)
    chart.locator(".barlayer .point").first.hover(force=True)
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_text(f"bar={HOSTILE}")).to_be_visible()


def test_a_missing_script_is_said(serve, chromium):
    page = chromium.new_page()
    page.goto(serve(DEMO, "--server.enableStaticServing=false"))
    expect(page.get_by_role("status").first).to_contain_text("is server.enableStaticServing on?", timeout=30_000)
    page.close()


@pytest.mark.parametrize("format", ["png", "svg"])
def test_a_figure_is_saved_on_the_page_s_background(demo, format, tmp_path):
    page = demo(color_scheme="dark")
    node(page).hover()
    with page.expect_download() as download:
        node(page).locator(f'.modebar-btn[data-title="Download as {format.upper()}"]').click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    start = {"png": b"\x89PNG", "svg": b"<svg"}[format]
    assert path.suffix == f".{format}"
    assert path.read_bytes().startswith(start)


def test_a_figure_follows_the_theme_and_the_width(demo):
    page = demo()
    colour = "node => getComputedStyle(node.querySelector('.xtick text')).fill"
    light = node(page).evaluate(colour)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"old => ({colour})(document.querySelector('.js-plotly-plot')) !== old", arg=light)
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function("document.querySelector('.js-plotly-plot .main-svg').clientWidth < 700")


def test_a_click_outlines_the_tile_at_once_and_reaches_python_once(demo):
    page = demo()
    outlined = tile(page, "L2H3").evaluate("tile => (tile.click(), tile.getAttribute('aria-selected'))")
    assert outlined == "true"
    expect(page.get_by_text("calls=1 picks=['L2H3']")).to_be_visible()
    next_run(page, 1)
    expect(page.get_by_text("run=1 calls=1 picks=['L2H3']")).to_be_visible()
    expect(selected(page)).to_contain_text("L2H3")


def test_arrows_move_the_selection_and_enter_picks(demo):
    page = demo()
    tile(page, "L0H0").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    expect(selected(page)).to_contain_text("L2H0")
    expect(page.get_by_text("calls=1 picks=['L2H0']")).to_be_visible()
    expect(tile(page, "L2H0")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("calls=2 picks=['L2H0', 'L2H0']")).to_be_visible()


def test_quick_picks_never_jump_back(demo):
    page = demo()
    jumps = """() => {
        const grid = document.querySelector('.stBidiComponent [data-testid=stBidiComponentIsolated]').shadowRoot;
        const tiles = [...grid.querySelectorAll('[role=option]')];
        const seen = (window.seen = []);
        const look = () => seen.push(tiles.findIndex(tile => tile.ariaSelected === 'true'));
        for (const tile of tiles) new MutationObserver(look).observe(tile, {attributeFilter: ['aria-selected']});
        [1, 2, 3, 4, 5, 6].forEach((at, i) => setTimeout(() => tiles[at].click(), 40 * i));
    }"""
    page.evaluate(jumps)
    expect(page.get_by_text("'L1H2']")).to_be_visible()
    seen = page.evaluate("window.seen")
    assert seen == sorted(seen)
    expect(selected(page)).to_contain_text("L1H2")


def test_python_s_own_choice_is_followed(demo):
    page = demo()
    tile(page, "L3H3").click()
    expect(page.get_by_text("picks=['L3H3']")).to_be_visible()
    page.get_by_role("button", name="Choose L1H1").click()
    expect(selected(page)).to_contain_text("L1H1")
    expect(page.get_by_text("calls=2 picks=['L3H3']")).to_be_visible()


def test_tiles_are_kept_and_only_changed_ones_redrawn(demo):
    page = demo()
    page.evaluate("""() => {
        window.painted = 0;
        const { putImageData } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.putImageData = function (...all) {
            window.painted += this.canvas.classList.contains("picture");
            return putImageData.apply(this, all);
        };
    }""")
    page.get_by_role("button", name="Choose L1H1").click()
    expect(selected(page)).to_contain_text("L1H1")
    assert page.evaluate("window.painted") == 0
    next_run(page, 1)
    page.wait_for_function("window.painted > 0")
    assert page.evaluate("window.painted") == 16


def test_words_are_literal(demo):
    page = demo()
    tile(page, "L0H1").hover()
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text(HOSTILE)
    expect(tip).to_contain_text(MARKDOWN)
    expect(tile(page, "L0H1")).to_contain_text(MARKDOWN)
    assert page.locator("img[src=x]").count() == 0


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_a_narrow_page_scrolls_rows_inside_themselves(demo, color_scheme):
    page = demo("layers=2&heads=12", width=390, color_scheme=color_scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    strip = page.locator(".strip").first
    assert strip.evaluate("strip => strip.scrollWidth > strip.clientWidth")
    tile(page, "L0H0").focus()
    for _ in range(11):
        page.keyboard.press("ArrowRight")
    expect(tile(page, "L0H11")).to_be_in_viewport()
