"""A time-lapse: the snapshots of one run in their order. Reads cards alone, so it knows no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import GptvizError

Pairs = list[list[float]]
KINDS = {"previous_token": "previous token", "induction": "induction"}


@dataclass(frozen=True)
class Lapse:
    """steps: those of which there is a snapshot, in order; cards and folders are as many. curves: the run's losses."""

    folders: Sequence[Path]
    cards: Sequence[Mapping[str, Any]]
    curves: Mapping[str, Pairs]

    @property
    def steps(self) -> list[int]:
        return [int(card["step"]) for card in self.cards]

    def scores(self) -> dict[str, Pairs]:
        """[step, score of the best head] by kind, on random tokens that come twice."""
        return {
            words: [
                [step, best]
                for step, card in zip(self.steps, self.cards, strict=True)
                if (best := _best(card, kind)) is not None
            ]
            for kind, words in KINDS.items()
        }

    def losses(self) -> dict[str, Pairs]:
        """[step, nats per token]: the run's own curve, and the validation loss of the snapshots, step 0 included."""
        watched = [
            [step, card["validation"]["nats_per_token"]]
            for step, card in zip(self.steps, self.cards, strict=True)
            if "validation" in card
        ]
        return {"training": self.curves.get("training", []), "validation": watched or self.curves.get("validation", [])}


def _best(card: Mapping[str, Any], kind: str) -> float | None:
    found = [score for row in card.get("head_scores", {}).get(kind, []) for score in row if score is not None]
    return max(found, default=None)


def snapshots_in(folder: Path) -> list[Path]:
    """The folders of its snapshots, in their order."""
    return sorted(path.parent for path in folder.glob("*/card.json") if path.parent.name.isdigit())


def read_lapse(folder: Path) -> Lapse | None:
    """None where there are no snapshots. Raises GptvizError where one can't be read."""
    folders = snapshots_in(folder)
    if not folders:
        return None
    cards = [_read(path / "card.json") for path in folders]
    if not all(isinstance(card.get("step"), int) for card in cards):
        raise GptvizError(f"{folder.name} holds a snapshot whose card does not say its step.")
    curve = folder / "loss.json"
    return Lapse(folders, cards, _read(curve) if curve.exists() else {})


def _read(path: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GptvizError(f"{path.parent.name}/{path.name} can't be read: {error}") from error
    return read
