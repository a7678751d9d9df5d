"""The linker in a real browser: on a page of its own (apps/linker_demo.py), and on the Attention page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import ROOT
from tests.browser.pages import PATIENCE, at_rest, button, main

DEMO = Path(__file__).parent / "apps" / "linker_demo.py"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def demo(serve, visit):
    """demo(query="", ...) -> the page with the linker drawn."""

    def open_page(query: str = "", **options) -> Page:
        page = visit(f"{serve(DEMO)}/?{query}", **options)
        expect(tokens(page, "attending").first).to_be_visible(timeout=30_000)
        return page

    return open_page


def linker(page: Page) -> Locator:
    return page.locator(".st-key-linker")


def tokens(page: Page, side: str) -> Locator:
    return linker(page).get_by_role("listbox", name=side, exact=True).get_by_role("option")


def chip(page: Page, at: int) -> Locator:
    return page.locator(".gptviz-chips .chip").nth(at)


def numbers(page: Page, side: str) -> list[str]:
    """What is written beside the tokens of a column."""
    return tokens(page, side).locator(".number").all_text_contents()


def tinted(page: Page) -> list[int]:
    """The chips that are tinted."""
    script = "chips => chips.flatMap((chip, at) => chip.style.getPropertyValue('--tint') ? [at] : [])"
    return page.locator(".gptviz-chips .chip").evaluate_all(script)


def outlined(page: Page) -> list[int]:
    script = "chips => chips.flatMap((chip, at) => getComputedStyle(chip).outlineStyle === 'solid' ? [at] : [])"
    return page.locator(".gptviz-chips .chip").evaluate_all(script)


def pixels(page: Page) -> np.ndarray:
    """The canvas with the lines, (height, width, RGBA)."""
    settle(page)
    script = """canvas => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return [canvas.height, canvas.width, Array.from(data)];
    }"""
    height, width, data = linker(page).locator("canvas").evaluate(script)
    return np.array(data, np.uint8).reshape(height, width, 4)


def settle(page: Page) -> None:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def ends(page: Page, column: int) -> set[int]:
    """The tokens that a line reaches at that column of pixels."""
    drawn = np.flatnonzero(pixels(page)[:, column, 3])
    return {int(row) // 20 for row in drawn}


def leave(page: Page) -> None:
    page.mouse.move(2, 2)
    expect(linker(page).get_by_role("status")).to_have_text("No token is chosen.")


def pinned(page: Page) -> list[str]:
    return linker(page).locator('[role="option"][aria-selected="true"]').all_inner_texts()


def test_hover_shows_only_one_tokens_lines(demo):
    page = demo("tokens=12")
    assert ends(page, 0) == set(range(12))
    tokens(page, "attending").nth(6).hover()
    expect(linker(page).get_by_role("status")).to_contain_text("(6) attends to")
    assert ends(page, 0) == {6}
    assert ends(page, -1) <= set(range(7))
    tokens(page, "attended to").nth(9).hover()
    expect(linker(page).get_by_role("status")).to_contain_text("(9) is attended to by")
    assert ends(page, -1) == {9}
    assert ends(page, 0) <= {9, 10, 11}
    leave(page)
    assert ends(page, 0) == set(range(12))


def test_the_weights_are_written_beside_the_tokens(demo):
    page = demo("tokens=12&heads=1")
    weights = np.tril(np.exp(np.random.default_rng(0).normal(size=(2048, 2048))[:12, :12]))
    weights /= weights.sum(-1, keepdims=True)
    tokens(page, "attending").nth(11).hover()
    expect(tokens(page, "attended to").nth(0).locator(".number")).not_to_be_empty()
    assert numbers(page, "attended to") == [f"{float(f'{weight:.2g}'):g}" for weight in weights[11]]
    assert numbers(page, "attending") == [""] * 12
    tokens(page, "attended to").nth(10).hover()
    expect(tokens(page, "attending").nth(11).locator(".number")).not_to_be_empty()
    assert numbers(page, "attending") == [""] * 10 + [f"{float(f'{weights[at, 10]:.2g}'):g}" for at in (10, 11)]


def test_the_future_has_lines_only_without_the_mask(demo):
    for query, reached in (("", set(range(4))), ("&causal=false", set(range(12)))):
        page = demo(f"tokens=12{query}")
        tokens(page, "attending").nth(3).hover()
        expect(linker(page).get_by_role("status")).to_contain_text("(3) attends to")
        assert tinted(page) == sorted(reached)


def test_a_click_pins_and_a_second_click_releases(demo):
    page = demo()
    token = tokens(page, "attending").nth(4)
    token.click()
    tokens(page, "attending").nth(8).hover()
    expect(linker(page).get_by_role("status")).to_contain_text("(4) attends to")
    page.mouse.move(2, 2)
    assert ends(page, 0) == {4}
    expect(token).to_have_attribute("aria-selected", "true")
    token.click()
    expect(token).to_have_attribute("aria-selected", "false")
    leave(page)
    assert ends(page, 0) == set(range(12))
    assert not tinted(page)


def test_escape_releases_wherever_the_focus_is(demo):
    page = demo()
    tokens(page, "attended to").nth(2).click()
    button(page, "More").focus()
    page.keyboard.press("Escape")
    expect(linker(page).get_by_role("status")).to_have_text("No token is chosen.")
    assert not pinned(page)


def test_the_prompt_is_tinted_and_cleared(demo):
    page = demo("tokens=12")
    before = chip(page, 0).evaluate("chip => getComputedStyle(chip).backgroundColor")
    tokens(page, "attending").nth(5).click()
    assert (tinted(page), outlined(page)) == (list(range(6)), [5])
    assert chip(page, 0).evaluate("chip => getComputedStyle(chip).backgroundColor") != before
    tokens(page, "attended to").nth(9).click()
    assert (tinted(page), outlined(page)) == ([9, 10, 11], [9])
    page.keyboard.press("Escape")
    assert (tinted(page), outlined(page)) == ([], [])
    assert chip(page, 0).evaluate("chip => getComputedStyle(chip).backgroundColor") == before


def test_a_linker_that_leaves_takes_its_tints_along(demo):
    page = demo()
    tokens(page, "attending").nth(5).click()
    assert tinted(page)
    page.get_by_test_id("stCheckbox").get_by_text("Linker").click()
    expect(linker(page)).to_have_count(0)
    page.wait_for_function("!document.querySelector('.gptviz-chips.linked')")
    assert (tinted(page), outlined(page)) == ([], [])
    chip(page, 3).click()
    assert (tinted(page), outlined(page)) == ([], [])


def test_a_chip_of_the_prompt_chooses_its_token(demo):
    page = demo("tokens=12")
    chip(page, 7).hover()
    expect(linker(page).get_by_role("status")).to_contain_text("(7) attends to")
    assert ends(page, 0) == {7}
    leave(page)
    chip(page, 7).click()
    page.mouse.move(2, 2)
    expect(tokens(page, "attending").nth(7)).to_have_attribute("aria-selected", "true")
    chip(page, 7).click()
    assert not pinned(page)
    chip(page, 3).click()
    page.keyboard.press("Escape")
    assert not pinned(page)


def test_the_keyboard_reaches_everything(demo):
    page = demo("tokens=12")
    linker(page).get_by_role("button", name="all heads").focus()
    status = linker(page).get_by_role("status")
    page.keyboard.press("Tab")
    expect(status).to_contain_text("(0) attends to")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(status).to_contain_text("(2) attends to")
    page.keyboard.press("ArrowRight")
    expect(status).to_contain_text("(2) is attended to by")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    expect(status).to_contain_text("(11) is attended to by")
    expect(tokens(page, "attended to").nth(10)).to_be_focused()
    page.keyboard.press("Escape")
    expect(status).to_have_text("No token is chosen.")


def test_the_chips_are_one_stop_of_the_keyboard(demo):
    page = demo("tokens=12")
    status = linker(page).get_by_role("status")
    chip(page, 0).focus()
    page.keyboard.press("ArrowRight")
    expect(status).to_contain_text("(1) attends to")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(status).to_contain_text("(1) attends to")
    assert page.locator('.gptviz-chips .chip[tabindex="0"]').count() == 1


def test_heads_are_switched_by_their_colours(demo):
    page = demo("tokens=12")
    heads = [linker(page).get_by_role("button", name=f"head {head}", exact=True) for head in range(4)]
    status = linker(page).get_by_role("status")
    assert [head.get_attribute("aria-pressed") for head in heads] == ["true", "false", "false", "false"]
    heads[0].click(force=True)  # one stays
    expect(heads[0]).to_have_attribute("aria-pressed", "true")
    tokens(page, "attending").nth(6).click()
    expect(status).not_to_contain_text("in head")
    alone = colours(page)
    linker(page).get_by_role("button", name="all heads").click()
    expect(status).to_contain_text("in head")
    assert [head.get_attribute("aria-pressed") for head in heads] == ["true"] * 4
    assert alone < colours(page)
    linker(page).get_by_role("button", name="only head 0").click()
    assert colours(page) == alone
    heads[2].focus()
    page.keyboard.press("Space")
    heads[0].click()
    assert [head.get_attribute("aria-pressed") for head in heads] == ["false", "false", "true", "false"]
    assert colours(page).isdisjoint(alone)


def colours(page: Page) -> set[str]:
    """The colours in which tokens are tinted, their opacity apart."""
    styles = tokens(page, "attended to").locator(".label").evaluate_all("labels => labels.map(l => l.style.background)")
    return {match for style in styles for match in re.findall(r"rgb\([^)]*\)|#[0-9a-f]{6}", style)}


def test_the_pages_head_is_followed_until_others_are_chosen(demo):
    page = demo()
    pressed = linker(page).locator('[aria-pressed="true"]')
    tokens(page, "attending").nth(6).click()
    choose_head(page, 2)
    expect(pressed).to_have_text(["head 2"])
    expect(linker(page).get_by_role("status")).to_contain_text("(6) attends to")
    linker(page).get_by_role("button", name="head 3", exact=True).click()
    choose_head(page, 1)
    expect(pressed).to_have_text(["head 1", "head 2", "head 3"])
    expect(linker(page).get_by_role("status")).to_contain_text("(6) attends to")


def choose_head(page: Page, head: int) -> None:
    page.get_by_role("combobox", name="Head").click()
    page.get_by_test_id("stSelectboxVirtualDropdown").get_by_role("option", name=str(head), exact=True).click()
    expect(page.get_by_text(f"head={head}")).to_be_visible()


def test_a_pin_outlives_reruns_while_its_token_is_there(demo):
    page = demo("tokens=6")
    tokens(page, "attending").nth(5).click()
    node = tokens(page, "attending").nth(5).element_handle()
    button(page, "More").click()
    expect(tokens(page, "attending")).to_have_count(7)
    expect(linker(page).get_by_role("status")).to_contain_text("(5) attends to")
    assert outlined(page) == [5]
    assert node.evaluate("node => node.isConnected")
    button(page, "Fewer").click()
    button(page, "Fewer").click()
    expect(tokens(page, "attending")).to_have_count(5)
    expect(linker(page).get_by_role("status")).to_have_text("No token is chosen.")
    assert (tinted(page), outlined(page)) == ([], [])


def test_labels_are_inert_and_keep_their_places(demo):
    page = demo()
    assert tokens(page, "attending").locator(".label").all_text_contents()[:2] == [HOSTILE, "$5 **x**"]
    assert linker(page).locator("img, b, a").count() == 0
    tokens(page, "attending").nth(4).hover()
    expect(linker(page).get_by_role("status")).to_contain_text("‘</bdi><b>x</b>’ (4) attends to")
    assert linker(page).locator("img, b, a").count() == 0
    boxes = (
        tokens(page, "attended to")
        .locator(".label")
        .evaluate_all("labels => labels.map(label => label.getBoundingClientRect()).map(box => [box.left, box.top])")
    )
    assert len({left for left, _ in boxes}) == 1, "labels begin at the same edge, right-to-left ones too"
    assert [top for _, top in boxes] == sorted({top for _, top in boxes})


def test_nothing_of_it_asks_the_server(demo, serve, visit):
    frames: list[str] = []
    page = visit("about:blank")
    page.on("websocket", lambda socket: socket.on("framesent", lambda _: frames.append(socket.url)))
    page.goto(serve(DEMO))
    expect(tokens(page, "attending").first).to_be_visible(timeout=30_000)
    at_rest(page)
    page.wait_for_timeout(500)
    assert frames
    before = len(frames)
    tokens(page, "attending").nth(3).hover()
    tokens(page, "attended to").nth(5).click()
    chip(page, 2).click()
    linker(page).get_by_role("button", name="all heads").click()
    page.keyboard.press("Escape")
    page.wait_for_timeout(500)
    assert len(frames) == before


def test_a_thousand_tokens_scroll_inside_themselves(demo):
    page = demo("tokens=1024&heads=1")
    view = linker(page).locator(".view")
    assert view.bounding_box()["height"] <= 480
    assert not ends(page, 0)
    chip(page, 1000).hover()
    expect(linker(page).get_by_role("status")).to_contain_text("(1000) attends to")
    scrolled = view.evaluate("view => view.scrollTop")
    assert 1000 * 20 - 480 < scrolled <= 1000 * 20
    assert (1000 * 20 + 10 - int(scrolled)) // 20 in ends(page, 0)
    assert linker(page).get_by_role("button", name="all heads").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_its_window_in_both_themes(demo, width, scheme):
    page = demo(width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    view = linker(page).locator(".view")
    assert view.evaluate("view => view.scrollWidth <= view.clientWidth")
    assert linker(page).locator("canvas").bounding_box()["width"] >= 64
    colour = tokens(page, "attending").first.evaluate("token => getComputedStyle(token).color")
    assert (colour == "rgb(31, 41, 51)") is (scheme == "light")


def test_on_the_attention_page_a_pin_outlives_step_layer_and_head(serve, visit):
    page = visit(f"{serve(ROOT / 'app.py')}/attention?prompt=The+cat+sat&layer=1&head=2")
    expect(tokens(page, "attending").first).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    size = tokens(page, "attending").count()
    assert (
        tokens(page, "attending").locator(".label").all_text_contents()
        == page.locator(".gptviz-chips .chip").all_text_contents()
    )
    chip(page, 3).click()
    button(page, "Step").click()
    expect(tokens(page, "attending")).to_have_count(size + 1, timeout=PATIENCE)
    expect(linker(page).get_by_role("status")).to_contain_text("(3) attends to")
    page.locator('[aria-label^="layer 3, head 1"]').first.click()
    expect(main(page).get_by_role("group", name="Layer 3, head 1")).to_be_visible(timeout=PATIENCE)
    expect(linker(page).get_by_role("status")).to_contain_text("(3) attends to")
    assert outlined(page) == [3]
    assert tinted(page)
    assert set(tinted(page)) <= {0, 1, 2, 3}
