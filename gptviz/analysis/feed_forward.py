"""What the feed-forward layers' neurons do on a prompt, and which tokens their output weights write.

Shapes: T positions, C n_embd, F d_mlp, L layers, V vocabulary, K neurons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from ..capture import Trace
from ..model import GPT, FeedForward

NEAR_ZERO = 0.01  # of the layer's largest size on the prompt


class Neurons(NamedTuple):
    """One layer's neurons on a prompt, (T, F) each. linear is the other branch of a gated layer, else None."""

    pre: np.ndarray  # what goes into the activation; the gate's, where there is one
    linear: np.ndarray | None
    post: np.ndarray  # what W_out reads: activation(pre), times linear where gated


def neurons(run: Trace, layer: int) -> Neurons:
    """The captured activations of one layer."""
    name = f"blocks.{layer}.mlp.hook_"
    linear = run[f"{name}pre_linear"].numpy() if run.config.gated_mlp else None
    return Neurons(run[f"{name}pre"].numpy(), linear, run[f"{name}post"].numpy())


def _erf(x: np.ndarray) -> np.ndarray:
    return torch.erf(torch.from_numpy(x)).numpy()


DEFINITIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: x * 0.5 * (1 + _erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-np.clip(x, -500, None))),
}


def activation_curve(name: str, x: np.ndarray) -> np.ndarray:
    """The activation by its definition, in float64: what the formula says, apart from what the model computes with.

    GELU: Hendrycks & Gimpel 2016, https://arxiv.org/abs/1606.08415; SiLU: Elfwing et al. 2017, https://arxiv.org/abs/1702.03118
    """
    return DEFINITIONS[name](np.asarray(x, dtype=np.float64))


def activation_error(layer: Neurons, name: str) -> float:
    """The largest difference between the captured `post` and the definition applied to what went in."""
    expected = activation_curve(name, layer.pre)
    return float(np.abs(layer.post - (expected if layer.linear is None else expected * layer.linear)).max())


def strongest(post: np.ndarray, position: int | None = None) -> np.ndarray:
    """All neurons, the largest |post| first: at one position, or anywhere in the prompt. (T, F) -> (F,)"""
    sizes = np.abs(post).max(0) if position is None else np.abs(post[position])
    return np.argsort(-sizes, kind="stable")


class Sparsity(NamedTuple):
    """How few neurons do the work, a number a layer: (L,) shares, 0 to 1."""

    positive: np.ndarray  # of all activations, those above 0
    near_zero: np.ndarray  # those of a size below NEAR_ZERO times the layer's largest on this prompt
    carriers: np.ndarray  # the fewest neurons that hold 90% of a token's sum of squares; mean over the tokens


def sparsity(run: Trace) -> Sparsity:
    """Of `hook_post`, over all tokens of the prompt. Few are active: Li et al. 2022, https://arxiv.org/abs/2210.06313"""
    posts = [run[f"blocks.{layer}.mlp.hook_post"].numpy() for layer in range(run.config.n_layer)]
    positive = [(post > 0).mean() for post in posts]
    near_zero = [(np.abs(post) <= NEAR_ZERO * np.abs(post).max()).mean() for post in posts]
    return Sparsity(np.array(positive), np.array(near_zero), np.array([_carriers(post) for post in posts]))


def _carriers(post: np.ndarray, held: float = 0.9) -> float:
    squares = np.sort(np.square(post), axis=1)[:, ::-1]
    reached = np.cumsum(squares, axis=1, dtype=np.float64) < held * squares.sum(1, keepdims=True, dtype=np.float64)
    return float((reached.sum(1) + squares.any(1)).mean() / post.shape[1])


def output_error(model: GPT, run: Trace, layer: int, position: int | None = None) -> float:
    """The largest difference between `hook_mlp_out` and all neurons' post times output weights, plus the bias.

    At one position, or at all of them; summed in float64.
    """
    out, at = _feed_forward(model, layer).w_out, slice(None) if position is None else [position]
    total = run[f"blocks.{layer}.mlp.hook_post"][at].double() @ out.weight.detach().cpu().double().T
    if out.bias is not None:
        total = total + out.bias.detach().cpu().double()
    return float((total - run[f"blocks.{layer}.hook_mlp_out"][at]).abs().max())


def output_norms(model: GPT, layer: int) -> np.ndarray:
    """Length of every neuron's output weights, the columns of W_out: (F,)."""
    return _feed_forward(model, layer).w_out.weight.detach().float().norm(dim=0).cpu().numpy()


def written_logits(model: GPT, layer: int, chosen: Sequence[int], scale: float, size: int | None = None) -> np.ndarray:
    """How far an activation of 1 in each chosen neuron moves every logit on the direct path to W_U: (K, V).

    The neuron's output weights go through the final norm as it is at the position whose `ln_final.hook_scale` is
    `scale`: centred (LayerNorm), divided by the scale held fixed, times the norm's weight. The mean over the vocabulary
    is taken off, as a shift of all logits changes no probability. Geva et al. 2020: https://arxiv.org/abs/2012.14913
    """
    with torch.no_grad():
        written = _feed_forward(model, layer).w_out.weight[:, list(chosen)].T.float()  # (K, C)
        if model.config.norm == "layernorm":
            written = written - written.mean(-1, keepdim=True)
        read = written / scale * model.ln_final.weight
        logits = read @ model.unembed.weight[:size].T.float()  # (K, V)
        return (logits - logits.mean(-1, keepdim=True)).cpu().numpy()


def _feed_forward(model: GPT, layer: int) -> FeedForward:
    return model.block(layer).mlp
