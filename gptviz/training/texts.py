"""Where stories come from: a text file, a data set on the Hub, or nothing at all: the built-in grammar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import GptvizError
from . import grammar
from .data import read_stories

HUB = "hf:"


def stories_of(source: str | None, most: int | None = None) -> list[str]:
    """The first `most` stories of a file, of "hf:org/name" or "hf:org/name/file.txt"; None is the grammar.

    Raises GptvizError for what can't be read.
    """
    if source is None:
        return grammar.stories(most or grammar.MANY)
    if source.startswith(HUB):
        return read_stories(_downloaded(source.removeprefix(HUB)), most)
    return read_stories(source, most)


def name_of(source: str | None) -> str:
    """What a card calls the text. It tells nothing about the machine."""
    if source is None:
        return "the built-in story grammar"
    return source.removeprefix(HUB) if source.startswith(HUB) else Path(source).name


def _downloaded(name: str) -> Path:
    """A text file of a data set, fetched once."""
    from huggingface_hub import snapshot_download

    owner, file = "/".join(name.split("/")[:2]), "/".join(name.split("/")[2:])
    chosen = file or _text_for_training(owner)
    with _explained(owner):
        path = Path(snapshot_download(owner, repo_type="dataset", allow_patterns=[chosen]), chosen)
    if not path.is_file():
        raise GptvizError(f"The data set {owner!r} has no file {chosen!r}, or it is not on this machine yet.")
    return path


def _text_for_training(owner: str) -> str:
    """The data set's text file; of several the first that is called so, as only one is wanted."""
    from huggingface_hub import snapshot_download

    with _explained(owner):
        files = snapshot_download(owner, repo_type="dataset", allow_patterns=["*.txt"], dry_run=True)
    texts = sorted(file.filename for file in files)
    if not texts:
        raise GptvizError(f"The data set {owner!r} has no .txt file: give a text file of your own.")
    return next((name for name in texts if "train" in name.lower()), texts[0])


@contextmanager
def _explained(owner: str) -> Iterator[None]:
    """What the Hub refuses, or can't be asked, in a sentence."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        yield
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise GptvizError(
            f"The data set {owner!r} could not be fetched from the Hub: {reason} "
            "Give a text file, or none: the built-in story grammar needs no network."
        ) from error
