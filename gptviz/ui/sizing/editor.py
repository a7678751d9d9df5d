"""A configuration to be edited: a field each that sizes depend on, with its meaning. Needs no torch.

The session keeps each value under a name that has the starting point in it: choosing another one goes on from that
one's values. Two configurations are apart by their `side`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import streamlit as st

from gptviz.config import LARGEST, PRESETS, GPTConfig
from gptviz.sizing import read_fields
from gptviz.ui.components.form import Field, Follow, Group, form

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
FIELDS = {**SIZES, **ARCHITECTURE, **BIASES}
DEFAULTS = {field.name: field.default for field in fields(GPTConfig)}
HINTS = get_type_hints(GPTConfig)
DERIVED = ("n_kv_head", "d_head", "d_mlp", "d_rotary", "attn_scale")


@st.cache_resource(show_spinner=False, max_entries=1)
def starting_points() -> dict[str, dict[str, Any]]:
    """Fields by name: the bundled models first, then the presets. Shared by all sessions: read-only."""
    bundled = {
        path.parent.name: without_derived(read_fields(str(path))) for path in sorted(BUNDLED.glob("*/config.json"))
    }
    return {**bundled, **{name: dict(values) for name, values in PRESETS.items()}}


def without_derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without those that would come out the same if left out, so that they follow an edit."""
    bare = {name: value for name, value in values.items() if name not in DERIVED}
    follows = GPTConfig.from_dict(bare).to_dict()
    return {name: value for name, value in values.items() if name not in DERIVED or follows[name] != value}


@functools.lru_cache(maxsize=64)
def started(name: str) -> GPTConfig:
    """The configuration of that name before any edit."""
    return GPTConfig.from_dict(starting_points()[name])


def edited(name: str, side: str = "") -> GPTConfig:
    """The configuration as the fields have it. Raises GptvizError where they make none."""
    chosen = {field: _field(name, field, side).value for field in FIELDS}
    config = GPTConfig.from_dict({**starting_points()[name], **chosen})
    if max(config.d_head, config.d_mlp) > LARGEST:
        return GPTConfig.from_dict(config.to_dict())  # which refuses what follows from others as if it were given
    return config


def edit(which: Field, side: str, follow: Follow) -> None:
    """The form: `which` chooses the starting point; sizes; the rest folded away."""
    name = which.value
    groups = [Group(fields=[which])]
    for title, members in (("", SIZES), ("Architecture", ARCHITECTURE), ("Biases", BIASES)):
        groups.append(Group(title=title, fields=[_field(name, field, side) for field in members]))
    form(groups, key=f"{side}fields", follow=follow, reset=f"Back to {name}")


def choice(key: str, label: str, first: str, meaning: str) -> Field:
    """Where editing starts."""
    names = tuple(starting_points())
    return Field(name=key, label=label, help=meaning, kind="choice", start=first, options=names, startable=False)


def _field(name: str, field: str, side: str) -> Field:
    return replace(_template(name, field), name=f"{side}{name}.{field}")


@functools.lru_cache(maxsize=1024)
def _template(name: str, field: str) -> Field:
    """The field of a starting point, still without its side."""
    start = {**DEFAULTS, **starting_points()[name]}[field]
    plain = Field(name=field, label=field, help=FIELDS[field], kind="number", start=start)
    if HINTS[field] is bool:
        return replace(plain, kind="switch")
    if choices := tuple(choice for choice in get_args(HINTS[field]) if isinstance(choice, str)):
        return replace(plain, kind="choice", options=choices)
    if HINTS[field] is float:
        return replace(plain, step=0.05)
    return replace(plain, placeholder=f"{getattr(started(name), field):,}" if start is None else "")
