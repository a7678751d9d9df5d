"""Whether arithmetic or memory sets the pace, and how fast it can go at best.

Williams, Waterman & Patterson 2009, Roofline: https://doi.org/10.1145/1498765.1498785. Traffic is the least possible:
each weight and each cached key and value crosses once. Real kernels move more, and reach half to nine tenths of a peak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..config import GPTConfig
from ..errors import GptvizError
from .flops import decode_flops, flops
from .memory import kv_cache
from .parameters import parameter_groups
from .workload import WEIGHT_BYTES, Workload

Phase = Literal["prefill", "decode"]


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """flops: dense 16-bit operations a second at most; bandwidth: bytes a second of its memory; memory: bytes.

    arithmetic: what operations these are; source: where the maker states the numbers.
    """

    flops: float
    bandwidth: float
    memory: float
    arithmetic: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("flops", "bandwidth", "memory"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and 0 < value <= 1e30):
                raise GptvizError(f"{name} = {value!r} must be a positive number below 10^30.")

    @property
    def ridge(self) -> float:
        """Operations a byte above which arithmetic sets the pace."""
        return self.flops / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """Operations a second at so many operations a byte."""
        return min(self.flops, intensity * self.bandwidth)


_NVIDIA = "https://www.nvidia.com"
_BFLOAT16 = "dense bfloat16 on tensor cores"

# As the makers state them. Where they state operations on sparse matrices (L4 242, H100 and H200 1,979 TFLOP/s), dense
# ones are half of that.
ACCELERATORS = {
    "NVIDIA T4": Accelerator(
        flops=65e12,
        bandwidth=0.32e12,
        memory=16e9,
        arithmetic="dense float16 on tensor cores, which have no bfloat16",
        source=f"{_NVIDIA}/content/dam/en-zz/Solutions/Data-Center/tesla-t4/t4-tensor-core-product-brief.pdf",
    ),
    "NVIDIA L4": Accelerator(
        flops=121e12,
        bandwidth=0.30e12,
        memory=24e9,
        arithmetic=_BFLOAT16,
        source=f"{_NVIDIA}/en-us/data-center/l4/",
    ),
    "NVIDIA RTX 4090": Accelerator(
        flops=165.2e12,
        bandwidth=1.008e12,
        memory=24e9,
        arithmetic=f"{_BFLOAT16}, summed in float32",
        source="https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
    ),
    "NVIDIA A100 80 GB": Accelerator(
        flops=312e12,
        bandwidth=2.039e12,
        memory=80e9,
        arithmetic=f"{_BFLOAT16}, the SXM version",
        source=f"{_NVIDIA}/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
        "nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf",
    ),
    "NVIDIA H100 SXM": Accelerator(
        flops=989e12,
        bandwidth=3.35e12,
        memory=80e9,
        arithmetic=_BFLOAT16,
        source=f"{_NVIDIA}/en-us/data-center/h100/",
    ),
    "NVIDIA H200 SXM": Accelerator(
        flops=989e12,
        bandwidth=4.8e12,
        memory=141e9,
        arithmetic=_BFLOAT16,
        source=f"{_NVIDIA}/en-us/data-center/h200/",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Pace:
    """One phase on one accelerator, at best. seconds: of the pass; tokens_per_second: over the whole batch."""

    phase: Phase
    flops: int
    bytes: int
    intensity: float  # operations a byte
    bound: Literal["compute", "memory"]
    seconds: float
    tokens_per_second: float


def roofline(config: GPTConfig, workload: Workload, accelerator: Accelerator) -> list[Pace]:
    """Prefill of the context, then one decoded token, of a batch."""
    return [pace(phase, config, workload, accelerator) for phase in ("prefill", "decode")]


def pace(phase: Phase, config: GPTConfig, workload: Workload, accelerator: Accelerator) -> Pace:
    """The slower of arithmetic and memory sets the time."""
    work = (flops if phase == "prefill" else decode_flops)(config, _inference(workload)).total
    moved = _traffic(config, workload)
    computing, moving = work / accelerator.flops, moved / accelerator.bandwidth
    seconds = max(computing, moving)
    tokens = workload.batch * (workload.tokens(config) if phase == "prefill" else 1)
    return Pace(
        phase=phase,
        flops=work,
        bytes=moved,
        intensity=work / moved,
        bound="compute" if computing >= moving else "memory",
        seconds=seconds,
        tokens_per_second=tokens / seconds,
    )


def decode_over_batches(
    config: GPTConfig, workload: Workload, accelerator: Accelerator, batches: Sequence[int]
) -> list[Pace]:
    """Decoding at several batch sizes: the weights' traffic is shared, the cache's is not."""
    return [pace("decode", config, replace(workload, batch=batch), accelerator) for batch in batches]


def _inference(workload: Workload) -> Workload:
    return replace(workload, training=False)


def _traffic(config: GPTConfig, workload: Workload) -> int:
    """Every multiplied weight read once, the KV cache written (prefill) or read (decode) once, in bytes."""
    groups = parameter_groups(config)
    weights = math.ceil((groups.total - groups.tables) * WEIGHT_BYTES[workload.dtype])
    return weights + kv_cache(config, workload)
