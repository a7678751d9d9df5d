"""What the Embeddings page draws, against the model itself."""

import re

import numpy as np
import pytest

import gptviz
from gptviz import Tokenizer
from gptviz.tokenizer import train_bpe
from tests.figures.spec import array, cells, read, ticks

from .conftest import figure
from .test_frame import AWKWARD

PROMPT = "Once upon a time. The cat"
ENCODINGS = ["learned", "sinusoidal", "rotary", "alibi", "none"]


@pytest.fixture(scope="module")
def checkpoint():
    return gptviz.load("stories")


@pytest.fixture(scope="module")
def run(checkpoint):
    return gptviz.trace(checkpoint.model, checkpoint.tokenizer.encode(PROMPT, bos=True))


def html(at, mark):
    return next(element.proto.body for element in at.get("html") if mark in element.proto.body)


def said(at) -> str:
    return " ".join(caption.value for caption in at.caption)


def shown(at, key) -> bool:
    return any(element.proto.id.endswith(f"-{key}") for element in at.get("bidi_component"))


@pytest.mark.parametrize("encoding", ["learned", "rotary"])
@pytest.mark.parametrize("prompt", AWKWARD.values(), ids=AWKWARD)
def test_any_prompt(open_page, encoding, prompt):
    at = open_page("embeddings", prompt=prompt, encoding=encoding)
    assert not at.exception
    assert not at.error
    assert shown(at, "vectors")
    assert shown(at, "map_2d")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_one_token_alone(open_page, encoding):
    at = open_page("embeddings", prompt="a", bos="false", encoding=encoding)
    assert not at.exception
    assert ticks(figure(at, "vectors"), "y") == ["a"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_without_a_mask_and_with_a_full_context(open_page, encoding):
    at = open_page("embeddings", prompt="One day, a big dog ran. " * 40, causal="false", encoding=encoding)
    assert not at.exception
    assert len(ticks(figure(at, "vectors"), "y")) == 128


def test_the_table_has_id_and_bytes_of_every_token(open_page, checkpoint):
    at = open_page("embeddings", prompt=PROMPT)
    ids = checkpoint.tokenizer.encode(PROMPT, bos=True).tolist()
    rows = re.findall(r"<tr[^>]*><th[^>]*>(.*?)</th><td>(\d+)</td><td>(\d+)</td><td>(.*?)</td>", html(at, "Bytes"))
    assert [int(row[2]) for row in rows] == ids
    assert [int(row[1]) for row in rows] == list(range(len(ids)))
    assert rows[2][0] == "·upon"
    assert rows[2][3] == b" upon".hex(" ").upper()


def test_tokens_in_the_table_and_the_merges_are_inert(open_page):
    at = open_page("embeddings", prompt=AWKWARD["html"], bos="false")
    bodies = html(at, "Bytes") + html(at, "gptviz-merges")
    assert set(re.findall(r"<(\w+)", bodies)) <= {
        "style", "div", "table", "thead", "tbody", "tr", "th", "td", "span",
    }  # fmt: skip


def test_a_word_is_merged_step_by_step(open_page):
    at = open_page("embeddings", prompt=PROMPT)
    ladder = html(at, "gptviz-merges")
    rungs = [re.findall(r"<span class='piece( made)?'>(.*?)</span>", rung) for rung in ladder.split("<div><span")[1:]]
    assert [piece for _, piece in rungs[0]] == list("Once")
    assert [piece for _, piece in rungs[-1]] == ["Once"]
    assert all(sum(made != "" for made, _ in rung) == 1 for rung in rungs[1:])
    assert "3 merges end at 1 token, the same as the tokenizer's own: ids 416." in said(at)


def test_another_word_can_be_chosen(open_page):
    at = open_page("embeddings", prompt=PROMPT)
    at.selectbox(key="word").select_index(1).run()
    assert "upon" in html(at, "gptviz-merges")
    assert not at.exception


def test_a_vocabulary_without_merges_says_so(open_page, only_model):
    only_model(None, bos_token_id=0)
    at = open_page("embeddings", prompt="3 7 7 1")
    assert not at.exception
    assert any("nothing is merged" in info.value for info in at.info)
    assert shown(at, "vectors")


def test_the_panels_are_the_captured_vectors(open_page, run):
    spec = read(figure(open_page("embeddings", prompt=PROMPT), "vectors"))
    names = ["hook_embed", "hook_pos_embed", "blocks.0.hook_resid_pre"]
    assert len(spec["data"]) == 3
    for trace, name in zip(spec["data"], names, strict=True):
        assert np.allclose(array(trace["z"]), run[name][:, :48].numpy())


def test_other_dimensions_can_be_looked_at(open_page, run):
    at = open_page("embeddings", prompt=PROMPT, dimensions="48 to 95")
    assert np.allclose(array(read(figure(at, "vectors"))["data"][2]["z"]), run["blocks.0.hook_resid_pre"][:, 48:96])


def test_the_sum_checks_itself(open_page):
    assert "their sum is blocks.0.hook_resid_pre; the largest error is 0." in said(
        open_page("embeddings", prompt=PROMPT)
    )


def test_without_added_positions_there_is_one_panel(open_page):
    at = open_page("embeddings", prompt=PROMPT, encoding="alibi")
    assert len(read(figure(at, "vectors"))["data"]) == 1
    assert "ALiBi adds nothing here" in said(at)


def test_learned_positions_are_drawn_with_their_cosines(open_page, checkpoint):
    at = open_page("embeddings", prompt=PROMPT)
    table = checkpoint.model.pos_embed.weight.detach().double().numpy()
    drawn = cells(figure(at, "position_table"))
    assert len(drawn) == 128 * 128
    assert drawn[17, 3] == pytest.approx(table[17, 5])
    alike = cells(figure(at, "position_similarity"))
    a, b = table[10], table[6]
    assert alike[5, 3] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-5)


