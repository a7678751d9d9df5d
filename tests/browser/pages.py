"""What every journey does with a page of the app."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

PATIENCE = 90_000  # milliseconds; a first visit also waits for torch


def main(page: Page) -> Locator:
    """The page apart from Streamlit's own header, which has a Stop of its own."""
    return page.get_by_test_id("stMain")


def button(page: Page, name: str) -> Locator:
    return main(page).get_by_role("button", name=name, exact=True)


def at_rest(page: Page) -> Page:
    """Wait until the script has run to its end."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=PATIENCE)
    return page


def chips(page: Page) -> list[str]:
    """The prompt's tokens as they are shown."""
    return page.locator(".gptviz-chips .chip").all_inner_texts()
