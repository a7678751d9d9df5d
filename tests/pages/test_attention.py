"""What the Attention page draws, against the model itself."""

import numpy as np
import pytest

import gptviz
from gptviz.figures.style import tex
from tests.figures.spec import array, cells, hover, read, ticks

from .conftest import PROMPT, figure, said, tile_header, tile_pixels


def test_the_heatmap_is_the_chosen_heads_pattern(open_page, run):
    drawn = cells(figure(open_page("attention", prompt=PROMPT, layer="2", head="3"), "attention_heatmap"))
    pattern = run.pattern(2, 3)
    assert set(drawn) == {(i, j) for i in range(len(run.ids)) for j in range(i + 1)}
    assert max(abs(value - pattern[cell]) for cell, value in drawn.items()) < 1e-6


def test_without_the_mask_the_future_has_values(open_page):
    drawn = cells(figure(open_page("attention", prompt=PROMPT, causal="false"), "attention_heatmap"))
    assert any(value > 0 for (row, column), value in drawn.items() if column > row)


def test_hover_says_who_attends_to_whom(open_page, run):
    shown = figure(open_page("attention", prompt="sat on", bos="false"), "attention_heatmap")
    labels = ticks(shown, "y")
    value = cells(shown)[1, 0]
    assert hover(shown, 1, 0) == f"‘{labels[1]}’ (1) attends to ‘{labels[0]}’ (0): {value:.3g}"
    assert hover(shown, 0, 1).endswith("masked")


def test_repeated_tokens_keep_a_tick_each(open_page):
    shown = figure(open_page("attention", prompt="the the the", bos="false"), "attention_heatmap")
    labels = ticks(shown, "x")
    assert ticks(shown, "y") == labels
    assert labels[-2:] == ["·the", "·the"]
    assert read(shown)["layout"]["yaxis"]["autorange"] == "reversed"  # row 0 on top


def test_every_head_has_a_tile_and_the_chosen_one_is_marked(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="1", head="2")
    assert tile_header(at, "heads")["selected"] == "1.2"
    pixels = tile_pixels(at, "heads")
    assert list(pixels) == [f"{layer}.{head}" for layer in range(4) for head in range(4)]
    future = np.triu(np.ones((len(run.ids),) * 2, bool), 1)
    assert (pixels["1.2"][future] == 255).all()
    assert np.abs(pixels["1.2"][~future] / 254 - run.pattern(1, 2)[~future]).max() <= 0.5 / 254 + 1e-6


@pytest.mark.parametrize(("stage", "name"), [("raw", "raw"), ("scaled", "scaled"), ("masked", "masked")])
def test_stages_are_the_captured_numbers(open_page, run, stage, name):
    at = open_page("attention", prompt=PROMPT)
    at.segmented_control(key="stage").set_value(stage).run()
    drawn = cells(figure(at, "attention_heatmap"))
    expected = getattr(gptviz.analysis.attention_stages(run, 0, 0), name)
    assert len(drawn) == np.isfinite(expected).sum()
    assert max(abs(value - expected[cell]) for cell, value in drawn.items()) < 1e-4


def test_alibi_has_a_stage_for_its_bias(open_page):
    at = open_page("attention", encoding="alibi")
    assert (
        "biased" in at.segmented_control(key="stage").options
        or "+ position bias" in at.segmented_control(key="stage").options
    )
    at.segmented_control(key="stage").set_value("biased").run()
    assert not at.exception


def test_hiding_the_first_token_makes_the_rest_sum_to_one(open_page):
    drawn = cells(figure(open_page("attention", prompt=PROMPT, hide_first="true"), "attention_heatmap"))
    assert not [cell for cell in drawn if cell[1] == 0]
    rows = {row for row, _ in drawn}
    sums = [sum(value for (r, _), value in drawn.items() if r == row) for row in rows]
    assert np.allclose(sums, 1, atol=1e-5)


def test_the_scale_and_its_range_are_written(open_page):
    at = open_page("attention", prompt=PROMPT)
    at.segmented_control(key="scale").set_value("max").run()
    drawn = cells(figure(at, "attention_heatmap"))
    peak = max(value for (row, _), value in drawn.items() if row > 0)  # the first row has no choice
    spec = read(figure(at, "attention_heatmap"))["data"]
    assert spec[0]["zmax"] == pytest.approx(peak)
    assert "this head’s maximum" in spec[1]["marker"]["colorbar"]["title"]["text"]


def test_head_scores_are_those_of_the_package(open_page, run):
    at = open_page("attention", prompt=PROMPT)
    for name in ("previous_token", "induction", "entropy"):
        at.selectbox(key="score").select(name).run()
        shown = figure(at, "head_scores")
        assert np.allclose(array(read(shown)["data"][0]["z"]), gptviz.analysis.head_scores(run)[name], atol=1e-5)


def test_a_score_that_this_prompt_cannot_show_says_so(open_page):
    at = open_page("attention", prompt="ab", bos="false", score="induction")
    assert "nothing to measure" in at.info[0].value


