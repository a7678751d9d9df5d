"""Floating-point operations of matrix products, two a multiply-add, as `torch.utils.flop_counter` counts them.

Elementwise work (norms, softmax, activations, rotary) is left out: it is small, and bound by memory. Attention is
counted over the full T x T square, as a kernel without causal skipping does it. Knows no tensors.
Shapes: B batch, T query position, S key position, C n_embd, H head, D d_head, F d_mlp, V vocab_size.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..config import GPTConfig
from .parameters import n_params
from .workload import Workload

LABELS = {
    "qkv": "Queries, keys, values",
    "scores": "Attention scores QKᵀ",
    "values": "Pattern × values",
    "attn_out": "Attention output",
    "feed_forward": "Feed-forward",
    "unembed": "Unembedding",
}


@dataclass(frozen=True, kw_only=True)
class Flops:
    """Operations by component. scores and values are q k^T and pattern v: the parts that grow with T times S."""

    qkv: int
    scores: int
    values: int
    attn_out: int
    feed_forward: int
    unembed: int

    @property
    def total(self) -> int:
        return self.linear + self.quadratic

    def parts(self) -> dict[str, int]:
        """The components with the names they are shown by."""
        return {LABELS[name]: count for name, count in asdict(self).items()}

    @property
    def quadratic(self) -> int:
        """The part that grows with the square of the context."""
        return self.scores + self.values

    @property
    def linear(self) -> int:
        """The part that grows with the number of tokens."""
        return self.qkv + self.attn_out + self.feed_forward + self.unembed


def flops(config: GPTConfig, workload: Workload | None = None) -> Flops:
    """Of a forward pass over batch x context tokens (prefill), or of a training step: three times that.

    The backward pass has two products for each of the forward's: one for the input's gradient, one for the weight's.
    Checkpointing computes the blocks a fourth time.
    """
    workload = workload or Workload()
    T = workload.tokens(config)
    read = T if workload.training or workload.logits == "all" else 1
    forward = _forward(config, workload.batch, T, T, read)
    return _step(forward, checkpointing=workload.checkpointing) if workload.training else forward


def decode_flops(config: GPTConfig, workload: Workload | None = None) -> Flops:
    """Of one more token a sequence with a KV cache, the context's last: it attends to all of it, itself included."""
    workload = workload or Workload()
    return _forward(config, workload.batch, 1, workload.tokens(config), 1)


def six_nd(config: GPTConfig, workload: Workload | None = None) -> int:
    """The rule of thumb: 6 N operations a token of training, 2 N of a forward pass, N all parameters.

    Kaplan et al. 2020, section 2.1: https://arxiv.org/abs/2001.08361; with all parameters as Hoffmann et al. 2022 do:
    https://arxiv.org/abs/2203.15556. It leaves the attention scores out, and counts looked-up tables as if multiplied.
    """
    workload = workload or Workload()
    tokens = workload.batch * workload.tokens(config)
    return (6 if workload.training else 2) * n_params(config) * tokens


def _forward(config: GPTConfig, B: int, T: int, S: int, read: int) -> Flops:
    """T queries over S keys a sequence, logits of `read` positions."""
    C, width, kv_width = config.n_embd, config.n_head * config.d_head, config.n_kv_head * config.d_head
    layers = 2 * config.n_layer * B * T
    matrices = 3 if config.gated_mlp else 2
    return Flops(
        qkv=layers * C * (width + 2 * kv_width),
        scores=layers * S * width,
        values=layers * S * width,
        attn_out=layers * width * C,
        feed_forward=layers * matrices * C * config.d_mlp,
        unembed=2 * B * read * C * config.vocab_size,
    )


def _step(forward: Flops, checkpointing: bool) -> Flops:
    factor = dict.fromkeys(asdict(forward), 4 if checkpointing else 3) | {"unembed": 3}
    return Flops(**{name: factor[name] * count for name, count in asdict(forward).items()})
