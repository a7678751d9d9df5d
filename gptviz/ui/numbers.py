"""What several figures of a page need of a prompt, computed once: a widget that changes does not compute it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.ui import state

if TYPE_CHECKING:
    from gptviz.analysis import Additions, LensSummary, Predictions


def vocabulary(name: str) -> int:
    """How many rows of W_U are tokens: those beyond are padding."""
    return len(state.checkpoint(name).tokenizer)


@st.cache_resource(show_spinner=False, max_entries=state.MOST_TRACES)
def lens(variant: state.Variant, ids: tuple[int, ...]) -> LensSummary:
    from gptviz import analysis

    trained = state.checkpoint(variant.name).model  # its weights; the run holds the configuration
    return analysis.lens_summary(trained, state.trace(variant, ids), vocabulary(variant.name))


@st.cache_resource(show_spinner=False, max_entries=state.MOST_TRACES)
def additions(variant: state.Variant, ids: tuple[int, ...]) -> Additions:
    from gptviz import analysis

    return analysis.additions(state.trace(variant, ids))


@st.cache_resource(show_spinner=False, max_entries=state.MOST_TRACES)
def predictions(variant: state.Variant, ids: tuple[int, ...]) -> Predictions:
    from gptviz import analysis

    run = state.trace(variant, ids)
    return analysis.predictions(run.logits, run.ids, vocabulary(variant.name))


def labels_of(name: str, ids: np.ndarray) -> list[str]:
    """How tokens (n,) are called."""
    return state.checkpoint(name).tokenizer.labels(ids.tolist())
