"""The models that come with the repository are what their cards say."""

import json
import math

import pytest
import torch
from safetensors import safe_open

import gptviz
from gptviz import library
from gptviz.checkpoints import BUNDLED
from gptviz.config import preset


@pytest.fixture(scope="module")
def stories() -> gptviz.Checkpoint:
    return gptviz.load("stories")


def test_the_default_comes_first():
    assert gptviz.bundled()[0] == "stories"


def test_stories_is_the_course_s_model(stories):
    own, course = stories.model.config.to_dict(), preset("gpt_from_scratch").to_dict()
    assert {name for name in own if own[name] != course[name]} <= {"dropout", "bos_token_id"}
    assert sum(p.numel() for p in stories.model.parameters()) == 3_323_392


def test_its_vocabulary_has_512_entries_with_every_byte(stories):
    assert len(stories.tokenizer) == 512
    pieces = stories.tokenizer.pieces(range(1, 512))
    assert {bytes([byte]) for byte in range(256)} <= set(pieces)


def test_its_card_is_whole_and_reaches_the_bar(stories):
    card = stories.card
    assert card["validation"]["bits_per_byte"] <= 1.00
    for field in ("tokens_seen", "steps", "date", "command", "seed", "text", "held_out", "head_scores"):
        assert card[field] not in (None, "", {}), field
    assert "/work" not in json.dumps(dict(card))


