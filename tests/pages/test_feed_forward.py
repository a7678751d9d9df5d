"""What the Feed-forward page draws, against the model itself."""

import re
from html import unescape

import numpy as np
import pytest

import gptviz
from gptviz.tokenizer import train_bpe
from tests.figures.spec import array, cells, read, ticks

from .conftest import figure
from .test_frame import AWKWARD

PROMPT = "Once upon a time. The cat"
GATED = dict(gated_mlp=True, activation="silu", mlp_bias=False, norm="rmsnorm", tie_weights=False)


@pytest.fixture(scope="module")
def checkpoint():
    return gptviz.load("stories")


@pytest.fixture(scope="module")
def run(checkpoint):
    return gptviz.trace(checkpoint.model, checkpoint.tokenizer.encode(PROMPT, bos=True))


def said(at) -> str:
    return " ".join(caption.value for caption in at.caption)


def strongest_rows(at) -> list[list[str]]:
    body = next(element.proto.body for element in at.get("html") if "Promotes" in element.proto.body)
    rows = re.findall(r"<tr class=[^>]*>(.*?)</tr>", body)
    return [[unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


@pytest.mark.parametrize("prompt", [*AWKWARD.values(), "a"], ids=[*AWKWARD, "one token"])
def test_any_prompt(open_page, prompt):
    at = open_page("feed_forward", prompt=prompt, bos="true" if prompt != "a" else "false")
    assert not at.exception
    assert not at.error
    assert len(cells(figure(at, "neurons"))) == 32 * len(ticks(figure(at, "neurons"), "x"))


@pytest.mark.parametrize("encoding", ["learned", "sinusoidal", "rotary", "alibi", "none"])
def test_under_every_encoding_without_a_mask(open_page, encoding):
    at = open_page("feed_forward", prompt="One day, a big dog ran. " * 40, causal="false", encoding=encoding)
    assert not at.exception
    assert len(ticks(figure(at, "neurons"), "x")) == 128


def test_the_heatmap_has_the_strongest_neurons_first(open_page, run):
    drawn = figure(open_page("feed_forward", prompt=PROMPT, layer="2"), "neurons")
    post = run["blocks.2.mlp.hook_post"].numpy()
    rows = [int(label) for label in ticks(drawn, "y")]
    sizes = np.abs(post).max(0)
    assert len(rows) == 32
    assert np.allclose(sizes[rows], np.sort(sizes)[::-1][:32])
    for (row, column), value in cells(drawn).items():
        assert value == pytest.approx(post[column, rows[row]], abs=1e-6)


def test_every_neuron_can_be_reached(open_page, run):
    at = open_page("feed_forward", prompt=PROMPT)
    seen = []
    for option in at.selectbox(key="neurons_from").options[:3] + at.selectbox(key="neurons_from").options[-1:]:
        at.selectbox(key="neurons_from").select(option).run()
        seen += ticks(figure(at, "neurons"), "y")
    assert len(at.selectbox(key="neurons_from").options) == 1024 / 32
    assert len(set(seen)) == 4 * 32


def test_pre_activations_and_the_order_at_a_token(open_page, run):
    at = open_page(
        "feed_forward", prompt=PROMPT, activation="pre-activation", order_neurons="at the chosen token", position="3 ·a"
    )
    drawn = figure(at, "neurons")
    rows = [int(label) for label in ticks(drawn, "y")]
    post = np.abs(run["blocks.0.mlp.hook_post"][3].numpy())
    assert np.allclose(post[rows], np.sort(post)[::-1][:32])
    assert cells(drawn)[0, 5] == pytest.approx(float(run["blocks.0.mlp.hook_pre"][5, rows[0]]), abs=1e-5)


def test_every_neuron_is_on_the_curve(open_page, run):
    at = open_page("feed_forward", prompt=PROMPT, layer="1", position="4 ·time")
    every = read(figure(at, "curve"))["data"][1]
    assert np.allclose(array(every["x"]), run["blocks.1.mlp.hook_pre"][4])
    assert np.allclose(array(every["y"]), run["blocks.1.mlp.hook_post"][4])
    assert "Check: hook_post is GELU(pre); the largest error is" in said(at)


def test_the_table_has_the_strongest_in_numbers(open_page, checkpoint, run):
    rows = strongest_rows(open_page("feed_forward", prompt=PROMPT, layer="3"))
    post = run["blocks.3.mlp.hook_post"][-1].numpy()
    assert [int(row[0]) for row in rows] == np.argsort(-np.abs(post), kind="stable")[:8].tolist()
    first = int(rows[0][0])
    written = post[first] * checkpoint.model.blocks[3].mlp.w_out.weight[:, first].detach().norm()
    assert float(rows[0][3]) == pytest.approx(float(written), rel=0.01)
    assert "are hook_mlp_out at this token; the largest error is" in said(open_page("feed_forward", prompt=PROMPT))


def test_the_neuron_is_the_strongest_until_one_is_chosen(open_page, run):
    at = open_page("feed_forward", prompt=PROMPT)
    best = int(run["blocks.0.mlp.hook_post"][-1].abs().argmax())
    assert any(f"neuron {best}" in header.value for header in at.subheader)
    at.number_input(key="neuron").set_value(77).run()
    assert any("neuron 77" in header.value for header in at.subheader)
    bars = read(figure(at, "along"))["data"]
    assert np.allclose(array(bars[0]["y"]), run["blocks.0.mlp.hook_post"][:, 77])
    assert np.allclose(array(bars[1]["y"]), run["blocks.0.mlp.hook_pre"][:, 77])


def test_a_neuron_that_the_layer_has_not_is_none(open_page):
    at = open_page("feed_forward", prompt=PROMPT, neuron="99999")
    assert not at.exception


def test_what_a_neuron_writes_goes_through_the_final_norm_to_w_u(open_page, checkpoint, run):
    at = open_page("feed_forward", prompt=PROMPT, layer="2", neuron="77", position="3 ·a")
    model = checkpoint.model
    weights = model.blocks[2].mlp.w_out.weight[:, 77].detach().double()
    normed = (weights - weights.mean()) / float(run["ln_final.hook_scale"][3]) * model.ln_final.weight.detach().double()
    logits = (model.unembed.weight.detach().double() @ normed).numpy()
    logits -= logits.mean()
    bars = array(read(figure(at, "written"))["data"][0]["x"])
    assert np.allclose(bars, np.r_[np.sort(logits)[::-1][:8], np.sort(logits)[::-1][-8:]], atol=1e-5)


def test_sparsity_of_every_layer(open_page, run):
    data = read(figure(open_page("feed_forward", prompt=PROMPT), "sparsity"))["data"]
    posts = [run[f"blocks.{layer}.mlp.hook_post"].numpy() for layer in range(4)]
    assert np.allclose(array(data[0]["y"]), [100 * (post > 0).mean() for post in posts], atol=1e-4)


def test_the_share_of_the_parameters(open_page, checkpoint):
    count = sum(p.numel() for name, p in checkpoint.model.named_parameters() if ".mlp." in name)
    share = 100 * count / sum(p.numel() for p in checkpoint.model.parameters())
    assert f"hold {count:,} parameters, {share:.1f}% of the model's" in said(open_page("feed_forward", prompt=PROMPT))


def test_a_gated_layer_shows_both_branches(open_page, only_model):
    only_model(train_bpe(["a story of a cat"], 300), vocab_size=300, bos_token_id=0, **GATED)
    at = open_page("feed_forward", prompt="a story of a cat")
    assert not at.exception
    loaded = gptviz.load(str(only_folder()))
    run = gptviz.trace(loaded.model, loaded.tokenizer.encode("a story of a cat", bos=True))
    gate, linear = (run[f"blocks.0.mlp.hook_{name}"].numpy() for name in ("pre", "pre_linear"))
    assert at.segmented_control(key="activation").options == ["post", "gate (pre-activation)", "linear branch"]
    at.segmented_control(key="activation").set_value("linear branch").run()
    drawn = figure(at, "neurons")
    rows = [int(label) for label in ticks(drawn, "y")]
    assert cells(drawn)[2, 1] == pytest.approx(linear[1, rows[2]], abs=1e-5)
    every = read(figure(at, "curve"))["data"][1]
    assert np.allclose(array(every["x"]), gate[-1], atol=1e-5)
    assert np.allclose(array(every["y"]), gate[-1] / (1 + np.exp(-gate[-1])), atol=1e-5)
    assert "hook_post is SiLU(gate) × linear branch" in said(at)
    assert len(read(figure(at, "along"))["data"]) == 3
    assert len(strongest_rows(at)[0]) == 6


def only_folder():
    from gptviz import checkpoints

    return checkpoints.BUNDLED / "only"


@pytest.mark.parametrize(
    "changes",
    [
        {"n_head": 1, "n_layer": 1},
        {"activation": "relu", "parallel_residual": True},
        {"activation": "gelu_tanh", "unembed_bias": True, "tie_weights": False},
        {"d_mlp": 1, "n_layer": 1},
        {"d_mlp": 40, "pos_encoding": "rotary", "n_kv_head": 1},
        {"vocab_size": 310},
    ],
    ids=str,
)
def test_other_architectures(open_page, only_model, changes):
    only_model(train_bpe(["a story of a cat"], 300), **{"vocab_size": 300, "bos_token_id": 0, **changes})
    at = open_page("feed_forward", prompt="a story of a cat")
    assert not at.exception
    assert not at.error


def test_a_vocabulary_of_ids_alone(open_page, only_model):
    only_model(None, bos_token_id=0)
    at = open_page("feed_forward", prompt="3 7 7 1")
    assert not at.exception


def test_it_follows_each_new_token(open_page):
    at = open_page("feed_forward", prompt=PROMPT)
    before = len(ticks(figure(at, "along"), "x"))
    at.button(key="step").click().run()
    assert not at.exception
    assert len(ticks(figure(at, "along"), "x")) == before + 1
    assert read(figure(at, "along"))["layout"]["shapes"][0]["x0"] == before - 0.5


def test_a_position_that_a_shorter_prompt_lacks_falls_back_to_the_last(open_page):
    at = open_page("feed_forward", prompt=PROMPT, position="6 ·The")
    at.text_area(key="prompt").set_value("a").run()
    assert not at.exception
    assert at.selectbox(key="position").value == -1


def test_what_is_written_checks_itself(open_page):
    words = said(open_page("feed_forward", prompt=PROMPT))
    error = re.search(r"the moves sum to 0; the error is ([\d.]+)(?: × 10⁻(.))?", words)
    assert error
    assert float(error[1]) < 0.01 or error[2]
