"""gptviz: a decoder-only transformer built from scratch, with everything it computes to be seen.

Names are resolved on first use, so that `import gptviz` and `gptviz.sizing` do not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .errors import GptvizError

if TYPE_CHECKING:
    from . import analysis, edits, generation, sizing
    from .capture import Trace, trace
    from .checkpoints import Checkpoint, bundled, load, save
    from .config import GPTConfig, preset
    from .model import GPT, variant
    from .sampling import Step, generate, next_token_table
    from .tokenizer import Tokenizer

__version__ = "0.1.0"

_HOME = {
    "GPT": "model",
    "GPTConfig": "config",
    "Checkpoint": "checkpoints",
    "Step": "sampling",
    "Tokenizer": "tokenizer",
    "Trace": "capture",
    "bundled": "checkpoints",
    "generate": "sampling",
    "load": "checkpoints",
    "next_token_table": "sampling",
    "preset": "config",
    "save": "checkpoints",
    "trace": "capture",
    "variant": "model",
}
_MODULES = ("analysis", "edits", "generation", "sizing")

__all__ = [
    "GPT",
    "Checkpoint",
    "GPTConfig",
    "GptvizError",
    "Step",
    "Tokenizer",
    "Trace",
    "analysis",
    "bundled",
    "edits",
    "generate",
    "generation",
    "load",
    "next_token_table",
    "preset",
    "save",
    "sizing",
    "trace",
    "variant",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
