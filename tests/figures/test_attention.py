import numpy as np
import pytest

from gptviz.figures import style
from gptviz.figures.attention import HOVER, attention_heatmap, head_score_heatmap, stage_heatmap
from tests.figures.spec import array, cells, hover, read, ticks

THEMES = ["light", "dark"]


def causal_mask(length):
    return np.triu(np.ones((length, length), bool), 1)


def causal_pattern(length):
    weights = np.tril(np.random.default_rng(length).random((length, length)))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def labels(length):
    return [f"·tok{i % 7}" for i in range(length)]


def shade(trace, value):
    """The colour that a value is drawn in, as the nearest stop of the colour scale."""
    stops = trace["colorscale"]
    at = (value - trace["zmin"]) / (trace["zmax"] - trace["zmin"])
    return min(stops, key=lambda stop: abs(stop[0] - at))[1]


def test_repeated_tokens_have_a_tick_each():
    figure = attention_heatmap(causal_pattern(3), ["the", "·the", "·the"], theme="light")
    assert ticks(figure, "x") == ticks(figure, "y") == ["the", "·the", "·the"]
    axis = read(figure)["layout"]["xaxis"]
    assert axis["type"] == "category"
    assert len(set(axis["categoryarray"])) == 3


@pytest.mark.parametrize("label", ["<b>x</b>", '<img src=x onerror="alert(1)">', "&lt;", "$5 **y** `z`", "%{z}"])
def test_labels_are_literal(label):
    figure = attention_heatmap(causal_pattern(2), [label, "b"], theme="light")
    given = read(figure)["layout"]["xaxis"]["labelalias"]["0"]
    assert "<" not in given
    assert ticks(figure, "x")[0] == style.shortened(label)
    assert read(figure)["data"][0]["hovertemplate"] == f"{HOVER}<extra></extra>"  # no token in it


def test_labels_survive_control_characters_and_right_to_left_words():
    figure = attention_heatmap(causal_pattern(3), ["a\x00", "שלום", "\ud83d"], theme="light")
    assert ticks(figure, "x") == ["a␀", "\u2068שלום\u2069", "\ufffd"]
    figure.to_json().encode()


def test_row_0_is_on_top_and_cells_are_square():
    layout = read(attention_heatmap(causal_pattern(5), labels(5), theme="light"))["layout"]
    assert layout["yaxis"]["autorange"] == "reversed"
    assert layout["xaxis"]["autorange"] is True
    assert layout["xaxis"]["maxallowed"] == layout["yaxis"]["maxallowed"] == 4.5
    assert layout["yaxis"]["scaleanchor"] == "x"


def test_rows_are_queries_and_columns_keys():
    pattern = np.array([[1, 0], [0.25, 0.75]], np.float32)
    figure = attention_heatmap(pattern, ["a", "b"], theme="light")
    layout = read(figure)["layout"]
    assert cells(figure)[1, 0] == 0.25
    assert layout["yaxis"]["title"]["text"] == "query (attending)"
    assert layout["xaxis"]["title"]["text"] == "key (attended to)"


def test_hover_says_who_attends_to_whom():
    pattern = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.41, 0.3, 0.29]], np.float32)
    figure = attention_heatmap(pattern, ["The", "cat", "sat"], theme="light", masked=causal_mask(3))
    assert hover(figure, 2, 0) == "‘sat’ (2) attends to ‘The’ (0): 0.41"
    assert hover(figure, 0, 2) == "‘The’ (0) attends to ‘sat’ (2): masked"


def test_masked_cells_are_blank_and_never_zero():
    figure = attention_heatmap(causal_pattern(6), labels(6), theme="light", masked=causal_mask(6))
    assert set(cells(figure)) == set(zip(*np.nonzero(~causal_mask(6)), strict=True))
    [hatch] = read(figure)["layout"]["images"]
    assert hatch["layer"] == "below"


def test_without_a_mask_every_cell_is_drawn():
    pattern = np.full((4, 4), 0.25, np.float32)
    figure = attention_heatmap(pattern, labels(4), theme="light")
    assert len(cells(figure)) == 16
    assert not read(figure)["layout"].get("images")


