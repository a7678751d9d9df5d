"""How the numbers of each view come about: the formula, and the paper."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

LETTERS = (
    "L n_layer, C n_embd, H n_head, H_kv n_kv_head, D d_head, F d_mlp, V vocab_size, T context, B batch, "
    "N parameters, b bytes a number."
)


def _formula(latex: str, words: str) -> None:
    with st.expander("The formula"):
        st.latex(latex)
        st.markdown(f"{words}\n\n{LETTERS}")


def parameters() -> None:
    _formula(
        r"N = \underbrace{V C}_{W_E} + \underbrace{T_{max} C}_{W_{pos}} + L\,\big("
        r"\underbrace{C (H + 2 H_{kv}) D + H D\, C}_{attention} + \underbrace{2\, C F}_{FFN} + "
        r"\underbrace{4\, C}_{norms}\big) + 2\, C + \text{biases}",
        "A gated FFN has 3 C F, an RMSNorm half a LayerNorm's, an untied output layer V C more, and only learned "
        "positions are parameters. With the usual H D = C and F = 4 C a block has about 12 C². "
        "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762), "
        "[Press & Wolf 2016](https://arxiv.org/abs/1608.05859) on tying W_U to W_E.",
    )


def memory() -> None:
    _formula(
        r"\text{weights} = N b \qquad \text{KV cache} = 2\, L\, B\, T\, H_{kv} D\, b \qquad "
        r"\text{Adam, mixed} = (2 + 2 + 4 + 4 + 4)\, N",
        "Training adds a gradient for each weight, what the optimizer remembers (AdamW two numbers, Muon one for each "
        "block's matrices) and the activations that the backward pass reads, counted operation by operation. "
        "[ZeRO, section 3](https://arxiv.org/abs/1910.02054), [activation memory]"
        "(https://arxiv.org/abs/2205.05198), [checkpointing](https://arxiv.org/abs/1604.06174), "
        "[FlashAttention](https://arxiv.org/abs/2205.14135). A framework's own memory and fragmentation come on top.",
    )


def compute() -> None:
    _formula(
        r"\text{forward} = 2\, B T\, \big[ L\, ( C (H + 2 H_{kv}) D + "
        r"\underbrace{2\, T H D}_{QK^T,\ \text{pattern} \times V} + H D\, C + 2\, C F ) + C V \big] \\ "
        r"\text{training} = 3 \times \text{forward} \approx 6 N \cdot B T",
        "A gated FFN has 3 C F in place of 2 C F. The backward pass has two products for each of the forward pass; "
        "checkpointing computes the blocks again. Norms, softmax and activations are left out, as "
        "torch.utils.flop_counter does. Best speed is the smaller of FLOP/s and intensity × bandwidth, where every "
        "weight and every cached key and value crosses once. "
        "[The rule of thumb: Kaplan et al. 2020](https://arxiv.org/abs/2001.08361), "
        "[roofline: Williams et al. 2009](https://doi.org/10.1145/1498765.1498785).",
    )


def growth() -> None:
    _formula(
        r"T \times T\ \text{products} = 4\, L\, B\, T^2 H D \qquad \text{all else} \propto T "
        r"\qquad N(L) = N_0 + L\, N_{block}",
        "Both are equal where T = (linear part of one token) / (4 L H D). FlashAttention saves the T × T memory, not "
        "the operations: [Dao et al. 2022](https://arxiv.org/abs/2205.14135).",
    )


def compare() -> None:
    _formula(
        r"\text{ratio} = \frac{A}{B}",
        "Grouped-query attention (H_kv < H) shrinks the KV cache, and hardly the parameters: "
        "[Ainslie et al. 2023](https://arxiv.org/abs/2305.13245).",
    )


FORMULAS: dict[str, Callable[[], None]] = {
    "Parameters": parameters,
    "Memory": memory,
    "Operations": compute,
    "Growth": growth,
    "Compare": compare,
}
