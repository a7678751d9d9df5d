"""Text to ids and back: exact for any string, specials only when asked for, and labels that a person can read."""

import json
import random
import unicodedata

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors

from gptviz import GptvizError, Tokenizer
from gptviz.tokenizer import BYTE_OF, END_OF_TEXT, IdsTokenizer, label, train_bpe

STORY = "Once upon a time, there was a little girl named Lily. She liked to play with her very big dog.\n"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """512 entries, learned from made-up words and a few real ones."""
    draw = random.Random(0)
    words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(2000)]
    return train_bpe([STORY * 20, " ".join(words)])


STRANGE = [
    "",
    "   ",
    " a\n\tb",
    "\r\n\r\n",
    "\0 a NUL \x07\x1b[31m\x7f",
    "🤗 and 👩‍👩‍👧‍👦 and 🏳️‍🌈",
    "e\u0301 is not é, n\u0303",
    "שלום עולם, مرحبا",
    "a\u200db\u200cc\u2060d\ufeff",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff \ue000 \ufdd0",
    "\u2028\u2029\u0085\u00a0",
    END_OF_TEXT,
    f"a{END_OF_TEXT}b {END_OF_TEXT}",
    "Ġ and Ċ and Ã©, which byte-level BPE writes for other bytes",
]


def random_text(seed: int) -> str:
    """Any code points but the surrogates, the strange ones often."""
    draw = random.Random(seed)
    ranges = [
        (0, 0x7F),
        (0x80, 0x7FF),
        (0x300, 0x36F),
        (0x590, 0x6FF),
        (0x2000, 0x206F),
        (0xE000, 0xFFFF),
        (0x10000, 0x10FFFF),
    ]
    return "".join(chr(draw.randint(*draw.choice(ranges))) for _ in range(draw.randint(1, 80)))


@pytest.mark.parametrize("text", [*STRANGE, *map(random_text, range(100))], ids=ascii)
def test_any_text_comes_back_exactly(tokenizer: Tokenizer, text: str):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert b"".join(tokenizer.pieces(ids)) == text.encode()
    assert len(tokenizer.labels(ids)) == len(ids)
    assert tokenizer.bos_id not in ids


def test_512_entries_hold_the_end_of_text_and_every_byte(tokenizer: Tokenizer):
    assert len(tokenizer) == 512
    pieces = tokenizer.pieces(range(512))
    assert pieces[0] == END_OF_TEXT.encode()
    assert {bytes([byte]) for byte in range(256)} <= set(pieces)
    assert len(set(pieces)) == 512


def test_the_byte_letters_are_the_library_s():
    assert sorted(BYTE_OF) == sorted(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(BYTE_OF.values()) == list(range(256))


def test_the_first_token_comes_only_when_asked_for(tokenizer: Tokenizer):
    typed = tokenizer.encode(END_OF_TEXT)
    assert tokenizer.bos_id == 0
    assert len(typed) > 1
    assert 0 not in typed
    assert tokenizer.encode(END_OF_TEXT, bos=True).tolist() == [0, *typed.tolist()]
    assert tokenizer.encode("", bos=True).tolist() == [0]
    assert tokenizer.labels([0]) == [END_OF_TEXT]


def test_a_vocabulary_without_a_first_token_says_so(tokenizer: Tokenizer):
    without = Tokenizer.from_json(tokenizer.to_json())
    with pytest.raises(GptvizError, match="no beginning-of-text token"):
        without.encode("a", bos=True)


@pytest.mark.parametrize("text", ["ab\ud800c", "\udc80", "\ude00\ud83d"])
def test_a_lone_surrogate_is_named(tokenizer: Tokenizer, text: str):
    lone = next(char for char in text if "\ud800" <= char <= "\udfff")
    with pytest.raises(GptvizError, match=rf"U\+{ord(lone):04X} at character {text.index(lone)}, .*U\+FFFD"):
        tokenizer.encode(text)


def test_white_space_is_visible_and_no_letter_of_the_vocabulary_leaks(tokenizer: Tokenizer):
    labels = tokenizer.labels(tokenizer.encode(" a\n\tb"))
    assert "".join(labels) == "·a⏎⇥b"
    every = "".join(tokenizer.labels(range(len(tokenizer))))
    assert not set("ĠĊĉ") & set(every)


def test_a_character_in_several_tokens_shows_its_bytes(tokenizer: Tokenizer):
    ids = tokenizer.encode("🤗")
    assert len(ids) == 4
    assert tokenizer.labels(ids) == ["F0", "9F", "A4", "97"]
    assert b"".join(tokenizer.pieces(ids)).decode() == "🤗"
    assert tokenizer.decode(ids[:2]) == "�"


def test_the_pieces_of_one_word_look_joined(tokenizer: Tokenizer):
    first, *others = tokenizer.labels(tokenizer.encode(" unbelievably"))
    assert first.startswith("·")
    assert len(others) > 2
    assert not any("·" in part for part in others)
    assert "".join([first, *others]) == "·unbelievably"


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        (b" ", "·"),
        (b"  the", "··the"),
        (b"\n\n", "⏎⏎"),
        (b"\r\n", "␍⏎"),
        (b"\0", "␀"),
        (b"\x1b", "␛"),
        (b"\x7f", "␡"),
        (b"\xf0\x9f", "F0 9F"),
        (b" \xf0\x9f", "· F0 9F"),
        (b"a\xcc", "a CC"),
        ("é".encode(), "é"),
        ("\u0301".encode(), "◌\u0301"),
        ("\u200d".encode(), "U+200D"),
        ("\u00a0".encode(), "U+00A0"),
        ("\u202e".encode(), "U+202E"),  # would turn the text after it around
        ("שלום".encode(), "שלום"),
        (b"<b>$x$ **y** `z`", "<b>$x$·**y**·`z`"),
        (b"\xed\xa0\x80", "ED A0 80"),  # a surrogate, which UTF-8 has no bytes for
        (b"", ""),
    ],
)
def test_labels(piece: bytes, shown: str):
    assert label(piece) == shown


