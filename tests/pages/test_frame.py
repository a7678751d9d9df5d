"""The controls that every page shares, on the Attention page."""

import re

import pytest
import streamlit as st

import gptviz
from gptviz import checkpoints, library
from gptviz.tokenizer import Tokenizer, train_bpe
from gptviz.ui.play import AHEAD
from gptviz.ui.state import without_surrogates
from tests.figures.spec import array, cells, read

from .conftest import chip_html, chip_texts, figure

AWKWARD = {
    "blank": "   ",
    "one letter": "a",
    "repeats": "the the the",
    "emoji": "🤗",
    "white space": " a\n\tb",
    "html": '<img src=x onerror=alert(1)> <b>x</b> <a href="https://example.org">x</a>',
    "markup": "$5 and $6 _x_ **y** `z` :red[w] [l](u) \\",
    "right to left": "שלום עולם x‍y",
    "control characters": "a\x00b\x07",
    "special": "<|endoftext|>",
    "long": "One day, a big dog ran to the park. " * 40,
}


@pytest.mark.parametrize("page", ["overview", "attention"])
@pytest.mark.parametrize("prompt", AWKWARD.values(), ids=AWKWARD.keys())
def test_any_prompt_gives_a_real_run(open_page, page, prompt):
    at = open_page(page, prompt=prompt)
    assert not at.exception
    assert not at.error
    assert at.get("bidi_component")


def test_an_empty_prompt_explains_itself_and_shows_an_example(open_page):
    at = open_page("attention", prompt="")
    assert "The prompt is empty" in at.info[0].value
    assert "Once upon a time" in at.info[0].value
    assert chip_texts(at) == ["<|endoftext|>"]


def test_nothing_at_all_to_run_on_is_said_too(open_page):
    at = open_page("attention", prompt="", bos="false")
    assert "there is nothing to compute" in at.info[0].value
    assert not at.exception
    assert at.button(key="step").disabled
    assert at.button(key="play").disabled
    assert "no text that the model can go on from" in " ".join(caption.value for caption in at.caption)
    at.toggle(key="bos").set_value(True).run()
    assert not at.button(key="step").disabled


@pytest.mark.parametrize("page", ["overview", "attention"])
def test_one_token_alone_is_a_whole_run(open_page, page):
    at = open_page(page, prompt="a", bos="false")
    assert not at.exception
    assert chip_texts(at) == ["a"]


def test_chips_are_the_positions_that_the_model_sees(open_page):
    at = open_page("attention", prompt="the cat", bos="false")
    without = chip_texts(at)
    at.toggle(key="bos").set_value(True).run()
    assert chip_texts(at) == ["<|endoftext|>", *without]
    assert any(f"{len(without) + 1} of at most 128 tokens" in c.value for c in at.caption)


def test_a_typed_special_token_is_text(open_page):
    chips = chip_texts(open_page("attention", prompt="<|endoftext|>", bos="false"))
    assert len(chips) > 1
    assert "".join(chips) == "<|endoftext|>"


def test_white_space_is_visible_and_nothing_of_the_byte_alphabet_leaks(open_page):
    shown = "".join(chip_texts(open_page("attention", prompt=" a\n\tb", bos="false")))
    assert shown == "·a⏎⇥b"


def test_bytes_of_a_split_character_are_shown(open_page):
    chips = chip_texts(open_page("attention", prompt="🤗", bos="false"))
    assert " ".join(chips) == "F0 9F A4 97"


def test_markup_in_a_prompt_stays_text(open_page):
    at = open_page("attention", prompt=AWKWARD["html"], bos="false")
    assert "".join(chip_texts(at)).replace("·", " ") == AWKWARD["html"]
    assert set(re.findall(r"<(\w+)", chip_html(at))) == {"style", "div", "span"}


def test_pieces_of_one_word_are_joined(open_page):
    html = chip_html(open_page("attention", prompt="so unbelievably", bos="false"))
    spans = re.findall(r'class="chip prompt( joined)?"', html)
    starts = [
        i
        for i, chip in enumerate(chip_texts(open_page("attention", prompt="so unbelievably", bos="false")))
        if "·" in chip
    ]
    assert len(spans) > 3
    assert [i for i, joined in enumerate(spans) if not joined] == [0, *starts]


def test_a_prompt_longer_than_the_context_keeps_its_end_and_says_so(open_page):
    at = open_page("attention", prompt="a" * 200 + "b", bos="true")
    chips = chip_texts(at)
    assert len(chips) == 128
    assert chips[0] == "<|endoftext|>"
    assert chips[-1] == "b"
    assert "what is shown is the end after the first token" in at.warning[0].value