def test_positions_that_were_never_trained_are_called_so(open_page, only_model):
    only_model(train_bpe(["a story"], 300), vocab_size=300, bos_token_id=0, pos_encoding="none")
    assert "random numbers" in said(open_page("embeddings", prompt="a", encoding="learned"))


def test_rotary_turns_a_real_query_and_key(open_page, checkpoint, run):
    at = open_page(
        "embeddings", prompt=PROMPT, encoding="rotary", layer="2", head="1", pair="3", key_position="4 ·time"
    )
    turned = gptviz.trace(gptviz.variant(checkpoint.model, pos_encoding="rotary"), run.ids)
    data = read(figure(at, "rotation"))["data"]
    last = len(run.ids) - 1
    expected = {0: ("hook_q", last), 1: ("hook_rot_q", last), 3: ("hook_k", 4), 4: ("hook_rot_k", 4)}
    for trace, (hook, position) in expected.items():
        pair = turned[f"blocks.2.attn.{hook}"][position, 1, [3, 35]].numpy()
        ends = [array(data[trace][axis])[1] for axis in "xy"]
        assert np.allclose(ends, pair, atol=1e-5)
    assert "turned by these angles; the largest error is" in said(at)


def test_alibi_has_a_line_a_head(open_page):
    data = read(figure(open_page("embeddings", prompt=PROMPT, encoding="alibi"), "alibi"))["data"]
    assert [array(trace["y"])[1] for trace in data] == [-(2.0 ** (-2 * head)) for head in range(1, 5)]


@pytest.mark.parametrize(("causal", "words"), [("true", "causal mask alone"), ("false", "bag of tokens")])
def test_no_encoding_says_so(open_page, causal, words):
    at = open_page("embeddings", prompt=PROMPT, encoding="none", causal=causal)
    assert any(words in info.value for info in at.info)


def test_neighbours_of_the_last_token_or_of_a_chosen_one(open_page, checkpoint):
    at = open_page("embeddings", prompt=PROMPT)
    rows = checkpoint.model.embed.weight.detach().double().numpy()
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def expected(token):
        cosine = unit @ unit[token]
        cosine[token] = -1
        return np.sort(cosine)[::-1][:10]

    bars = array(read(figure(at, "neighbours"))["data"][0]["x"])
    assert np.allclose(bars, expected(checkpoint.tokenizer.encode(PROMPT)[-1]), atol=1e-5)
    at.selectbox(key="token").set_value(263).run()
    assert np.allclose(array(read(figure(at, "neighbours"))["data"][0]["x"]), expected(263), atol=1e-5)
    assert "its cosine with itself is 1" in said(at)


