"""What a person does, in a real browser against a real server."""

from __future__ import annotations

import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

import gptviz
from gptviz.ui.state import PROMPT
from tests.browser.conftest import ROOT, Serve, Visit
from tests.browser.pages import PATIENCE, at_rest, button, chips, main
from tests.browser.plots import chart, click_at


@pytest.fixture
def app(serve: Serve) -> str:
    return serve(ROOT / "app.py")


def ready(page: Page) -> Page:
    """Wait until the page has been drawn to its end and is at rest."""
    expect(main(page).locator(".js-plotly-plot").last).to_be_visible(timeout=PATIENCE)
    return at_rest(page)


def tile(page: Page, name: str):
    return page.locator(f'[aria-label^="{name}"]').first


def heatmap_values(page: Page) -> list[float]:
    """The numbers of the large matrix, as plotly.js holds them."""
    script = """node => {
      const {z} = node.data.find(trace => trace.type === 'heatmap');
      return Array.from(new Float32Array(Uint8Array.from(atob(z.bdata), c => c.charCodeAt(0)).buffer));
    }"""
    return main(page).locator(".st-key-attention_heatmap .js-plotly-plot").evaluate(script)


def type_prompt(page: Page, text: str) -> None:
    box = main(page).get_by_label("Prompt", exact=True)
    box.fill(text)
    box.press("Control+Enter")
    page.wait_for_timeout(300)
    at_rest(page)


def test_type_a_sentence_and_see_tokens_heads_and_next_token(app, visit: Visit):
    page = ready(visit(app))
    type_prompt(page, "The cat sat")
    assert "".join(chips(page)[1:]).replace("·", " ") == "The cat sat"
    assert tile(page, "layer 3, head 3").is_visible()
    assert "most likely" in main(page).locator(".st-key-next_token").text_content()


