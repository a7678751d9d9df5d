"""How large, how much memory, how much arithmetic: from a configuration alone, without torch.

`python -m gptviz.sizing CONFIG_OR_PRESET` prints it.
"""

from .flops import Flops, decode_flops, flops, six_nd
from .growth import (
    Growth,
    contexts,
    crossing,
    depths,
    flops_over_context,
    memory_over_context,
    parameters_over_depth,
)
from .ledger import Line, biases_sentence, ledger
from .memory import SIZES, Fit, Memory, fits, kv_cache, memory
from .parameters import Groups, Row, component_counts, n_params, parameter_groups, parameter_table
from .published import PUBLISHED, Published, published_sentence
from .roofline import ACCELERATORS, Accelerator, Pace, decode_over_batches, pace, roofline
from .source import read_fields
from .units import count, plain, share, si
from .workload import DTYPES, OPTIMIZERS, Workload

__all__ = [
    "ACCELERATORS",
    "DTYPES",
    "OPTIMIZERS",
    "PUBLISHED",
    "SIZES",
    "Accelerator",
    "Fit",
    "Flops",
    "Groups",
    "Growth",
    "Line",
    "Memory",
    "Pace",
    "Published",
    "Row",
    "Workload",
    "biases_sentence",
    "component_counts",
    "contexts",
    "count",
    "crossing",
    "decode_flops",
    "decode_over_batches",
    "depths",
    "fits",
    "flops",
    "flops_over_context",
    "kv_cache",
    "ledger",
    "memory",
    "memory_over_context",
    "n_params",
    "pace",
    "parameter_groups",
    "parameter_table",
    "parameters_over_depth",
    "plain",
    "published_sentence",
    "read_fields",
    "roofline",
    "share",
    "si",
    "six_nd",
]
