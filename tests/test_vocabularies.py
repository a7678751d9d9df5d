"""Every kind of tokenizer.json: text comes back, bytes and spaces are visible, typed specials stay text."""

import json
from collections.abc import Callable

import pytest
import tokenizers
import transformers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

import gptviz
from gptviz import GptvizError, Tokenizer
from gptviz.tokenizer import CharTokenizer, from_vocab_and_merges, label, read_tokenizer

STORY = "Once upon a time, there was a little girl named Lily. She liked to play with her very big dog.\n"
TEXTS = [STORY * 20, "zib dax mup kel 12 345 [x] <y> ünïcödé", "".join(map(chr, range(33, 127)))]
BOS, EOS = "<s>", "</s>"
SPECIALS = [AddedToken(BOS, special=True), AddedToken(EOS, special=True)]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]

Backend = tokenizers.Tokenizer


def begins_with(backend: Backend, token: str) -> None:
    rule = [(token, backend.token_to_id(token))]
    backend.post_processor = processors.TemplateProcessing(single=f"{token} $A", special_tokens=rule)


def gpt2() -> Backend:
    """Byte-level; its special is an entry of the vocabulary; nothing is put in front."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = [AddedToken("<|endoftext|>", special=True)]
    backend.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, special_tokens=special, show_progress=False),
    )
    return backend


def llama3() -> Backend:
    """Byte-level behind a splitting rule, whole words first, a first token by rule."""
    made = json.loads(gpt2().to_str())
    made["model"]["ignore_merges"] = True
    backend = Backend.from_str(json.dumps(made))
    rule = tokenizers.Regex(r"\p{N}{1,3}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+")
    split = pre_tokenizers.Split(rule, "isolated", False)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.add_special_tokens([AddedToken("<|begin_of_text|>", special=True)])
    begins_with(backend, "<|begin_of_text|>")
    return backend


def qwen() -> Backend:
    """Byte-level with NFC, and steering tokens that are listed as ordinary ones."""
    backend = gpt2()
    backend.normalizer = normalizers.NFC()
    backend.add_special_tokens([AddedToken("<|im_start|>", special=True)])
    backend.add_tokens([AddedToken("<think>", special=False, normalized=False), AddedToken("[INST]", special=False)])
    return backend


def llama2() -> Backend:
    """Characters with byte fallback; a space in front, written ▁."""
    backend = Backend(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=450, special_tokens=[AddedToken("<unk>", special=True), *SPECIALS, *BYTES], show_progress=False
    )
    backend.train_from_iterator([text.replace("\n", "") for text in TEXTS], trainer)
    made = json.loads(backend.to_str())
    made["added_tokens"] = [token for token in made["added_tokens"] if not token["content"].startswith("<0x")]
    backend = Backend.from_str(json.dumps(made))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    begins_with(backend, BOS)
    return backend


def mistral() -> Backend:
    """The same with Metaspace, which sets the space only where the text begins."""
    backend = llama2()
    backend.normalizer = None
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return backend


def unigram() -> Backend:
    """A unigram model, which finds a special token spelled out in a text like any other piece."""
    known = sorted({char for text in TEXTS for char in text if char not in " \n"})
    words = [("▁Once", -3.0), ("▁a", -4.0), ("▁time", -4.0), ("▁", -5.0)]
    scores = [
        ("<unk>", 0.0),
        (BOS, 0.0),
        (EOS, 0.0),
        *((byte, -20.0) for byte in BYTES),
        *words,
        *((c, -8.0) for c in known),
    ]
    backend = Backend(models.Unigram(scores, unk_id=0, byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always")])
    backend.add_special_tokens(SPECIALS)
    begins_with(backend, BOS)
    return backend


KINDS: dict[str, Callable[[], Backend]] = {
    "gpt2": gpt2,
    "llama3": llama3,
    "qwen": qwen,
    "llama2": llama2,
    "mistral": mistral,
    "unigram": unigram,
}
FIRST = {"llama3": "<|begin_of_text|>", "llama2": BOS, "mistral": BOS, "unigram": BOS}


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tokenizer(kind: str) -> Tokenizer:
    return Tokenizer.from_json(KINDS[kind]().to_str())


LITERALS = [
    "<s>",
    "</s> <s>",
    "<|endoftext|>",
    "a<|begin_of_text|>b",
    "<think>",
    "[INST] x",
    "<|im_start|>",
    "<unk>",
    "<0x0A>",
]


@pytest.mark.parametrize(
    "text",
    [
        "🤗",
        "a 🤗 b",
        "a\n\tb",
        "Once upon a time",
        "  two",
        "x  y",
        "שלום \u200d \0",
        "$5 _x_ **y** <b>",
        "",
        *LITERALS,
    ],
    ids=ascii,
)
def test_text_comes_back(kind: str, tokenizer: Tokenizer, text: str):
    ids = tokenizer.encode(text)
    if kind in ("mistral", "unigram") and text.startswith(" "):  # Metaspace sets no space before one that is there
        text = text.removeprefix(" ")
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.labels(ids)) == len(ids)


@pytest.mark.parametrize("text", LITERALS)
def test_a_typed_special_is_text(kind: str, tokenizer: Tokenizer, text: str):
    special = {i for i, token in tokenizer.backend.get_added_tokens_decoder().items() if token.special}
    bytes_ = {tokenizer.backend.token_to_id(byte) for byte in BYTES}
    ids = tokenizer.encode(text).tolist()
    assert not special & set(ids)
    assert not bytes_ & set(ids)  # all of these characters have tokens of their own, so no byte is needed


def test_a_character_without_a_token_shows_its_bytes(kind: str, tokenizer: Tokenizer):
    labels = tokenizer.labels(tokenizer.encode("🤗"))
    assert [part for part in labels if part != "·"] == ["F0", "9F", "A4", "97"]


def test_white_space_is_visible_and_no_sign_of_the_vocabulary_leaks(kind: str, tokenizer: Tokenizer):
    labels = tokenizer.labels(tokenizer.encode(" a\n\tb", bos=False))
    joined = "".join(labels).replace("0A", "⏎").replace("09", "⇥")
    assert joined.lstrip("·") == "a⏎⇥b"
    every = "".join(tokenizer.labels(range(len(tokenizer))))
    assert not set("ĠĊĉ▁") & set(every)


def test_pieces_of_one_word_look_joined(kind: str, tokenizer: Tokenizer):
    first, *others = tokenizer.labels(tokenizer.encode("a unbelievably"))[1:]
    assert "".join([first, *others]) == "·unbelievably"
    assert not any("·" in part for part in others if part != "·")


def test_the_first_token_is_a_choice(kind: str, tokenizer: Tokenizer):
    """One chip for each position that the model is fed."""
    if kind not in FIRST:
        assert tokenizer.bos_id is None
        return
    assert tokenizer.labels([tokenizer.bos_id]) == [FIRST[kind]]
    without, with_ = tokenizer.encode("Once upon"), tokenizer.encode("Once upon", bos=True)
    assert with_.tolist() == [tokenizer.bos_id, *without.tolist()]
    assert len(tokenizer.labels(with_)) == len(with_)
    assert tokenizer.decode(with_) == FIRST[kind] + "Once upon"


def test_ordinary_text_has_the_ids_of_transformers(kind: str, tokenizer: Tokenizer):
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=KINDS[kind]())
    for text in (STORY, "a 🤗 b", "x  y 12 345", "ünïcödé <b> [x]"):
        assert tokenizer.encode(text).tolist() == theirs(text, add_special_tokens=False)["input_ids"]
        if kind in FIRST:
            assert tokenizer.encode(text, bos=True).tolist() == theirs(text)["input_ids"]
        assert tokenizer.decode(tokenizer.encode(text)) == theirs.decode(
            theirs(text, add_special_tokens=False)["input_ids"]
        )


def test_a_vocabulary_comes_back_from_its_json(kind: str, tokenizer: Tokenizer):
    again = read_tokenizer(tokenizer.to_json(), tokenizer.bos_id)
    assert again.bos_id == tokenizer.bos_id
    assert again.encode(STORY).tolist() == tokenizer.encode(STORY).tolist()


def test_a_megabyte_takes_seconds(kind: str, tokenizer: Tokenizer):
    assert len(tokenizer.encode(STORY * 2_000)) > 2_000


def test_a_rule_for_the_first_token_goes_before_the_configuration():
    backend = llama2()
    assert Tokenizer.from_json(backend.to_str(), 7).bos_id == backend.token_to_id(BOS)
    assert Tokenizer.from_json(gpt2().to_str(), 0).bos_id == 0


def test_a_model_s_first_token_is_the_one_of_its_vocabulary(tmp_path, make_model):
    backend = llama2()
    size, bos = backend.get_vocab_size(), backend.token_to_id(BOS)
    gptviz.save(gptviz.Checkpoint(make_model(vocab_size=size + 5), Tokenizer(backend)), tmp_path / "m")
    loaded = gptviz.load(tmp_path / "m")
    assert loaded.model.config.bos_token_id == loaded.tokenizer.bos_id == bos
    assert loaded.tokenizer.labels([size + 4]) == [f"<unused·{size + 4}>"]


def test_ids_may_have_gaps():
    made = json.loads(gpt2().to_str())
    made["model"]["vocab"]["zzz"] = 400
    tokenizer = Tokenizer.from_json(json.dumps(made))
    assert len(tokenizer) == 401
    assert tokenizer.labels([399, 400]) == ["<unused·399>", "zzz"]


def test_a_character_that_the_vocabulary_would_drop_is_named():
    backend = Backend(models.BPE({"a": 0, "b": 1}, []))
    tokenizer = Tokenizer(backend)
    assert tokenizer.encode("ab").tolist() == [0, 1]
    with pytest.raises(GptvizError, match=r"no token for 'é' \(U\+00E9\), at character 1"):
        tokenizer.encode("aéb")


def test_an_unknown_token_that_is_missing_is_a_sentence():
    backend = Backend(models.BPE({"a": 0}, [], unk_token="<unk>"))
    with pytest.raises(GptvizError, match="can't write this text"):
        Tokenizer(backend).encode("ab")


def test_words_with_an_unknown_one():
    backend = Backend(models.WordLevel({"[UNK]": 0, "cat": 1}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = Tokenizer(backend)
    assert tokenizer.labels(tokenizer.encode("cat dog")) == ["cat", "[UNK]"]


def test_gpt2_s_two_files_are_its_tokenizer_json():
    backend = gpt2()
    made = json.loads(backend.to_str())["model"]
    merges = "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in made["merges"])
    ours = from_vocab_and_merges(made["vocab"], merges)
    assert (
        ours.encode(STORY + "🤗<|endoftext|>").tolist() == Tokenizer(backend).encode(STORY + "🤗<|endoftext|>").tolist()
    )
    with pytest.raises(GptvizError, match="make no vocabulary"):
        from_vocab_and_merges({"a": 0}, "x y\n")
    with pytest.raises(GptvizError, match="make no vocabulary"):
        from_vocab_and_merges({"a": "b"}, "")  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "text", ['{"type": "characters"', '{"type": "characters"}', '{"type": "characters", "stoi": []}']
)
def test_a_broken_table_of_characters(text: str):
    with pytest.raises(GptvizError, match="no table of characters"):
        read_tokenizer(text)


def test_a_table_of_characters_comes_back():
    made = CharTokenizer({"a": 0, "\n": 1, "🤗": 2})
    assert read_tokenizer(made.to_json()).encode("🤗\na").tolist() == [2, 1, 0]
    assert label(b"\n") == made.labels([1])[0]