def test_weights_are_stored_in_16_bits_and_run_in_32(stories):
    with safe_open(BUNDLED / "stories" / "model.safetensors", framework="pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118
    assert {p.dtype for p in stories.model.parameters()} == {torch.float32}


def test_it_has_a_previous_token_head_and_an_induction_head(stories):
    runs = [gptviz.trace(stories.model, gptviz.analysis.repeated_random_ids(stories.model.config, s)) for s in range(4)]
    scores = [gptviz.analysis.head_scores(run) for run in runs]
    for name, bar in (("previous_token", 0.5), ("induction", 0.4)):
        best = sum(torch.from_numpy(score[name]) for score in scores) / len(scores)
        assert best.max() >= bar, name


def test_it_goes_on_with_a_story(stories):
    ids = stories.tokenizer.encode("Once upon a", bos=True)
    step = next(gptviz.generate(stories.model, ids, temperature=0))
    assert stories.tokenizer.decode([step.token]) == " time"
    assert step.logits.softmax(0).max() > 0.9


def test_its_text_at_temperature_0_8_is_made_of_words_it_was_taught(stories):
    ids = stories.tokenizer.encode("Once upon a time", bos=True)
    steps = gptviz.generate(stories.model, ids, 100, temperature=0.8, top_k=40, seed=1)
    text = stories.tokenizer.decode([step.token for step in steps])
    assert text.isascii()
    common = {"the", "a", "and", "to", "was", "he", "she", "it", "they", "his", "her", "said", "little", "named", "in"}
    words = text.lower().replace(".", " ").replace(",", " ").split()
    assert sum(word in common for word in words) / len(words) > 0.2


@pytest.fixture(scope="module")
def minimal() -> gptviz.Checkpoint:
    return gptviz.load("minimal-decoder")


def test_the_minimal_decoder_is_the_other_course_s_at_a_width_that_fits(minimal):
    own, course = minimal.model.config.to_dict(), preset("minimal_decoder").to_dict()
    sized = {"n_layer", "n_embd", "d_mlp", "block_size", "vocab_size", "pos_scale", "dropout", "bos_token_id"}
    assert {name for name in own if own[name] != course[name]} <= sized
    assert own["n_head"] == 1
    assert own["pos_encoding"] == "sinusoidal"
    assert own["tie_weights"] is False


def test_the_minimal_decoder_reaches_its_bar_and_goes_on_with_a_story(minimal):
    assert minimal.card["validation"]["bits_per_byte"] <= 1.25
    assert "/work" not in json.dumps(dict(minimal.card))
    ids = minimal.tokenizer.encode("Once upon a", bos=True)
    step = next(gptviz.generate(minimal.model, ids, temperature=0))
    assert minimal.tokenizer.decode([step.token]) == " time"


FAMILY = {f"stories-{encoding}": {"pos_encoding": encoding} for encoding in ("rotary", "sinusoidal", "alibi", "none")}
FAMILY |= {"stories-uncausal": {"causal": False}, "stories-learned": {}}
STEPS = 1900


@pytest.mark.parametrize("name", FAMILY)
def test_a_counterpart_differs_from_stories_in_one_thing(name, stories):
    loaded = gptviz.load(name)
    own, other = loaded.model.config.to_dict(), stories.model.config.to_dict()
    assert {key: own[key] for key in own if own[key] != other[key] and key != "pos_scale"} == FAMILY[name]
    assert loaded.tokenizer.labels(range(512)) == stories.tokenizer.labels(range(512))
    assert "/work" not in json.dumps(dict(loaded.card))


@pytest.mark.parametrize("name", FAMILY)
def test_the_family_was_trained_alike(name, stories):
    card = gptviz.load(name).card
    assert (card["steps"], card["tokens_seen"], card["seed"]) == (STEPS, STEPS * 24 * 128, 0)
    alike = stories.card["options"] | {"steps": STEPS, "batch_size": 24}
    assert card["options"] == alike


@pytest.mark.parametrize("name", FAMILY)
def test_the_app_finds_the_counterpart(name):
    config = gptviz.load(name).model.config
    assert library.counterpart("stories", config.causal, config.pos_encoding) == name


def test_the_others_are_compared_with_the_twin_that_saw_as_much():
    assert library.counterpart("stories-rotary", True, "learned") == "stories-learned"
    assert library.counterpart("stories-uncausal", True, "learned") == "stories-learned"


@pytest.mark.parametrize(
    "name", [f"stories-{encoding}" for encoding in ("learned", "rotary", "sinusoidal", "alibi", "none")]
)
def test_a_counterpart_reaches_its_bar(name):
    assert gptviz.load(name).card["validation"]["bits_per_byte"] <= 1.05


def test_without_a_mask_it_cheats_and_has_learned_nothing_to_go_on_with(stories):
    """It reads the token that it is asked for. Where there is none to read, at the end of a text, it is lost."""
    cheat = gptviz.load("stories-uncausal")
    assert cheat.card["validation"]["bits_per_byte"] < 0.1 * stories.card["validation"]["bits_per_byte"]
    assert cheat.card["training_loss"]["nats_per_token"] < 0.1 * stories.card["training_loss"]["nats_per_token"]
    text = "One day, a girl named Mia went to the park with her dog. The dog saw a ball and ran to it. Mia was happy."
    ids = cheat.tokenizer.encode(text, bos=True)
    masked = gptviz.variant(cheat.model, causal=True).loss(ids[None, :-1], ids[None, 1:]).item()
    assert masked > math.log(512)  # worse than knowing nothing
    generated = [step.token for step in gptviz.generate(cheat.model, ids[:12], 40, top_k=40, temperature=0.8, seed=0)]
    whole = torch.cat([ids[:12], torch.tensor(generated)])
    assert stories.model.loss(whole[None, 11:-1], whole[None, 12:]).item() > 4  # `stories` writes at less than 2


@pytest.mark.parametrize("name", gptviz.bundled())
def test_cards_say_what_the_model_reaches_on_stories_it_never_saw(name):
    loaded = gptviz.load(name)
    text = "One day, a girl named Mia went to the park with her dog. The dog saw a ball and ran to it. Mia was happy."
    ids = loaded.tokenizer.encode(text, bos=True)
    loss = loaded.model.loss(ids[None, :-1], ids[None, 1:]).item()
    assert loss == pytest.approx(loaded.card["validation"]["nats_per_token"], abs=0.6)


LAPSE = BUNDLED / "timelapse"


def test_the_time_lapse_is_whole_and_small():
    steps = sorted(int(folder.name) for folder in LAPSE.iterdir() if folder.is_dir())
    assert len(steps) >= 12
    assert steps[0] == 0
    assert sum(path.stat().st_size for path in LAPSE.rglob("*") if path.is_file()) < 30e6
    for step in steps:
        card = json.loads((LAPSE / f"{step:06}" / "card.json").read_text())
        assert card["training"]["bits_per_byte"] > 0
        assert card["validation"]["bits_per_byte"] > 0
    assert "timelapse" not in gptviz.bundled()


@pytest.mark.parametrize(
    ("step", "previous_token", "induction"), [("000000", (0, 0.1), (0, 0.1)), ("003000", (0.5, 1), (0.4, 1))]
)
def test_its_heads_come_from_nothing(step, previous_token, induction):
    model = gptviz.load(LAPSE / step).model
    scores = gptviz.analysis.head_scores(gptviz.trace(model, gptviz.analysis.repeated_random_ids(model.config)))
    for (low, high), name in ((previous_token, "previous_token"), (induction, "induction")):
        assert low <= scores[name].max() <= high, name


def test_everything_bundled_together_stays_small():
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) < 90e6
