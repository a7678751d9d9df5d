"""The Sizing page's views of more than one configuration: growth, and two side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from gptviz import sizing
from gptviz.config import GPTConfig
from gptviz.figures import growth as areas
from gptviz.figures import sizing as figures
from gptviz.sizing import Growth, Workload, plain, si
from gptviz.ui.components.plot import plot
from gptviz.ui.sizing import editor
from gptviz.ui.sizing.chosen import Chosen, other
from gptviz.ui.sizing.text import section
from gptviz.ui.state import theme
from gptviz.ui.table import table


def growth(chosen: Chosen) -> None:
    """Operations and memory over context, parameters over depth."""
    config, workload = chosen.config, chosen.workload
    at, here = sizing.contexts(config), (workload.tokens(config), "chosen context")
    left, right = st.columns(2, gap="large")
    with left:
        crossing = f"From {sizing.crossing(config):,} tokens on, its T × T products cost more than all other products."
        st.html(section("Operations with context", crossing))
        names = {"linear": "all else (grows as T)", "quadratic": "T × T products"}
        work = sizing.flops_over_context(config, workload, at)
        _draw(work, names, "growth_flops", ("context, tokens", "operations", "FLOP"), here)
    with right:
        st.html(section("Memory with context", "Only explicit attention grows as the square."))
        names = {"constant": "weights and their like", "linear": "grows as T", "quadratic": "T × T weights"}
        held = sizing.memory_over_context(config, workload, at)
        _draw(held, names, "growth_memory", ("context, tokens", "memory", "B"), here)
    st.html(section("Parameters with depth", "Every block adds the same; the embeddings stay."))
    names = {"constant": "embeddings, final norm, output", "linear": "blocks"}
    sizes = sizing.parameters_over_depth(config, sizing.depths(config))
    _draw(sizes, names, "growth_depth", ("n_layer", "parameters", ""), (config.n_layer, "this model"))


def _draw(grown: Growth, names: dict[str, str], key: str, axes: tuple[str, str, str], now: tuple[int, str]) -> None:
    parts = {kind: (name, getattr(grown, kind)) for kind, name in names.items() if any(getattr(grown, kind))}
    x, y, unit = axes
    figure = areas.growth(grown.at, parts, x=x, unit=unit, now=now, theme=theme())
    plot(figure, key=key, alt=f"{y} over {x}, split into {', '.join(names.values())}")


SIDES = "A is the configuration in the sidebar, B the one above."
MEASURES: dict[str, tuple[Callable[[GPTConfig, Workload], int], str]] = {
    "Parameters": (lambda config, workload: sizing.n_params(config), ""),
    "Memory": (lambda config, workload: sizing.memory(config, workload).total, "B"),
    "KV cache": (sizing.kv_cache, "B"),
    "Operations": (lambda config, workload: sizing.flops(config, workload).total, "FLOP"),
    "One more token, decoded": (lambda config, workload: sizing.decode_flops(config, workload).total, "FLOP"),
}


def compare(chosen: Chosen) -> None:
    """Configurations A (the sidebar's) and B, under the same workload."""
    name, theirs = other()
    context = min(chosen.workload.tokens(chosen.config), theirs.block_size)
    workload = replace(chosen.workload, context=context)
    models = {f"A: {_named(chosen.name, chosen.config)}": chosen.config, f"B: {_named(name, theirs)}": theirs}
    same = f"Both with {context:,} tokens a sequence, and the use, batch and number format chosen above."
    left, right = st.columns(2, gap="large")
    left.html(section("Side by side", SIDES, same, table=_measures(models, workload)))
    right.html(section("What differs", table=_differences(models)))
    st.html(section("Parameters of both"))
    components = {label: sizing.component_counts(config) for label, config in models.items()}
    figure = figures.component_bars(components, theme=theme())
    plot(figure, key="compare", alt="The parameters of both by component, as bars")


def _named(name: str, config: GPTConfig) -> str:
    return name if config == editor.started(name) else f"{name}, edited"


def _measures(models: dict[str, GPTConfig], workload: Workload) -> str:
    rows = []
    for label, (measure, unit) in MEASURES.items():
        mine, theirs = (measure(config, workload) for config in models.values())
        rows.append((label, *(si(number, unit) for number in (mine, theirs)), f"{plain(mine / theirs)} ×"))
    return table(["", *models, "A / B"], rows, theme=theme())


def _differences(models: dict[str, GPTConfig]) -> str:
    """The fields in which they differ, among those that can be edited."""
    mine, theirs = (config.to_dict() for config in models.values())
    named = [name for name in editor.FIELDS if mine[name] != theirs[name]]
    rows = [(name, _shown(mine[name]), _shown(theirs[name])) for name in named]
    return table(["Field", *models], rows or [("none", "", "")], theme=theme())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
