"""Everything that defines an architecture, as one frozen value; presets by name.

Knows no tensors. Field names are the ones nanoGPT and Hugging Face's GPT-2 store.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .errors import GptvizError
from .presets import PRESETS as PRESETS

PosEncoding = Literal["learned", "sinusoidal", "rotary", "alibi", "none"]
Norm = Literal["layernorm", "rmsnorm"]
Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]
RopeScaling = Literal["none", "linear", "llama3"]

_DERIVED: Any = None  # a field that, left out or None, takes its value from the others
SIZES = ("vocab_size", "block_size", "n_layer", "n_head", "n_kv_head", "n_embd", "d_head", "d_mlp", "rope_trained")
LARGEST = 2**31 - 1  # no field of a real model is larger; keeps the arithmetic of an absurd file finite


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """A decoder-only transformer's hyperparameters. A derived field that is None takes its value from the others.

    Raises GptvizError for a value that no model can have.
    """

    vocab_size: int = 50257
    block_size: int = 1024  # the longest input seen in training, in tokens ("context length")
    n_layer: int = 12
    n_head: int = 12
    n_kv_head: int = _DERIVED  # heads of K and V; fewer than n_head is grouped-query attention
    n_embd: int = 768  # width of the residual stream (d_model)
    d_head: int = _DERIVED  # n_embd / n_head; need not be: W_O brings the heads back to n_embd
    d_mlp: int = _DERIVED  # 4 n_embd (d_ff)
    dropout: float = 0.0

    qkv_bias: bool = True
    out_bias: bool = True
    mlp_bias: bool = True
    norm_bias: bool = True
    unembed_bias: bool = False
    tie_weights: bool = True  # W_U = W_E transposed

    causal: bool = True
    pos_encoding: PosEncoding = "learned"
    pos_scale: float = 1.0  # factor on an added encoding (learned, sinusoidal)
    rope_base: float = 10000.0
    d_rotary: int = _DERIVED  # how many of a head's dimensions rotary turns: all d_head
    rope_scaling: RopeScaling = "none"  # slows rotary's turning, for inputs longer than it was first trained on
    rope_factor: float = 1.0  # by how much it slows
    rope_low: float = 1.0  # llama3: pairs that turn fewer times than this over rope_trained tokens slow in full,
    rope_high: float = 4.0  # those that turn more often than this not at all
    rope_trained: int = 8192  # llama3: the block_size before the scaling
    attn_scale: float = _DERIVED  # factor on q.k: 1 / sqrt(d_head)
    scale_by_layer: bool = False  # layer i, counted from 0, divides its factor by i + 1
    windows: tuple[int, ...] = (0,)  # how many tokens a query sees, back from itself; 0: all. Layers take turns
    qk_norm: bool = False  # a norm of its own on every q and k

    norm: Norm = "layernorm"
    norm_eps: float = 1e-5
    activation: Activation = "gelu"  # "gelu" is the exact (erf) one, "gelu_tanh" its approximation
    gated_mlp: bool = False  # activation(x W_gate) * (x W_in): SwiGLU with silu
    parallel_residual: bool = False  # attention and FFN both read the block's input

    bos_token_id: int | None = None  # the token that began every training window, if one did
    init_std: float = 0.02

    def __post_init__(self) -> None:
        if isinstance(self.windows, list):  # as JSON has it
            object.__setattr__(self, "windows", tuple(self.windows))
        _check_types(self)
        _check_sizes(self)
        self._resolve("n_kv_head", self.n_head)
        self._resolve("d_head", self.n_embd // self.n_head)
        self._resolve("d_mlp", 4 * self.n_embd)
        self._resolve("d_rotary", self.d_head)
        self._resolve("attn_scale", 1 / math.sqrt(self.d_head))
        _check_relations(self)

    def _resolve(self, name: str, value: float) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, value)

    def window(self, layer: int) -> int:
        """How many tokens a query of this layer sees, itself and back; 0: all."""
        return self.windows[layer % len(self.windows)]

    def scale(self, layer: int) -> float:
        """The factor on q.k in this layer."""
        return self.attn_scale / (layer + 1) if self.scale_by_layer else self.attn_scale

    def to_dict(self) -> dict[str, Any]:
        """The fields, flat, as config.json holds them."""
        return asdict(self) | {"windows": list(self.windows)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GPTConfig:
        """The config that to_dict gave. Raises GptvizError for a name that is no field."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise GptvizError(
                f"The configuration has fields this version does not know: {', '.join(map(repr, unknown))}. "
                "Remove them, or load the model with the version that wrote it."
            )
        return cls(**values)


