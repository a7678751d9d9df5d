"""What the Sampling page draws, against the model itself."""

import re
from typing import get_args

import numpy as np
import pytest
import torch

import gptviz
from gptviz.config import PosEncoding
from gptviz.sampling import sample, uniform
from gptviz.tokenizer import train_bpe
from gptviz.ui.sampling.change import last_alike, spelt_alike
from tests.analysis.test_logit_lens import KINDS
from tests.figures.spec import array, read

from .conftest import PROMPT, chip_texts, figure, said
from .test_frame import AWKWARD

PAGE = "sampling"


def rows(at, column: str) -> list[list[str]]:
    """The cells of the table whose head has that column."""
    body = next(e.proto.body for e in at.get("html") if f">{column}<" in e.proto.body)
    found = re.findall(r"<tr class=.*?</tr>", body)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in found]


def steps(at) -> list[list[str]]:
    return rows(at, "its part of 0 to 1")


def value(text: str) -> float:
    mantissa, _, power = text.replace("−", "-").replace(",", "").partition(" × 10")
    return float(mantissa) * 10 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


SETTINGS = [
    dict(),
    dict(temperature="0.5", top_k="3"),
    dict(temperature="1.5", top_k="0", top_p="0.7"),
    dict(temperature="2", top_k="0", min_p="0.2"),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_column_of_the_table_by_numpy(open_page, checkpoint, run, settings):
    shown = steps(open_page(PAGE, prompt=PROMPT, **settings))
    temperature, top_k = float(settings.get("temperature", 0.8)), int(settings.get("top_k", 40)) or 512
    logits = np.sort(run.logits[-1].double().numpy())[::-1]
    exponentials = np.exp((logits - logits[0]) / temperature)
    shares = [exponentials / exponentials.sum()]
    kept = np.arange(512) < top_k
    shares.append(kept * shares[0] / shares[0][kept].sum())
    kept &= shares[1].cumsum() - shares[1] < float(settings.get("top_p", 2))
    shares.append(kept * shares[1] / shares[1][kept].sum())
    kept &= shares[2] >= float(settings.get("min_p", 0)) * shares[2][0]
    shares.append(kept * shares[2] / shares[2][kept].sum())
    for row in range(10):
        assert value(shown[row][1]) == pytest.approx(logits[row], rel=6e-3, abs=1e-3)
        assert value(shown[row][2]) == pytest.approx(logits[row] / temperature, rel=6e-3, abs=1e-3)
        for column, share in zip(shown[row][3:7], shares, strict=True):
            assert (column == "–") == (share[row] == 0)
            assert column == "–" or value(column) == pytest.approx(share[row], rel=6e-3)
    labels = checkpoint.tokenizer.labels(run.logits[-1].argsort(descending=True)[:10].tolist())
    assert [row[0].replace(" ▲", "").replace(" ◆", "") for row in shown[:10]] == labels


@pytest.mark.parametrize("seed", range(6))
def test_the_sampled_token_is_marked_beside_the_most_likely_one_with_draw_and_seed(open_page, checkpoint, run, seed):
    at = open_page(PAGE, prompt=PROMPT, temperature="2", top_k="0", seed=str(seed))
    step = sample(run.logits[-1], 2.0, seed=seed, position=len(run.ids))
    label = checkpoint.tokenizer.labels([step.token])[0]
    marked = next(row for row in steps(at) if row[0].endswith("◆"))
    assert marked[0].startswith(label)
    low, high = map(float, marked[-1].split(" to "))
    assert low - 1e-4 <= step.draw <= high + 1e-4
    assert steps(at)[0][0].replace(" ◆", "").endswith("▲")
    assert f"The draw for seed {seed} at position {len(run.ids)} is" in said(at)
    assert f"‘{label}’" in said(at)
    line = read(figure(at, "interval"))["layout"]["shapes"][0]
    assert line["x0"] == uniform(seed, len(run.ids))


def test_the_draws_bar_holds_the_draw(open_page):
    for seed in range(8):
        spec = read(figure(open_page(PAGE, prompt=PROMPT, temperature="2", top_k="0", seed=str(seed)), "interval"))
        bars, draw = spec["data"][0], spec["layout"]["shapes"][0]["x0"]
        hit = bars["marker"]["pattern"]["shape"].index("/")
        start, width = array(bars["base"])[hit], array(bars["x"])[hit]
        assert start - 1e-6 <= draw <= start + width + 1e-6


EXTREMES = [dict(temperature="0"), dict(temperature="2", top_p="0"), dict(top_k="1"), dict(top_p="1"), dict(min_p="1")]


@pytest.mark.parametrize("settings", EXTREMES, ids=str)
def test_extreme_settings_stay_a_distribution(open_page, settings):
    at = open_page(PAGE, prompt=PROMPT, **settings)
    assert not at.exception
    assert "not a number" not in " ".join(e.proto.body for e in at.get("html"))
    assert re.search(r"sum to 1; the error is (0|\d\.\d\d × 10⁻)", said(at))


def test_at_temperature_0_nothing_is_drawn(open_page):
    at = open_page(PAGE, prompt=PROMPT, temperature="0")
    assert "At temperature 0 there is nothing to draw" in said(at)
    assert not any(element.proto.id.endswith("-interval") for element in at.get("bidi_component"))
    bars = read(figure(at, "next_token"))
    assert "by the draw" not in bars["layout"]["xaxis"]["title"]["text"]


def test_tokens_that_were_filtered_out_stand_in_the_order_of_their_logits(open_page, run, checkpoint):
    at = open_page(PAGE, prompt=PROMPT, temperature="2", top_k="2")
    best = run.logits[-1].argsort(descending=True)[:7].tolist()
    bars = read(figure(at, "next_token"))["layout"]
    assert bars["yaxis"]["ticktext"][:7] == checkpoint.tokenizer.labels(best)
    assert "under the sampling settings" in bars["xaxis"]["title"]["text"]


def test_without_a_mask_what_is_foretold_has_been_seen(open_page):
    at = open_page(PAGE, prompt=PROMPT, causal="false")
    assert sum("none of this is foretold" in warning.value for warning in at.warning) == 2
    assert not any("none of this is foretold" in warning.value for warning in open_page(PAGE, prompt=PROMPT).warning)


def test_a_slider_draws_anew_without_a_forward_pass(open_page, monkeypatch):
    at = open_page(PAGE, prompt=PROMPT)
    before = steps(at)
    monkeypatch.setattr(gptviz.GPT, "forward", None)  # calling it would fail
    at.slider(key="temperature").set_value(2.0).run()
    at.slider(key="top_p").set_value(0.5).run()
    assert not at.exception
    assert steps(at) != before


def test_tiny_probabilities_read_as_they_are(open_page):
    shown = " ".join(cell for row in steps(open_page(PAGE, top_k="0")) for cell in row)
    assert re.search(r"\d\.\d\d × 10⁻[⁴⁵⁶]", shown)


def test_entropy_and_surprise_are_pytorchs(open_page, run):
    spec = read(figure(open_page(PAGE, prompt=PROMPT, temperature="0.5"), "entropy"))["data"]
    distribution = torch.distributions.Categorical(logits=run.logits)
    np.testing.assert_allclose(array(spec[0]["y"]), distribution.entropy().numpy(), rtol=1e-4, atol=1e-5)
    tempered = torch.distributions.Categorical(logits=run.logits / 0.5)
    np.testing.assert_allclose(array(spec[1]["y"]), tempered.entropy().numpy(), rtol=1e-3, atol=1e-5)
    surprise = -distribution.logits[:-1].gather(-1, run.ids[1:, None])[:, 0]
    np.testing.assert_allclose(array(spec[2]["y"]), surprise.numpy(), rtol=1e-3, atol=1e-5)


def test_the_tree_is_the_models(open_page, checkpoint, run):
    at = open_page(PAGE, prompt=PROMPT, temperature="1", top_k="0", branches="2", depth="2")
    bars = read(figure(at, "ways"))["data"][0]
    paths = [tuple(map(int, told[0].split("."))) for told in bars["customdata"]]
    assert len(paths) == 2 + 4
    for path, joint in zip(paths, array(bars["y"]), strict=True):
        whole = torch.cat([run.ids, torch.tensor(path)])
        probs = checkpoint.model(whole[None])[0].detach().softmax(-1)
        product = np.prod([float(probs[len(run.ids) - 1 + at, token]) for at, token in enumerate(path)])
        assert joint == pytest.approx(product, rel=1e-3)


def test_a_way_that_is_clicked_goes_on_the_text(open_page):
    at = open_page(PAGE, prompt=PROMPT)
    before = chip_texts(at)
    told = read(figure(at, "ways"))["data"][0]["customdata"]
    longest = max(told, key=lambda row: row[0].count("."))
    at.session_state["generated"] = tuple(map(int, longest[0].split(".")))  # what the click's callback does
    at.run()
    assert "".join(chip_texts(at)[len(before) :]) == longest[1]


def continued(at) -> list[tuple[str, ...]]:
    bodies = [e.proto.body for e in at.get("html") if "gptviz-text" in e.proto.body]
    return [tuple(re.findall(r'<span class="token"[^>]*>(.*?)</span>', body)) for body in bodies]


def test_continuations_wait_for_their_button_and_are_generates(open_page, checkpoint, run):
    at = open_page(PAGE, prompt=PROMPT, count="3", length="6", seed="4")
    assert continued(at) == []
    at.button(key="sample_many").click().run()
    assert len(continued(at)) == 3
    for seed, labels in zip((4, 5, 6), continued(at), strict=True):
        alone = gptviz.generate(checkpoint.model, run.ids, 6, temperature=0.8, top_k=40, seed=seed)
        assert list(labels) == checkpoint.tokenizer.labels([step.token for step in alone])


def test_earlier_continuations_stay_and_say_that_they_are_earlier(open_page):
    at = open_page(PAGE, prompt=PROMPT, count="2", length="4")
    at.button(key="sample_many").click().run()
    drawn = continued(at)
    at.slider(key="temperature").set_value(1.5).run()
    assert continued(at) == drawn
    assert "Drawn earlier, for other settings" in said(at)
    at.text_area(key="prompt").set_value("a dog").run()
    assert "Drawn earlier, for another prompt or model" in said(at)
    assert at.button(key="take 0").disabled


def test_a_continuation_can_be_taken(open_page):
    at = open_page(PAGE, prompt=PROMPT, count="2", length="4")
    before = chip_texts(at)
    at.button(key="sample_many").click().run()
    second = continued(at)[1]
    at.button(key="take 1").click().run()
    assert tuple(chip_texts(at)[len(before) :]) == second


def test_a_token_in_the_middle_is_changed_and_the_rest_cut_off(open_page, checkpoint, run):
    at = open_page(PAGE, prompt=PROMPT)
    chips, place = chip_texts(at), 4
    at.selectbox(key="change_at").set_value(place).run()
    foretold = run.logits[place - 1].argsort(descending=True).tolist()
    instead = next(i for i in foretold if i != int(run.ids[place]))
    assert checkpoint.tokenizer.labels([instead])[0] in at.selectbox(key="change_to").options[0]
    at.button(key="change").click().run()
    assert chip_texts(at) == [*chips[:place], *checkpoint.tokenizer.labels([instead])]
    assert not at.exception


def test_what_follows_can_be_kept(open_page, checkpoint, run):
    at = open_page(PAGE, prompt=PROMPT, keep_rest="true")
    chips, place = chip_texts(at), 6
    at.selectbox(key="change_at").set_value(place).run()
    at.button(key="change").click().run()
    after = chip_texts(at)
    assert (after[:place], after[place + 1 :]) == (chips[:place], chips[place + 1 :])
    assert after[place] != chips[place]


def test_a_generated_token_is_changed_without_touching_the_prompt(open_page):
    at = open_page(PAGE, prompt=PROMPT)
    for _ in range(3):
        at.button(key="step").click().run()
    chips = chip_texts(at)
    at.selectbox(key="change_at").set_value(len(chips) - 2).run()
    at.button(key="change").click().run()
    assert chip_texts(at)[:-1] == chips[:-2]
    assert chip_texts(at)[-1] != chips[-2]
    assert at.text_area(key="prompt").value == PROMPT


def test_a_word_cut_short_keeps_its_tokens(checkpoint):
    """Of a word's pieces the first ones, as a text, may be split otherwise: then they stand among the generated."""
    words = "unbelievably 🤗 quick"
    ids = tuple(checkpoint.tokenizer.encode(words, bos=True).tolist())
    for most in range(1, len(ids) + 1):
        end = spelt_alike("stories", ids, most)
        assert end is not None
        assert end <= most
        text = checkpoint.tokenizer.decode(ids[1:end])
        assert tuple(checkpoint.tokenizer.encode(text, bos=True).tolist()) == ids[:end]


def test_the_longest_text_that_fits_is_taken():
    assert last_alike(lambda n: n in (2, 5), 7) == 5
    assert last_alike(lambda n: False, 7) is None


def test_with_and_without_the_cache_are_measured(open_page):
    at = open_page(PAGE, prompt=PROMPT)
    at.button(key="measure_speed").click().run()
    fast, slow = (value(row[1]) for row in rows(at, "tokens/s"))
    assert fast > 0
    assert slow > 0
    assert "both gave exactly the same tokens" in said(at)
    cached, full = read(figure(at, "speed"))["data"]
    assert len(array(cached["y"])) == len(array(full["y"])) == 48
    assert 48 / (array(cached["y"]).sum() / 1000) == pytest.approx(fast, rel=1e-2)


def test_where_the_cache_cannot_be_used_its_button_says_why(open_page):
    at = open_page(PAGE, prompt=PROMPT, causal="false")
    assert at.button(key="measure_speed").disabled
    assert "Without the causal mask" in said(at)
    at = open_page(PAGE, prompt="a b" * 100)
    assert at.button(key="measure_speed").disabled
    assert "fills the context" in said(at)


def test_one_token_has_all_but_a_past(open_page):
    at = open_page(PAGE, prompt="a", bos="false")
    assert not at.exception
    assert "Nothing stands before the only token" in said(at)
    at.button(key="sample_many").click().run()
    at.button(key="measure_speed").click().run()
    assert not at.exception
    assert continued(at)


@pytest.mark.parametrize("prompt", AWKWARD.values(), ids=AWKWARD.keys())
def test_any_prompt_goes_on(open_page, prompt):
    at = open_page(PAGE, prompt=prompt, temperature="2", top_k="0", count="2", length="4")
    assert not at.exception
    assert not at.error
    at.button(key="sample_many").click().run()
    before = chip_texts(at)
    at.button(key="change").click().run()
    assert not at.exception
    assert chip_texts(at)[:-1] == before[:-1]


def test_markup_stays_text_everywhere(open_page, only_model):
    hostile = train_bpe(["<b>x</b> <b>x</b> $5 _x_ $5 _x_ :red[w]"] * 4, 290)
    only_model(hostile, vocab_size=len(hostile))
    at = open_page(PAGE, prompt="<b>x</b>", model="only", temperature="2", top_k="0")
    at.button(key="sample_many").click().run()
    assert not at.exception
    for element in at.get("html"):
        assert not re.search(r"<b>|<img", element.proto.body)


@pytest.mark.parametrize("encoding", get_args(PosEncoding))
@pytest.mark.parametrize("causal", ["true", "false"])
def test_every_encoding_with_the_mask_and_without(open_page, encoding, causal):
    at = open_page(PAGE, prompt=PROMPT, encoding=encoding, causal=causal)
    assert not at.exception
    at.button(key="sample_many").click().run()
    assert not at.exception
    assert len(continued(at)) == 6


def test_a_full_context_goes_on(open_page):
    at = open_page(PAGE, prompt="a b" * 100, count="2", length="4")
    assert not at.exception
    at.button(key="sample_many").click().run()
    at.button(key="step").click().run()
    assert not at.exception
    assert sum(len(e.proto.bytes) for e in at.get("bidi_component")) < 300_000


@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS.keys())
def test_any_architecture_and_a_vocabulary_of_bare_ids(open_page, only_model, changes):
    only_model(None, **changes)
    at = open_page(PAGE, prompt="7 31 2 48 7 0 19", model="only", length="4")
    assert not at.exception
    at.button(key="sample_many").click().run()
    at.button(key="change").click().run()
    assert not at.exception
    assert len(chip_texts(at)) == 7
