"""What a page asks of a training: a model, a text, options; and the command line's words for it. Knows no torch."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import library
from ..config import preset
from ..errors import GptvizError
from ..tokenizer import END_OF_TEXT
from .options import Options

ROOT = Path(__file__).parents[2]
SHORTEST = 500  # characters of a text
VOCABULARY = 512
STORIES = 2000  # of the built-in grammar: enough for minutes of training, and read in a second or two
PIECES = 10  # that a text without any divisions is cut into
GRAMMAR = "the built-in story grammar"


def runs() -> Path:
    """The folder of the training that goes on, and of what it leaves."""
    return library.home() / "runs"


def lapses() -> Path:
    """The folder of the snapshots of one's own runs, a folder each."""
    return runs() / "timelapse"


@dataclass(frozen=True, kw_only=True)
class Job:
    """text: None is the built-in grammar. changes: to the preset. options: of training.Options, where they differ."""

    name: str
    preset: str = "gpt_from_scratch"
    changes: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    text_name: str = GRAMMAR
    snapshots: bool = False  # for a time-lapse of it

    @property
    def steps(self) -> int:
        return Options(**self.options).steps

    def words(self) -> list[str]:
        """What the command line is to be told, but for the text. Raises GptvizError for what can't be."""
        preset(self.preset, **{"vocab_size": VOCABULARY, **self.changes})
        options = Options(**self.options)
        every = max(5, options.steps // 20)
        chosen = {"eval_every": every, **self.options}
        words = ["--out", str(_place(self.name)), "--preset", self.preset]
        if self.changes:
            words += ["--set", *(f"{name}={json.dumps(value)}" for name, value in self.changes.items())]
        words += [word for name, value in chosen.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        words += ["--threads", "1", "--save-every", "20", "--eval-stories", "20", "--text-name", self.text_name]
        if self.text is None:
            words += ["--stories", str(STORIES), "--held-out", str(STORIES // 20)]
        if self.snapshots:
            words += ["--snapshots", str(lapses() / self.name)]
        return [*words, "--vocab-size", str(VOCABULARY)]


def _place(name: str) -> Path:
    """Where the library will keep a model of that name. Raises GptvizError where it can't."""
    place = library.folder(name)
    if library.free_name(name).lower() != name.lower():
        raise GptvizError(f"There is a model called {name} already: choose another name.")
    return place


def write_text(text: str, path: Path) -> list[str]:
    """A text as the file that the command line reads, and the words for it: a tenth of its pieces is held out."""
    pieces = pieces_of(text)
    path.write_text("".join(f"{piece}\n{END_OF_TEXT}\n" for piece in pieces), encoding="utf-8")
    return [str(path), "--held-out", str(max(1, len(pieces) // 10))]


def pieces_of(text: str) -> list[str]:
    """Stories, where lines <|endoftext|> divide the text; else paragraphs; else so many parts of about equal length.

    Raises GptvizError where there is too little to learn from.
    """
    if len(text.strip()) < SHORTEST:
        raise GptvizError(
            f"The text has {len(text.strip()):,} characters, too few to learn from: give at least {SHORTEST:,}."
        )
    text = re.sub("[\ud800-\udfff]", "\ufffd", text.replace("\r\n", "\n"))
    for divider in (rf"{re.escape(END_OF_TEXT)}\n?", r"\n\s*\n"):
        pieces = [piece.strip() for piece in re.split(divider, text) if piece.strip()]
        if len(pieces) >= PIECES:
            return [piece.replace(END_OF_TEXT, " ") for piece in pieces]
    return _cut(text.replace(END_OF_TEXT, " "))


def _cut(text: str) -> list[str]:
    at = [round(len(text) * part / PIECES) for part in range(PIECES + 1)]
    return [piece for start, end in itertools.pairwise(at) if (piece := text[start:end].strip())]