def test_the_token_that_the_link_names_is_chosen(open_page, checkpoint):
    at = open_page("embeddings", prompt="a", token="300 ·S")
    assert at.selectbox(key="token").value == 300
    assert array(read(figure(at, "map_2d"))["data"][2]["customdata"])[0, 1] == "300"


def test_the_map_has_the_prompts_tokens_on_it(open_page, checkpoint):
    every, prompt, chosen = read(figure(open_page("embeddings", prompt="the the the"), "map_2d"))["data"]
    assert len(every["customdata"]) == 512
    ids = list(dict.fromkeys(checkpoint.tokenizer.encode("the the the", bos=True).tolist()))
    assert [row[1] for row in prompt["customdata"]] == ids
    at = [row[1] for row in every["customdata"]].index(ids[-1])
    assert np.allclose(array(prompt["x"])[-1], array(every["x"])[at], atol=1e-5)
    assert chosen["customdata"][0][1] == ids[-1]


def test_the_map_in_three_dimensions(open_page):
    at = open_page("embeddings", prompt=PROMPT, map="3-D")
    assert read(figure(at, "map_3d"))["data"][0]["type"] == "scatter3d"
    assert "These 3 directions hold" in said(at)


@pytest.mark.parametrize(("tied", "words"), [(True, "Tied: W_U, "), (False, "Untied: this token")])
def test_tied_or_untied_is_said(open_page, only_model, tied, words):
    only_model(train_bpe(["a story"], 300), vocab_size=300, bos_token_id=0, tie_weights=tied)
    at = open_page("embeddings", prompt="a story")
    assert not at.exception
    assert words in said(at)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_head": 1, "n_layer": 1},
        {"norm": "rmsnorm", "gated_mlp": True, "parallel_residual": True},
        {"pos_encoding": "rotary", "n_kv_head": 2, "d_rotary": 4},
        {"n_embd": 300, "n_head": 3, "block_size": 600, "pos_encoding": "sinusoidal"},
        {"n_embd": 5, "n_head": 1, "d_head": 4, "pos_encoding": "sinusoidal", "block_size": 2},
        {"vocab_size": 310},
    ],
    ids=str,
)
def test_other_architectures(open_page, only_model, changes):
    only_model(train_bpe(["a story of a cat"], 300), **{"vocab_size": 300, "bos_token_id": 0, **changes})
    at = open_page("embeddings", prompt="a story of a cat")
    assert not at.exception
    assert not at.error


def test_a_large_vocabulary_is_drawn_in_part_and_searched_in_full(open_page, only_model, tiny_words: Tokenizer):
    only_model(tiny_words, vocab_size=3000, bos_token_id=0, n_embd=8, n_head=2)
    at = open_page("embeddings", prompt="a cat")
    assert not at.exception
    assert len(read(figure(at, "map_2d"))["data"][0]["customdata"]) == 2000
    assert "2,000 of 3,000 tokens, evenly spaced by id, are drawn." in said(at)
    assert len(at.selectbox(key="token").options) < 20


@pytest.fixture
def tiny_words() -> Tokenizer:
    """3,000 entries, most of them added by name."""
    words = train_bpe(["a story of a cat"], 300)
    words.backend.add_tokens([f"word{at}" for at in range(3000 - words.backend.get_vocab_size())])
    return Tokenizer(words.backend, bos_id=0)


def test_it_follows_each_new_token(open_page):
    at = open_page("embeddings", prompt=PROMPT)
    before = len(ticks(figure(at, "vectors"), "y"))
    at.button(key="step").click().run()
    assert len(ticks(figure(at, "vectors"), "y")) == before + 1
    assert not at.exception


@pytest.mark.parametrize("prompt", [PROMPT, *AWKWARD.values()], ids=["story", *AWKWARD])
def test_joined_the_tokens_are_the_prompt(open_page, prompt):
    at = open_page("embeddings", prompt=prompt)
    if len(prompt) > 1000:  # not all of it is there
        assert "joined, the tokens" not in said(at)
    else:
        assert f"joined, the tokens' bytes are the prompt: all {len(prompt.encode())} of them" in said(at)
