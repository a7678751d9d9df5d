"""How large, how much memory, how much arithmetic: from a configuration alone, without torch.

`python -m gptviz.sizing CONFIG_OR_PRESET` prints it.
"""

from .flops import Flops, decode_flops, flops, six_nd
from .memory import SIZES, Fit, Memory, fits, kv_cache, memory
from .parameters import Row, component_counts, n_params, parameter_groups, parameter_table
from .roofline import ACCELERATORS, Accelerator, Pace, decode_over_batches, pace, roofline
from .workload import Workload

__all__ = [
    "ACCELERATORS",
    "SIZES",
    "Accelerator",
    "Fit",
    "Flops",
    "Memory",
    "Pace",
    "Row",
    "Workload",
    "component_counts",
    "decode_flops",
    "decode_over_batches",
    "fits",
    "flops",
    "kv_cache",
    "memory",
    "n_params",
    "pace",
    "parameter_groups",
    "parameter_table",
    "roofline",
    "six_nd",
]
