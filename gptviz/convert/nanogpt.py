"""nanoGPT's ckpt.pt: GPT-2's names, rows are outputs, and `bias` for all biases, the norms' too.

https://github.com/karpathy/nanoGPT
"""

from __future__ import annotations

from typing import Any

from . import gpt2
from .family import Family
from .fields import Fields

BIASES = ("qkv_bias", "out_bias", "mlp_bias", "norm_bias")


def _read(args: Fields) -> dict[str, Any]:
    """`model_args`. Its GELU is the exact one; an `activation` of your own says which other one it was trained with."""
    return dict(
        vocab_size=args.need("vocab_size"),
        block_size=args.need("block_size"),
        n_layer=args.need("n_layer"),
        n_head=args.need("n_head"),
        n_embd=args.need("n_embd"),
        dropout=args.number("dropout", 0.0),
        activation=args.activation("activation", "gelu"),
        **dict.fromkeys(BIASES, args.flag("bias", True)),
    )


# torch.compile puts _orig_mod. in front, DistributedDataParallel module.
PREFIXES = ("module.", "_orig_mod.", "module.", "transformer.")
FAMILY = Family(_read, gpt2.NAMES, PREFIXES, {}, {}, gpt2.BUFFERS)
