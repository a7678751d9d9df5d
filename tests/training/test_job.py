"""What a page asks for, as the command line's words; and a text of any shape as stories."""

from pathlib import Path

import pytest

from gptviz import GptvizError, library
from gptviz.tokenizer import END_OF_TEXT
from gptviz.training import arguments, read_stories
from gptviz.training.job import Job, pieces_of, write_text


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPTVIZ_HOME", str(tmp_path))


def test_the_words_say_what_was_asked_for(tmp_path: Path):
    changes = dict(n_layer=1, causal=False, pos_encoding="rotary")
    job = Job(name="mine", changes=changes, options=dict(steps=40, optimizer="muon"), snapshots=True)
    parsed = arguments.parse(job.words())
    assert (parsed.out, parsed.text, parsed.preset) == (tmp_path / "models" / "mine", None, "gpt_from_scratch")
    assert dict(arguments._change(word) for word in parsed.set) == changes
    options = arguments.make_options(parsed)
    assert (options.steps, options.optimizer, options.eval_every) == (40, "muon", 5)
    assert parsed.snapshots == tmp_path / "runs" / "timelapse" / "mine"


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (dict(name=""), "'' is no name for a model"),
        (dict(name="../up"), "is no name for a model"),
        (dict(name="-x"), "is no name for a model"),
        (dict(name="x" * 65), "is no name for a model"),
        (dict(name="stories"), "There is a model called stories already"),
        (dict(name="taken"), "There is a model called taken already"),
        (dict(name="a", options=dict(steps=0)), "steps = 0 must be positive"),
        (dict(name="a", options=dict(repeats=0.9)), "are more than 1 together"),
        (dict(name="a", changes=dict(n_head=3)), "n_head = 3"),
        (dict(name="a", preset="gpt5"), "gpt5"),
    ],
)
def test_what_can_t_be_is_refused_before_anything_starts(job: dict, sentence: str):
    library.folder("taken").mkdir(parents=True)
    (library.folder("taken") / "config.json").touch()
    with pytest.raises(GptvizError, match=sentence):
        Job(**job).words()


def test_a_text_with_separators_is_its_stories():
    stories = [f"Story {n} is about a cat, and it is about as long as this one." for n in range(12)]
    assert pieces_of(f"\n{END_OF_TEXT}\n".join(stories)) == stories


def test_a_text_without_is_its_paragraphs():
    paragraphs = [f"Paragraph {n}\nhas two lines, and some more words to be long enough." for n in range(12)]
    assert pieces_of("\r\n\r\n".join(paragraphs)) == paragraphs


def test_one_long_line_is_cut_into_parts_that_hold_all_of_it():
    text = " ".join(f"word{n}" for n in range(200))
    pieces = pieces_of(text)
    assert len(pieces) == 10
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("text", ["", "   \n", "too short", " " * 5000 + "still too short"])
def test_too_little_is_refused(text: str):
    with pytest.raises(GptvizError, match="too few to learn from: give at least 500"):
        pieces_of(text)


def test_any_characters_reach_the_file_and_come_back(tmp_path: Path):
    text = "\n\n".join(f"<b>{n}</b> $5 _x_ \U0001f917 a\0b {END_OF_TEXT} half a pair: \ud83d " * 3 for n in range(12))
    words = write_text(text, tmp_path / "text.txt")
    stories = read_stories(words[0])
    assert words[1:] == ["--held-out", str(len(stories) // 10)]
    assert len(stories) >= 12
    assert all("\ufffd" in story or "<b>" in story for story in stories)
