"""The Sizing page's parts that follow its widgets: each a fragment, so that it can be drawn again alone."""

from __future__ import annotations

import streamlit as st

from gptviz import sizing
from gptviz.sizing import Workload, si
from gptviz.ui.sizing import chosen, controls, formulas, redraw, text
from gptviz.ui.sizing.chosen import Chosen


@st.fragment(key=redraw.HEADLINE)
def headline() -> None:
    """The four numbers people ask for; before them, what is wrong with what was entered."""
    now = chosen.chosen()
    st.html(text.numbers(_numbers(now)))
    if said := sizing.published_sentence(now.name, now.config):
        st.caption(said)


def _numbers(now: Chosen) -> dict[str, tuple[str, str]]:
    """Label -> the number and its meaning."""
    config, workload = now.config, now.workload
    need, work = sizing.memory(config, workload), sizing.flops(config, workload)
    token = sizing.kv_cache(config, Workload(context=1, dtype=workload.dtype))
    return {
        "Parameters": (f"{sizing.n_params(config):,}", "as PyTorch counts: tied weights once"),
        "Memory": (si(need.total, "B"), "of the use above; GB are 10⁹ bytes"),
        "Training step" if workload.training else "Prefill": (si(work.total, "FLOP"), "of the whole batch"),
        "KV cache a token": (si(token, "B"), "2 × n_layer × n_kv_head × d_head × bytes a number"),
    }


@st.fragment(key=redraw.OPTIONS)
def options() -> None:
    """What the view alone asks."""
    draw = {
        "Parameters": controls.draw_biases,
        "Operations": controls.draw_accelerator,
        "Compare": controls.draw_other,
    }.get(controls.view())
    if draw:
        draw()


@st.fragment(key=redraw.VIEW)
def view() -> None:
    """The answer to the question that the view stands for."""
    from gptviz.ui.sizing import trends, views  # Plotly and numpy, when the first numbers are on the screen

    draw = {
        "Parameters": views.parameters,
        "Memory": views.memory,
        "Operations": views.compute,
        "Growth": trends.growth,
        "Compare": trends.compare,
    }[controls.view()]
    draw(chosen.settled())


@st.fragment(key=redraw.FORMULA)
def formula() -> None:
    """How the view's numbers come about."""
    formulas.FORMULAS[controls.view()]()