def test_rows_check_themselves(open_page):
    at = open_page("attention", prompt=PROMPT)
    assert any(c.value.startswith("Check: every row sums to 1") for c in at.caption)


def test_a_clicked_cell_shows_its_arithmetic(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="2", head="1", cell="5, 2")
    pattern, scores = run.pattern(2, 1), run["blocks.2.attn.hook_attn_scores"][1].numpy()
    shown = " ".join(formula.value for formula in at.get("latex"))
    assert f"= {tex(float(pattern[5, 2]))}" in shown
    assert f"= {tex(float(scores[5, 2]))}" in shown
    assert tex(float(np.exp(scores[5, :6].astype(float)).sum())) in shown
    at.text_input(key="cell").set_value("2 5").run()
    assert any("in the query's future" in c.value for c in at.caption)
    assert "may not attend to" in said(at)


@pytest.mark.parametrize(
    ("cell", "answer"),
    [
        ("", "Click a cell"),
        ("cat", "names no cell"),
        ("5", "names no cell"),
        ("-1, 2", "names no cell"),
        ("1, 99999999999", "names no cell"),
        ("400, 0", "positions go from 0 to"),
    ],
)
def test_what_names_no_cell_is_told_how_to(open_page, cell, answer):
    at = open_page("attention", prompt=PROMPT, cell=cell)
    assert not at.exception
    assert answer in said(at)


def test_a_clicked_cell_shows_what_it_moves_and_the_products_behind_it(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="2", head="1", products="true", cell="5, 2")
    value = run["blocks.2.attn.hook_v"][2, 1].numpy()
    added = float(run.pattern(2, 1)[5, 2]) * float(np.linalg.norm(value))
    assert f"= {tex(added)}" in " ".join(formula.value for formula in at.get("latex"))
    assert "A v sum to the captured z" in said(at)
    products = run["blocks.2.attn.hook_q"][5, 1].numpy() * run["blocks.2.attn.hook_k"][2, 1].numpy()
    rows = next(e.proto.body for e in at.get("html") if "sum so far" in e.proto.body)
    assert rows.count("<tr") == 1 + len(products)
    assert f">{np.abs(products).argmax()}</th>" in rows.split("</tr>")[1]  # the largest is first
    assert "64 products sum to q · k" in said(at)


def test_weights_may_count_by_what_they_move(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="1", head="2", value_weighted="true")
    drawn = cells(figure(at, "attention_heatmap"))
    moved = run.pattern(1, 2)[7] * np.linalg.norm(run["blocks.1.attn.hook_v"][:, 2].numpy(), axis=1)
    assert [drawn[7, key] for key in range(8)] == pytest.approx(list(moved[:8] / moved.sum()), abs=1e-5)
    assert "how much it moves" in said(at)


@pytest.mark.parametrize(
    ("weighted", "hidden", "of"),
    [
        ("false", "false", ""),
        ("true", "false", " of what is moved"),
        ("false", "true", " of the attention without the first token"),
        ("true", "true", " of what is moved without the first token"),
    ],
)
def test_the_matrix_and_the_cell_say_what_their_numbers_are(open_page, weighted, hidden, of):
    at = open_page("attention", prompt=PROMPT, value_weighted=weighted, hide_first=hidden, cell="5, 2")
    drawn = read(figure(at, "attention_heatmap"))["data"]
    assert any(
        str(trace.get("hovertemplate", "")).removesuffix("<extra></extra>").endswith("%{z}" + of) for trace in drawn
    )
    assert ("is left out, and what is left of each row" in said(at)) is (hidden == "true")
    assert ("A is the weight as the model has it" in said(at)) is bool(of)


def test_queries_keys_and_values_are_the_captured_ones(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="1", head="2", stage="q, k, v")
    for name in "qkv":
        z = array(read(figure(at, f"attention_{name}"))["data"][0]["z"])
        np.testing.assert_allclose(z, run[f"blocks.1.attn.hook_{name}"][:, 2].numpy(), atol=1e-6)
    assert "times W_Q, W_K and W_V, plus their biases, gives these rows" in said(at)


def test_rotary_shows_queries_and_keys_before_and_after_the_rotation(open_page, checkpoint):
    at = open_page("attention", prompt=PROMPT, encoding="rotary", stage="q, k, v")
    run = gptviz.trace(
        gptviz.variant(checkpoint.model, pos_encoding="rotary"), checkpoint.tokenizer.encode(PROMPT, bos=True)
    )
    for name, hook in (("q", "q"), ("q, rotated", "rot_q"), ("k, rotated", "rot_k")):
        z = array(read(figure(at, f"attention_{name}"))["data"][0]["z"])
        np.testing.assert_allclose(z, run[f"blocks.0.attn.hook_{hook}"][:, 0].numpy(), atol=1e-5)


