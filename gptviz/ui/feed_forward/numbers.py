"""What the Feed-forward page's figures are drawn from, computed once for what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from gptviz.ui import state

if TYPE_CHECKING:
    from gptviz.analysis import Neurons, Sparsity


LAYERS = 8  # whose activations are kept: GPT-2's at 1,024 tokens take 25 MB each
TOKENS = 8  # that a neuron promotes, and as many that it suppresses


class Layer(NamedTuple):
    """One layer on one prompt: its neurons, and how far `post` is from the activation's definition."""

    neurons: Neurons
    activation_error: float


@st.cache_resource(show_spinner=False, max_entries=LAYERS)
def layer_numbers(variant: state.Variant, ids: tuple[int, ...], layer: int) -> Layer:
    """The activations and their check."""
    from gptviz import analysis

    run = state.trace(variant, ids)
    found = analysis.neurons(run, layer)
    return Layer(found, analysis.activation_error(found, run.config.activation))


@st.cache_resource(show_spinner=False, max_entries=256)
def output_error(variant: state.Variant, ids: tuple[int, ...], layer: int, position: int) -> float:
    """How far the sum of what all neurons write at a token is from hook_mlp_out."""
    from gptviz import analysis

    return analysis.output_error(state.model(variant), state.trace(variant, ids), layer, position)


@st.cache_resource(show_spinner=False, max_entries=state.MOST_TRACES)
def sparsity(variant: state.Variant, ids: tuple[int, ...]) -> Sparsity:
    """Of every layer: see gptviz.analysis.sparsity."""
    from gptviz import analysis

    return analysis.sparsity(state.trace(variant, ids))


class Written(NamedTuple):
    """What one neuron writes, for an activation of 1 and a final norm's scale of 1."""

    ids: np.ndarray  # (n,) the most promoted tokens, then the most suppressed ones, TOKENS each or all there are
    logits: np.ndarray  # (n,) how far each moves, from the largest to the smallest
    total: float  # of all tokens: 0 but for rounding


@st.cache_resource(show_spinner=False, max_entries=256)
def written(name: str, layer: int, neurons: tuple[int, ...]) -> list[Written]:
    """It depends on the weights alone, so it is kept from prompt to prompt."""
    from gptviz import analysis

    loaded = state.checkpoint(name)
    size = min(len(loaded.tokenizer), loaded.model.config.vocab_size)  # rows of W_U beyond are padding, no tokens
    logits = analysis.written_logits(loaded.model, layer, neurons, 1.0, size)
    return [Written(ids, row[ids], float(row.sum(dtype=np.float64))) for row in logits for ids in [_ends(row)]]


def _ends(row: np.ndarray) -> np.ndarray:
    """Where the largest and the smallest numbers of a row (V,) are, in descending order."""
    ids = np.arange(len(row))
    if len(row) > 2 * TOKENS:
        ids = np.concatenate([np.argpartition(signed, TOKENS - 1)[:TOKENS] for signed in (-row, row)])
    return ids[np.argsort(-row[ids], kind="stable")]


@st.cache_resource(show_spinner=False, max_entries=64)
def output_norms(name: str, layer: int) -> np.ndarray:
    """Length of each neuron's output weights: (F,)."""
    from gptviz import analysis

    return analysis.output_norms(state.checkpoint(name).model, layer)
