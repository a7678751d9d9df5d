"""GPT-2 as Hugging Face stores it. Radford et al. 2019: https://github.com/openai/gpt-2"""

from __future__ import annotations

import re
from typing import Any

from .family import TRANSPOSED, Family
from .fields import Fields

NAMES = {
    "embed": "wte",
    "pos_embed": "wpe",
    "blocks.{}.ln1": "h.{}.ln_1",
    "blocks.{}.attn.qkv": "h.{}.attn.c_attn",
    "blocks.{}.attn.out": "h.{}.attn.c_proj",
    "blocks.{}.ln2": "h.{}.ln_2",
    "blocks.{}.mlp.w_in": "h.{}.mlp.c_fc",
    "blocks.{}.mlp.w_out": "h.{}.mlp.c_proj",
    "ln_final": "ln_f",
    "unembed": "lm_head",
}
MATRICES = ("attn.qkv.weight", "attn.out.weight", "mlp.w_in.weight", "mlp.w_out.weight")
BUFFERS = re.compile(r"h\.\d+\.attn\.(attention\.)?(bias|masked_bias)")  # the causal mask, which some files hold


def _read(hf: Fields) -> dict[str, Any]:
    if hf.flag("add_cross_attention", False):
        raise hf.refuse("add_cross_attention")
    hf.flag("reorder_and_upcast_attn", False)  # the order in which scores are scaled, and in float32: the same numbers
    hf.get("n_ctx")  # what n_positions was called once
    unscaled = {} if hf.flag("scale_attn_weights", True) else {"attn_scale": 1.0}
    return dict(
        vocab_size=hf.need("vocab_size"),
        block_size=hf.get("n_positions", 1024),
        n_layer=hf.get("n_layer", 12),
        n_head=hf.get("n_head", 12),
        n_embd=hf.get("n_embd", 768),
        d_mlp=hf.get("n_inner"),
        dropout=hf.number("resid_pdrop", 0.1),
        activation=hf.activation("activation_function", "gelu_new"),
        norm_eps=hf.number("layer_norm_epsilon", 1e-5),
        tie_weights=hf.flag("tie_word_embeddings", True),
        init_std=hf.number("initializer_range", 0.02),
        scale_by_layer=hf.flag("scale_attn_by_inverse_layer_idx", False),
        **unscaled,
    )


FAMILY = Family(_read, NAMES, ("transformer.",), {}, dict.fromkeys(MATRICES, TRANSPOSED), BUFFERS)