def test_a_huge_paste_is_answered_with_the_notice(open_page):
    at = open_page("attention")
    at.text_area(key="prompt").set_value("word " * 200_000).run()
    assert not at.exception
    assert len(chip_texts(at)) == 128
    assert "Of the prompt's 1,000,000 characters" in at.warning[0].value
    assert "too long for a link" in " ".join(c.value for c in at.caption)
    assert "prompt" not in at.query_params
    assert at.text_area(key="prompt").value == "word " * 200_000


def test_step_back_and_reset_move_along_the_text(open_page):
    at = open_page("attention", prompt="Once upon a")
    before = chip_texts(at)
    at.button(key="step").click().run()
    at.button(key="step").click().run()
    after_two = chip_texts(at)
    assert after_two[:-2] == before
    assert chip_html(at).count('class="chip generated') == 2
    at.button(key="back").click().run()
    assert chip_texts(at) == after_two[:-1]
    at.button(key="reset").click().run()
    assert chip_texts(at) == before
    assert at.button(key="back").disabled


def test_step_adds_the_token_that_was_marked(open_page):
    at = open_page("attention", prompt="The little", temperature="1.5", top_k="0")
    for _ in range(3):
        bars = read(figure(at, "next_token"))["data"][0]
        marked = [row[0] for row in bars["customdata"] if "◆" in row[2]]
        at.button(key="step").click().run()
        assert marked == [chip_texts(at)[-1]]


def test_probabilities_on_screen_are_those_of_the_model(open_page):
    import gptviz

    at = open_page("attention", prompt="The little", temperature="1", top_k="0")
    shown = array(read(figure(at, "next_token"))["data"][0]["x"])
    checkpoint = gptviz.load("stories")
    logits = checkpoint.model(checkpoint.tokenizer.encode("The little", bos=True)[None])[0, -1].detach()
    assert shown[0] == pytest.approx(float(logits.softmax(0).max()), rel=1e-4)


def test_a_link_sets_every_control(open_page):
    link = {"layer": "3", "head": "2", "causal": "false", "encoding": "rotary", "temperature": "1.2", "seed": "7"}
    at = open_page("attention", prompt="The little", generated="300.301", **link)
    assert (at.selectbox(key="layer").value, at.selectbox(key="head").value) == (3, 2)
    assert at.toggle(key="causal").value is False
    assert at.selectbox(key="encoding").value == "rotary"
    assert (at.slider(key="temperature").value, at.number_input(key="seed").value) == (1.2, 7)
    assert chip_html(at).count('class="chip generated') == 2


@pytest.mark.parametrize("params", [{"generated": "x.y"}, {"layer": "99"}, {"model": "none"}, {"temperature": "-3"}])
def test_a_wrong_link_is_no_crash(open_page, params):
    at = open_page("attention", **params)
    assert not at.exception
    assert chip_texts(at)[1] == "Once"


def test_once_play_has_ended_its_cache_is_let_go(open_page):
    at = open_page("attention", prompt="The cat sat")
    at.session_state[AHEAD] = "a cache"
    at.run()
    assert AHEAD not in at.session_state


def test_what_is_not_as_trained_is_said_in_words(open_page):
    at = open_page("attention")
    assert not at.warning
    at.toggle(key="causal").set_value(False).run()
    assert "the causal mask is off" in at.warning[0].value
    at.selectbox(key="encoding").select("sinusoidal").run()
    assert "positions are sinusoidal in place of learned" in at.warning[0].value
    assert "KL divergence" in at.warning[0].value


@pytest.fixture
def turned(checkpoint, tmp_path, monkeypatch) -> gptviz.Checkpoint:
    """A rotary model in the library, like the bundled one in all else; there are no others."""
    (tmp_path / "bundled").mkdir()
    (tmp_path / "bundled" / "stories").symlink_to(library.BUNDLED / "stories")
    for module in (library, checkpoints):
        monkeypatch.setattr(module, "BUNDLED", tmp_path / "bundled")
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path))
    model = gptviz.variant(checkpoint.model, pos_encoding="rotary")
    made = gptviz.Checkpoint(model, checkpoint.tokenizer, {"tokens_seen": 5000, "validation": {"bits_per_byte": 0.99}})
    st.cache_data.clear()
    gptviz.save(made, tmp_path / "models" / "turned")
    yield made
    st.cache_data.clear()


