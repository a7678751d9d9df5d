"""What the Sizing page's fields say, or said last where they make no model. Apart from drawing them: a number that
follows a field is drawn again without the field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from gptviz import sizing
from gptviz.config import GPTConfig
from gptviz.errors import GptvizError
from gptviz.sizing import Accelerator, Workload
from gptviz.ui.sizing import controls, editor


@dataclass(frozen=True)
class Chosen:
    """Everything the views are drawn from: it makes a model, and the workload suits it."""

    name: str
    config: GPTConfig
    workload: Workload


def chosen() -> Chosen:
    """What the fields say; where that makes no model, a sentence, and what was chosen before."""
    name = controls.configuration_field().value
    try:
        now = Chosen(name, editor.edited(name), _workload())
        now.workload.tokens(now.config)
    except GptvizError as error:
        _refuse(error, "Shown is what was there before.")
        return settled()
    st.session_state.sizing_shown = now
    return now


def settled() -> Chosen:
    """What `chosen` came to."""
    name = controls.configuration_field().value
    return st.session_state.get("sizing_shown") or Chosen(name, editor.started(name), Workload())


def other() -> tuple[str, GPTConfig]:
    """Configuration B and where its editing started; where it makes no model, a sentence, and the one before."""
    name = controls.other_field().value
    try:
        now = name, editor.edited(name, controls.B)
    except GptvizError as error:
        _refuse(error, "Shown as B is what was there before.")
        return st.session_state.get("sizing_other_shown") or (name, editor.started(name))
    st.session_state.sizing_other_shown = now
    return now


def linear_biases() -> bool:
    """Whether the ledger counts them."""
    return bool(controls.biases_field().value == controls.COUNTED[0])


def accelerator() -> Accelerator:
    """The chosen one with its numbers as edited; where these make none, a sentence, and the maker's."""
    known = sizing.ACCELERATORS[controls.accelerator_field().value]
    flops, bandwidth = (field.value for field in controls.speeds())
    try:
        return Accelerator(
            flops=known.flops if flops is None else _from_tera(flops),
            bandwidth=known.bandwidth if bandwidth is None else _from_tera(bandwidth),
            memory=known.memory,
        )
    except GptvizError as error:
        _refuse(error, f"Shown is the {controls.accelerator_field().value}.")
        return known


def _from_tera(value: Any) -> Any:
    return value if isinstance(value, str) else 1e12 * value


def _workload() -> Workload:
    said = {name: field.value for name, field in controls.workload_fields().items()}
    optimizer = sizing.OPTIMIZERS[said.pop("optimizer")]
    return Workload(**said, optimizer=optimizer, training=controls.use_field().value == controls.USES[1])


def _refuse(error: GptvizError, instead: str) -> None:
    """Why what was entered makes nothing, and what is shown instead."""
    st.error(f"{error} {instead}", icon=":material/error:")