def test_a_hidden_token_leaves_the_others_in_their_places():
    hidden = causal_mask(4)
    hidden[:, 0] = True  # and so all of row 0
    figure = attention_heatmap(causal_pattern(4), labels(4), theme="light", masked=hidden)
    assert set(cells(figure)) == set(zip(*np.nonzero(~hidden), strict=True))
    layout = read(figure)["layout"]
    assert len(layout["xaxis"]["categoryarray"]) == 4
    trace = read(figure)["data"][0]
    assert set(range(4)) <= set(array(trace["x"]).tolist())  # each column is named, or Plotly closes the gap
    assert set(range(4)) <= set(array(trace["y"]).tolist())


def test_a_matrix_masked_altogether_is_a_figure_too():
    figure = attention_heatmap(causal_pattern(3), labels(3), theme="light", masked=np.ones((3, 3), bool), scale="max")
    assert cells(figure) == {}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("scale", ["0-1", "max", "log"])
def test_one_token(scale, theme):
    figure = attention_heatmap(np.ones((1, 1)), ["·Once"], theme=theme, scale=scale, masked=np.zeros((1, 1), bool))
    assert cells(figure) == {(0, 0): 1.0}
    assert hover(figure, 0, 0) == "‘·Once’ (0) attends to ‘·Once’ (0): 1"


@pytest.mark.parametrize("theme", THEMES)
def test_zero_is_the_background_and_one_the_role(theme):
    trace = read(attention_heatmap(causal_pattern(4), labels(4), theme=theme))["data"][0]
    assert (trace["zmin"], trace["zmax"]) == (0, 1)
    assert shade(trace, 0) == style.surface("background", theme)
    assert shade(trace, 1) == style.colour("attention", theme)


def test_a_faint_head_is_readable_on_its_own_scale_which_is_written():
    pattern = np.full((40, 40), 0.02, np.float32)
    pattern[5, 7] = 0.03
    spec = read(attention_heatmap(pattern, labels(40), theme="light", scale="max"))
    assert shade(spec["data"][0], 0.03) == style.colour("attention", "light")
    bar = spec["data"][1]["marker"]["colorbar"]
    assert "0 to 0.03" in bar["title"]["text"]
    assert bar["ticktext"][-1].strip() == "0.03"


def test_the_log_scale_gives_each_decade_the_same_stretch_and_keeps_true_values():
    pattern = np.array([[1, 0], [0.001, 0.999]], np.float32)
    figure = attention_heatmap(pattern, ["a", "b"], theme="light", scale="log")
    trace, bar = read(figure)["data"]
    assert cells(figure)[1, 0] == pytest.approx(0.001)
    ramp = style.ramp("attention", "light")
    assert [shade(trace, 10.0**e) for e in (-4, -3, -2, -1, 0)] == ramp[::4]
    assert [t.strip() for t in bar["marker"]["colorbar"]["ticktext"]] == ["10⁻⁴", "0.001", "0.01", "0.1", "1"]


@pytest.mark.parametrize("scale", ["0-1", "max", "log"])
def test_the_scale_is_always_written(scale):
    spec = read(attention_heatmap(causal_pattern(4), labels(4), theme="light", scale=scale))
    assert " to " in spec["data"][1]["marker"]["colorbar"]["title"]["text"]


@pytest.mark.parametrize(
    ("length", "causal", "most"), [(128, True, 82_000), (128, False, 105_000), (256, True, 300_000)]
)
def test_payload(length, causal, most):
    masked = causal_mask(length) if causal else None
    figure = attention_heatmap(causal_pattern(length), labels(length), theme="light", masked=masked)
    assert len(figure.to_json()) < most


def test_a_label_too_many_is_not_drawn():
    with pytest.raises(ValueError, match="3 row and 3 column labels"):
        attention_heatmap(causal_pattern(2), labels(3), theme="light")


def test_the_callers_array_is_left_alone():
    pattern = causal_pattern(4)
    before = pattern.copy()
    attention_heatmap(pattern, labels(4), theme="light", masked=causal_mask(4))
    np.testing.assert_array_equal(pattern, before)


def test_a_stage_is_centred_on_zero_and_hatches_what_the_mask_took():
    scores = np.array([[-3.0, -np.inf], [1.5, 2.0]])
    figure = stage_heatmap(scores, ["a", "b"], theme="dark", title="+ mask")
    trace = read(figure)["data"][0]
    assert (trace["zmin"], trace["zmax"]) == (-3, 3)
    assert shade(trace, 0) == style.surface("background", "dark")
    assert hover(figure, 0, 0) == "‘a’ (0) attends to ‘a’ (0): −3"
    assert hover(figure, 0, 1) == "‘a’ (0) attends to ‘b’ (1): masked: −∞"
    assert read(figure)["layout"]["title"]["text"] == "+ mask"


