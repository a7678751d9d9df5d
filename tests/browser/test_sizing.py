"""The Sizing page in a real browser: its fields are a component of its own, and its numbers are drawn again alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from gptviz.config import preset
from gptviz.sizing import n_params
from tests.browser.conftest import ROOT, Serve, Visit
from tests.browser.pages import PATIENCE, main

GPT2 = "124,439,808"
DEEPER = f"{n_params(preset('gpt2', n_layer=13)):,}"
VIEWS = ("Parameters", "Memory", "Operations", "Growth", "Compare")


@pytest.fixture
def sizing(serve: Serve, visit: Visit):
    """sizing("view=Memory", width=390, ...) -> the page with GPT-2 on it, drawn."""
    url = serve(ROOT / "app.py")

    def open_page(query: str = "", **options) -> Page:
        page = visit(f"{url}/sizing?configuration=gpt2&{query}", **options)
        expect(main(page).locator(".js-plotly-plot .main-svg").first).to_be_attached(timeout=PATIENCE)
        resting = "data-test-script-state", "notRunning"
        expect(page.get_by_test_id("stApp")).to_have_attribute(*resting, timeout=PATIENCE)
        return page

    return open_page


def field(page: Page, name: str, where: str = "stSidebar"):
    return page.get_by_test_id(where).get_by_role("spinbutton", name=name, exact=True)


def enter(page: Page, name: str, value: str, where: str = "stSidebar") -> None:
    field(page, name, where).fill(value)
    field(page, name, where).press("Enter")


def parameters(page: Page):
    return main(page).locator(".gptviz-numbers .number").first


def test_an_edit_is_followed_kept_in_the_address_and_taken_back(sizing):
    page = sizing()
    expect(parameters(page)).to_have_text(GPT2)
    plot = main(page).locator(".js-plotly-plot").element_handle()
    enter(page, "n_layer", "13")
    expect(parameters(page)).to_have_text(DEEPER)
    expect(main(page).get_by_text("13 × 7,087,872")).to_be_visible()
    assert plot.evaluate("node => node.isConnected"), "the figure was replaced instead of redrawn"
    expect(page).to_have_url(re.compile(r"gpt2\.n_layer=13"))
    page.reload()
    expect(parameters(page)).to_have_text(DEEPER, timeout=PATIENCE)
    expect(field(page, "n_layer")).to_have_value("13")
    page.get_by_role("button", name="Back to gpt2").click()
    expect(parameters(page)).to_have_text(GPT2)
    assert "n_layer" not in page.url


def test_a_bad_value_gets_one_sentence_and_all_else_stays(sizing):
    page = sizing()
    enter(page, "n_head", "7")
    alert = main(page).get_by_role("alert")
    expect(alert).to_have_count(1)
    expect(alert).to_contain_text("n_embd = 768 does not divide into n_head = 7 equal heads")
    expect(parameters(page)).to_have_text(GPT2)
    expect(main(page).locator(".js-plotly-plot")).to_be_visible()
    enter(page, "n_head", "16")
    expect(alert).to_have_count(0)


def test_what_was_edited_is_there_again_after_another_page(sizing):
    page = sizing()
    enter(page, "n_layer", "13")
    expect(parameters(page)).to_have_text(DEEPER)
    page.get_by_role("link", name="Attention").click()
    expect(main(page).get_by_role("heading", name="Attention")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("link", name="Sizing").click()
    expect(parameters(page)).to_have_text(DEEPER, timeout=PATIENCE)
    expect(field(page, "n_layer")).to_have_value("13")
    expect(page).to_have_url(re.compile(r"gpt2\.n_layer=13"))


def test_two_configurations_are_edited_side_by_side_and_training_opens_its_own_fields(sizing):
    page = sizing("view=Compare")
    enter(page, "n_layer", "24")
    enter(page, "n_embd", "1536", "stMain")
    for label in ("A: gpt2, edited", "B: gpt2, edited"):
        expect(main(page).get_by_role("columnheader", name=label).first).to_be_visible()
    main(page).get_by_text("Attention, optimizer, checkpointing").click()
    optimizer = main(page).get_by_role("combobox", name="Optimizer")
    expect(optimizer).to_be_disabled()
    main(page).get_by_role("combobox", name="Use", exact=True).select_option("Training")
    expect(optimizer).to_be_enabled()
    expect(main(page).get_by_text("Training step")).to_be_visible()


@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), ("light", 390), ("dark", 1280)])
def test_no_view_is_wider_than_the_screen(sizing, scheme, width):
    page = sizing(width=width, color_scheme=scheme)
    for view in VIEWS:
        main(page).get_by_role("radio", name=view).click()
        expect(main(page).get_by_role("radio", name=view)).to_be_checked()
        expect(main(page).locator(".gptviz-section h3").first).to_be_visible()
        page.wait_for_timeout(500)
        for node in ("document.documentElement", "document.querySelector('[data-testid=stMain]')"):
            assert page.evaluate(f"{node}.scrollWidth <= {node}.clientWidth"), (view, node)


def test_the_servers_log_is_clean(sizing, server_log):
    page = sizing("view=Growth&dtype=nonsense&gpt2.n_layer=many")
    expect(main(page).get_by_role("alert")).to_contain_text("n_layer")
    log = server_log(ROOT / "app.py")
    assert not re.search(r"Traceback|Warning|Error|deprecat", log, re.IGNORECASE)
