"""What a page is to show, as one value."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gptviz.figures.style import Theme
from gptviz.ui import state

if TYPE_CHECKING:
    from gptviz import GPTConfig, Trace
    from gptviz.sizing import Row


@dataclass(frozen=True)
class Selection:
    """What a page is to show: the variant, the ids that the model sees, and how they are called."""

    variant: state.Variant
    config: GPTConfig
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    generated: int  # how many of the last ids were generated
    theme: Theme

    @functools.cached_property
    def run(self) -> Trace:
        """The forward pass of exactly these ids."""
        return state.trace(self.variant, self.ids)

    @functools.cached_property
    def parameters(self) -> Sequence[Row]:
        """The parameter table of the variant."""
        from gptviz import sizing

        return sizing.parameter_table(self.run.config)

    @property
    def untrained(self) -> frozenset[str]:
        """The parts of the variant that no training has touched."""
        return state.model(self.variant).untrained

    @functools.cached_property
    def future(self) -> np.ndarray:
        """Where no query may look: (T, T) bool, all False without a mask."""
        size = len(self.ids)
        return np.triu(np.full((size, size), self.variant.causal), 1)

    def visible_pattern(self, layer: int, head: int) -> np.ndarray:
        """One head's attention, NaN where no query may look."""
        return np.where(self.future, np.nan, self.run.pattern(layer, head))
