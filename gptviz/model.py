"""The decoder-only transformer, written like its equations, with a HookPoint at every activation.

Knows no tokenizer, no files and no pictures. Shapes: B batch, T position (query), S position (key), C n_embd,
H head, D d_head, F d_mlp, V vocabulary. Hook names and shapes are TransformerLens's.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import positions
from .config import GPTConfig
from .errors import GptvizError

ACTIVATIONS = {
    "gelu": F.gelu,  # x Phi(x), Hendrycks & Gimpel 2016: https://arxiv.org/abs/1606.08415
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}


class HookPoint(nn.Identity):
    """Returns its input; a forward hook here can read the activation, or replace it."""

    @property
    def listened(self) -> bool:
        """Whether anything is hooked here, so that the activation has to be computed on its own."""
        return bool(self._forward_hooks)


class Linear(nn.Linear):
    """x W^T + b. A shell for weights that come from a file makes none up first: that would cost a tenth of a second."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, for each position. Ba et al. 2016: https://arxiv.org/abs/1607.06450"""

    def __init__(self, dim: int, config: GPTConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim)) if config.norm_bias else None
        self.hook_scale, self.hook_normalized = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        if not self.hook_scale.listened:
            return self.hook_normalized(F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.config.norm_eps))
        centred = x - x.mean(-1, keepdim=True)
        scale = self.hook_scale((centred.square().mean(-1, keepdim=True) + self.config.norm_eps).sqrt())  # (B, T, 1)
        shift = 0 if self.bias is None else self.bias
        return self.hook_normalized(centred / scale * self.weight + shift)


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, for each position. Zhang & Sennrich 2019: https://arxiv.org/abs/1910.07467"""

    def __init__(self, dim: int, config: GPTConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.ones(dim))
        self.hook_scale, self.hook_normalized = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()  # squares of 16 bits would lose half of their digits
        scale = self.hook_scale((wide.square().mean(-1, keepdim=True) + self.config.norm_eps).sqrt())  # (B, T, 1)
        return self.hook_normalized((wide / scale).to(x.dtype) * self.weight)


NORMS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"layernorm": LayerNorm, "rmsnorm": RMSNorm}


class Geometry(NamedTuple):
    """What attention has to know of the positions, the same for every block with the same window."""

    rotation: tuple[Tensor, Tensor] | None  # cos and sin, (T, d_rotary / 2) each: rotary turns q and k
    bias: Tensor | None  # (H, T, S) added to the scaled scores: ALiBi
    mask: Tensor | None  # (T, S), True where a query must not look
    windowed: bool = False  # whether the mask hides more than the future

    @classmethod
    def of(cls, config: GPTConfig, queries: Tensor, keys: Tensor) -> Geometry:
        """For queries at positions (T,) and keys at positions (S,)."""
        encoding, rotation, bias = config.pos_encoding, None, None
        if encoding == "rotary":
            angles = positions.rotary_angles(queries, config)
            rotation = angles.cos(), angles.sin()
        if encoding == "alibi":
            bias = positions.alibi_bias(queries, keys, config.n_head)
        one_by_one = len(queries) == 1  # nothing lies in the future of the only, latest query
        mask = positions.causal_mask(queries, keys) if config.causal and not one_by_one else None
        return cls(rotation, bias, mask)

    def within(self, window: int, queries: Tensor, keys: Tensor) -> Geometry:
        """The same for layers whose queries see `window` tokens; 0: all."""
        if window == 0 or window >= len(keys):
            return self
        beyond = positions.beyond_window(queries, keys, window)
        return self._replace(mask=beyond if self.mask is None else beyond | self.mask, windowed=True)


