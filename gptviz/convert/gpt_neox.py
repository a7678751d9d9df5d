"""GPT-NeoX, and with it Pythia: partial rotary, a parallel residual. Black et al. 2022: https://arxiv.org/abs/2204.06745"""

from __future__ import annotations

import re
from typing import Any

from torch import Tensor

from ..config import GPTConfig
from .family import SAME, Family
from .fields import Fields
from .rope import read_rope

NAMES = {
    "embed": "embed_in",
    "blocks.{}.ln1": "layers.{}.input_layernorm",
    "blocks.{}.attn.qkv": "layers.{}.attention.query_key_value",
    "blocks.{}.attn.out": "layers.{}.attention.dense",
    "blocks.{}.ln2": "layers.{}.post_attention_layernorm",
    "blocks.{}.mlp.w_in": "layers.{}.mlp.dense_h_to_4h",
    "blocks.{}.mlp.w_out": "layers.{}.mlp.dense_4h_to_h",
    "ln_final": "final_layer_norm",
    "unembed": "lm_head",
}
BUFFERS = re.compile(r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)")


def _read(hf: Fields) -> dict[str, Any]:
    rope, share = read_rope(hf, "rotary_emb_base")
    share = hf.number("rotary_pct", 0.25) if share is None else share
    width, heads = hf.whole("hidden_size", 6144), hf.whole("num_attention_heads", 64)
    bias = hf.flag("attention_bias", True)
    return dict(
        vocab_size=hf.need("vocab_size"),
        block_size=hf.get("max_position_embeddings", 2048),
        n_layer=hf.get("num_hidden_layers", 44),
        n_head=heads,
        n_embd=width,
        d_mlp=hf.get("intermediate_size", 24576),
        dropout=hf.number("hidden_dropout", 0.0),
        activation=hf.activation("hidden_act", "gelu"),
        norm_eps=hf.number("layer_norm_eps", 1e-5),
        tie_weights=hf.flag("tie_word_embeddings", False),
        init_std=hf.number("initializer_range", 0.02),
        qkv_bias=bias,
        out_bias=bias,
        pos_encoding="rotary",
        d_rotary=int(width // max(heads, 1) * share),
        parallel_residual=hf.flag("use_parallel_residual", True),
        **rope,
    )


def _heads_apart(tensor: Tensor, config: GPTConfig) -> Tensor:
    """q, k and v of each head together -> all heads' q, then k, then v: (H 3 D, ...) -> (3 H D, ...)."""
    return tensor.unflatten(0, (config.n_head, 3, config.d_head)).transpose(0, 1).flatten(0, 2)


_APART = SAME._replace(tensor=_heads_apart)
LAYOUTS = {"attn.qkv.weight": _APART, "attn.qkv.bias": _APART}
ALIASES = {"embed_out.weight": "lm_head.weight"}  # transformers 4 and 5
FAMILY = Family(_read, NAMES, ("gpt_neox.",), ALIASES, LAYOUTS, BUFFERS)
