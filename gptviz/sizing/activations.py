"""What a forward pass has to keep in memory: for the backward pass, or only while it runs.

Counted operation by operation, as autograd keeps them for this package's model; a fused RMSNorm or SwiGLU would keep
less. Shapes: B batch, T position, C n_embd, H head, D d_head, F d_mlp, V vocab_size. Knows no tensors.
After Korthikanti et al. 2022, section 4: https://arxiv.org/abs/2205.05198
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..config import GPTConfig
from .workload import Workload

FLOAT32, INT64 = 4, 8
STATISTICS = {"layernorm": 2, "rmsnorm": 1}  # float32 numbers a norm keeps of each vector


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Bytes kept for the backward pass, by what keeps them; `quadratic` is the part of `blocks` that grows as T^2."""

    stem: int
    block: int
    blocks: int
    head: int
    quadratic: int

    @property
    def total(self) -> int:
        return self.stem + self.blocks + self.head


def kept(config: GPTConfig, workload: Workload) -> Kept:
    """What autograd keeps until the backward pass, at most at one time, in bytes."""
    T, positions = workload.tokens(config), workload.batch * workload.tokens(config)
    residual = positions * config.n_embd * workload.bytes
    quadratic = _quadratic(config, workload, T)
    block = positions * _block(config, workload) + quadratic
    stem, head = _stem(config, workload, T), _head(config, workload, positions)
    if not workload.checkpointing:
        every = config.n_layer * quadratic
        return Kept(stem=stem, block=block, blocks=config.n_layer * block, head=head, quadratic=every)
    inputs = config.n_layer * residual
    spare = max(0, block - residual - head)  # one block is computed again after the head's share has been let go
    return Kept(stem=stem, block=block, blocks=inputs + spare, head=head, quadratic=quadratic if spare else 0)


def materialised(config: GPTConfig, workload: Workload) -> bool:
    """Whether attention's weights (B, H, T, T) exist. A CPU's fused kernel gives way with dropout and with a bias."""
    dropping = workload.training and config.dropout > 0
    gives_way = workload.device == "cpu" and (dropping or config.pos_encoding == "alibi")
    return workload.attention == "explicit" or gives_way


def _stem(config: GPTConfig, workload: Workload, T: int) -> int:
    ids_and_targets = 2 * INT64 * workload.batch * T
    positions = INT64 * T if config.pos_encoding == "learned" else 0
    rotation = FLOAT32 * T * config.d_rotary if config.pos_encoding == "rotary" else 0  # cos and sin, R / 2 each
    hidden = T * T if config.causal and workload.attention == "explicit" else 0  # the mask, a byte each
    return ids_and_targets + positions + rotation + hidden + workload.batch * T * _dropout(config, workload)


def _head(config: GPTConfig, workload: Workload, positions: int) -> int:
    """The final norm's input and output, and the log-probabilities, which are float32."""
    norm = config.n_embd * workload.bytes + _norm(config, workload)
    return positions * (norm + config.vocab_size * FLOAT32)


def _block(config: GPTConfig, workload: Workload) -> int:
    """Bytes a position, without what grows as T^2."""
    inputs = 1 if config.parallel_residual else 2  # both norms read the same vector, or each its own
    stream = inputs * config.n_embd * workload.bytes + 2 * _norm(config, workload)
    ffn = _ffn_widths(config) * config.d_mlp * workload.bytes + _dropout(config, workload)
    return stream + ffn + _attention(config, workload)


def _norm(config: GPTConfig, workload: Workload) -> int:
    """Its output, its statistics and, for RMSNorm, the vector before the weight is applied."""
    vectors = 2 if config.norm == "rmsnorm" else 1
    return vectors * config.n_embd * workload.bytes + STATISTICS[config.norm] * FLOAT32


def _ffn_widths(config: GPTConfig) -> int:
    """How many (T, F) arrays: around the activation and, gated, the product. relu's result tells its own slope."""
    ungated = 1 if config.activation == "relu" else 2
    return ungated + 2 if config.gated_mlp else ungated


def _dropout(config: GPTConfig, workload: Workload) -> int:
    """Bytes a position for which numbers of (T, C) were dropped: a GPU keeps a byte each, a CPU the factor."""
    return config.n_embd * _mask_bytes(config, workload)


def _mask_bytes(config: GPTConfig, workload: Workload) -> int:
    if config.dropout == 0:
        return 0
    return 1 if workload.device == "gpu" else workload.bytes


