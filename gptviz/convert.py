"""Other people's checkpoints: their configuration's fields and their tensors' names, a table a family.

Reads values that were read already; knows no files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from .config import GPTConfig
from .errors import GptvizError

Values = Mapping[str, Any]


def _gpt2_config(hf: Values) -> dict[str, Any]:
    _refuse(hf, scale_attn_by_inverse_layer_idx=False, reorder_and_upcast_attn=False, add_cross_attention=False)
    unscaled = {} if hf.get("scale_attn_weights", True) else {"attn_scale": 1.0}
    return dict(
        vocab_size=hf["vocab_size"],
        block_size=hf.get("n_positions", 1024),
        n_layer=hf.get("n_layer", 12),
        n_head=hf.get("n_head", 12),
        n_embd=hf.get("n_embd", 768),
        d_mlp=hf.get("n_inner"),
        dropout=hf.get("resid_pdrop", 0.1),
        activation=_activation(hf.get("activation_function", "gelu_new")),
        norm_eps=hf.get("layer_norm_epsilon", 1e-5),
        tie_weights=hf.get("tie_word_embeddings", True),
        init_std=hf.get("initializer_range", 0.02),
        **unscaled,
    )


# Hugging Face's GPT-2 keeps its matrices transposed (Conv1D).
_GPT2_NAMES = {
    r"wte\.weight": r"embed.weight",
    r"wpe\.weight": r"pos_embed.weight",
    r"h\.(\d+)\.ln_([12])\.(weight|bias)": r"blocks.\1.ln\2.\3",
    r"h\.(\d+)\.attn\.c_attn\.(weight|bias)": r"blocks.\1.attn.qkv.\2",
    r"h\.(\d+)\.attn\.c_proj\.(weight|bias)": r"blocks.\1.attn.out.\2",
    r"h\.(\d+)\.mlp\.c_fc\.(weight|bias)": r"blocks.\1.mlp.w_in.\2",
    r"h\.(\d+)\.mlp\.c_proj\.(weight|bias)": r"blocks.\1.mlp.w_out.\2",
    r"ln_f\.(weight|bias)": r"ln_final.\1",
    r"lm_head\.weight": r"unembed.weight",
}
_GPT2_TRANSPOSED = re.compile(r"c_(attn|proj|fc)\.weight$")
_GPT2_BUFFERS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)$")  # the causal mask, which some files hold

_ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}

CONFIGS: dict[str, Callable[[Values], dict[str, Any]]] = {"gpt2": _gpt2_config}


def _activation(name: str) -> str:
    if name not in list(_ACTIVATIONS):  # a list, as an untrusted name may be unhashable
        raise GptvizError(f"The activation {name!r} is not one of {', '.join(_ACTIVATIONS)}.")
    return _ACTIVATIONS[name]


def _refuse(hf: Values, **understood: Any) -> None:
    """A field that changes the mathematics is known or refused, never passed over."""
    for name, value in understood.items():
        if hf.get(name, value) != value:
            raise GptvizError(f"The configuration has {name} = {hf[name]!r}, which this version can't compute.")


def config_from_hf(hf: Values) -> GPTConfig:
    """The GPTConfig of a Hugging Face config.json. Raises GptvizError for a family or a field not understood."""
    family = hf.get("model_type")
    if family not in list(CONFIGS):
        raise GptvizError(f"Models of the type {family!r} can't be read; these can: {', '.join(CONFIGS)}.")
    try:
        fields = CONFIGS[family](hf)
    except KeyError as error:
        raise GptvizError(f"The configuration of this {family} model lacks {error}.") from None
    bos, size = hf.get("bos_token_id"), fields["vocab_size"]
    known = isinstance(bos, int) and isinstance(size, int) and 0 <= bos < size
    return GPTConfig(**fields, bos_token_id=bos if known else None)


def name_from_gpt2(name: str) -> str | None:
    """This project's name for a tensor of GPT-2; None for a buffer without weights. Raises GptvizError for another."""
    short = name.removeprefix("transformer.")
    if _GPT2_BUFFERS.fullmatch(short):
        return None
    for pattern, ours in _GPT2_NAMES.items():
        if match := re.fullmatch(pattern, short):
            return match.expand(ours)
    raise GptvizError(f"The file holds a tensor {name[:80]!r}, which no GPT-2 has.")


def tensor_from_gpt2(name: str, tensor: Tensor) -> Tensor:
    """The tensor of that name as this project holds it: rows are outputs."""
    return tensor.T if _GPT2_TRANSPOSED.search(name) else tensor


def shape_from_gpt2(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The same, of a shape."""
    return shape[::-1] if _GPT2_TRANSPOSED.search(name) else shape
