"""Numbers from a Trace, as numpy: pure functions, one module a page."""

from .attention import (
    HEAD_SCORES,
    Cell,
    Stages,
    attention_cell,
    attention_stages,
    head_kind,
    head_scores,
    repeated_random_ids,
    without_first,
)

__all__ = [
    "HEAD_SCORES",
    "Cell",
    "Stages",
    "attention_cell",
    "attention_stages",
    "head_kind",
    "head_scores",
    "repeated_random_ids",
    "without_first",
]
