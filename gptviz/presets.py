"""Architectures by name: the course models that the app ships, and published ones for sizing.

Plain data, which `config.preset` turns into a checked GPTConfig. Knows nothing.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

Fields = Mapping[str, Any]

_COURSES: dict[str, Fields] = {
    # One attention head a block of a width of its own, fixed sinusoids, an output layer of its own.
    "minimal_decoder": dict(
        vocab_size=50257,
        block_size=512,
        n_layer=12,
        n_head=1,
        n_embd=768,
        d_head=64,
        qkv_bias=False,
        out_bias=False,
        unembed_bias=True,
        tie_weights=False,
        pos_encoding="sinusoidal",
    ),
    "gpt_from_scratch": dict(vocab_size=512, block_size=128, n_layer=4, n_head=4, n_embd=256, dropout=0.1),
}


def _gpt2(n_layer: int, n_head: int, n_embd: int, block_size: int = 1024) -> Fields:
    """Radford et al. 2019: https://github.com/openai/gpt-2"""
    shape = dict(n_layer=n_layer, n_head=n_head, n_embd=n_embd)
    return dict(vocab_size=50257, block_size=block_size, activation="gelu_tanh", **shape)


def _pythia(n_layer: int, n_head: int, n_embd: int, vocab_size: int = 50304) -> Fields:
    """Biderman et al. 2023, table 1: https://arxiv.org/abs/2304.01373. A quarter of each head is rotated."""
    shape = dict(n_layer=n_layer, n_head=n_head, n_embd=n_embd, d_rotary=n_embd // n_head // 4)
    kind = dict(pos_encoding="rotary", parallel_residual=True, tie_weights=False)
    return dict(vocab_size=vocab_size, block_size=2048, **shape, **kind)


def _llama(n_layer: int, n_head: int, n_embd: int, d_mlp: int, **rest: Any) -> Fields:
    """RMSNorm, SwiGLU, rotary and no biases. Touvron et al. 2023: https://arxiv.org/abs/2302.13971"""
    shape = dict(n_layer=n_layer, n_head=n_head, n_embd=n_embd, d_mlp=d_mlp)
    biases = dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias", "norm_bias"), False)
    kind = dict(pos_encoding="rotary", norm="rmsnorm", activation="silu", gated_mlp=True, tie_weights=False)
    return {**shape, **biases, **kind, **rest}


def _llama3(n_layer: int, n_head: int, n_embd: int, d_mlp: int) -> Fields:
    """Grattafiori et al. 2024: https://arxiv.org/abs/2407.21783"""
    rest = dict(vocab_size=128256, block_size=8192, n_kv_head=8, rope_base=500000.0)
    return _llama(n_layer, n_head, n_embd, d_mlp, **rest)


def _qwen3(n_layer: int, n_head: int, n_embd: int, d_mlp: int, tie_weights: bool) -> Fields:
    """Yang et al. 2025: https://arxiv.org/abs/2505.09388. A norm on each q and k; the small ones are tied."""
    rest = dict(vocab_size=151936, block_size=32768, n_kv_head=8, d_head=128, tie_weights=tie_weights)
    return _llama(n_layer, n_head, n_embd, d_mlp, qk_norm=True, rope_base=1e6, norm_eps=1e-6, **rest)


_PUBLISHED: dict[str, Fields] = {
    "gpt2": _gpt2(12, 12, 768),
    "gpt2-medium": _gpt2(24, 16, 1024),
    "gpt2-large": _gpt2(36, 20, 1280),
    "gpt2-xl": _gpt2(48, 25, 1600),
    # Brown et al. 2020, table 2.1: https://arxiv.org/abs/2005.14165. Every other layer's attention was sparse there,
    # which changes no count of parameters.
    "gpt3-175b": _gpt2(96, 96, 12288, block_size=2048),
    "pythia-70m": _pythia(6, 8, 512),
    "pythia-160m": _pythia(12, 12, 768),
    "pythia-410m": _pythia(24, 16, 1024),
    "pythia-1b": _pythia(16, 8, 2048),
    "pythia-1.4b": _pythia(24, 16, 2048),
    "pythia-2.8b": _pythia(32, 32, 2560),
    "pythia-6.9b": _pythia(32, 32, 4096, vocab_size=50432),
    "pythia-12b": _pythia(36, 40, 5120, vocab_size=50688),
    "llama2-7b": _llama(32, 32, 4096, 11008, vocab_size=32000, block_size=4096),  # https://arxiv.org/abs/2307.09288
    "llama3-8b": _llama3(32, 32, 4096, 14336),
    "llama3-70b": _llama3(80, 64, 8192, 28672),
    "qwen3-0.6b": _qwen3(28, 16, 1024, 3072, tie_weights=True),
    "qwen3-1.7b": _qwen3(28, 16, 2048, 6144, tie_weights=True),
    "qwen3-4b": _qwen3(36, 32, 2560, 9728, tie_weights=True),
    "qwen3-8b": _qwen3(36, 32, 4096, 12288, tie_weights=False),
    "qwen3-14b": _qwen3(40, 40, 5120, 17408, tie_weights=False),
    "qwen3-32b": _qwen3(64, 64, 5120, 25600, tie_weights=False),
}

PRESETS: Mapping[str, Fields] = types.MappingProxyType({**_COURSES, **_PUBLISHED})