class LayerCache:
    """Keys and values of the positions already computed, of one layer: (B, S, H_kv, D) each."""

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new positions; returns all."""
        if self.k is not None and self.v is not None:
            k, v = torch.cat([self.k, k], dim=1), torch.cat([self.v, v], dim=1)
        self.k, self.v = k, v
        return k, v


class Cache:
    """The KV cache of a model: one LayerCache a block. Valid under a causal mask only."""

    def __init__(self, config: GPTConfig) -> None:
        self.layers = [LayerCache() for _ in range(config.n_layer)]

    def __len__(self) -> int:
        k = self.layers[0].k
        return 0 if k is None else k.shape[1]


class Attention(nn.Module):
    """softmax(q k^T / sqrt(D) + bias, masked) v W_O, with W_Q, W_K and W_V in one matrix.

    Vaswani et al. 2017, equation 1: https://arxiv.org/abs/1706.03762
    """

    def __init__(self, config: GPTConfig, layer: int):
        super().__init__()
        self.config, self.layer = config, layer
        width, kv_width = config.n_head * config.d_head, config.n_kv_head * config.d_head
        self.qkv = Linear(config.n_embd, width + 2 * kv_width, bias=config.qkv_bias)
        self.out = Linear(width, config.n_embd, bias=config.out_bias)
        self.q_norm = RMSNorm(config.d_head, config) if config.qk_norm else nn.Identity()
        self.k_norm = RMSNorm(config.d_head, config) if config.qk_norm else nn.Identity()
        self.hook_q, self.hook_k, self.hook_v, self.hook_z = (HookPoint() for _ in range(4))
        self.hook_rot_q, self.hook_rot_k, self.hook_attn_scores, self.hook_pattern = (HookPoint() for _ in range(4))

    def forward(self, x: Tensor, geometry: Geometry, cache: LayerCache | None = None) -> Tensor:
        heads = self.qkv(x).unflatten(-1, (-1, self.config.d_head))  # (B, T, H + 2 H_kv, D)
        q, k, v = heads.split([self.config.n_head, self.config.n_kv_head, self.config.n_kv_head], dim=-2)
        q, k, v = self.hook_q(self.q_norm(q)), self.hook_k(self.k_norm(k)), self.hook_v(v)
        if geometry.rotation is not None:
            q = self.hook_rot_q(positions.rotate(q, *geometry.rotation))
            k = self.hook_rot_k(positions.rotate(k, *geometry.rotation))
        if cache is not None:
            k, v = cache.extend(k, v)
        z = self.hook_z(self._attend(q, k, v, geometry))  # (B, T, H, D)
        return self.out(z.flatten(-2))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, geometry: Geometry) -> Tensor:
        group = self.config.n_head // self.config.n_kv_head
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (B, H, T, D), (B, H_kv, S, D)
        k, v = (x.repeat_interleave(group, dim=1) if group > 1 else x for x in (k, v))  # (B, H, S, D)
        explicit = self.hook_attn_scores.listened or self.hook_pattern.listened
        z = (self._explicit if explicit else self._fused)(q, k, v, geometry)
        return z.transpose(1, 2)

    def _explicit(self, q: Tensor, k: Tensor, v: Tensor, geometry: Geometry) -> Tensor:
        scores = q @ k.transpose(-2, -1) * self.config.scale(self.layer)  # (B, H, T, S)
        if geometry.bias is not None:
            scores = scores + geometry.bias
        if geometry.mask is not None:
            scores = scores.masked_fill(geometry.mask, -torch.inf)
        pattern = self.hook_pattern(self.hook_attn_scores(scores).softmax(dim=-1)).to(v.dtype)
        return F.dropout(pattern, self.config.dropout, self.training) @ v

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, geometry: Geometry) -> Tensor:
        dropout, scale = self.config.dropout if self.training else 0.0, self.config.scale(self.layer)
        whole = geometry.bias is None and geometry.mask is not None and not geometry.windowed
        if whole and q.shape[-2] == k.shape[-2]:
            return F.scaled_dot_product_attention(q, k, v, None, dropout, is_causal=True, scale=scale)
        allowed = None if geometry.mask is None else ~geometry.mask
        if geometry.bias is not None:
            bias = geometry.bias if geometry.mask is None else geometry.bias.masked_fill(geometry.mask, -torch.inf)
            allowed = bias.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, allowed, dropout, scale=scale)


class FeedForward(nn.Module):
    """activation(x W_in) W_out; gated: (activation(x W_gate) * (x W_in)) W_out, Shazeer 2020: https://arxiv.org/abs/2002.05202"""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = config
        self.w_in = Linear(config.n_embd, config.d_mlp, bias=config.mlp_bias)
        if config.gated_mlp:
            self.w_gate = Linear(config.n_embd, config.d_mlp, bias=config.mlp_bias)
            self.hook_pre_linear = HookPoint()  # as in TransformerLens: hook_pre is the gate, this the other branch
        self.w_out = Linear(config.d_mlp, config.n_embd, bias=config.mlp_bias)
        self.hook_pre, self.hook_post = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        activation = ACTIVATIONS[self.config.activation]
        if self.config.gated_mlp:
            post = activation(self.hook_pre(self.w_gate(x))) * self.hook_pre_linear(self.w_in(x))
        else:
            post = activation(self.hook_pre(self.w_in(x)))  # (B, T, F)
        return F.dropout(self.w_out(self.hook_post(post)), self.config.dropout, self.training)