def test_a_stage_of_zeros_has_a_scale():
    trace = read(stage_heatmap(np.zeros((2, 2)), ["a", "b"], theme="light", title="bias"))["data"][0]
    assert trace["zmin"] < 0 < trace["zmax"]


def test_large_scores_are_not_written_with_an_exponent():
    trace = read(stage_heatmap(np.full((2, 2), 4321.0), ["a", "b"], theme="light", title="raw"))["data"][0]
    assert trace["zhoverformat"] == ",.3~r"


def test_scores_are_printed_and_the_chosen_head_is_framed():
    scores = np.array([[0.1, 0.9, 0.2], [0.3, 0.4, 0.5]])
    figure = head_score_heatmap(scores, theme="light", name="previous token", digits=3, selected=(1, 2))
    trace, layout = read(figure)["data"][0], read(figure)["layout"]
    assert trace["texttemplate"] == "%{z:.3f}"
    assert trace["zmax"] == 1
    [frame] = layout["shapes"]
    assert (frame["x0"], frame["x1"], frame["y0"], frame["y1"]) == (1.5, 2.5, 0.5, 1.5)
    assert hover(figure, 1, 2) == "layer 1, head 2: previous token 0.5"


def test_scores_above_one_stretch_the_scale():
    spec = read(head_score_heatmap(np.array([[0.5, 4.0]]), theme="light", name="entropy (nats)"))
    assert spec["data"][0]["zmax"] == 4
    assert "0 to 4" in spec["data"][1]["marker"]["colorbar"]["title"]["text"]


@pytest.mark.parametrize(
    ("scale", "least", "relative"), [("0-1", 1.6e-5, 0.39), ("max", 1.6e-5, 0.39), ("log", 1e-4, 0.02)]
)
def test_numbers_of_a_large_matrix_are_rounded_and_say_so(scale, least, relative):
    pattern = causal_pattern(300)
    figure = attention_heatmap(pattern, labels(300), theme="light", scale=scale, masked=causal_mask(300))
    trace = read(figure)["data"][0]
    drawn = array(trace["z"])
    np.testing.assert_array_equal(np.isnan(drawn), causal_mask(300))
    seen = ~causal_mask(300) & (pattern > 4 * least)
    assert (np.abs(drawn / pattern - 1)[seen] < relative).all()
    bright = seen & (pattern > 0.05)
    assert (np.abs(drawn / pattern - 1)[bright] < 0.02).all()
    assert trace["hovertemplate"] == f"{HOVER.replace('%{z}', '≈ %{z}')}<extra></extra>"
    assert not trace["hoverongaps"]
    assert len(np.unique(drawn[~np.isnan(drawn)])) <= 255


def test_rounding_keeps_zero_and_the_ends_of_a_scale():
    scores = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    scores[5, 5], scores[7, 7] = 0, 9
    drawn = array(read(stage_heatmap(scores, labels(300), theme="light", title=""))["data"][0]["z"])
    assert (drawn[5, 5], drawn[7, 7]) == (0, 9)
    assert np.sign(drawn[np.abs(scores) > 0.01]).tolist() == np.sign(scores[np.abs(scores) > 0.01]).tolist()


def test_at_256_tokens_nothing_is_rounded():
    pattern = causal_pattern(256)
    drawn = cells(attention_heatmap(pattern, labels(256), theme="light", masked=causal_mask(256)))
    assert drawn[200, 100] == pattern[200, 100]


def test_a_row_without_a_choice_is_no_maximum():
    pattern = np.tril(np.full((4, 4), 0.25))
    pattern[0, 0] = 1
    masked = np.triu(np.ones((4, 4), bool), 1)
    spec = read(attention_heatmap(pattern, list("abcd"), theme="light", scale="max", masked=masked))
    assert spec["data"][0]["zmax"] == pytest.approx(0.25)
    alone = read(attention_heatmap(np.ones((1, 1)), ["a"], theme="light", scale="max"))
    assert alone["data"][0]["zmax"] == 1
