"""Says in words where what is shown is not the model as it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from gptviz.figures.style import number
from gptviz.ui import state
from gptviz.ui.card import is_number, validation
from gptviz.ui.markdown import literal
from gptviz.ui.selection import COUNTERPART, Selection

if TYPE_CHECKING:
    from gptviz import Checkpoint


def warn_unmasked(selection: Selection) -> None:
    """For what is said of a token from what came before it."""
    if not selection.variant.causal:
        st.warning("The causal mask is off: every position has seen the token after it, so none of this is foretold.")


def badge(selection: Selection) -> None:
    """Nothing, where mask and encoding are the model's own."""
    name, shown = st.session_state.model, selection.variant
    if shown.name != name:
        st.info(_counterpart(name, selection), icon=":material/experiment:")
    elif changes := shown.changes(selection.config):
        st.warning(_swapped(changes, selection), icon=":material/experiment:")


def _counterpart(name: str, selection: Selection) -> str:
    """Another model with other weights: which, and how far the two have come."""
    own, other = (_progress(state.checkpoint(each)) for each in (name, selection.variant.name))
    return (
        f"Shown is {literal(selection.variant.name)}, {other}: a model trained this way from the start, so its "
        f"heads are others. {literal(name)} is {own}. {_effect(selection)}"
    )


def _progress(loaded: Checkpoint) -> str:
    seen, loss = loaded.card.get("tokens_seen"), validation(loaded.card, loaded.model.config, "bits_per_byte")
    words = [f"trained on {seen:,} tokens"] if is_number(seen) else []
    words += [f"at {loss}"] if loss else []
    return " and ".join(words) or "without a record of its training"


def _swapped(changes: Mapping[str, Any], selection: Selection) -> str:
    words = []
    if "causal" in changes:
        words.append(f"the causal mask is {'on' if changes['causal'] else 'off'}")
    if "pos_encoding" in changes:
        words.append(
            f"{_positions(changes['pos_encoding'])} in place of {selection.config.pos_encoding}"
            + (", a table of random numbers" if state.model(selection.variant).untrained else "")
        )
    none = "No model here was trained this way. " if st.session_state.get("other") == COUNTERPART else ""
    return (
        f"Not as trained: {' and '.join(words)}. {none}The weights never saw this, so it shows what they depend on, "
        f"not what a model trained this way would do. {_effect(selection)}"
    )


def _positions(encoding: str) -> str:
    return "there are no positions" if encoding == "none" else f"positions are {encoding}"


def _effect(selection: Selection) -> str:
    """The change in the next token's distribution, in numbers."""
    import torch.nn.functional as F

    name = st.session_state.model
    config = state.checkpoint(name).model.config
    trained = state.Variant(name, config.causal, config.pos_encoding)
    before, after = (
        F.log_softmax(state.next_logits(variant, selection.ids), -1) for variant in (trained, selection.variant)
    )
    divergence = float((before.exp() * (before - after)).sum())
    return f"KL divergence of the next-token distribution, KL(trained ‖ shown): {number(divergence)} nats."
