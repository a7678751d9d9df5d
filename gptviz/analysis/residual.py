"""The residual stream: how long it is, what every part adds to it, and which part wrote a token's logit.

Shapes: L layers, T positions, C n_embd, H heads, D d_head.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..capture import Trace
from ..model import GPT
from .logit_lens import stream_names


def stream_norms(run: Trace) -> np.ndarray:
    """Length of the stream entering block 0 and after each block: (L + 1, T)."""
    return np.stack([_norm(run[name]) for name in stream_names(run.config.n_layer)])


class Additions(NamedTuple):
    """What attention and FFN of every layer add to the stream: (2 L, T), attention before FFN."""

    names: list[str]  # "attn 0", "mlp 0", ...
    norm: np.ndarray
    share: np.ndarray  # the norm over that of the stream it is added to
    cosine: np.ndarray  # with that stream: below 0 it takes away from what is there
    error: float  # pre + attention + FFN against post: the largest difference over the stream's largest number


def additions(run: Trace) -> Additions:
    """Both parts of every block against the stream they are added to."""
    names: list[str] = []
    rows: list[tuple[np.ndarray, ...]] = []
    error = 0.0
    for layer in range(run.config.n_layer):
        pre, post = run[f"blocks.{layer}.hook_resid_pre"], run[f"blocks.{layer}.hook_resid_post"]
        attn, mlp = run[f"blocks.{layer}.hook_attn_out"], run[f"blocks.{layer}.hook_mlp_out"]
        names += [f"attn {layer}", f"mlp {layer}"]
        rows += [_addition(attn, pre), _addition(mlp, pre + attn)]
        error = max(error, float((pre + attn + mlp - post).abs().max() / post.abs().max().clamp(min=1e-30)))
    norm, share, cosine = (np.stack(column) for column in zip(*rows, strict=True))
    return Additions(names, norm, share, cosine, error)


def _addition(added: Tensor, stream: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cosine = torch.cosine_similarity(added, stream, dim=-1)
    return _norm(added), _norm(added) / np.maximum(_norm(stream), 1e-12), cosine.numpy()


def _norm(vectors: Tensor) -> np.ndarray:
    return torch.linalg.vector_norm(vectors, dim=-1).numpy()


def norm_scales(run: Trace) -> tuple[list[str], np.ndarray]:
    """What every norm divides by: names ("ln1 0", ..., "ln_final") and (n, T). In LayerNorm, the standard deviation."""
    norms = [(f"blocks.{layer}.{norm}.", f"{norm} {layer}") for layer in range(run.config.n_layer) for norm in _BLOCK]
    found = [(name, hook) for start, name in norms if (hook := f"{start}hook_scale") in run.activations]
    found.append(("ln_final", "ln_final.hook_scale"))
    return [name for name, _ in found], np.stack([run[hook][:, 0].numpy() for _, hook in found])


_BLOCK = ("ln1", "ln2")


def logit_attribution(model: GPT, run: Trace, position: int, token: int) -> dict[str, float]:
    """Who wrote a logit: embed, pos, L0H0, L0H1, ..., mlp0, ..., biases, in the forward pass's order; they sum to it.

    The stream is the sum of what the parts wrote, and what follows is linear once the final norm's scale is taken as it
    was in this run (Elhage et al. 2021, https://transformer-circuits.pub/2021/framework). The norm's mean and weight
    are applied to every part; its bias, those of W_O, W_out and W_U are "biases". A part named "edits" is there where
    an edit of the run put something into the stream that no part wrote: without it the sum would not hold.
    """
    read = _Reader(model, run, position, token)
    parts = {"embed": read.part(run["hook_embed"])}
    if "hook_pos_embed" in run.activations:
        parts["pos"] = read.part(run["hook_pos_embed"])
    biases = read.constant()
    for layer in range(run.config.n_layer):
        heads, constant = read.block(layer)
        parts |= heads
        biases += constant
    parts["biases"] = biases
    return parts | _edits(parts, run, position, token)


class _Reader:
    """The linear map from the final stream to one logit: x -> (x . direction) / scale + constant."""

    def __init__(self, model: GPT, run: Trace, position: int, token: int):
        self.model, self.run, self.position = model, run, position
        self.row = _double(model.unembed.weight[token])  # (C,)
        self.scale = float(run["ln_final.hook_scale"][position, 0])
        direction = self.row * _double(model.ln_final.weight)
        if run.config.norm == "layernorm":  # x - mean(x) is a projection, which can as well act on the direction
            direction = direction - direction.mean()
        self.direction, self.token = direction / self.scale, token

    def part(self, written: Tensor) -> float:
        """Of what was written to the stream, (T, C)."""
        return float(_double(written[self.position]) @ self.direction)

    def constant(self) -> float:
        """What the output adds whatever the stream is: the final norm's bias through W_U, and W_U's own."""
        norm, unembed = getattr(self.model.ln_final, "bias", None), self.model.unembed.bias
        through = 0.0 if norm is None else float(_double(norm) @ self.row)
        return through + (0.0 if unembed is None else float(unembed[self.token].detach()))

    def block(self, layer: int) -> tuple[dict[str, float], float]:
        """A block's heads and its FFN without their biases, and the biases."""
        block, name = self.model.block(layer), f"blocks.{layer}."
        back = (_double(block.attn.out.weight).T @ self.direction).view(self.run.config.n_head, -1)  # (H, D)
        heads = (_double(self.run[f"{name}attn.hook_z"][self.position]) * back).sum(-1)  # (H,)
        parts = {f"L{layer}H{head}": float(value) for head, value in enumerate(heads)}
        attn, mlp = (self._bias(linear) for linear in (block.attn.out, block.mlp.w_out))
        parts[f"mlp{layer}"] = self.part(self.run[f"{name}hook_mlp_out"]) - mlp
        return parts, attn + mlp

    def _bias(self, linear: torch.nn.Linear) -> float:
        return 0.0 if linear.bias is None else float(_double(linear.bias) @ self.direction)


def _double(values: Tensor) -> Tensor:
    return values.detach().to("cpu", torch.float64)


def _edits(parts: dict[str, float], run: Trace, position: int, token: int) -> dict[str, float]:
    """What is missing to the logit, where the run was edited and more is missing than rounding explains."""
    missing = float(run.logits[position, token]) - sum(parts.values())
    rounding = 1e-4 * max(1.0, *(abs(value) for value in parts.values()))
    return {"edits": missing} if run.edits and abs(missing) > rounding else {}
