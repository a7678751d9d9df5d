"""The Feed-forward page in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, Serve, Visit
from tests.browser.plots import chart, click_at, values
from tests.browser.test_journeys import PATIENCE, main, ready, tile, type_prompt


@pytest.fixture
def app(serve: Serve) -> str:
    return serve(ROOT / "app.py")


def shown_neuron(page, number: str):
    return main(page).get_by_role("heading", name=f"Layer 1, neuron {number}", exact=True)


def test_a_click_on_a_cell_chooses_its_neuron_and_token(app, visit: Visit):
    page = ready(visit(f"{app}/feed_forward?prompt=The+cat+sat&layer=1"))
    neuron = chart(page, "neurons").evaluate("node => node.layout.yaxis.labelalias['5']")
    click_at(page, "neurons", 2, 5)
    expect(shown_neuron(page, neuron)).to_be_visible(timeout=PATIENCE)
    page.wait_for_url(lambda url: f"neuron={neuron}" in url and "position=2" in url, timeout=PATIENCE)
    again = ready(visit(page.url))
    expect(shown_neuron(again, neuron)).to_be_visible(timeout=PATIENCE)


def test_another_prompt_keeps_the_neuron_and_takes_its_last_token(app, visit: Visit):
    page = ready(visit(f"{app}/feed_forward?prompt=The+cat+sat&layer=1&neuron=7"))
    before = values(page, "along", 0, "y")
    type_prompt(page, "A dog ran to the park")
    expect(shown_neuron(page, "7")).to_be_visible(timeout=PATIENCE)
    longer = f"""document.querySelector('.st-key-along .js-plotly-plot').layout.xaxis.range[1] > {len(before)}"""
    page.wait_for_function(longer, timeout=PATIENCE)
    assert len(values(page, "along", 0, "y")) > len(before)


def test_an_ffn_on_the_overview_opens_its_layer(app, visit: Visit):
    page = ready(visit(f"{app}/?prompt=The+cat"))
    tile(page, "FFN 2").click()
    expect(main(page).get_by_role("heading", name="Feed-forward", exact=True)).to_be_visible(timeout=PATIENCE)
    expect(main(page).get_by_role("heading", name="Layer 2, neuron")).to_be_visible(timeout=PATIENCE)