def _attention(config: GPTConfig, workload: Workload) -> int:
    """Bytes a position: q, k, v, their norms, and z; with the fused kernel also a sum a head."""
    width, kv_width = config.n_head * config.d_head, config.n_kv_head * config.d_head
    sums = 0 if materialised(config, workload) else config.n_head * FLOAT32
    numbers = _qkv(config, workload) + width  # z
    if config.qk_norm:
        numbers += width + kv_width
        sums += (config.n_head + config.n_kv_head) * FLOAT32
    return numbers * workload.bytes + sums


def _qkv(config: GPTConfig, workload: Workload) -> int:
    """Numbers a position in q, k and v as the products read them, and in the projection where it is still looked at.

    The explicit products want each head's rows together, and copy; one head or one sequence lies so already. Where a
    CPU's fused kernel gives way, q and k are scaled copies.
    """
    width, kv_width = config.n_head * config.d_head, config.n_kv_head * config.d_head
    repeated = config.n_head > config.n_kv_head
    copied = materialised(config, workload) and workload.batch > 1 and config.n_head > 1
    changed = config.pos_encoding == "rotary" or config.qk_norm
    scaled = materialised(config, workload) and workload.attention == "fused"
    own_q, own_k = copied or changed or scaled, copied or changed or repeated or scaled
    own_v = copied or repeated
    numbers = own_q * width + own_k * (width if repeated else kv_width) + own_v * width
    projection_read = config.qk_norm or not (own_q and own_k and own_v)
    return numbers + projection_read * (width + 2 * kv_width)


def _quadratic(config: GPTConfig, workload: Workload, T: int) -> int:
    """Bytes a block that grow as T^2: the weights, and with dropout which were dropped and what was left."""
    if not materialised(config, workload):
        biased = config.pos_encoding == "alibi"  # the kernel reads bias and mask as one array, without a batch
        return config.n_head * T * T * workload.bytes if biased else 0
    arrays = workload.bytes if config.dropout == 0 else 2 * workload.bytes + _mask_bytes(config, workload)
    return workload.batch * config.n_head * T * T * arrays


def quadratic(config: GPTConfig, workload: Workload) -> int:
    """The part of the workload's activations, in bytes, that grows as T^2."""
    if workload.training:
        return kept(config, workload).quadratic
    straight = replace(config, pos_encoding="none") if config.pos_encoding == "alibi" else config
    return transient(config, workload) - transient(straight, replace(workload, attention="fused"))


def transient(config: GPTConfig, workload: Workload) -> int:
    """The most bytes of activations alive at once in a forward pass that keeps nothing: its fullest stage's."""
    T = workload.tokens(config)
    positions = workload.batch * T
    C, width = config.n_embd, config.n_head * config.d_head
    heads = positions * (2 * C + _projected(config) + width)
    attention = heads + max(positions * C, _weights(config, workload, T))  # z W_O comes when the weights are gone
    ffn = positions * (3 * C + (3 if config.gated_mlp else 2) * config.d_mlp)
    read = positions if workload.logits == "all" else workload.batch
    head = 2 * positions * C + read * config.vocab_size
    return max(attention, ffn, head) * workload.bytes + _geometry(config, workload, T)


def _projected(config: GPTConfig) -> int:
    """Numbers a position in the projection, and in q, k and v where they are made anew."""
    width, kv_width = config.n_head * config.d_head, config.n_kv_head * config.d_head
    changed = config.pos_encoding == "rotary" or config.qk_norm
    repeated = config.n_head > config.n_kv_head
    return width + 2 * kv_width + changed * (width + kv_width) + repeated * 2 * width


def _weights(config: GPTConfig, workload: Workload, T: int) -> int:
    """Numbers of the scores and of what is made of them, with the copy of v that is multiplied last."""
    biased = workload.attention == "fused" and config.pos_encoding == "alibi"  # bias and mask as one array
    bias = biased * config.n_head * T * T
    if not materialised(config, workload):
        return bias
    copied = workload.batch > 1 and config.n_head > 1 and config.n_head == config.n_kv_head
    v = workload.batch * T * config.n_head * config.d_head
    return 2 * workload.batch * config.n_head * T * T + copied * v + bias


def _geometry(config: GPTConfig, workload: Workload, T: int) -> int:
    """Bytes of what all blocks share: the mask, which a fused kernel takes as a word, and ALiBi's bias."""
    biased = config.pos_encoding == "alibi"
    masked = config.causal and (biased or workload.attention == "explicit")
    return masked * T * T + biased * config.n_head * T * T * FLOAT32
