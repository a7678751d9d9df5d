"""A configuration to be edited: a widget a field that sizes depend on, each with its meaning. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import streamlit as st

from gptviz.config import PRESETS, GPTConfig
from gptviz.sizing import read_fields

BUNDLED = Path(__file__).parents[3] / "checkpoints"

SIZES = {
    "n_layer": "How many blocks are stacked (L).",
    "n_embd": "Width of the residual stream, the vector each token carries (C, d_model).",
    "n_head": "Attention heads a block (H).",
    "n_kv_head": "Heads of keys and values. Fewer: grouped-query attention, a smaller KV cache. Empty: n_head.",
    "d_head": "Width of one head (D). Empty: n_embd / n_head.",
    "d_mlp": "Width inside the feed-forward network (F, d_ff). Empty: 4 n_embd.",
    "vocab_size": "How many different tokens there are (V): the rows of the embedding.",
    "block_size": "The longest input in tokens (context length): the rows of a learned position table.",
}
ARCHITECTURE = {
    "pos_encoding": "How position enters. Only learned positions are parameters.",
    "norm": "layernorm has a weight and a bias; rmsnorm a weight alone.",
    "activation": "The non-linearity of the feed-forward network. It has no parameters; relu keeps less for training.",
    "gated_mlp": "A third matrix, W_gate, multiplies the activations (SwiGLU).",
    "parallel_residual": "Attention and feed-forward both read the block's input, instead of one after the other.",
    "qk_norm": "A norm of its own on each query and key.",
    "tie_weights": "The output layer W_U is the token embedding W_E: counted once.",
    "dropout": "Share of activations dropped in training, whose masks are kept for the backward pass.",
}
BIASES = {
    "qkv_bias": "On queries, keys and values.",
    "out_bias": "On attention's output projection.",
    "mlp_bias": "On both feed-forward layers.",
    "norm_bias": "On each layernorm.",
    "unembed_bias": "On the output layer.",
}
FIELDS = (*SIZES, *ARCHITECTURE, *BIASES)
DEFAULTS = {field.name: field.default for field in fields(GPTConfig)}
HINTS = get_type_hints(GPTConfig)
DERIVED = ("n_kv_head", "d_head", "d_mlp", "d_rotary", "attn_scale")


@st.cache_data(show_spinner=False, max_entries=64)
def starting_points() -> dict[str, dict[str, Any]]:
    """Fields by name: the bundled models first, then the presets."""
    bundled = {
        path.parent.name: without_derived(read_fields(str(path))) for path in sorted(BUNDLED.glob("*/config.json"))
    }
    return {**bundled, **{name: dict(values) for name, values in PRESETS.items()}}


def without_derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without those that would come out the same if left out, so that they follow an edit."""
    bare = {name: value for name, value in values.items() if name not in DERIVED}
    follows = GPTConfig.from_dict(bare).to_dict()
    return {name: value for name, value in values.items() if name not in DERIVED or follows[name] != value}


def made(values: Mapping[str, Any]) -> GPTConfig:
    """The configuration. Raises GptvizError for fields that make none, those that follow from others included."""
    return GPTConfig.from_dict(GPTConfig.from_dict(values).to_dict())


def edit(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the starting point of that name as the widgets have them, whether or not they make a model."""
    known = {**DEFAULTS, **values}
    start = GPTConfig.from_dict(values)
    edited = dict(values)
    sizes = st.columns(2)
    for number, (field, meaning) in enumerate(SIZES.items()):
        with sizes[number % 2]:
            edited[field] = _widget(name, field, meaning, known[field], start)
    for title, group in (("Architecture", ARCHITECTURE), ("Biases", BIASES)):
        with st.expander(title):
            for field, meaning in group.items():
                edited[field] = _widget(name, field, meaning, known[field], start)
    return edited


def _widget(name: str, field: str, meaning: str, value: Any, start: GPTConfig) -> Any:
    """One field. Its key names the starting point, so that choosing another one starts from that one's values."""
    shared: dict[str, Any] = dict(key=f"{name}.{field}", help=meaning, bind="query-params")
    if HINTS[field] is bool:
        return st.checkbox(field, value, **shared)
    if choices := [choice for choice in get_args(HINTS[field]) if isinstance(choice, str)]:
        return st.selectbox(field, choices, choices.index(value), **shared)
    if HINTS[field] is float:
        return st.number_input(field, value=float(value), step=0.05, format="%.2f", **shared)
    placeholder = f"{getattr(start, field):,}" if value is None else None
    return st.number_input(field, value=value, step=1, placeholder=placeholder, **shared)
