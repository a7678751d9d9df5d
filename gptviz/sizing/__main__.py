"""python -m gptviz.sizing gpt2: what a model takes, from its configuration alone."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, get_args

from ..errors import GptvizError
from . import report, source
from .roofline import ACCELERATORS, Accelerator
from .workload import AttentionPath, Dtype, Optimizer, Workload


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message[0].upper()}{message[1:].rstrip('.')}.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report; 2 for input that makes none, after a sentence on standard error."""
    args = _parser().parse_args(arguments)
    try:
        print_report(args)
    except GptvizError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def print_report(args: argparse.Namespace) -> None:
    config = source.read(args.source, dict(map(source.change, args.set)))
    given = config, _workload(args), _accelerator(args), args.source
    text = json.dumps(report.as_dict(*given), indent=2) if args.json else report.as_text(*given)
    sys.stdout.write(f"{text}\n")


def _workload(args: argparse.Namespace) -> Workload:
    names = ("batch", "context", "dtype", "training", "optimizer", "attention", "checkpointing")
    return Workload(**{name: getattr(args, name) for name in names})


def _accelerator(args: argparse.Namespace) -> Accelerator:
    named = ACCELERATORS[args.accelerator]
    flops = named.flops if args.flops_per_second is None else args.flops_per_second
    bandwidth = named.bandwidth if args.bandwidth is None else args.bandwidth
    if (flops, bandwidth) == (named.flops, named.bandwidth):
        return named
    return Accelerator(flops=flops, bandwidth=bandwidth, memory=named.memory)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m gptviz.sizing", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("source", metavar="CONFIG_OR_PRESET", help="a preset such as gpt2, a config.json, or a folder with one")
    add("--set", action="append", default=[], metavar="FIELD=VALUE", help="change a field; may be repeated")
    add("--json", action="store_true", help="everything as JSON, with a row a tensor")
    add("--batch", type=int, default=1, help="sequences at a time (default %(default)s)")
    add("--context", type=int, help="tokens a sequence (default: the model's block_size)")
    add("--dtype", choices=get_args(Dtype), default="bfloat16", help="of weights and activations (default %(default)s)")
    add("--training", action="store_true", help="a training step instead of inference")
    add("--optimizer", choices=get_args(Optimizer), default="adamw", help="default %(default)s")
    add("--attention", choices=get_args(AttentionPath), default="fused", help="default %(default)s")
    add("--checkpointing", action="store_true", help="keep each block's input alone for the backward pass")
    add("--accelerator", choices=tuple(ACCELERATORS), default="NVIDIA A100 80 GB", help="default %(default)s")
    add("--flops-per-second", type=float, metavar="N", help="instead of the accelerator's, as 312e12")
    add("--bandwidth", type=float, metavar="N", help="bytes a second, instead of the accelerator's, as 2e12")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
