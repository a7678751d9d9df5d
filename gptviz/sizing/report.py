"""Everything about one configuration and workload: as a dictionary for JSON, and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ..config import GPTConfig
from .flops import decode_flops, flops, six_nd
from .ledger import Line, biases_sentence, ledger
from .memory import fits, memory
from .parameters import component_counts, n_params, parameter_table
from .published import published_sentence
from .roofline import Accelerator, roofline
from .units import count, plain, share, si
from .workload import Workload


def as_dict(config: GPTConfig, workload: Workload, accelerator: Accelerator, name: str = "") -> dict[str, Any]:
    """Counts, bytes, operations and seconds. Raises GptvizError where the workload does not suit the model.

    name: the preset's, for what was published of it.
    """
    need, work = memory(config, workload), flops(config, workload)
    return {
        "config": config.to_dict(),
        "workload": {**asdict(workload), "context": workload.tokens(config)},
        "n_params": n_params(config),
        "published": published_sentence(name, config) or None,
        "components": component_counts(config),
        "parameters": [asdict(row) for row in parameter_table(config)],
        "ledger": {
            "with_linear_biases": [asdict(line) for line in ledger(config)],
            "without_linear_biases": [asdict(line) for line in ledger(config, linear_biases=False)],
            "difference": biases_sentence(config),
        },
        "memory_bytes": {**asdict(need), "total": need.total},
        "fits": [asdict(fit) for fit in fits(need.total)],
        "flops": {**asdict(work), "linear": work.linear, "quadratic": work.quadratic, "total": work.total},
        "flops_rule_of_thumb": six_nd(config, workload),
        "flops_decode_one_token": {**asdict(decode_flops(config, workload))},
        "accelerator": {**asdict(accelerator), "ridge": accelerator.ridge},
        "roofline": [asdict(pace) for pace in roofline(config, workload, accelerator)],
    }


def as_text(config: GPTConfig, workload: Workload, accelerator: Accelerator, name: str = "") -> str:
    """The same for reading: about 60 columns wide."""
    sections = (
        _parameters(config, name),
        _memory(config, workload),
        _operations(config, workload),
        _pace(config, workload, accelerator),
    )
    return "\n\n".join("\n".join(section) for section in sections)


def _parameters(config: GPTConfig, name: str) -> list[str]:
    total = n_params(config)
    lines = ledger(config)
    rows = [(_indented(line), line.arithmetic, f"{line.count:,}", _share_of(line, total)) for line in lines]
    said = published_sentence(name, config)
    return ["Parameters", *_table(rows), biases_sentence(config), *([said] if said else [])]


def _share_of(line: Line, total: int) -> str:
    return "" if line.kind == "block" else share(line.count / total)


def _indented(line: Line) -> str:
    return f"  {line.label}" if line.kind == "block" else line.label


def _memory(config: GPTConfig, workload: Workload) -> list[str]:
    need = memory(config, workload)
    doing = f"training step, {workload.optimizer}" if workload.training else "inference"
    title = f"Memory: {doing}, batch {workload.batch:,} × {workload.tokens(config):,} tokens, {workload.dtype}"
    rows = [(name, si(size, "B")) for name, size in {**need.parts(), "Total": need.total}.items()]
    room = [
        (fit.name, "fits" if fit.fits else f"does not fit: needs {fit.n:,} of them", share(fit.share))
        for fit in fits(need.total)
    ]
    return [title, *_table(rows), "", *_table(room)]


def _operations(config: GPTConfig, workload: Workload) -> list[str]:
    work, rule = flops(config, workload), six_nd(config, workload)
    parts = {**work.parts(), "Total": work.total}
    rows = [(name, si(operations, "FLOP"), share(operations / work.total)) for name, operations in parts.items()]
    factor = 6 if workload.training else 2
    said = f"Rule of thumb {factor} N D: {si(rule, 'FLOP')}, {rule / work.total:.2f} of the count."
    return ["Operations: training step" if workload.training else "Operations: prefill", *_table(rows), said]


def _pace(config: GPTConfig, workload: Workload, accelerator: Accelerator) -> list[str]:
    title = (
        f"At best on {si(accelerator.flops, 'FLOP/s')} and {si(accelerator.bandwidth, 'B/s')}: "
        f"ridge at {accelerator.ridge:,.0f} FLOP a byte"
    )
    rows = [
        (
            pace.phase.capitalize(),
            f"{pace.bound}-bound",
            f"{plain(pace.intensity)} FLOP/B",
            si(pace.seconds, "s"),
            f"{count(pace.tokens_per_second)} tokens/s",
        )
        for pace in roofline(config, workload, accelerator)
    ]
    return [title, *_table(rows)]


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Columns as wide as their widest cell: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()
