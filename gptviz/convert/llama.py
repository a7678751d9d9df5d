"""Llama and what was built after it, Mistral, Qwen2, Qwen3: RMSNorm, SwiGLU, rotary, grouped keys and values.

Touvron et al. 2023: https://arxiv.org/abs/2302.13971; Jiang et al. 2023: https://arxiv.org/abs/2310.06825;
Yang et al. 2024: https://arxiv.org/abs/2407.10671; Yang et al. 2025: https://arxiv.org/abs/2505.09388
"""

from __future__ import annotations

import re
from typing import Any

from ..errors import GptvizError
from .family import Family, Names
from .fields import Fields
from .gpt_neo import MOST_LAYERS
from .rope import read_rope

NAMES: Names = {
    "embed": "embed_tokens",
    "blocks.{}.ln1": "layers.{}.input_layernorm",
    "blocks.{}.attn.qkv": ("layers.{}.self_attn.q_proj", "layers.{}.self_attn.k_proj", "layers.{}.self_attn.v_proj"),
    "blocks.{}.attn.q_norm": "layers.{}.self_attn.q_norm",
    "blocks.{}.attn.k_norm": "layers.{}.self_attn.k_norm",
    "blocks.{}.attn.out": "layers.{}.self_attn.o_proj",
    "blocks.{}.ln2": "layers.{}.post_attention_layernorm",
    "blocks.{}.mlp.w_gate": "layers.{}.mlp.gate_proj",
    "blocks.{}.mlp.w_in": "layers.{}.mlp.up_proj",
    "blocks.{}.mlp.w_out": "layers.{}.mlp.down_proj",
    "ln_final": "norm",
    "unembed": "lm_head",
}
BUFFERS = re.compile(r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq")


def _common(hf: Fields) -> dict[str, Any]:
    """What all of them have; without biases."""
    rope, share = read_rope(hf)
    if share not in (None, 1.0):
        raise GptvizError(f"The configuration has partial_rotary_factor = {share:g}, which no model of this kind has.")
    if hf.flag("rope_interleaved", False):
        raise hf.refuse("rope_interleaved")
    return dict(
        vocab_size=hf.need("vocab_size"),
        block_size=hf.need("max_position_embeddings"),
        n_layer=hf.need("num_hidden_layers"),
        n_head=hf.need("num_attention_heads"),
        n_kv_head=hf.get("num_key_value_heads"),
        n_embd=hf.need("hidden_size"),
        d_head=hf.get("head_dim"),
        d_mlp=hf.need("intermediate_size"),
        dropout=hf.number("attention_dropout", 0.0),
        norm="rmsnorm",
        norm_eps=hf.number("rms_norm_eps", 1e-6),
        activation=hf.activation("hidden_act", "silu"),
        gated_mlp=True,
        tie_weights=hf.flag("tie_word_embeddings", False),
        init_std=hf.number("initializer_range", 0.02),
        pos_encoding="rotary",
        norm_bias=False,
        **rope,
    )


def _biases(qkv: bool = False, out: bool = False, mlp: bool = False) -> dict[str, bool]:
    return dict(qkv_bias=qkv, out_bias=out, mlp_bias=mlp)


def _llama(hf: Fields) -> dict[str, Any]:
    attention = hf.flag("attention_bias", False)
    return _common(hf) | _biases(attention, attention, hf.flag("mlp_bias", False))


def _mistral(hf: Fields) -> dict[str, Any]:
    window = hf.get("sliding_window", 4096)
    if window is not None and (type(window) is not int or window < 1):
        raise hf.wrong("sliding_window", "a number of tokens or null")
    return _common(hf) | _biases() | {"windows": (window or 0,), "n_kv_head": hf.get("num_key_value_heads", 8)}


def _qwen2(hf: Fields) -> dict[str, Any]:
    return _common(hf) | _biases(qkv=True) | {"windows": _windows(hf)}


def _qwen3(hf: Fields) -> dict[str, Any]:
    attention = hf.flag("attention_bias", False)
    own = {"windows": _windows(hf), "qk_norm": True, "d_head": hf.get("head_dim", 128)}
    return _common(hf) | _biases(attention, attention) | own


def _windows(hf: Fields) -> tuple[int, ...]:
    """A window a layer, 0 where it sees all: as layer_types says, else from max_window_layers on."""
    n_layer, first = hf.whole("num_hidden_layers"), hf.whole("max_window_layers", 28)
    kinds, window = hf.get("layer_types"), hf.whole("sliding_window", 0)
    if not hf.flag("use_sliding_window", False):
        window = 0
    if kinds is None and (window == 0 or n_layer <= first):
        return (0,)
    if n_layer > MOST_LAYERS:
        raise GptvizError(f"num_hidden_layers = {n_layer:,} is more than any model with layers of two kinds has.")
    if kinds is None:
        kinds = ["full_attention" if layer < first else "sliding_attention" for layer in range(n_layer)]
    sizes = {"full_attention": 0} | ({"sliding_attention": window} if window else {})
    if not isinstance(kinds, list) or len(kinds) != n_layer or any(kind not in list(sizes) for kind in kinds):
        raise hf.wrong("layer_types", f"{' or '.join(map(repr, sizes))} for each of {n_layer} layers")
    windows = tuple(sizes[kind] for kind in kinds)
    return windows if any(windows) else (0,)


PREFIX = ("model.",)
LLAMA = Family(_llama, NAMES, PREFIX, {}, {}, BUFFERS)
MISTRAL = Family(_mistral, NAMES, PREFIX, {}, {}, BUFFERS)
QWEN2 = Family(_qwen2, NAMES, PREFIX, {}, {}, BUFFERS)
QWEN3 = Family(_qwen3, NAMES, PREFIX, {}, {}, BUFFERS)
