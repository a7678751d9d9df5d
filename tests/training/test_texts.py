"""Stories from a file, from the Hub's cache, and from the grammar, which needs neither."""

import re
import shutil
from pathlib import Path

import pytest

from gptviz import GptvizError
from gptviz.tokenizer import END_OF_TEXT
from gptviz.training import grammar
from gptviz.training.texts import name_of, stories_of


def test_the_same_seed_tells_the_same_stories():
    assert grammar.stories(20) == grammar.stories(20)
    assert grammar.stories(20) == grammar.stories(50)[:20]
    assert grammar.stories(20, seed=1) != grammar.stories(20)


def test_stories_are_different_and_of_plain_words():
    told = grammar.stories(1000)
    assert len(set(told)) == 1000
    assert all(re.fullmatch(r"[A-Za-z ,.!?\"']+", story) for story in told)
    assert not [story for story in told if re.search(r"\ba [aeiou]|  | [.,!?]", story)]


def test_a_story_keeps_to_what_it_said():
    """Its thing has one colour, and its child is a "he" or a "she" throughout."""
    things, colours = "|".join(grammar.RULES["thing"]), "|".join(grammar.RULES["colour"])
    for story in grammar.stories(500):
        assert len(set(re.findall(rf"\b({things})\b", story))) <= 1
        assert len(set(re.findall(rf"\b({colours})\b", story))) <= 1
        assert not ({"he", "He", "his", "him"} & set(re.findall(r"\w+", story))) or not re.search(r"\b[Ss]he\b", story)


def test_no_text_is_the_grammar():
    assert stories_of(None, 7) == grammar.stories(7)
    assert len(stories_of(None)) == grammar.MANY
    assert name_of(None) == "the built-in story grammar"


def test_a_file_gives_its_first_stories(text_file: Path, stories: list[str]):
    assert stories_of(str(text_file)) == stories
    assert stories_of(str(text_file), 7) == stories[:7]
    assert stories_of(str(text_file), 10_000) == stories
    assert name_of(str(text_file)) == "stories.txt"


def test_no_more_of_a_file_is_read_than_is_wanted(tmp_path: Path):
    path = tmp_path / "long.txt"
    path.write_bytes(f"One.\n{END_OF_TEXT}\nTwo.\n{END_OF_TEXT}\n".encode() + b"Three. " * 5000 + b"\xff")
    assert stories_of(str(path), 2) == ["One.", "Two."]
    with pytest.raises(GptvizError, match="can't be read as UTF-8 text"):
        stories_of(str(path))


class TestHub:
    @pytest.fixture(autouse=True)
    def cached(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_file: Path) -> None:
        """A machine without a network that has fetched a data set before."""
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        folder, commit = tmp_path / "datasets--someone--tales", "0" * 40
        (folder / "snapshots" / commit / "data").mkdir(parents=True)
        shutil.copy(text_file, folder / "snapshots" / commit / "data" / "train.txt")
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text(commit)

    def test_a_file_of_a_data_set(self, stories: list[str]):
        assert stories_of("hf:someone/tales/data/train.txt", 5) == stories[:5]
        assert name_of("hf:someone/tales/data/train.txt") == "someone/tales/data/train.txt"

    def test_the_data_set_s_own_text_is_found(self, stories: list[str], monkeypatch: pytest.MonkeyPatch):
        """What the Hub would list is what no test may ask it for."""
        import huggingface_hub

        class Listed:
            def __init__(self, filename: str):
                self.filename = filename

        fetch = huggingface_hub.snapshot_download

        def answer(owner: str, **wanted: object) -> object:
            listing = [Listed("data/extra.txt"), Listed("data/train.txt")]
            return listing if wanted.pop("dry_run", False) else fetch(owner, **wanted)

        monkeypatch.setattr(huggingface_hub, "snapshot_download", answer)
        assert stories_of("hf:someone/tales", 5) == stories[:5]

    @pytest.mark.parametrize("name", ["someone/others", "someone/others/train.txt", "", "no such"])
    def test_what_can_t_be_fetched_is_said_with_a_remedy(self, name: str):
        with pytest.raises(GptvizError, match=r"could not be fetched from the Hub: .*grammar needs no network"):
            stories_of(f"hf:{name}")

    def test_a_file_that_is_not_there(self):
        with pytest.raises(GptvizError, match=r"'someone/tales' has no file 'none\.txt', or it is not on this machine"):
            stories_of("hf:someone/tales/none.txt")
