"""The Residual stream page in a real browser: its lens is clicked, moved through by key, and follows the text."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, Serve, Visit
from tests.browser.pages import PATIENCE, at_rest


@pytest.fixture
def stream(serve: Serve, visit: Visit):
    """stream("prompt=...", width=390) -> the page, drawn to its end."""
    app = serve(ROOT / "app.py")

    def open_page(query: str = "", **options) -> Page:
        page = visit(f"{app}/residual_stream?{query}", **options)
        expect(page.locator(".st-key-predictions .js-plotly-plot")).to_be_visible(timeout=PATIENCE)
        return at_rest(page)

    return open_page


def cell(page: Page, row: int, column: int):
    return page.locator(f'.st-key-lens_table [data-at="{row}.{column}"]')


def says(page: Page, text: str) -> None:
    expect(page.get_by_test_id("stMain").get_by_text(text)).to_be_visible(timeout=PATIENCE)


def test_a_click_on_a_cell_shows_what_it_holds_and_who_wrote_it(stream):
    page = stream("prompt=The+cat+sat")
    cell(page, 1, 2).click()
    says(page, "After block 1, at ‘The’ (1)")
    says(page, "Predicted at ‘The’ (1), the position chosen above.")
    expect(cell(page, 1, 2)).to_have_class("cell selected")
    cell(page, 2, 0).click()
    says(page, "After embed, at")
    expect(page.locator(".st-key-lens_table .selected")).to_have_count(1)


def test_the_arrow_keys_move_through_the_lens_and_stay_within_it(stream):
    page = stream("prompt=The+cat+sat")
    cell(page, 0, 0).click()
    says(page, "After embed, at ‘<|endoftext|>’ (0)")
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    says(page, "After block 0, at ‘The’ (1)")
    at_rest(page)
    expect(cell(page, 1, 1)).to_have_class("cell selected")


def test_the_chosen_cell_is_in_the_address_and_names_stay_in_view(stream):
    page = stream("prompt=" + "The+cat+sat.+" * 12)
    pane, column = page.locator(".st-key-lens_table .pane"), page.locator(".st-key-lens_table .column").first
    assert pane.evaluate("node => node.scrollTop") > 0, "the chosen row, the last one, is in view"
    cell(page, 40, 3).click()
    says(page, "After block 2, at")
    at_rest(page)
    top = pane.bounding_box()["y"]
    assert top <= column.bounding_box()["y"] < top + 4
    again = stream(page.url.split("?")[1])
    says(again, "After block 2, at")
    expect(cell(again, 40, 3)).to_have_class("cell selected")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_lens_follows_the_text_and_fits_a_narrow_window(stream, scheme):
    page = stream("prompt=Once+upon+a", width=390, color_scheme=scheme)
    rows = page.locator(".st-key-lens_table tr")
    before = rows.count()
    page.get_by_test_id("stMain").get_by_role("button", name="Step", exact=True).click()
    expect(rows).to_have_count(before + 1, timeout=PATIENCE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.get_by_test_id("stMain").evaluate("node => node.scrollWidth") <= 390
