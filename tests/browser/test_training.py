"""Watching a model learn, in a real browser: the slider, Play, and a training that outlives the page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from gptviz import GPTConfig
from gptviz.tokenizer import train_bpe
from gptviz.training import Options, Snapshots, grammar, train
from tests.browser.conftest import ROOT, Serve, Visit
from tests.browser.pages import PATIENCE, at_rest, button, main
from tests.browser.plots import values

TINY = "tiny: 1 layer, 2 heads, width 64".replace(" ", "+").replace(",", "%2C").replace(":", "%3A")


@pytest.fixture(scope="module")
def app(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A server with a home of its own, in which there are the snapshots of one run."""
    home = tmp_path_factory.mktemp("home")
    stories = grammar.stories(60)
    tokenizer = train_bpe(stories, 300)
    shape = dict(n_layer=2, n_head=2, n_embd=16, block_size=32, dropout=0.0)
    config = GPTConfig(vocab_size=len(tokenizer), bos_token_id=tokenizer.bos_id, **shape)
    kept = Snapshots(home / "runs" / "timelapse" / "tried", (0, 1, 2, 3))
    options = Options(steps=3, batch_size=2, warmup=0)
    list(train(config, stories[:-5], tokenizer, options, validation=stories[-5:], snapshots=kept))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPTVIZ_HOME", str(home))
        return serve(ROOT / "app.py", "--server.maxMessageSize=150")  # an option to be a server of its own


def marked(page: Page):
    """The words at the marker of the loss curve."""
    return main(page).locator(".st-key-lapse_loss .annotation-text")


def test_keys_move_the_marker_and_play_goes_to_the_end(app: str, visit: Visit):
    page = visit(f"{app}/training?run=tried&prompt=Lily+saw+a+ball")
    expect(marked(page)).to_have_text("step 3", timeout=PATIENCE)
    slider = main(page).get_by_role("slider", name="Step")
    slider.focus()
    slider.press("ArrowLeft")
    expect(marked(page)).to_have_text("step 2", timeout=PATIENCE)
    slider.press("Home")
    expect(marked(page)).to_have_text("step 0", timeout=PATIENCE)
    expect(page).to_have_url(re.compile(r"[?&]step=0"), timeout=PATIENCE)
    button(page, "Play").click()
    expect(marked(page)).to_have_text("step 3", timeout=PATIENCE)
    button(page, "Play").click()  # from the start again, and stopped at once
    button(page, "Stop").click()
    expect(marked(page)).to_have_text("step 0", timeout=PATIENCE)


def test_the_charts_follow_the_slider_by_themselves(app: str, visit: Visit):
    """Python hears nothing of it; what they show is what it draws at that step. Those that are in sight, that is."""
    page = visit(f"{app}/training?run=tried&prompt=Lily+saw+a+ball&step=1")
    expect(marked(page)).to_have_text("step 1", timeout=PATIENCE)
    at_rest(page)
    drawn = shown(page)
    page = visit(f"{app}/training?run=tried&prompt=Lily+saw+a+ball&step=2")
    expect(marked(page)).to_have_text("step 2", timeout=PATIENCE)
    at_rest(page)
    assert shown(page) != drawn
    page.set_viewport_size({"width": 1280, "height": 2000})
    at_rest(page)
    page.evaluate("() => { WebSocket.prototype.send = () => {}; }")
    main(page).get_by_role("slider", name="Step").press("ArrowLeft")
    expect(marked(page)).to_have_text("step 1", timeout=PATIENCE)
    assert shown(page) == drawn


