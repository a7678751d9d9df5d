"""The frame's sampling settings and the whole text, as one value each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from gptviz.figures.style import number
from gptviz.ui.selection import Selection
from gptviz.ui.transport import settings


@dataclass(frozen=True)
class Settings:
    """What the widgets under "Sampling settings" say; None where a filter is off. Hashable, so it is a cache key."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int

    @property
    def filters(self) -> dict[str, Any]:
        """As next_token_table takes them."""
        return {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p, "min_p": self.min_p}

    def __str__(self) -> str:
        names = (("top-k", self.top_k), ("top-p", self.top_p), ("min-p", self.min_p))
        filters = "".join(f", {name} {number(value)}" for name, value in names if value is not None)
        return f"temperature {number(self.temperature)}{filters}"


def current() -> Settings:
    """What the frame's widgets say."""
    return Settings(**settings(), seed=st.session_state.seed)


def typed_ids(chosen: Selection) -> tuple[int, ...]:
    """The prompt's ids, those before the model's window too."""
    ids: tuple[int, ...] = st.session_state.last_typed[chosen.variant.name]
    return ids
