"""The stages of a head, from its vectors to what it writes: which there are, as small pictures, and their formulas."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.pixels import max_pool, pool_by_size, quantise, quantise_signed
from gptviz.ui.choice import choose
from gptviz.ui.components.tiles import Row, Tile, tiles
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz import GPTConfig
    from gptviz.analysis import Stages

STAGES = {
    "vectors": (
        "q, k, v",
        "Each token's query, what it asks; its key, what it answers to; and its value, what it hands on.",
        r"q_i = \hat x_i W_Q, \qquad k_j = \hat x_j W_K, \qquad v_j = \hat x_j W_V",
    ),
    "raw": ("q · k", "The dot product of every query with every key.", r"S_{ij} = q_i \cdot k_j"),
    "scaled": (
        "scaled",
        "Divided by √D, so that the scores keep the same spread however wide a head is.",
        r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}}",
    ),
    "biased": (
        "+ position bias",
        "ALiBi lowers a score in proportion to the distance.",
        r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} - m\,|i - j|",
    ),
    "masked": (
        "masked",
        "The future is set to −∞: no query may look there.",
        r"S_{ij} = -\infty \;\text{ for }\; j > i",
    ),
    "pattern": (
        "softmax",
        "Every row becomes shares that sum to 1: how much each token takes from each that it sees.",
        r"A_{ij} = \frac{e^{S_{ij}}}{\sum_k e^{S_{ik}}}",
    ),
    "values": (
        "× V",
        "Each token takes its shares of the values, its own among them: a row of z is their mix.",
        r"z_i = \sum_j A_{ij}\, v_j",
    ),
    "output": (
        "× W_O",
        "The head's rows of W_O bring its mix back to the width of the stream, to which it is added.",
        r"o_i = z_i\, W_O^{(h)}, \qquad \text{attention} = \sum_h o^{(h)}",
    ),
}
SQUARE = ("raw", "scaled", "biased", "masked", "pattern")  # stages with a cell for each two tokens
VECTORS = ("values", "output")  # stages with a row a token, not a cell for each two


def described(config: GPTConfig, layer: int, name: str) -> tuple[str, str, str]:
    """The stage's title, sentence and formula, as they are in this layer of this model."""
    title, sentence, formula = STAGES[name]
    if name == "vectors" and config.qkv_bias:
        formula = re.sub("W_([QKV])", r"W_\1 + b_\1", formula)
    if name == "output" and config.out_bias:
        formula += " + b_O"
    if not math.isclose(factor := config.scale(layer), config.d_head**-0.5):
        words = f"Multiplied by {style.number(factor)}, this layer's own factor in place of 1 / √D"
        sentence = sentence.replace("Divided by √D", words)
        formula = formula.replace(r"\frac{q_i \cdot k_j}{\sqrt{D}}", rf"{style.tex(factor)}\; q_i \cdot k_j")
    if name == "masked" and (window := config.window(layer)):
        which, where = ("The future and what is", r"j > i \;\text{ or }\; ") if config.causal else ("What is", "")
        sentence = f"{which} {window} tokens away or more is set to −∞: no query may look there."
        formula = formula.replace("j > i", rf"{where}|i - j| \ge {window}")
    return title, sentence, formula


def available(chosen: Selection, stages: Stages, name: str) -> bool:
    """Whether this head has that stage: a bias needs ALiBi, masking a mask."""
    hides = chosen.variant.causal or any(chosen.config.windows)
    return {"biased": stages.bias is not None, "masked": hides}.get(name, True)


def choose_stage(chosen: Selection, stages: Stages) -> str:
    return st.segmented_control(
        "Stage",
        [name for name in STAGES if available(chosen, stages, name)],
        default="pattern",
        required=True,
        wrap=True,
        key="stage",
        bind="query-params",
        format_func=lambda name: STAGES[name][0],
    )


def strip(chosen: Selection, layer: int, stages: Stages, stage: str) -> None:
    """The stages as small pictures, each what the one before becomes: a click opens one."""
    shown = [name for name in SQUARE if available(chosen, stages, name)]
    signed = tuple(style.diverging(chosen.theme))
    tiles(
        [Row("Step by step", "", [stage_tile(chosen, layer, stages, name) for name in shown])],
        ramps={"signed": signed, "attention": tuple(style.ramp("attention", chosen.theme, 255))},
        selected=stage if stage in shown else None,
        key="stages",
        tile_size=64,
        on_pick=open_stage,
        alt="The head's stages, from dot products to weights",
    )


def stage_tile(chosen: Selection, layer: int, stages: Stages, name: str) -> Tile:
    matrix = getattr(stages, name)
    weights = name == "pattern"
    seen = np.where(np.isneginf(stages.masked if weights else matrix), np.nan, matrix)
    pixels = quantise(max_pool(seen, 64), 1) if weights else quantise_signed(pool_by_size(seen, 64))
    title, sentence, _ = described(chosen.run.config, layer, name)
    label = title.replace("position ", "")  # a tile is narrow
    return Tile(name, title, pixels, "attention" if weights else "signed", hover=sentence, label=label)


def open_stage(name: str) -> None:
    choose(stage=name)


def explain(chosen: Selection, formula: str) -> None:
    turned = " q and k are taken after their rotation." if chosen.variant.pos_encoding == "rotary" else ""
    with st.expander("Formula"):
        st.latex(formula)
        st.caption(
            f"D = {chosen.config.d_head} (d_head), i the query, j the key; x̂ is the stream after the block's norm, "
            f"ln1.{turned} Scaled dot-product attention: "
            "[Vaswani et al. 2017, equation 1](https://arxiv.org/abs/1706.03762)."
        )
