"""The Sizing page's views of one configuration: parameters, memory, operations."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from gptviz import sizing
from gptviz.config import GPTConfig
from gptviz.figures import roofline as roof
from gptviz.figures import sizing as figures
from gptviz.sizing import Accelerator, Line, Pace, Workload, count, plain, share, si
from gptviz.ui.components.plot import plot
from gptviz.ui.sizing.chosen import Chosen, accelerator, linear_biases
from gptviz.ui.sizing.text import section
from gptviz.ui.state import theme
from gptviz.ui.table import table

BATCHES = [4**power for power in range(6)]
COUNTED = "Matrix products, two operations a multiply-add, over the full T × T square of attention."
ROOF = "Under the slope memory sets it, under the flat roof arithmetic does."
SIXTEEN_BITS = "The accelerator's FLOP/s are those of 16-bit arithmetic: in float32 it reaches less."


def parameters(chosen: Chosen) -> None:
    """The ledger, and the same as areas."""
    lines = sizing.ledger(chosen.config, linear_biases=linear_biases())
    st.html(section("The ledger", sizing.biases_sentence(chosen.config), table=_ledger(lines)))
    st.html(section("Where they are", "Areas are in proportion to parameters. The frame holds all blocks together."))
    figure = figures.parameter_treemap(_tiles(lines), theme=theme())
    plot(figure, key="treemap", alt="The parts of the model as areas in proportion to their parameters")


def _ledger(lines: Sequence[Line]) -> str:
    total = lines[-1].count
    rows = [
        (line.label, line.arithmetic, f"{line.count:,}", "" if line.kind == "block" else share(line.count / total))
        for line in lines
    ]
    indented = [at for at, line in enumerate(lines) if line.kind == "block"]
    head = ["Part (indented: in each block)", "Worked out", "Parameters", "Share"]
    return table(head, rows, theme=theme(), indented=indented, strong=[len(rows) - 1])


def _tiles(lines: Sequence[Line]) -> list[figures.Tile]:
    """The ledger as areas: what is in each block counts once a layer, inside the frame of all blocks."""
    blocks = next(line for line in lines if line.kind == "subtotal")
    layers = blocks.count // sum(line.count for line in lines if line.kind == "block")
    return [_tile(line, layers, blocks) for line in lines[:-1]]


def _tile(line: Line, layers: int, blocks: Line) -> figures.Tile:
    inside = line.kind == "block"
    number = line.count * layers if inside else line.count
    role = figures.COMPONENT_ROLES.get(line.component, "residual")
    parent = blocks.label if inside else ""
    return figures.Tile(id=line.label, label=line.label, parent=parent, value=number, text=count(number), role=role)


def memory(chosen: Chosen) -> None:
    """What takes how much, and what it fits on."""
    need = sizing.memory(chosen.config, chosen.workload)
    parts, fits = need.parts(), sizing.fits(need.total)
    left, right = st.columns([2, 3], gap="large")
    with left:
        rows = [(name, si(size, "B"), share(size / need.total)) for name, size in parts.items()]
        rows.append(("Total", si(need.total, "B"), share(1)))
        parts_table = table(["Part", "Bytes", "Share"], rows, theme=theme(), strong=[len(rows) - 1])
        st.html(section("What takes memory", table=parts_table))
    with right:
        st.html(section("Fits on", "What ends before the dotted line fits into that memory."))
        sizes = {fit.name: float(fit.size) for fit in fits}
        words = [f"✓ fits: {share(fit.share)}" if fit.fits else f"✗ {count(fit.n)} needed" for fit in fits]
        figure = figures.fit_bars(sizes, parts, words, theme=theme())
        plot(figure, key="fits", alt="The share of each memory size that is needed, as bars")


def compute(chosen: Chosen) -> None:
    """Operations by product, and what sets the pace on an accelerator."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.html(section("Operations", COUNTED, table=_operations(chosen.config, chosen.workload)))
    with right:
        wide = chosen.workload.dtype == "float32"
        st.html(section("What sets the pace", ROOF, *([SIXTEEN_BITS] if wide else [])))
        _pace(chosen.config, chosen.workload, accelerator())


def _operations(config: GPTConfig, workload: Workload) -> str:
    work, rule = sizing.flops(config, workload), sizing.six_nd(config, workload)
    decoded = sizing.decode_flops(config, workload).total
    rows = [(name, si(number, "FLOP"), share(number / work.total)) for name, number in work.parts().items()]
    rows.append(("Total", si(work.total, "FLOP"), share(1)))
    rows.append((f"Rule of thumb, {6 if workload.training else 2} N B T", si(rule, "FLOP"), share(rule / work.total)))
    rows.append(("One more token, decoded", si(decoded, "FLOP"), share(decoded / work.total)))
    return table(["Product", "Operations", "Share"], rows, theme=theme(), strong=[len(rows) - 3])


def _pace(config: GPTConfig, workload: Workload, accelerator: Accelerator) -> None:
    paces = sizing.roofline(config, workload, accelerator)
    larger = sizing.decode_over_batches(config, workload, accelerator, BATCHES)
    points = [_point(pace.phase, pace) for pace in paces]
    line = [_point(f"decode, batch {batch:,}", pace) for batch, pace in zip(BATCHES, larger, strict=True)]
    figure = roof.roofline(points, line, flops=accelerator.flops, bandwidth=accelerator.bandwidth, theme=theme())
    plot(figure, key="roofline", alt="Operations a second over operations a byte; prefill and decode lie on the roof")
    head = ["At best", "Pace set by", "Intensity", "Time", "Speed"]
    st.html(table(head, [_row(pace) for pace in paces], theme=theme()))


def _row(pace: Pace) -> tuple[str, ...]:
    by = {"compute": "arithmetic", "memory": "memory"}[pace.bound]
    speed = f"{count(pace.tokens_per_second)} tokens/s"
    return pace.phase.capitalize(), by, f"{plain(pace.intensity)} FLOP/B", si(pace.seconds, "s"), speed


def _point(name: str, pace: Pace) -> roof.Point:
    hover = f"{name}: {plain(pace.intensity)} FLOP a byte, {count(pace.tokens_per_second)} tokens/s, {pace.bound}-bound"
    return roof.Point(name=name, intensity=pace.intensity, speed=pace.flops / pace.seconds, hover=hover)
