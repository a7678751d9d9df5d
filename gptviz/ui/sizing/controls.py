"""What the Sizing page's widgets say: a configuration, a workload, an accelerator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz import sizing
from gptviz.config import GPTConfig
from gptviz.errors import GptvizError
from gptviz.sizing import Accelerator, Workload
from gptviz.ui.sizing import editor

BOUND: dict[str, Any] = {"bind": "query-params"}
DEFAULT = "NVIDIA A100 80 GB"


@dataclass(frozen=True)
class Chosen:
    """Everything the views are drawn from: it makes a model, and the workload suits it."""

    name: str
    config: GPTConfig
    workload: Workload


def choose() -> Chosen:
    """The configuration in the sidebar and the workload above the views; where they make no model, the last one."""
    points = editor.starting_points()
    with st.sidebar:
        name = st.selectbox("Configuration", list(points), key="configuration", help="Where editing starts.", **BOUND)
        fields = editor.edit(name, points[name])
    options = _workload()
    try:
        chosen = Chosen(name, editor.made(fields), Workload(**options))
        chosen.workload.tokens(chosen.config)
    except GptvizError as error:
        st.error(f"{error} Shown is what was there before.", icon=":material/error:")
        return st.session_state.get("sizing_shown", Chosen(name, GPTConfig.from_dict(points[name]), Workload()))
    st.session_state.sizing_shown = chosen
    return chosen


def _workload() -> dict[str, Any]:
    """Fields of a Workload, which may not suit."""
    use, batch, context, dtype = st.columns(4)
    names = ["Inference", "Training"]
    training = use.segmented_control("Use", names, default=names[0], required=True, key="use", **BOUND) == "Training"
    return {
        "training": training,
        "batch": batch.number_input("Batch", value=1, step=1, key="batch", help="Sequences at a time (B).", **BOUND),
        "context": context.number_input(
            "Context",
            value=None,
            step=1,
            key="context",
            placeholder="block_size",
            help="Tokens a sequence (T). Empty: the configuration's block_size.",
            **BOUND,
        ),
        "dtype": dtype.selectbox(
            "Number format",
            sizing.DTYPES,
            key="dtype",
            help="Of weights and activations. mixed: float32 master weights and optimizer states beside 16-bit "
            "arithmetic. int8 and int4: the weights alone.",
            **BOUND,
        ),
        **_details(st.expander("Attention, optimizer, checkpointing"), training),
    }


def _details(place: DeltaGenerator, training: bool) -> dict[str, Any]:
    """What matters less, or to one use alone."""
    attention, logits, optimizer, checkpointing = place.columns(4, vertical_alignment="bottom")
    return {
        "attention": attention.selectbox(
            "Attention",
            ["fused", "explicit"],
            key="kernel",
            help="fused (FlashAttention) never stores the T × T weights; explicit keeps them.",
            **BOUND,
        ),
        "logits": logits.selectbox(
            "Positions with logits",
            ["all", "last"],
            key="logits",
            disabled=training,
            help="Training needs all positions." if training else "This model gives all; servers compute the last.",
            **BOUND,
        ),
        "optimizer": sizing.OPTIMIZERS[
            optimizer.selectbox(
                "Optimizer",
                list(sizing.OPTIMIZERS),
                key="optimizer",
                disabled=not training,
                help="What it remembers of each parameter." if training else "Plays a part in training alone.",
                **BOUND,
            )
        ],
        "checkpointing": checkpointing.checkbox(
            "Checkpointing",
            key="checkpointing",
            disabled=not training,
            help="Keep each block's input, compute the rest again." if training else "Plays a part in training alone.",
            **BOUND,
        ),
    }


def choose_accelerator() -> Accelerator:
    """A known one, whose numbers can be edited."""
    names = list(sizing.ACCELERATORS)
    which, operations, bytes_ = st.columns([4, 3, 3])
    name = which.selectbox("Accelerator", names, names.index(DEFAULT), key="accelerator", **BOUND)
    known = sizing.ACCELERATORS[name]
    flops = _tera(
        operations,
        "TFLOP/s",
        known.flops,
        f"{name}.tflops",
        "Dense 16-bit operations a second, at most.",
    )
    bandwidth = _tera(
        bytes_,
        "TB/s",
        known.bandwidth,
        f"{name}.tbps",
        "Bytes a second from and to its memory.",
    )
    try:
        return Accelerator(flops=flops, bandwidth=bandwidth, memory=known.memory)
    except GptvizError as error:
        st.error(f"{error} Shown is the {name}.", icon=":material/error:")
        return known


def _tera(place: DeltaGenerator, label: str, value: float, key: str, meaning: str) -> float:
    stated = "Empty: as the maker states it."
    tera = place.number_input(
        label,
        value=None,
        placeholder=f"{value / 1e12:.4g}",
        step=0.1,
        format="%.4g",
        key=key,
        help=f"{meaning} {stated}",
        **BOUND,
    )
    return value if tera is None else 1e12 * tera
