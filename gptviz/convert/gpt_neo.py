"""GPT-Neo, and with it the TinyStories models: global and local attention, scores that are not scaled.

Black et al. 2021: https://github.com/EleutherAI/gpt-neo
"""

from __future__ import annotations

from typing import Any

from ..errors import GptvizError
from .family import Family, Names
from .fields import Fields
from .gpt2 import BUFFERS

NAMES: Names = {
    "embed": "wte",
    "pos_embed": "wpe",
    "blocks.{}.ln1": "h.{}.ln_1",
    "blocks.{}.attn.qkv": (
        "h.{}.attn.attention.q_proj",
        "h.{}.attn.attention.k_proj",
        "h.{}.attn.attention.v_proj",
    ),
    "blocks.{}.attn.out": "h.{}.attn.attention.out_proj",
    "blocks.{}.ln2": "h.{}.ln_2",
    "blocks.{}.mlp.w_in": "h.{}.mlp.c_fc",
    "blocks.{}.mlp.w_out": "h.{}.mlp.c_proj",
    "ln_final": "ln_f",
    "unembed": "lm_head",
}
MOST_LAYERS = 10_000  # of a model whose layers differ: they are listed one by one


def _read(hf: Fields) -> dict[str, Any]:
    n_layer = hf.whole("num_layers", 24)
    return dict(
        vocab_size=hf.need("vocab_size"),
        block_size=hf.get("max_position_embeddings", 2048),
        n_layer=n_layer,
        n_head=hf.get("num_heads", 16),
        n_embd=hf.get("hidden_size", 2048),
        d_mlp=hf.get("intermediate_size"),
        dropout=hf.number("resid_dropout", 0.0),
        activation=hf.activation("activation_function", "gelu_new"),
        norm_eps=hf.number("layer_norm_epsilon", 1e-5),
        tie_weights=hf.flag("tie_word_embeddings", True),
        init_std=hf.number("initializer_range", 0.02),
        qkv_bias=False,
        attn_scale=1.0,
        windows=_windows(hf, n_layer),
    )


def _windows(hf: Fields, n_layer: int) -> tuple[int, ...]:
    """A window a layer: 0 where its attention is global."""
    hf.get("attention_layers")  # attention_types, written out
    kinds = _written_out(hf, n_layer)
    if len(kinds) != n_layer or set(kinds) - {"global", "local"}:
        raise hf.wrong("attention_types", f"'global' or 'local' for each of num_layers = {n_layer} layers")
    sizes = {"global": 0, "local": hf.whole("window_size", 256)}
    if sizes["local"] == 0:
        raise hf.wrong("window_size", "a window of at least one token")
    return tuple(sizes[kind] for kind in kinds)


def _written_out(hf: Fields, n_layer: int) -> list[str]:
    """[[["global", "local"], 2]] -> global, local, global, local."""
    groups = hf.get("attention_types")
    groups = [[["global", "local"], 12]] if groups is None else groups
    try:
        counted = [([str(kind) for kind in kinds], int(count)) for kinds, count in groups]
    except (TypeError, ValueError):
        raise hf.wrong("attention_types", "a list of kinds of attention and how often they repeat") from None
    if n_layer > MOST_LAYERS or sum(len(kinds) * count for kinds, count in counted) != n_layer:
        raise GptvizError(f"The configuration's attention_types do not add up to num_layers = {n_layer} layers.")
    return [kind for kinds, count in counted for _ in range(count) for kind in kinds]


FAMILY = Family(_read, NAMES, ("transformer.",), {}, {}, BUFFERS)