def test_the_charts_that_follow_are_those_of_the_chosen_head(app: str, visit: Visit):
    link = f"{app}/training?run=tried&prompt=Lily+saw+a+ball"
    page = visit(f"{link}&step=1&lapse_head=1", height=2000)
    expect(marked(page)).to_have_text("step 1", timeout=PATIENCE)
    drawn = shown(at_rest(page))
    page = visit(f"{link}&step=2", height=2000)
    expect(marked(page)).to_have_text("step 2", timeout=PATIENCE)
    at_rest(page)
    main(page).get_by_role("combobox", name="Head").click()
    page.get_by_role("option", name="1").click()
    expect(main(page).get_by_role("img", name="Layer 0, head 1")).to_be_visible(timeout=PATIENCE)
    at_rest(page)
    page.evaluate("() => { WebSocket.prototype.send = () => {}; }")
    main(page).get_by_role("slider", name="Step").press("ArrowLeft")
    expect(marked(page)).to_have_text("step 1", timeout=PATIENCE)
    assert shown(page) == drawn


def test_play_that_is_stopped_at_once_leaves_the_charts_to_python(app: str, visit: Visit):
    page = visit(f"{app}/training?run=tried&prompt=Lily+saw+a+ball&step=0", height=2000)
    expect(marked(page)).to_have_text("step 0", timeout=PATIENCE)
    at_rest(page)
    main(page).get_by_role("button", name="Play").evaluate("button => { button.click(); button.click(); }")
    main(page).get_by_role("combobox", name="Head").click()
    page.get_by_role("option", name="1").click()
    expect(main(page).get_by_role("img", name="Layer 0, head 1")).to_be_visible(timeout=PATIENCE)


def shown(page: Page) -> list[list[float]]:
    return [values(page, "lapse_attention", 0, "z"), values(page, "lapse_next", 0, "x")]


def test_no_place_comes_back_that_the_hand_has_left(app: str, visit: Visit):
    page = visit(f"{app}/training?run=tried&step=3")
    expect(marked(page)).to_have_text("step 3", timeout=PATIENCE)
    at_rest(page)
    page.evaluate(
        """() => {
          window.seen = [];
          const look = () => {
            const now = document.querySelector('.st-key-lapse_loss .annotation-text')?.textContent;
            if (now && now !== window.seen.at(-1)) window.seen.push(now);
            requestAnimationFrame(look);
          };
          look();
        }"""
    )
    slider = main(page).get_by_role("slider", name="Step")
    for _ in range(3):
        slider.press("ArrowLeft")
        page.wait_for_timeout(120)
    expect(page).to_have_url(re.compile(r"[?&]step=0"), timeout=PATIENCE)
    at_rest(page)
    assert page.evaluate("window.seen") == sorted(page.evaluate("window.seen"), reverse=True)
    expect(marked(page)).to_have_text("step 0")
    expect(main(page).get_by_text("Step 0 ·")).to_be_visible()


def test_the_slider_is_followed_while_it_is_dragged(app: str, visit: Visit):
    page = visit(f"{app}/training?run=tried&step=0")
    expect(marked(page)).to_have_text("step 0", timeout=PATIENCE)
    box = main(page).get_by_role("slider", name="Step").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.66, box["y"] + box["height"] / 2)
    expect(marked(page)).to_have_text("step 2", timeout=PATIENCE)  # the button is still held
    page.mouse.up()


def test_a_training_goes_on_without_its_page_and_is_saved(app: str, visit: Visit):
    link = f"{app}/training?training_view=Live&live_preset={TINY}&live_steps=2000"
    page = visit(link)
    button(page, "Start").click(timeout=PATIENCE)
    expect(main(page).get_by_text("Training is going on")).to_be_visible(timeout=PATIENCE)
    begun = main(page).get_by_text(re.compile(r"Step [1-9]\d* of 2,000"))
    expect(begun).to_be_visible(timeout=3 * PATIENCE)  # at a low priority, PyTorch may take its time on a busy machine
    page.context.close()  # the tab is closed
    page = visit(link)
    expect(main(page).get_by_text("Training is going on")).to_be_visible(timeout=PATIENCE)
    button(page, "Pause").click()
    expect(main(page).get_by_text("Training is paused")).to_be_visible(timeout=PATIENCE)
    button(page, "Save as it is").click()
    expect(main(page).get_by_text("Training has finished")).to_be_visible(timeout=PATIENCE)
    expect(main(page).get_by_text("The model is in the library")).to_be_visible(timeout=PATIENCE)
