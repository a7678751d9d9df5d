"""What a page is to show, as one value, read from the session's controls."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures.style import Theme
from gptviz.ui import state
from gptviz.ui.played import hear

if TYPE_CHECKING:
    from gptviz import GPTConfig, Trace
    from gptviz.sizing import Row

SWAPPED, COUNTERPART = "swapped in place", "trained counterpart"  # what another mask or encoding is shown on


@dataclass(frozen=True)
class Selection:
    """What a page is to show: the variant, the ids that the model sees, and how they are called."""

    variant: state.Variant
    config: GPTConfig
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    generated: int  # how many of the last ids were generated
    whole: tuple[int, ...]  # all that was typed and generated, what no longer fits included
    typed: tuple[int, ...]  # what the whole began with
    theme: Theme
    unread: str = ""  # why the prompt can't be read, where this is the last one that could be

    @property
    def written(self) -> tuple[int, ...]:
        """What was generated, what no longer fits included."""
        return self.whole[len(self.typed) :]

    def after(self, tokens: tuple[int, ...]) -> Selection:
        """As it will be once these are generated, too."""
        return _selection(self.variant, self.typed, self.written + tokens, self.unread)

    def before(self, last: int) -> Selection:
        """As it was before its last tokens were generated, fewer of them than there are: under a causal mask only."""
        size = len(self.ids) - last
        ids, labels, whole = self.ids[:size], self.labels[:size], self.whole[: len(self.whole) - last]
        earlier = dataclasses.replace(self, ids=ids, labels=labels, whole=whole, generated=self.generated - last)
        earlier.__dict__["run"] = self.run.until(size)
        return earlier

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

    def hidden(self, layer: int) -> np.ndarray:
        """Where no query of this layer may look: the future, and what lies beyond its window."""
        at, window = np.arange(len(self.ids)), self.config.window(layer)
        beyond = np.abs(at[:, None] - at) >= window
        return self.future | beyond if window else self.future

    def visible_pattern(self, layer: int, head: int) -> np.ndarray:
        """One head's attention, NaN where no query may look."""
        return np.where(self.hidden(layer), np.nan, self.run.pattern(layer, head))


def select() -> Selection | None:
    """What the controls select; None where there is nothing to run on.

    Raises GptvizError for a prompt that can't be read and an architecture that can't be.
    """
    hear()
    variant = _variant()
    loaded = state.checkpoint(variant.name)
    config, size = loaded.model.config, len(loaded.tokenizer)
    dataclasses.replace(config, **variant.changes(config))  # refuses what this architecture can't be
    typed, unread = _typed(variant.name)
    if not typed:
        return None
    st.session_state["last_typed"] = {variant.name: typed}
    generated = tuple(i for i in st.session_state.generated if i < size)  # a link may hold any number
    st.session_state.generated = generated
    return _selection(variant, typed, generated, unread)


def _selection(variant: state.Variant, typed: tuple[int, ...], generated: tuple[int, ...], unread: str) -> Selection:
    import torch

    from gptviz import sampling

    loaded = state.checkpoint(variant.name)
    config, whole = loaded.model.config, typed + generated
    seen = tuple(sampling.window(config, torch.tensor(whole)).tolist())
    kept = len(seen) - (typed[0] == config.bos_token_id)  # the window slides, its first token stays
    labels, written = tuple(loaded.tokenizer.labels(seen)), min(len(generated), kept)
    return Selection(variant, config, seen, labels, written, whole, typed, state.theme(), unread)


def _variant() -> state.Variant:
    """The model with its toggles; or the model that was trained that way, where one is there and asked for."""
    chosen = st.session_state
    toggled = state.Variant(chosen.model, chosen.causal, chosen.encoding)
    if chosen.get("other") != COUNTERPART or not toggled.changes(state.checkpoint(toggled.name).model.config):
        return toggled
    return state.counterpart(toggled) or toggled


def _typed(name: str) -> tuple[tuple[int, ...], str]:
    """The prompt's ids, or those of the last one that could be read and why this one can't."""
    try:
        return state.encode(name, state.end_of(state.prompt()), st.session_state.bos), ""
    except GptvizError as error:
        if last := st.session_state.get("last_typed", {}).get(name):
            return last, str(error)
        raise
