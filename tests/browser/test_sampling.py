"""The Sampling page in a real browser: sliders, ways that are clicked, a changed token, measured speeds."""

from __future__ import annotations

import contextlib

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tests.browser.conftest import ROOT, Serve, Visit
from tests.browser.pages import PATIENCE, at_rest, button, chips


@pytest.fixture
def sampling(serve: Serve, visit: Visit):
    """sampling("prompt=...", width=390) -> the page, drawn to its end."""
    app = serve(ROOT / "app.py")

    def open_page(query: str = "", **options) -> Page:
        page = visit(f"{app}/sampling?{query}", **options)
        expect(page.locator(".st-key-ways .js-plotly-plot")).to_be_visible(timeout=PATIENCE)
        return at_rest(page)

    return open_page


def choose(page: Page, label: str, option: str) -> None:
    """A list that has been opened closes when the page is drawn again: then it is opened once more."""
    box = page.get_by_test_id("stMain").get_by_role("combobox", name=label)
    wanted = page.get_by_role("option", name=option)
    for _ in range(5):
        box.click()
        with contextlib.suppress(TimeoutError):
            wanted.click(timeout=10_000)
            break
    expect(box).to_have_value(option, timeout=PATIENCE)


def test_a_way_that_is_clicked_is_added_and_can_be_taken_back(sampling):
    page = sampling("prompt=Once+upon+a")
    before = chips(page)
    way = page.locator(".st-key-ways .barlayer .point path").nth(2)  # three tokens deep
    told = page.locator(".st-key-ways .js-plotly-plot").evaluate("node => node.data[0].customdata[2]")
    way.click(force=True)
    expect(page.locator(".chip.generated")).to_have_count(len(told[0].split(".")), timeout=PATIENCE)
    assert "".join(chips(page)[len(before) :]) == told[1]
    button(page, "Back").click()
    expect(page.locator(".chip.generated")).to_have_count(len(told[0].split(".")) - 1, timeout=PATIENCE)


def test_a_changed_token_changes_the_prompt_and_the_model_goes_on(sampling):
    page = sampling("prompt=The+cat+sat+on+the+mat")
    before = chips(page)
    choose(page, "Token to change", "2 ·c")
    at_rest(page)
    button(page, "Change it").click()
    expect(page.locator(".gptviz-chips .chip")).to_have_count(3, timeout=PATIENCE)
    assert chips(page)[:2] == before[:2]
    assert chips(page)[2] != before[2]
    box = page.get_by_test_id("stMain").get_by_label("Prompt", exact=True)
    expect(box).to_have_value("The")
    button(page, "Step").click()
    expect(page.locator(".gptviz-chips .chip")).to_have_count(4, timeout=PATIENCE)


def test_continuations_are_drawn_and_one_is_taken(sampling):
    page = sampling("prompt=Once+upon+a&count=3&length=5")
    button(page, "Sample continuations").click()
    texts = page.locator(".gptviz-text")
    expect(texts).to_have_count(3, timeout=PATIENCE)
    at_rest(page)
    second = texts.nth(1).locator(".token").all_inner_texts()
    button(page, "Go on with it").nth(1).click()
    expect(page.locator(".chip.generated")).to_have_count(5, timeout=PATIENCE)
    assert chips(page)[-5:] == second


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_speeds_are_measured_and_the_page_fits_a_narrow_window(sampling, scheme):
    page = sampling("prompt=Once+upon+a", width=390, color_scheme=scheme)
    button(page, "Measure").click()
    expect(page.get_by_text("both gave exactly the same tokens")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".st-key-speed .js-plotly-plot")).to_be_visible(timeout=PATIENCE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.get_by_test_id("stMain").evaluate("node => node.scrollWidth") <= 390