def test_step_back_and_reset(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    before = chips(page)
    button(page, "Step").click()
    expect(page.locator(".chip.generated")).to_have_count(1, timeout=PATIENCE)
    button(page, "Step").click()
    expect(page.locator(".chip.generated")).to_have_count(2, timeout=PATIENCE)
    button(page, "Back").click()
    expect(page.locator(".chip.generated")).to_have_count(1, timeout=PATIENCE)
    button(page, "Reset").click()
    expect(page.locator(".chip.generated")).to_have_count(0, timeout=PATIENCE)
    assert chips(page) == before


def test_every_press_counts(app, visit: Visit):
    """However quickly they follow each other: Streamlit makes one of those that it has not yet answered."""
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    for _ in range(10):
        button(page, "Step").click(no_wait_after=True)
    expect(page.locator(".chip.generated")).to_have_count(10, timeout=PATIENCE)
    at_rest(page)
    for _ in range(4):
        button(page, "Back").click(no_wait_after=True)
    expect(page.locator(".chip.generated")).to_have_count(6, timeout=PATIENCE)
    at_rest(page)
    assert added(page) == written_by_steps("Once upon", 6)


def press(page: Page, *names: str) -> None:
    """All in one task of the browser: nothing is answered in between."""
    page.evaluate("names => names.forEach((name) => document.querySelector(`.st-key-${name} button`).click())", names)


def test_presses_of_several_buttons_keep_their_order(app, visit: Visit, paused):
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    button(page, "Step").click()
    expect(button(page, "Reset")).to_be_enabled(timeout=PATIENCE)
    at_rest(page)
    with paused(ROOT / "app.py"):
        press(page, "step", "step", "reset", "step", "step", "step", "back")
        page.wait_for_timeout(300)
    expect(page.locator(".chip.generated")).to_have_count(2, timeout=PATIENCE)
    at_rest(page)
    assert added(page) == written_by_steps("Once upon", 2)


def test_after_a_burst_of_presses_the_page_still_answers(app, visit: Visit):
    """Its buttons are those of what is there now, and the browser has not lost the server."""
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    for _ in range(4):
        press(page, *["step"] * 5, "reset", *["step"] * 10, *["back"] * 4)
        page.wait_for_timeout(500)
        at_rest(page)
        button(page, "Reset").click(timeout=PATIENCE)
        expect(page.locator(".chip.generated")).to_have_count(0, timeout=PATIENCE)
        at_rest(page)


def test_after_another_page_during_play_a_press_is_still_one(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    button(page, "Play").click()
    expect(page.locator(".chip.generated").nth(2)).to_be_visible(timeout=PATIENCE)
    for name in ("Overview", "Attention"):
        page.get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True).click()
        expect(main(page).get_by_role("heading", name=name, exact=True)).to_be_visible(timeout=PATIENCE)
        page.wait_for_timeout(1000)
    button(page, "Stop").click()
    button(page, "Reset").click(timeout=PATIENCE)
    expect(page.locator(".chip.generated")).to_have_count(0, timeout=PATIENCE)
    at_rest(page)
    button(page, "Step").click()
    expect(page.locator(".chip.generated")).not_to_have_count(0, timeout=PATIENCE)
    at_rest(page)
    assert added(page) == written_by_steps("Once upon", 1)


def test_while_it_plays_the_page_says_how_long_the_text_is(app, visit: Visit):
    """And so does the address, but for the last few tokens: who reloads the page goes on from there."""
    page = ready(visit(f"{app}/?prompt=Once+upon"))
    before = len(chips(page))
    button(page, "Play").click()
    seen = [(0, "", 0)]
    while seen[-1][0] < 20:
        page.wait_for_timeout(100)
        seen += [
            page.evaluate(
                """() => [document.querySelectorAll('.chip.generated').length,
                     document.querySelector('.st-key-text_length').innerText,
                     (new URL(location.href).searchParams.get('generated') ?? '').split('.').length]"""
            )
        ]
    frames = [(count, words) for count, words, _ in seen if words.endswith("\u2060")]
    assert frames
    for count, words in frames:
        assert words.startswith(f"{before + count} of at most 128 tokens (block_size), {count} of them generated.")
    count, _, named = seen[-1]
    assert count - 8 < named <= count
    button(page, "Reset").click()
    expect(page.locator(".chip.generated")).to_have_count(0, timeout=PATIENCE)
    expect(page.locator(".st-key-text_length")).to_have_text(
        f"{before} of at most 128 tokens (block_size), 0 of them generated."
    )


def test_play_writes_on_and_stop_stops_it(app, visit: Visit):
    page = ready(visit(f"{app}/attention"))
    node = page.locator(".st-key-attention_heatmap .js-plotly-plot").element_handle()
    button(page, "Play").click()
    expect(page.locator(".chip.generated").nth(4)).to_be_visible(timeout=PATIENCE)
    button(page, "Stop").click()
    expect(button(page, "Play")).to_be_enabled(timeout=PATIENCE)
    written = len(chips(page))
    page.wait_for_timeout(1500)
    assert len(chips(page)) == written
    assert added(page) == written_by_steps(PROMPT, len(added(page)))
    assert node.evaluate("node => node.isConnected"), "the figure was replaced instead of redrawn"


# How many tokens the chips and the matrix show, each time that the matrix has been drawn.
SIZES = """node => { window.sizes = []; let before = node.data; const watch = () => {
  if (node.data !== before) {
    before = node.data;
    window.sizes.push([document.querySelectorAll('.gptviz-chips .chip').length, node.layout.xaxis.maxallowed + 0.5]);
  }
  requestAnimationFrame(watch); }; watch(); }"""


def test_every_generated_token_joins_the_matrix_by_itself(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=Once+upon", height=1800))
    before = len(chips(page))
    matrix = chart(page, "attention_heatmap")
    matrix.evaluate(SIZES)
    matrix.evaluate("node => (node.mine = true)")
    button(page, "Play").click()
    expect(page.locator(".chip.generated").nth(15)).to_be_visible(timeout=PATIENCE)
    button(page, "Stop").click()
    expect(button(page, "Play")).to_be_enabled(timeout=PATIENCE)
    at_rest(page)
    sizes = page.evaluate("window.sizes")
    assert {matrix for _, matrix in sizes} == set(range(before + 1, len(chips(page)) + 1))
    assert matrix.evaluate("node => node.mine")


@pytest.mark.parametrize("options", ["", "&hide_first=true", "&causal=false&hide_first=true"])
def test_the_whole_matrix_is_in_sight_as_it_grows(app, visit: Visit, options):
    """Also where its first row and column are blank."""
    page = ready(visit(f"{app}/attention?prompt=Once+upon{options}"))
    for count in (1, 2, 3):
        button(page, "Step").click()
        expect(page.locator(".chip.generated")).to_have_count(count, timeout=PATIENCE)
        at_rest(page)
    shown = chart(page, "attention_heatmap").evaluate(
        """({_fullLayout: {xaxis, yaxis}}) => [xaxis, yaxis].flatMap(({range, domain}) => [range, domain])"""
    )
    end = len(chips(page)) - 0.5
    assert shown == [[-0.5, end], [0, 1], [end, -0.5], [0, 1]]


@pytest.mark.parametrize("at_once", [True, False])
def test_stop_keeps_what_was_on_screen(app, visit: Visit, at_once):
    """Also where the hand's two messages reach the server as one: pressed and let go while the browser was busy.

    And what was kept is gone at a Reset, whatever the player says with it."""
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    button(page, "Play").click()
    expect(page.locator(".chip.generated").nth(6)).to_be_visible(timeout=PATIENCE)
    seen = button(page, "Stop").evaluate(
        """async (button, atOnce) => {
          button.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}));
          const seen = document.querySelectorAll('.gptviz-chips .chip').length;
          if (!atOnce) await new Promise((then) => setTimeout(then, 60));
          button.click();
          return seen;
        }""",
        at_once,
    )
    expect(button(page, "Play")).to_be_enabled(timeout=PATIENCE)
    at_rest(page)
    assert len(chips(page)) == seen
    assert added(page) == written_by_steps("Once upon", len(added(page)))
    button(page, "Reset").click()
    expect(page.locator(".chip.generated")).to_have_count(0, timeout=PATIENCE)


def added(page: Page) -> list[int]:
    """The generated tokens, as the address has them."""
    return [int(token) for token in parse_qs(urlsplit(page.url).query)["generated"][0].split(".")]


def written_by_steps(prompt: str, count: int) -> list[int]:
    """What pressing Step so many times adds: a full forward pass for each token."""
    loaded = gptviz.load("stories")
    ids = loaded.tokenizer.encode(prompt, bos=True)
    steps = gptviz.generate(loaded.model, ids, count, temperature=0.8, top_k=40, seed=0, cache=False)
    return [step.token for step in steps]


def test_the_mask_toggle_opens_the_future(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=The+cat+sat"))
    tokens = len(chips(page))
    masked = sum(value == value for value in heatmap_values(page))  # NaN is not itself
    assert masked == tokens * (tokens + 1) // 2
    page.get_by_test_id("stSidebar").get_by_text("Causal mask").click()
    expect(main(page).get_by_text("the causal mask is off")).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    assert sum(value > 0 for value in heatmap_values(page)) == tokens * tokens


def test_another_positional_encoding_is_recomputed_and_said(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=The+cat+sat"))
    before = heatmap_values(page)
    page.get_by_test_id("stSidebar").get_by_role("combobox", name="Positional encoding").click()
    page.get_by_role("option", name="rotary").click()
    expect(main(page).get_by_text("positions are rotary in place of learned")).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    assert heatmap_values(page) != before


def test_a_click_on_a_head_changes_what_is_shown(app, visit: Visit):
    page = ready(visit(f"{app}/attention"))
    before = heatmap_values(page)
    tile(page, "layer 2, head 1").click()
    expect(page.get_by_role("img", name="Layer 2, head 1")).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    assert heatmap_values(page) != before


def test_a_head_that_the_browser_has_is_drawn_without_the_server(app, visit: Visit, paused):
    page = ready(visit(f"{app}/attention?prompt=The+cat+sat"))
    with paused(ROOT / "app.py"):
        tile(page, "layer 1, head 2").click()
        expect(page.get_by_role("img", name="Layer 1, head 2")).to_be_visible(timeout=PATIENCE)
        at_once = heatmap_values(page)
    expect(main(page).get_by_text("Layer 1, head 2", exact=True)).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    assert at_once == heatmap_values(ready(visit(f"{app}/attention?prompt=The+cat+sat&layer=1&head=2")))


def test_a_zoom_lasts_while_tokens_are_added_and_ends_at_the_whole_matrix(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=The+cat+sat"))
    matrix = chart(page, "attention_heatmap")
    matrix.evaluate("node => (node.mine = true)")
    matrix.scroll_into_view_if_needed()
    box = main(page).locator(".st-key-attention_heatmap .nsewdrag").bounding_box()
    drag(page, *((box["x"] + part * box["width"], box["y"] + part * box["height"]) for part in (0.2, 0.7)))
    zoomed = ranges(page)
    main(page).get_by_role("button", name="Step").click()
    tile(page, "layer 1, head 2").click()
    expect(main(page).get_by_text("Layer 1, head 2", exact=True)).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    assert zoomed != [[-0.5, 5.5], [5.5, -0.5]]
    assert ranges(page) == zoomed
    main(page).locator(".st-key-attention_heatmap .nsewdrag").dblclick()
    page.wait_for_timeout(500)  # it waits for a third click
    size = len(chips(page))
    assert ranges(page) == [[-0.5, size - 0.5], [size - 0.5, -0.5]]
    assert matrix.evaluate("node => node.mine")


def test_a_cell_chosen_while_it_plays_stays_chosen(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=Once+upon", height=1900))
    button(page, "Play").click()
    expect(page.locator(".chip.generated").nth(3)).to_be_visible(timeout=PATIENCE)
    click_at(page, "attention_heatmap", 0, 0)  # a cell that is still there when the matrix has grown meanwhile
    expect(main(page).get_by_label("Cell", exact=True)).to_have_value("0, 0", timeout=PATIENCE)
    button(page, "Stop").click()
    expect(button(page, "Play")).to_be_enabled(timeout=PATIENCE)
    expect(page).to_have_url(re.compile(r"[?&]cell=0%2C\+0"), timeout=PATIENCE)
    expect(main(page).get_by_text("(0) attends to ‘<|endoftext|>’ (0)")).to_be_visible(timeout=PATIENCE)


def test_a_zoom_never_shows_what_is_gone(app, visit: Visit):
    page = ready(visit(f"{app}/feed_forward?prompt=the+cat+sat+on+the+mat.+the+cat+sat+on+the+mat+and+the+dog+ran"))
    line = main(page).locator(".st-key-along .nsewdrag")
    line.scroll_into_view_if_needed()
    box = line.bounding_box()
    drag(page, *((box["x"] + part * box["width"], box["y"] + part * box["height"]) for part in (0.6, 0.9)))
    assert ranges(page, "along")[0][0] > 3
    type_prompt(page, "The cat")
    at_rest(page)
    page.wait_for_function(
        "() => document.querySelector('.st-key-along .js-plotly-plot')._fullLayout.xaxis.range[1] < 4"
    )
    assert ranges(page, "along")[0][0] < 0


def ranges(page: Page, key: str = "attention_heatmap") -> list[list[float]]:
    return chart(page, key).evaluate("node => [node._fullLayout.xaxis.range, node._fullLayout.yaxis.range]")


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()
    page.wait_for_timeout(500)


def test_layer_and_head_survive_another_page(app, visit: Visit):
    page = ready(visit(f"{app}/attention"))
    tile(page, "layer 3, head 2").click()
    expect(page.get_by_role("img", name="Layer 3, head 2")).to_be_visible(timeout=PATIENCE)
    type_prompt(page, "The dog")
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible(timeout=PATIENCE)
    ready(page)
    sidebar.get_by_role("link", name="Attention").click()
    expect(page.get_by_role("img", name="Layer 3, head 2")).to_be_visible(timeout=PATIENCE)
    assert "".join(chips(page)[1:]).replace("·", " ") == "The dog"


def test_what_a_link_says_goes_along_to_the_first_other_page(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=The+dog&causal=false&temperature=1.1"))
    page.wait_for_timeout(1000)
    for name in ("Sampling", "Overview"):  # with nothing touched before
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible(timeout=PATIENCE)
        ready(page)
        assert "".join(chips(page)[1:]).replace("·", " ") == "The dog"
        expect(page.get_by_role("switch", name="Causal mask")).not_to_be_checked()
        assert "temperature=1.1" in page.url


def test_a_head_on_the_overview_opens_on_its_page(app, visit: Visit):
    page = ready(visit(app))
    tile(page, "layer 1, head 3").click()
    expect(page.get_by_role("img", name="Layer 1, head 3")).to_be_visible(timeout=PATIENCE)


def test_the_address_reproduces_the_view_in_another_browser(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=The+cat"))
    tile(page, "layer 2, head 2").click()
    expect(page.get_by_role("img", name="Layer 2, head 2")).to_be_visible(timeout=PATIENCE)
    page.get_by_test_id("stSidebar").get_by_text("Causal mask").click()
    expect(main(page).get_by_text("the causal mask is off")).to_be_visible(timeout=PATIENCE)
    button(page, "Step").click()
    expect(page.locator(".chip.generated")).to_have_count(1, timeout=PATIENCE)
    expect(page).to_have_url(re.compile("generated="), timeout=PATIENCE)
    again = ready(visit(page.url))
    expect(again.get_by_role("img", name="Layer 2, head 2")).to_be_visible(timeout=PATIENCE)
    assert chips(again) == chips(page)
    assert heatmap_values(again) == heatmap_values(page)


def test_markup_in_a_prompt_is_inert(app, visit: Visit):
    hostile = '<img src=x onerror=alert(1)><b>x</b> $5 :red[w] <a href="https://example.org">x</a>'
    page = ready(visit(f"{app}/attention"))
    type_prompt(page, hostile)  # a dialog or a script error fails the test
    assert "".join(chips(page)[1:]).replace("·", " ") == hostile
    assert main(page).locator(".gptviz-chips img, .gptviz-chips b, .gptviz-chips a").count() == 0
    assert main(page).locator('a[href*="example.org"]').count() == 0


def test_half_a_surrogate_pair_from_the_browser_is_survived_and_said(app, visit: Visit):
    page = ready(visit(f"{app}/attention"))
    box = main(page).get_by_label("Prompt", exact=True)
    box.focus()
    page.evaluate("document.execCommand('selectAll'); document.execCommand('insertText', false, 'a\\ud83d b')")
    box.press("Control+Enter")
    expect(main(page).get_by_text("half of a surrogate pair")).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    assert "EF BF BD" in " ".join(chips(page)).replace("\n", " ")


def test_right_to_left_text_stays_in_its_chips(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=ab+%D7%A9%D7%9C%D7%95%D7%9D+cd"))
    where = "chips => chips.map(chip => chip.getBoundingClientRect()).map(box => [box.top, box.left])"
    rows = page.locator(".gptviz-chips .chip").evaluate_all(where)
    assert rows == sorted(rows), "chips stand in reading order"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["", "attention"])
def test_pages_fit_their_window_in_both_themes(app, visit: Visit, path, width, scheme):
    page = ready(visit(f"{app}/{path}", width=width, color_scheme=scheme))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.get_by_test_id("stApp").evaluate("node => getComputedStyle(node).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (scheme == "light")
    if width < 500:
        assert main(page).evaluate("node => node.scrollWidth") <= width


def test_nothing_comes_from_another_machine(app, visit: Visit):
    page = visit("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(app)
    ready(page)
    strangers = [url for url in asked if not url.startswith((app, app.replace("http", "ws"), "data:", "blob:"))]
    assert not strangers


def test_two_sessions_do_not_see_each_others_toggles(app, visit: Visit):
    one, two = ready(visit(f"{app}/attention?prompt=The+cat")), ready(visit(f"{app}/attention?prompt=The+cat"))
    before = heatmap_values(two)
    one.get_by_test_id("stSidebar").get_by_text("Causal mask").click()
    expect(main(one).get_by_text("the causal mask is off")).to_be_visible(timeout=PATIENCE)
    tile(two, "layer 0, head 1").click()
    expect(two.get_by_role("img", name="Layer 0, head 1")).to_be_visible(timeout=PATIENCE)
    tile(two, "layer 0, head 0").click()
    expect(two.get_by_role("img", name="Layer 0, head 0")).to_be_visible(timeout=PATIENCE)
    at_rest(two)
    assert heatmap_values(two) == before


def test_a_servers_first_deep_link_shows_its_title_at_once_and_the_apps_menu(serve: Serve, visit: Visit):
    cold = serve(ROOT / "app.py", "--server.maxMessageSize=199")  # a server of its own, which has not loaded torch
    began = time.monotonic()
    page = visit(f"{cold}/attention")
    expect(page.get_by_role("heading", name="Attention", exact=True)).to_be_visible(timeout=PATIENCE)
    titled = time.monotonic() - began
    ready(page)
    assert titled < 0.7 * (time.monotonic() - began)
    links = page.get_by_test_id("stSidebar").get_by_role("link").all_inner_texts()
    titles = re.findall(r'Page\(.*?title="(.+?)"', (ROOT / "app.py").read_text())
    assert [link.splitlines()[-1] for link in links] == titles


def test_a_megabyte_is_answered_with_the_notice(app, visit: Visit):
    page = ready(visit(f"{app}/attention"))
    type_prompt(page, "word " * 200_000)
    expect(main(page).get_by_text("Of the prompt's 1,000,000 characters")).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    assert len(chips(page)) == 128


def test_a_click_on_a_cell_opens_its_arithmetic(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=The+cat+sat"))
    matrix = main(page).locator(".st-key-attention_heatmap .nsewdrag")
    box, cell = matrix.bounding_box(), 0.5 / len(chips(page))
    matrix.click(position={"x": box["width"] * cell, "y": box["height"] * (1 - cell)})
    expect(main(page).get_by_text("attends to ‘<|endoftext|>’ (0)")).to_be_visible(timeout=PATIENCE)
    expect(main(page).locator(".katex").nth(1)).to_be_visible(timeout=PATIENCE)
    expect(page).to_have_url(re.compile(r"[?&]cell=5%2C\+0"), timeout=PATIENCE)
    again = ready(visit(page.url))
    expect(main(again).get_by_text("attends to ‘<|endoftext|>’ (0)")).to_be_visible(timeout=PATIENCE)
    main(again).get_by_label("Cell", exact=True).fill("2, 1")
    again.keyboard.press("Enter")
    expect(main(again).get_by_text("(2) attends to")).to_be_visible(timeout=PATIENCE)


def test_the_servers_log_is_clean(app, visit: Visit, server_log):
    ready(visit(app))
    ready(visit(f"{app}/attention"))
    lines = server_log(ROOT / "app.py").splitlines()
    assert not [line for line in lines if re.search("warn|error|traceback|deprecat|exception", line, re.IGNORECASE)]


def test_pages_may_be_switched_while_it_plays(app, visit: Visit, server_log):
    page = ready(visit(f"{app}/?prompt=Once+upon"))
    before = len(server_log(ROOT / "app.py"))
    button(page, "Play").click()
    expect(page.locator(".chip.generated").first).to_be_visible(timeout=PATIENCE)
    pages = ("Attention", "Embeddings", "Models", "Sampling", "Overview", "Training", "Residual stream", "Attention")
    for number, name in enumerate(pages):
        page.wait_for_timeout(400 + 270 * number)  # other moments between two tokens each time
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
        expect(main(page).get_by_role("heading", name=name, exact=True)).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".chip.generated").nth(5)).to_be_visible(timeout=PATIENCE)
    assert "Traceback" not in server_log(ROOT / "app.py")[before:]


def test_a_page_that_is_left_before_it_is_there_hands_its_link_on(app, visit: Visit):
    page = visit(f"{app}/attention?prompt=The+dog&causal=false&temperature=1.1")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Sampling").click()
    expect(page.get_by_role("heading", name="Sampling", exact=True)).to_be_visible(timeout=PATIENCE)
    ready(page)
    assert "".join(chips(page)[1:]).replace("·", " ") == "The dog"
    expect(page.get_by_role("switch", name="Causal mask")).not_to_be_checked()
    expect(page).to_have_url(re.compile("temperature=1.1"))


def test_a_reload_while_it_plays_keeps_most_of_what_was_added(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    button(page, "Play").click()
    expect(page.locator(".chip.generated").nth(20)).to_be_visible(timeout=PATIENCE)
    page.reload()
    ready(page)
    assert page.locator(".chip.generated").count() >= 16


def test_back_while_it_plays_ends_it_and_gives_the_buttons_back(app, visit: Visit):
    page = ready(visit(f"{app}/attention?prompt=Once+upon"))
    button(page, "Play").click()
    expect(page.locator(".chip.generated").nth(2)).to_be_visible(timeout=PATIENCE)
    button(page, "Back").click()
    expect(button(page, "Play")).to_be_enabled(timeout=PATIENCE)
    expect(button(page, "Stop")).to_be_disabled()


def test_another_model_begins_as_it_was_trained(app, visit: Visit, server_log):
    page = ready(visit(f"{app}/attention?prompt=The+dog&causal=false&encoding=rotary"))
    before = len(server_log(ROOT / "app.py"))
    sidebar = page.get_by_test_id("stSidebar")
    encoding = sidebar.locator(".st-key-encoding input")
    for name, own in (("minimal-decoder", "sinusoidal"), ("stories", "learned")):
        sidebar.locator(".st-key-model input").click()
        page.get_by_role("option", name=name, exact=True).click()
        expect(sidebar.get_by_text(f"Trained: {own}")).to_be_visible(timeout=PATIENCE)
        ready(page)
        expect(encoding).to_have_value(own, timeout=PATIENCE)
        expect(page.get_by_role("switch", name="Causal mask")).to_be_checked()
        expect(main(page).get_by_text("Not as trained")).to_have_count(0)
        button(page, "Step").click()
        expect(page.locator(".chip.generated")).to_have_count(1, timeout=PATIENCE)
    assert "Session State API" not in server_log(ROOT / "app.py")[before:]
    assert "Traceback" not in server_log(ROOT / "app.py")[before:]
