"""The Embeddings page in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, Serve, Visit
from tests.browser.plots import chart, click_at, values
from tests.browser.test_journeys import PATIENCE, at_rest, button, main, ready, tile


@pytest.fixture
def app(serve: Serve) -> str:
    return serve(ROOT / "app.py")


def test_a_token_on_the_map_is_chosen_by_a_click_and_is_in_the_link(app, visit: Visit):
    page = ready(visit(f"{app}/embeddings?prompt=The+cat"))
    places = chart(page, "map_2d").evaluate("node => node.data[0].customdata.map(([label, id]) => id)")
    xs, ys = values(page, "map_2d", 0, "x"), values(page, "map_2d", 0, "y")
    alone = min(range(len(xs)), key=lambda at: xs[at])  # nothing else lies there
    click_at(page, "map_2d", xs[alone], ys[alone])
    expect(main(page).get_by_text(f"(id {places[alone]})")).to_be_visible(timeout=PATIENCE)
    page.wait_for_url(lambda url: "token=" in url, timeout=PATIENCE)
    again = ready(visit(page.url))
    expect(main(again).get_by_text(f"(id {places[alone]})")).to_be_visible(timeout=PATIENCE)


def test_a_step_adds_a_row_to_the_vectors(app, visit: Visit):
    page = ready(visit(f"{app}/embeddings?prompt=Once+upon"))
    rows = "node => node.data[0].y.bdata.length"
    before = chart(page, "vectors").evaluate(rows)
    button(page, "Step").click()
    expect(page.locator(".chip.generated")).to_have_count(1, timeout=PATIENCE)
    at_rest(page)
    page.wait_for_function(
        "before => document.querySelector('.st-key-vectors .js-plotly-plot').data[0].y.bdata.length > before",
        arg=before,
        timeout=PATIENCE,
    )


def test_the_map_can_be_turned_in_three_dimensions(app, visit: Visit):
    page = ready(visit(f"{app}/embeddings?prompt=The+cat"))
    main(page).get_by_text("3-D", exact=True).click()
    expect(chart(page, "map_3d").locator("canvas").first).to_be_visible(timeout=PATIENCE)
    expect(chart(page, "map_3d")).not_to_contain_text("WebGL is not supported")


def test_an_embedding_on_the_overview_opens_the_page(app, visit: Visit):
    page = ready(visit(f"{app}/?prompt=The+cat"))
    tile(page, "token embedding").click()
    expect(main(page).get_by_role("heading", name="Embeddings", exact=True)).to_be_visible(timeout=PATIENCE)