class Block(nn.Module):
    """x + attention(norm(x)), then x + FFN(norm(x)): pre-norm, with both reading x where the residual is parallel."""

    def __init__(self, config: GPTConfig, layer: int):
        super().__init__()
        self.config = config
        norm = NORMS[config.norm]
        self.ln1, self.attn = norm(config.n_embd, config), Attention(config, layer)
        self.ln2, self.mlp = norm(config.n_embd, config), FeedForward(config)
        self.hook_resid_pre, self.hook_attn_out = HookPoint(), HookPoint()
        self.hook_mlp_out, self.hook_resid_post = HookPoint(), HookPoint()
        if not config.parallel_residual:
            self.hook_resid_mid = HookPoint()

    def forward(self, x: Tensor, geometry: Geometry, cache: LayerCache | None = None) -> Tensor:
        x = self.hook_resid_pre(x)
        mid = x + self.hook_attn_out(self.attn(self.ln1(x), geometry, cache))
        if self.config.parallel_residual:
            return self.hook_resid_post(mid + self.hook_mlp_out(self.mlp(self.ln2(x))))
        mid = self.hook_resid_mid(mid)
        return self.hook_resid_post(mid + self.hook_mlp_out(self.mlp(self.ln2(mid))))


class Sinusoid(nn.Module):
    """The fixed encoding with the interface of a learned table: positions (T,) -> (T, C)."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, at: Tensor) -> Tensor:
        return positions.sinusoidal(at, self.dim)


def _pos_embed(config: GPTConfig) -> nn.Module | None:
    kinds: dict[str, Callable[[], nn.Module]] = {
        "learned": lambda: _table(config.block_size, config.n_embd),
        "sinusoidal": lambda: Sinusoid(config.n_embd),
    }
    return kinds[config.pos_encoding]() if config.pos_encoding in kinds else None


def _table(rows: int, columns: int) -> nn.Embedding:
    """A lookup table with values still to be set (nn.Embedding's own, on the meta device, cost seconds of imports)."""
    return nn.Embedding.from_pretrained(torch.empty(rows, columns), freeze=False)


class GPT(nn.Module):
    """Token ids to the next token's logits.

    `untrained` names the parts that no training has touched (a table that `variant` had to make up).
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = config
        self.untrained: frozenset[str] = frozenset()
        self.embed = _table(config.vocab_size, config.n_embd)  # W_E
        self.pos_embed = _pos_embed(config)  # W_pos, where vectors are added
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layer))
        self.ln_final = NORMS[config.norm](config.n_embd, config)
        self.unembed = Linear(config.n_embd, config.vocab_size, bias=config.unembed_bias)  # W_U
        self.hook_embed = HookPoint()
        if self.pos_embed is not None:
            self.hook_pos_embed = HookPoint()
        self.apply(self._init)
        self.tie()

    def tie(self) -> None:
        """Make W_U the embedding's own tensor, where the configuration says so. Press & Wolf 2016: https://arxiv.org/abs/1608.05859"""
        if self.config.tie_weights:
            self.unembed.weight = self.embed.weight

    def _init(self, module: nn.Module) -> None:
        if self.embed.weight.is_meta:  # a shell for weights that come from a file
            return
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.init_std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        """ids (B, T) -> logits (B, T, V). With a cache, ids are the positions that follow those it holds.

        Raises GptvizError for no ids, ids outside the vocabulary, or more positions than a learned table has.
        """
        past = 0 if cache is None else len(cache)
        check_ids(self.config, ids, past)
        keys = torch.arange(past + ids.shape[1], device=ids.device)
        geometry = Geometry.of(self.config, keys[past:], keys)
        by_window = {window: geometry.within(window, keys[past:], keys) for window in set(self.config.windows)}
        x = self._embed(ids, keys[past:])
        layer_caches = [None] * len(self.blocks) if cache is None else cache.layers
        for layer, (block, layer_cache) in enumerate(zip(self.blocks, layer_caches, strict=True)):
            x = block(x, by_window[self.config.window(layer)], layer_cache)  # (B, T, C)
        return self.unembed(self.ln_final(x))

    def block(self, layer: int) -> Block:
        """One of `blocks`, by its type."""
        return cast(Block, self.blocks[layer])

    def _embed(self, ids: Tensor, at: Tensor) -> Tensor:
        x = self.hook_embed(self.embed(ids))  # (B, T, C)
        if self.pos_embed is not None:
            x = x + self.hook_pos_embed(self.config.pos_scale * self.pos_embed(at)[None])  # (1, T, C)
        return F.dropout(x, self.config.dropout, self.training)

    def loss(self, ids: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of targets (B, T) given ids (B, T)."""
        logits = self(ids)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())

    def hook_points(self) -> Iterator[tuple[str, HookPoint]]:
        """Every activation that can be hooked in this architecture, by name, in the order of the forward pass."""
        rotary = self.config.pos_encoding == "rotary"
        for name, module in self.named_modules():
            if isinstance(module, HookPoint) and (rotary or "hook_rot_" not in name):
                yield name, module


class LongerThanTrained(UserWarning):
    """The model runs on more positions than it saw in training: it can, but nothing says that it does so well."""


def check_ids(config: GPTConfig, ids: Tensor, past: int = 0) -> None:
    """Raises GptvizError unless the model can run on ids (B, T) after `past` positions."""
    if ids.ndim != 2 or ids.numel() == 0:
        shape = tuple(ids.shape)
        raise GptvizError(f"The model needs at least one token id, as a (batch, position) tensor; got shape {shape}.")
    if ids.is_floating_point() or ids.dtype == torch.bool:
        raise GptvizError(f"Token ids are whole numbers; got a tensor of {ids.dtype}.")
    if torch.compiler.is_compiling():
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= config.vocab_size:
        wrong = low if low < 0 else high
        raise GptvizError(f"Token id {wrong} is outside the vocabulary: ids go from 0 to {config.vocab_size - 1}.")
    _check_length(config, past + ids.shape[1])


def _check_length(config: GPTConfig, length: int) -> None:
    if length <= config.block_size:
        return
    if config.pos_encoding == "learned":
        raise GptvizError(
            f"The input has {length} tokens, but learned positions end at block_size = {config.block_size}: "
            f"leave out {length - config.block_size}, or use an encoding without a table."
        )
    message = f"{length} tokens are more than the {config.block_size} this model was trained on."
    warnings.warn(message, LongerThanTrained, stacklevel=4)


VARIABLE = (
    "causal", "windows", "pos_encoding", "pos_scale", "rope_base", "rope_scaling", "rope_factor", "attn_scale",
    "scale_by_layer", "activation", "norm_eps", "dropout",
)  # fmt: skip


def variant(model: GPT, **changes: Any) -> GPT:
    """The same weights under another configuration, as a view: it shares the tensors and has hooks of its own.

    Learned positions on a model without a table get a seeded, untrained one, named in `untrained`.
    Raises GptvizError for a change that other weights would be needed for.
    """
    fixed = sorted(set(changes) - set(VARIABLE))
    if fixed:
        raise GptvizError(
            f"{', '.join(fixed)} can't be changed on trained weights. What can be: {', '.join(VARIABLE)}. "
            "Train a model with it instead."
        )
    config = dataclasses.replace(model.config, **changes)
    twin = view(model, config)
    if config.pos_encoding != model.config.pos_encoding:
        _give_positions(twin, model)
    return twin


def _give_positions(twin: GPT, model: GPT) -> None:
    twin.pos_embed = _pos_embed(twin.config)
    twin.untrained = model.untrained - {"pos_embed"}
    twin._modules.pop("hook_pos_embed", None)
    if twin.pos_embed is not None:
        twin.hook_pos_embed = HookPoint()
    if isinstance(twin.pos_embed, nn.Embedding):
        seeded = torch.Generator().manual_seed(0)
        table = torch.randn(twin.pos_embed.weight.shape, generator=seeded) * twin.config.init_std
        twin.pos_embed.weight = nn.Parameter(table.to(model.embed.weight))
        twin.untrained |= {"pos_embed"}


_HOOKS = tuple(name for name in nn.Module().__dict__ if "_hooks" in name)
M = TypeVar("M", bound=nn.Module)


def view(module: M, config: GPTConfig | None = None) -> M:
    """A copy of the module tree around the same parameters, without hooks, so that hooking it touches nobody else."""
    twin = module.__class__.__new__(module.__class__)
    own: dict[str, Any] = {name: OrderedDict() for name in _HOOKS}
    own["_parameters"], own["_buffers"] = module._parameters.copy(), module._buffers.copy()
    own["_modules"] = {name: child and view(child, config) for name, child in module._modules.items()}
    if config is not None and "config" in module.__dict__:
        own["config"] = config
    twin.__dict__.update(module.__dict__, **own)
    return twin