def test_without_a_mask_there_is_no_masked_stage(open_page):
    at = open_page("attention", prompt=PROMPT, stage="masked")
    assert at.segmented_control(key="stage").value == "masked"
    at.toggle(key="causal").set_value(False).run()
    assert not at.exception
    assert at.segmented_control(key="stage").value == "pattern"
    assert "masked" not in at.segmented_control(key="stage").options


def test_stage_and_colour_scale_are_in_the_link(open_page):
    at = open_page("attention", prompt=PROMPT, stage="scaled", scale="log")
    assert at.segmented_control(key="stage").value == "scaled"
    at.segmented_control(key="stage").set_value("pattern").run()
    assert at.segmented_control(key="scale").value == "log"


@pytest.mark.parametrize(("stage", "width", "hook"), [("values", 64, "hook_z"), ("output", 256, None)])
def test_what_a_head_takes_and_what_it_writes_are_drawn_and_checked(open_page, run, stage, width, hook):
    at = open_page("attention", prompt=PROMPT, layer="1", head="2")
    at.segmented_control(key="stage").set_value(stage).run()
    assert not at.exception
    drawn = read(figure(at, "attention_vectors"))["data"][0]["z"]
    values = array(drawn)
    assert values.shape[1] == width
    if hook:
        np.testing.assert_allclose(values, run[f"blocks.1.attn.{hook}"][:, 2].numpy(), atol=1e-5)
    assert any(caption.value.startswith("Check:") for caption in at.caption)


def tile_ids(at) -> list[str]:
    return [tile["id"] for row in tile_header(at, "heads")["rows"] for tile in row["tiles"]]


@pytest.mark.parametrize(("name", "sign"), [("previous_token", -1), ("entropy", 1)])
def test_heads_may_be_sorted_by_a_score(open_page, run, name, sign):
    at = open_page("attention", prompt=PROMPT)
    at.selectbox(key="order_heads").select(name).run()
    scores = gptviz.analysis.head_scores(run)[name]
    order = np.argsort(sign * scores.ravel(), kind="stable")
    assert tile_ids(at) == [f"{at // 4}.{at % 4}" for at in order]
    best = tile_header(at, "heads")["rows"][0]["tiles"][0]
    assert best["label"] == f"L{order[0] // 4}H{order[0] % 4}"
    assert float(best["detail"]) == pytest.approx(scores.ravel()[order[0]], rel=1e-2)


def test_heads_may_be_filtered_by_a_score(open_page, run):
    at = open_page("attention", prompt=PROMPT, order_heads="by previous token", at_least="0.3")
    scores = gptviz.analysis.head_scores(run)["previous_token"]
    assert set(tile_ids(at)) == {f"{layer}.{head}" for layer, head in np.argwhere(scores >= 0.3)}
    assert 0 < len(tile_ids(at)) < 16
    at.slider(key="at_least").set_value(1.0).run()
    assert any("No head is within that bound" in info.value for info in at.info)


def test_heads_without_a_score_are_not_sorted_by_it(open_page):
    at = open_page("attention", prompt="ab", bos="false", order_heads="by induction")
    assert any("No head is within that bound" in info.value for info in at.info)


def test_induction_is_measured_on_random_tokens_too(open_page, checkpoint):
    at = open_page("attention", prompt="ab", bos="false", score="induction on random tokens")
    ids = gptviz.analysis.repeated_random_ids(checkpoint.model.config)
    expected = gptviz.analysis.head_scores(gptviz.trace(checkpoint.model, ids))["induction"]
    assert np.allclose(array(read(figure(at, "head_scores"))["data"][0]["z"]), expected, atol=1e-5)
    assert "63 random tokens and then the same again" in said(at)
    assert expected.max() > 0.8  # this model has an induction head


def test_the_stages_are_small_pictures_that_lead_to_the_weights(open_page, run):
    at = open_page("attention", prompt=PROMPT, layer="2", head="1")
    pixels = tile_pixels(at, "stages")
    assert list(pixels) == ["raw", "scaled", "masked", "pattern"]
    assert tile_header(at, "stages")["selected"] == "pattern"
    stages = gptviz.analysis.attention_stages(run, 2, 1)
    peak = np.abs(stages.raw).max()
    assert np.abs((pixels["raw"] / 127.0 - 1) * peak - stages.raw).max() <= peak / 127
    future = np.triu(np.ones_like(stages.raw, bool), 1)
    for name in ("masked", "pattern"):
        assert (pixels[name][future] == 255).all()
        assert (pixels[name][~future] != 255).all()
    assert np.abs(pixels["pattern"][~future] / 254.0 - stages.pattern[~future]).max() <= 1 / 254


def test_alibi_s_bias_is_among_the_small_pictures_and_without_a_mask_none_is_masked(open_page):
    at = open_page("attention", prompt=PROMPT, encoding="alibi", causal="false")
    assert list(tile_pixels(at, "stages")) == ["raw", "scaled", "biased", "pattern"]