def _check_types(config: GPTConfig) -> None:
    derived = {field.name for field in fields(config) if field.default is _DERIVED}
    for name, hint in _hints().items():
        value = getattr(config, name)
        if not (_fits(value, hint) or (value is None and name in derived)):
            raise GptvizError(f"{name} = {_shown(value)} is not {_described(hint)}.")


@functools.cache
def _hints() -> dict[str, Any]:
    return get_type_hints(GPTConfig)


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) is types.UnionType:
        return any(_fits(value, option) for option in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(type(item) is int for item in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return type(value) is hint


def _described(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    if get_origin(hint) is tuple:
        return "a list of whole numbers"
    options = get_args(hint) or (hint,)
    words = {int: "a whole number", float: "a finite number", bool: "true or false", types.NoneType: "null"}
    return " or ".join(words[option] for option in options)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= 80 else text[:77] + "..."


def _check_sizes(config: GPTConfig) -> None:
    for name in SIZES:
        value = getattr(config, name)
        if value is not None and not 1 <= value <= LARGEST:
            raise GptvizError(f"{name} = {value} is out of range: it must be between 1 and {LARGEST:,}.")
    if not 0 <= config.dropout < 1:
        raise GptvizError(f"dropout = {config.dropout} is not a probability below 1.")
    for name in ("rope_base", "rope_factor", "rope_low", "rope_high", "norm_eps", "init_std"):
        if getattr(config, name) <= 0:
            raise GptvizError(f"{name} = {getattr(config, name)} must be positive.")
    if not config.windows or not all(0 <= window <= LARGEST for window in config.windows):
        raise GptvizError(
            f"windows = {_shown(config.windows)} must be numbers of tokens, at least one; 0 is no window."
        )
    if config.d_head is None and config.n_embd % config.n_head:
        raise GptvizError(
            f"n_embd = {config.n_embd} does not divide into n_head = {config.n_head} equal heads: "
            "change one of them, or give d_head."
        )


def _check_relations(config: GPTConfig) -> None:
    if config.n_head % config.n_kv_head:
        raise GptvizError(f"n_head = {config.n_head} is not a multiple of n_kv_head = {config.n_kv_head}.")
    rotary = config.d_rotary
    if not 0 < rotary <= config.d_head:
        raise GptvizError(f"d_rotary = {rotary} is not between 1 and d_head = {config.d_head}.")
    if config.pos_encoding == "rotary" and rotary % 2:
        raise GptvizError(f"rotary turns pairs of dimensions: d_rotary = {rotary} must be even (d_head too).")
    if config.rope_scaling == "llama3" and config.rope_low >= config.rope_high:
        raise GptvizError(f"rope_low = {config.rope_low} must be less than rope_high = {config.rope_high}.")
    bos = config.bos_token_id
    if bos is not None and not 0 <= bos < config.vocab_size:
        raise GptvizError(f"bos_token_id = {bos} is not a token: ids go from 0 to {config.vocab_size - 1}.")


def preset(name: str, **changes: Any) -> GPTConfig:
    """A preset, with some fields changed. Raises GptvizError for a name that is none."""
    if name not in PRESETS:
        raise GptvizError(f"There is no preset {name!r}. There are: {', '.join(PRESETS)}.")
    return GPTConfig.from_dict({**PRESETS[name], **changes})
