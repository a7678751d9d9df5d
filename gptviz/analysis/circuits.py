"""The QK and OV circuits of one head: what it would look for, and what it would write, reading token embeddings alone.

Elhage et al. 2021, https://transformer-circuits.pub/2021/framework/index.html. Left out are positions (rotary's turning
too, as if query and key stood in the same place) and all that earlier layers write. In front stands the block's own
norm, ln1, of the row of W_E by itself: what a head of layer 0 reads where no position is added. Behind stand the final
norm's weight and, of a LayerNorm, its centring, but not its scale, which depends on all that the stream holds.
Shapes: n tokens, V vocabulary, C n_embd, D d_head, K tokens that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..model import GPT

AT_ONCE = 2**13  # tokens of the vocabulary that are worked on at a time


def qk_circuit(model: GPT, ids: Sequence[int], layer: int, head: int) -> np.ndarray:
    """W_E W_Q W_K^T W_E^T: the score that each token as a query gives to each as a key, by content alone. (n, n)

    As the model computes it: the biases of the norm, of W_Q and of W_K, the norm of q and k where there is one, and the
    layer's factor (1 / sqrt(D)) are in it; no position bias and no mask. A softmax sees the differences in a row alone.
    """
    rows = _rows(model, layer, head, torch.tensor(ids))
    return (rows.query @ rows.key.T * model.config.scale(layer)).cpu().numpy()


def ov_circuit(model: GPT, ids: Sequence[int], layer: int, head: int, size: int | None = None) -> np.ndarray:
    """W_E W_V W_O W_U: how far attention to each source token moves each token's logit. (n source, n output)

    To be divided by the final norm's scale. The mean over the vocabulary, the first `size` rows of W_U, is taken off: a
    shift of all logits changes no probability. What the biases of the norm and of W_V add is left out: attention sums
    to 1, so the head writes that wherever it looks.
    """
    rows = _rows(model, layer, head, torch.tensor(ids))
    mean = model.unembed.weight[:size].float().mean(0) @ _written(model, layer, head).T  # (D,)
    return (rows.value @ (rows.reader - mean).T).detach().cpu().numpy()


class OVTop(NamedTuple):
    """What attention to each token does to the whole vocabulary: the strongest first, (n, K) each but for the ranks."""

    promoted: np.ndarray  # ids
    raised: np.ndarray  # by how much, as in ov_circuit
    suppressed: np.ndarray  # ids
    lowered: np.ndarray
    rank: np.ndarray  # (n,): where the token itself stands; 1 is promoted the most


def ov_top(model: GPT, ids: Sequence[int], layer: int, head: int, count: int = 5, size: int | None = None) -> OVTop:
    """The tokens that each source token promotes and suppresses the most, of the first `size` (of all)."""
    value = _rows(model, layer, head, torch.tensor(ids)).value
    logits = value @ _written(model, layer, head) @ model.unembed.weight[:size].detach().float().T
    moved = logits - logits.mean(1, keepdim=True)  # (n, V)
    own = moved.gather(1, torch.tensor(ids, device=moved.device)[:, None])
    kept = min(count, moved.shape[1])
    best, worst = moved.topk(kept), moved.topk(kept, largest=False)
    found = best.indices, best.values, worst.indices, worst.values, 1 + (moved > own).sum(1)
    return OVTop(*(each.cpu().numpy() for each in found))


class CircuitEigenvalues(NamedTuple):
    """Those of the circuits over the whole vocabulary, (V, V), that need not be 0: (D,) complex each."""

    qk: np.ndarray
    ov: np.ndarray


def circuit_eigenvalues(model: GPT, layer: int, head: int, size: int | None = None) -> CircuitEigenvalues:
    """Of both circuits over the first `size` tokens (all), each row less its mean, which no softmax sees.

    A product A B^T has the eigenvalues of B^T A, here (D, D), and zeros. Biases add the same to all rows of A, and the
    columns of B, less their means, sum to 0: so no bias is in the result (but those in front of a norm of q and k).
    """
    size, width = size or model.config.vocab_size, model.config.d_head
    products, sums = torch.zeros(2, width, width, dtype=torch.float64), torch.zeros(4, width, dtype=torch.float64)
    for ids in torch.arange(size).split(AT_ONCE):
        rows = torch.stack(_rows(model, layer, head, ids)).cpu().double()  # query, key, value, reader
        products += rows[1::2].mT @ rows[::2]  # key and reader, transposed, times query and value
        sums += rows.sum(1)
    means = sums[1::2, :, None] * sums[::2, None] / size
    return CircuitEigenvalues(*map(_eigenvalues, (products - means).numpy()))


def _eigenvalues(matrix: np.ndarray) -> np.ndarray:
    finite = np.isfinite(matrix).all()
    return np.linalg.eigvals(matrix).astype(complex) if finite else np.full(len(matrix), np.nan, complex)


def eigenvalue_score(eigenvalues: np.ndarray) -> float:
    """sum(lambda) / sum(|lambda|), from -1 to 1: whether a circuit takes tokens to themselves. NaN where all are 0.

    1 of the OV circuit is a head that copies: attention to a token raises its own logit. 1 of the QK circuit is a head
    that matches: a token looks for itself. The summary is that of Elhage et al. 2021.
    """
    size = np.abs(eigenvalues).sum()
    return float(eigenvalues.sum().real / size) if size > 0 else float("nan")


class _Rows(NamedTuple):
    """What one head makes of tokens: (n, D) each."""

    query: Tensor
    key: Tensor
    value: Tensor  # without what is the same for every token
    reader: Tensor  # by how much each dimension of the value moves the token's logit


@torch.no_grad()
def _rows(model: GPT, layer: int, head: int, ids: Tensor) -> _Rows:
    block, config = model.block(layer), model.config
    own = head * config.n_kv_head // config.n_head  # the head of K and V that this one shares
    places = [head, config.n_head + own, config.n_head + config.n_kv_head + own]
    linear, shift = block.attn.qkv, getattr(block.ln1, "bias", None)
    weight = linear.weight.unflatten(0, (-1, config.d_head))[places].float()  # (3, D, C)
    read = block.ln1(model.embed.weight[ids])  # (n, C)
    query, key = (F.linear(read.float(), each) for each in weight[:2])
    if linear.bias is not None:
        bias = linear.bias.unflatten(0, (-1, config.d_head)).float()
        query, key = query + bias[places[0]], key + bias[places[1]]
    value = F.linear((read if shift is None else read - shift).float(), weight[2])
    query, key = block.attn.q_norm(query), block.attn.k_norm(key)
    reader = model.unembed.weight[ids].float() @ _written(model, layer, head).T
    return _Rows(query.float(), key.float(), value, reader)


@torch.no_grad()
def _written(model: GPT, layer: int, head: int) -> Tensor:
    """What each dimension of the head's values puts before W_U, past the final norm without its scale: (D, C)."""
    out = model.block(layer).attn.out.weight.unflatten(1, (-1, model.config.d_head))[:, head].float()  # (C, D)
    if model.config.norm == "layernorm":
        out = out - out.mean(0)
    return out.T * model.ln_final.weight.float()
