"""Merges of a word, against the `tokenizers` library itself and against numbers worked out by hand."""

import itertools
import json
import random

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, trainers

import gptviz
from gptviz import GptvizError, Tokenizer
from gptviz.merges import Merges
from gptviz.tokenizer import IdsTokenizer, train_bpe

STORY = "Once upon a time, there was a little girl named Lily. She liked to play with her very big dog.\n"


def hand_made(**model) -> Tokenizer:
    """Four letters and three merges: ab, then bc, then abc."""
    vocabulary = {piece: at for at, piece in enumerate(["a", "b", "c", "x", "ab", "bc", "abc"])}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [("a", "b"), ("b", "c"), ("ab", "c")], **model))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return Tokenizer(backend)


def test_the_pair_that_was_learned_first_goes_first_wherever_it_stands():
    merges = Merges(hand_made())
    (word,) = merges.words("xbcabcab")
    steps = merges.of(word)
    assert word.symbols == tuple("xbcabcab")
    assert [(step.rank, step.made) for step in steps] == [(0, "ab"), (1, "bc"), (2, "abc")]
    assert steps[0].after == ("x", "b", "c", "ab", "c", "ab")
    assert steps[-1].after == ("x", "bc", "abc", "ab")
    assert merges.ids(steps[-1].after) == [3, 5, 6, 4] == merges.by_the_library(word)


def test_an_overlapping_pair_is_taken_from_the_left():
    vocabulary = {"a": 0, "aa": 1}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [("a", "a")]))
    merges = Merges(Tokenizer(backend))
    (word,) = merges.words("aaaaa")
    assert merges.of(word)[-1].after == ("aa", "aa", "a")


def test_a_word_without_a_learned_pair_has_no_merges():
    merges = Merges(hand_made())
    (word,) = merges.words("cba")
    assert merges.of(word) == []
    assert merges.ids(word.symbols) == [2, 1, 0]


@pytest.mark.parametrize(
    "tokenizer", [gptviz.load("stories").tokenizer, train_bpe([STORY * 20])], ids=["stories", "own"]
)
def test_merges_end_where_the_library_does(tokenizer: Tokenizer):
    draw = random.Random(0)
    text = STORY + " ".join(
        "".join(draw.choices("abehilnorstuyz'.,🤗é\n\t", k=draw.randint(1, 12))) for _ in range(300)
    )
    merges = Merges(tokenizer)
    words = merges.words(text)
    assert len(words) > 200
    for word in words:
        steps = merges.of(word)
        assert merges.ids(steps[-1].after if steps else word.symbols) == merges.by_the_library(word)
        for before, step in zip([word.symbols, *(step.after for step in steps)], steps, strict=False):
            learned = [merges.ranks[pair] for pair in itertools.pairwise(before) if pair in merges.ranks]
            assert step.rank == min(learned)


def test_every_word_once_and_in_order():
    merges = Merges(gptviz.load("stories").tokenizer)
    assert [merges.shown(word.spelled) for word in merges.words("the cat the cat")] == ["the", "·cat", "·the"]
    assert merges.words("") == []


def test_split_characters_are_shown_as_bytes_and_white_space_is_visible():
    merges = Merges(gptviz.load("stories").tokenizer)
    word = merges.words(" 🤗\n")[0]
    assert [merges.shown(symbol) for symbol in word.symbols] == ["·", "F0", "9F", "A4", "97"]
    assert merges.shown(word.spelled) == "·🤗"
    assert [merges.shown(word.spelled) for word in merges.words("a\n\tb")] == ["a", "⏎", "⇥", "b"]


def test_a_sentencepiece_vocabulary_spells_spaces_and_unknown_characters_its_way():
    backend = tokenizers.Tokenizer(models.BPE(byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoders.ByteFallback()
    every = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=[AddedToken(name, special=False) for name in every], show_progress=False
    )
    backend.train_from_iterator([STORY * 5], trainer)
    merges = Merges(Tokenizer(backend))
    words = merges.words("Once upon 🤗")
    assert [merges.shown(word.spelled) for word in words] == ["·Once", "·upon", "·🤗"]
    assert words[2].symbols == ("▁", "<0xF0>", "<0x9F>", "<0xA4>", "<0x97>")
    assert [merges.shown(symbol) for symbol in words[2].symbols] == ["·", "F0", "9F", "A4", "97"]
    for word in words:
        steps = merges.of(word)
        assert merges.ids(steps[-1].after if steps else word.symbols) == merges.by_the_library(word)


def test_ends_of_words_are_marked_where_the_vocabulary_does_so():
    vocabulary = {piece: at for at, piece in enumerate(["l", "o", "w", "w</w>", "lo", "low</w>"])}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [("l", "o"), ("lo", "w</w>")], end_of_word_suffix="</w>"))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Whitespace(), decoders.BPEDecoder()
    merges = Merges(Tokenizer(backend))
    (word,) = merges.words("low")
    assert word.symbols == ("l", "o", "w</w>")
    assert [step.made for step in merges.of(word)] == ["lo", "low</w>"]


def test_a_vocabulary_that_takes_whole_words_first_need_not_merge_them():
    merges = Merges(hand_made(ignore_merges=True))
    (word,) = merges.words("abc")
    assert word.symbols == ("abc",)
    assert merges.of(word) == []


def test_merges_written_as_one_string_are_read_too():
    known = hand_made()
    older = json.loads(known.to_json())
    older["model"]["merges"] = ["a b", "b c", "ab c"]
    known.to_json = lambda: json.dumps(older)
    assert Merges(known).ranks == {("a", "b"): 0, ("b", "c"): 1, ("ab", "c"): 2}


def test_vocabularies_without_merges_say_so():
    with pytest.raises(GptvizError, match="nothing is merged"):
        Merges(IdsTokenizer(10))
    words = tokenizers.Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    with pytest.raises(GptvizError, match="WordLevel"):
        Merges(Tokenizer(words))