def test_no_label_is_blank_or_holds_an_unseen_character():
    for point in [*range(0x3000), *range(0xE000, 0x10200)]:
        shown = label(chr(point).encode())
        assert shown
        assert all(unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp"} for char in shown), hex(point)


@pytest.mark.parametrize("wrong", [-1, 512, 10**6])
def test_ids_outside_the_vocabulary(tokenizer: Tokenizer, wrong: int):
    with pytest.raises(GptvizError, match=f"Token id {wrong} is outside the vocabulary: ids go from 0 to 511"):
        tokenizer.decode([1, wrong])


def test_a_vocabulary_comes_back_from_its_json(tokenizer: Tokenizer):
    again = Tokenizer.from_json(tokenizer.to_json(), tokenizer.bos_id)
    assert again.encode(STORY, bos=True).tolist() == tokenizer.encode(STORY, bos=True).tolist()
    assert json.loads(again.to_json()) == json.loads(tokenizer.to_json())


def gpt2_like() -> tokenizers.Tokenizer:
    """What the `tokenizers` library writes for a GPT-2: specials last, text truncated, padded and wrapped."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate([*letters, "Ġa", "th", "the"])}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, [("Ġ", "a"), ("t", "h"), ("th", "e")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(END_OF_TEXT, special=True, normalized=False)])
    made.add_tokens([AddedToken("né", special=False)])
    bos = made.token_to_id(END_OF_TEXT)
    made.post_processor = processors.TemplateProcessing(single=f"{END_OF_TEXT} $A", special_tokens=[(END_OF_TEXT, bos)])
    made.enable_truncation(4)
    made.enable_padding(length=16, pad_id=bos, pad_token=END_OF_TEXT)
    return made


def test_a_gpt2_like_vocabulary_loads_and_keeps_the_text_as_it_is():
    backend = gpt2_like()
    bos = backend.token_to_id(END_OF_TEXT)
    tokenizer = Tokenizer.from_json(backend.to_str(), bos)
    assert len(tokenizer) == 261
    text = f"the a {END_OF_TEXT} cat, né é 🤗"
    ids = tokenizer.encode(text)
    assert bos not in ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.labels(ids)[:2] == ["the", "·a"]
    assert tokenizer.encode("a", bos=True)[0] == bos


@pytest.mark.parametrize("text", ["", "{", "[]", '{"model": 1}', '{"version": "9.9"}', "not JSON", "\0"])
def test_a_broken_file_is_refused_with_a_sentence(text: str):
    with pytest.raises(GptvizError, match=r"tokenizer\.json is not one that `tokenizers` can read"):
        Tokenizer.from_json(text)


def test_too_small_a_vocabulary_is_refused():
    with pytest.raises(GptvizError, match="vocab_size = 256 is too small"):
        train_bpe([STORY], 256)
    assert len(train_bpe([STORY], 257)) == 257


def test_a_megabyte_is_encoded_whole(tokenizer: Tokenizer):
    text = STORY * (1_000_000 // len(STORY))
    ids = tokenizer.encode(text)
    assert len(ids) > 100_000
    assert tokenizer.decode(ids) == text


class TestIdsOnly:
    ids = IdsTokenizer(50, bos_id=3)

    def test_a_prompt_is_ids_with_spaces_between(self):
        assert self.ids.encode("5 17\n3 ").tolist() == [5, 17, 3]
        assert self.ids.encode("5", bos=True).tolist() == [3, 5]
        assert self.ids.encode("").tolist() == []
        assert len(self.ids) == 50

    def test_what_it_shows_can_be_typed_again(self):
        assert self.ids.labels([5, 17]) == ["·5", "·17"]
        assert self.ids.encode(self.ids.decode([5, 17])).tolist() == [5, 17]

    @pytest.mark.parametrize("wrong", ["Once", "50", "-1", "1.5", "9" * 40, "٣"])
    def test_anything_else_is_named(self, wrong: str):
        with pytest.raises(GptvizError, match=r"without a vocabulary.*from 0 to 49") as error:
            self.ids.encode(f"1 {wrong}")
        assert repr(wrong) in str(error.value)

    def test_ids_outside_and_writing(self):
        with pytest.raises(GptvizError, match="Token id 50 is outside"):
            self.ids.labels([50])
        with pytest.raises(GptvizError, match="no tokenizer to write"):
            self.ids.to_json()
