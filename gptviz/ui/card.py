"""What a model's card tells, in words. It is a file that anyone may have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from gptviz.config import GPTConfig
from gptviz.figures.style import number

UNITS = {"nats_per_token": "nats per token", "bits_per_byte": "bits per byte"}
CHEATS = "no measure of prediction: this model sees the token it is asked for"


def validation(card: Mapping[str, Any], config: GPTConfig, *units: str) -> str:
    """The loss in these units, or in all; "" where none is told. Without a mask, what such a number is worth, too."""
    measured = card.get("validation")
    found = {unit: measured.get(unit) for unit in units or UNITS} if isinstance(measured, Mapping) else {}
    words = [f"{number(value)} {UNITS[unit]}" for unit, value in found.items() if is_number(value)]
    if words and not config.causal:
        words[-1] += f" ({CHEATS})"
    return ", ".join(words)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a card's value is a number that can be shown."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
