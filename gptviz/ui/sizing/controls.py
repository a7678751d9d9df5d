"""What the Sizing page asks: a configuration, a workload, a view, an accelerator. `chosen` reads what was said."""

from __future__ import annotations

import streamlit as st

from gptviz import sizing
from gptviz.ui.components.form import Field, Group, form
from gptviz.ui.sizing import editor, redraw

VIEWS = ("Parameters", "Memory", "Operations", "Growth", "Compare")
USES = ("Inference", "Training")
COUNTED = ("counted", "left out")
B = "B."  # the side of the editor of what is compared with
DEFAULT_ACCELERATOR = "NVIDIA A100 80 GB"
ALWAYS_IN_TRAINING = "Training needs the logits of all positions."
TRAINING_ALONE = "Plays a part in training alone."


def view() -> str:
    """Which question is to be answered."""
    return st.session_state.get("view", VIEWS[0])


# The fields


def configuration_field() -> Field:
    """Where editing A starts."""
    first = next(iter(editor.starting_points()))
    return editor.choice("configuration", "Configuration", first, "Where editing starts.")


def other_field() -> Field:
    """Where editing B starts."""
    meaning = "What the one in the sidebar, A, is compared with. It can be edited as well."
    return editor.choice("other", "Configuration B", "gpt2", meaning)


def _choice(name: str, label: str, options: tuple[str, ...], meaning: str, *, off: str = "") -> Field:
    """off: why it can't be chosen at present; "" where it can."""
    return Field(
        name=name,
        label=label,
        help=off or meaning,
        kind="choice",
        start=options[0],
        options=options,
        disabled=bool(off),
    )


def use_field() -> Field:
    """Inference or training."""
    return _choice("use", "Use", USES, "A forward pass, or a training step.")


def workload_fields() -> dict[str, Field]:
    """Those of what is asked of the model, by the names that Workload has for them."""
    training = use_field().value == USES[1]
    off = "" if training else TRAINING_ALONE
    empty = "Tokens a sequence (T). Empty: the configuration's block_size."
    formats = (
        "Of weights and activations. mixed: float32 master weights and optimizer states beside 16-bit arithmetic. "
        "int8 and int4: the weights alone."
    )
    kernels = "fused (FlashAttention) never stores the T × T weights; explicit keeps them."
    positions = "This model gives the logits of all positions; servers compute the last one's."
    keep = "Keep each block's input, compute the rest again."
    return {
        "batch": Field(name="batch", label="Batch", help="Sequences at a time (B).", kind="number", start=1),
        "context": Field(
            name="context", label="Context", help=empty, kind="number", start=None, placeholder="block_size"
        ),
        "dtype": _choice("dtype", "Number format", sizing.DTYPES, formats),
        "attention": _choice("kernel", "Attention", ("fused", "explicit"), kernels),
        "logits": _choice(
            "logits", "Logits of positions", ("all", "last"), positions, off=ALWAYS_IN_TRAINING if training else ""
        ),
        "optimizer": _choice(
            "optimizer", "Optimizer", tuple(sizing.OPTIMIZERS), "What it remembers of each parameter.", off=off
        ),
        "checkpointing": Field(
            name="checkpointing",
            label="Checkpointing",
            help=off or keep,
            kind="switch",
            start=False,
            disabled=bool(off),
        ),
    }


def biases_field() -> Field:
    """Which ledger is printed."""
    return _choice(
        "biases", "Biases of linear layers", COUNTED, "Courses print the ledger without them; PyTorch counts them."
    )


def accelerator_field() -> Field:
    """What the pace is worked out for."""
    names = tuple(sizing.ACCELERATORS)
    meaning = "A single device. Its numbers are the maker's, and can be edited."
    return Field(
        name="accelerator",
        label="Accelerator",
        help=meaning,
        kind="choice",
        start=DEFAULT_ACCELERATOR,
        options=names,
    )


def _tera(name: str, label: str, stated: float, meaning: str) -> Field:
    return Field(
        name=name,
        label=label,
        help=f"{meaning} Empty: as the maker states it.",
        kind="number",
        start=None,
        placeholder=f"{stated / 1e12:.4g}",
        step=0.1,
    )


def speeds() -> tuple[Field, Field]:
    """FLOP/s and bandwidth of the chosen accelerator."""
    name = accelerator_field().value
    known = sizing.ACCELERATORS[name]
    flops = _tera(f"{name}.tflops", "TFLOP/s", known.flops, f"At most: {known.arithmetic}.")
    return flops, _tera(f"{name}.tbps", "TB/s", known.bandwidth, "From and to its memory, at most.")


# Drawing


@st.fragment(key=redraw.EDITOR)
def draw_editor() -> None:
    """Configuration A, for the sidebar."""
    editor.edit(configuration_field(), "", redraw.after({"configuration": (redraw.EDITOR,)}))


@st.fragment(key=redraw.WORKLOAD)
def draw_workload() -> None:
    """What is asked of the model."""
    first, *rest = workload_fields().items()
    always = [use_field(), first[1], *(field for name, field in rest if name in ("context", "dtype"))]
    details = [field for name, field in rest if name not in ("context", "dtype")]
    groups = [Group(fields=always), Group(title="Attention, optimizer, checkpointing", fields=details)]
    form(groups, key="workload", follow=redraw.after({"use": (redraw.WORKLOAD,)}), width=144)


def draw_view() -> None:
    """Which question is answered."""
    st.segmented_control(
        "View",
        VIEWS,
        default=VIEWS[0],
        required=True,
        key="view",
        label_visibility="collapsed",
        bind="query-params",
        on_change=redraw.again,
        args=(redraw.OPTIONS, redraw.VIEW, redraw.FORMULA),
    )


def draw_biases() -> None:
    """Whether the ledger counts the biases of linear layers."""
    form([Group(fields=[biases_field()])], key="ledger", follow=redraw.after())


def draw_accelerator() -> None:
    """A known one, whose numbers can be edited."""
    which = accelerator_field()
    groups = [Group(fields=[which, *speeds()])]
    form(groups, key="device", follow=redraw.after({"accelerator": (redraw.OPTIONS,)}), width=200)
    known = sizing.ACCELERATORS[which.value]
    st.caption(f"{which.value}: {known.arithmetic}, as [its maker states]({known.source}).")


def draw_other() -> None:
    """Configuration B."""
    with st.container(border=True):
        editor.edit(other_field(), B, redraw.after({"other": (redraw.OPTIONS,)}))