def test_another_encoding_is_shown_on_the_model_that_was_trained_with_it(open_page, checkpoint, turned):
    at = open_page("attention", prompt="The cat sat", model="stories", encoding="rotary")
    assert "in place of learned" in at.warning[0].value
    at.radio(key="other").set_value("trained counterpart").run()
    assert not at.exception
    assert not at.warning
    assert "turned" in at.info[0].value
    assert "5,000 tokens and at 0.99 bits per byte" in at.info[0].value
    ids = checkpoint.tokenizer.encode("The cat sat", bos=True)
    drawn, pattern = cells(figure(at, "attention_heatmap")), gptviz.trace(turned.model, ids).pattern(0, 0)
    assert max(abs(value - pattern[cell]) for cell, value in drawn.items()) < 1e-3  # stored in 16 bits
    at.selectbox(key="encoding").select("learned").run()  # its own: nothing to be said
    assert not at.info


def test_where_no_model_was_trained_so_the_change_is_swapped_in_and_that_is_said(open_page, turned):
    at = open_page("attention", prompt="The cat sat", model="stories", encoding="alibi", other="trained counterpart")
    assert "No model here was trained this way" in at.warning[0].value


def test_what_stands_for_half_a_surrogate_pair_is_said(open_page):
    at = open_page("attention", prompt="a\ufffd b", bos="false")
    assert any("half of a surrogate pair" in c.value for c in at.caption)
    assert " ".join(chip_texts(at)[1:4]) == "EF BF BD"


def test_half_a_surrogate_pair_becomes_the_replacement_character():
    assert without_surrogates("a\ud83d b\udc00") == "a\ufffd b\ufffd"
    assert without_surrogates("🤗") == "🤗"


BYTES = train_bpe(["the cat sat on the mat"], vocab_size=257)


def test_rows_of_the_embedding_that_no_token_has_are_never_drawn(open_page, only_model):
    only_model(BYTES, vocab_size=512, bos_token_id=0)
    at = open_page("attention", prompt="the", temperature="2.0", top_k="0")
    for count in range(1, 4):
        at.button(key="step").click().run()
        assert not at.exception
        assert chip_html(at).count('class="chip generated') == count == len(at.session_state["generated"])


def test_ids_in_a_link_that_are_no_tokens_are_left_out(open_page):
    at = open_page("attention", prompt="The little", generated="9999999.300")
    assert at.session_state["generated"] == (300,)
    assert not at.warning


def test_the_first_token_that_the_window_keeps_does_not_count_as_generated(open_page):
    at = open_page("attention", prompt="The", generated=".".join(["300"] * 200))
    assert any("127 of them generated" in c.value for c in at.caption)


def test_a_model_without_a_vocabulary_takes_ids_and_says_so(open_page, only_model):
    only_model(None)
    at = open_page("attention")
    assert "a prompt is token ids from 0 to 49" in at.error[0].value
    assert not at.info
    at.text_area(key="prompt").set_value("5 17 3").run()
    assert not at.error
    assert chip_texts(at) == ["·5", "·17", "·3"]
    at.text_area(key="prompt").set_value("5 17 :red[x]").run()
    assert at.error[0].value.startswith("`")  # no Markdown of the reader's own
    assert chip_texts(at) == ["·5", "·17", "·3"]


def test_a_model_that_cannot_be_read_says_why(open_page, only_model):
    (only_model(BYTES, vocab_size=257, bos_token_id=0) / "model.safetensors").write_bytes(b"cut off")
    at = open_page("overview")
    assert not at.exception
    assert "not a whole safetensors file" in at.error[0].value
    assert at.selectbox(key="model").value == "only"


def test_an_encoding_that_this_architecture_cannot_have_is_refused(open_page, only_model):
    only_model(BYTES, vocab_size=257, bos_token_id=0, d_head=7)
    at = open_page("attention", encoding="rotary")
    assert not at.exception
    assert "must be even" in at.error[0].value
    at.selectbox(key="encoding").select("none").run()
    assert not at.error
    assert chip_texts(at)


def test_the_name_of_the_first_token_stays_text(open_page, only_model):
    named = Tokenizer.from_json(BYTES.to_json().replace("<|endoftext|>", "`:red[x]`"), bos_id=0)
    only_model(named, vocab_size=257, bos_token_id=0)
    assert open_page("attention", prompt="the").toggle(key="bos").label == "Begin with `` `:red[x]` ``"


def test_the_link_follows_a_prompt_that_leaves_nothing_to_show(open_page):
    at = open_page("attention", prompt="the cat", bos="false")
    at.text_area(key="prompt").set_value("").run()
    assert at.query_params["prompt"] in ("", [""])
