"""Positional encodings and masks as plain functions of positions. Knows no model.

Shapes: T positions, C n_embd, H heads, D d_head, S key positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .config import GPTConfig

ADDED = ("learned", "sinusoidal")  # the encodings that are vectors added to the token embeddings


def frequencies(dim: int, base: float = 10000.0, device: torch.device | None = None) -> Tensor:
    """Angle per position of every pair of dimensions, base^(-2i / dim): (ceil(dim / 2),)."""
    pair = torch.arange(0, dim, 2, dtype=torch.float32, device=device)
    return base ** (-pair / dim)


def sinusoidal(positions: Tensor, dim: int) -> Tensor:
    """PE(pos, 2i) = sin(pos w_i), PE(pos, 2i + 1) = cos(pos w_i): (T,) -> (T, C). An odd C drops the last cosine.

    Vaswani et al. 2017, section 3.5: https://arxiv.org/abs/1706.03762
    """
    angles = positions[:, None].float() * frequencies(dim, device=positions.device)  # (T, ceil(C / 2))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim]


def rotary_angles(positions: Tensor, config: GPTConfig) -> Tensor:
    """The angle by which each pair of dimensions turns at each position: (T,) -> (T, d_rotary / 2)."""
    turning = frequencies(config.d_rotary, config.rope_base, positions.device)
    return positions[:, None].float() * SCALINGS[config.rope_scaling](turning, config)


def _llama3(turning: Tensor, config: GPTConfig) -> Tensor:
    """Pairs that turn seldom slow by rope_factor, fast ones keep their pace, those between go from one to the other.

    Grattafiori et al. 2024 (Llama 3), as in the reference code: https://github.com/meta-llama/llama-models
    """
    turns = config.rope_trained * turning / (2 * math.pi)  # over the inputs of the first training
    kept = ((turns - config.rope_low) / (config.rope_high - config.rope_low)).clamp(0, 1)
    return turning * (kept + (1 - kept) / config.rope_factor)


# What becomes of rotary's frequencies. "linear" is position interpolation, Chen et al. 2023: https://arxiv.org/abs/2306.15595
SCALINGS: dict[str, Callable[[Tensor, GPTConfig], Tensor]] = {
    "none": lambda turning, config: turning,
    "linear": lambda turning, config: turning / config.rope_factor,
    "llama3": _llama3,
}


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the pairs (x_i, x_{i + R/2}) of x (..., T, H, D) by angles whose cos and sin are (T, R/2); R <= D.

    Su et al. 2021 (RoPE): https://arxiv.org/abs/2104.09864, equation 34, with halves paired as in GPT-NeoX and Llama.
    """
    half = cos.shape[-1]
    cos, sin = cos[:, None], sin[:, None]  # (T, 1, R/2)
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], dim=-1).to(x.dtype)


def alibi_slopes(n_head: int) -> Tensor:
    """How fast each head's attention falls with distance: 2^(-8 h / H), (H,).

    Press et al. 2021 (ALiBi): https://arxiv.org/abs/2108.12409. For an H that is no power of two: the slopes of the
    power below, then every other slope of the power above, as in the authors' code.
    """
    power = 1 << (n_head.bit_length() - 1)
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    slopes += [2 ** (-8 * (h + 1) / (2 * power)) for h in range(0, 2 * power, 2)][: n_head - power]
    return torch.tensor(slopes)


def alibi_bias(queries: Tensor, keys: Tensor, n_head: int) -> Tensor:
    """-slope |query - key|, added to the scaled scores: (T,), (S,) -> (H, T, S). Symmetric where there is no mask."""
    distance = (queries[:, None] - keys[None, :]).abs()
    return -alibi_slopes(n_head).to(distance.device)[:, None, None] * distance


def causal_mask(queries: Tensor, keys: Tensor) -> Tensor:
    """True where a key lies in its query's future: (T,), (S,) -> (T, S)."""
    return keys[None, :] > queries[:, None]


def beyond_window(queries: Tensor, keys: Tensor, window: int) -> Tensor:
    """True where a key is not among the `window` tokens that end, or without a causal mask begin, with its query.

    (T,), (S,) -> (T, S). Beltagy et al. 2020 (sliding window): https://arxiv.org/abs/2004.05150
    """
    return (queries[:, None] - keys[None, :]).abs() >= window
