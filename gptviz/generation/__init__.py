"""Beyond the next token: many continuations at once, the tree of alternatives, and how fast tokens come."""

from .continuations import Continuation, continuations
from .speed import Speed, cache_and_none, generation_speed
from .tree import Branch, Tree, alternatives, branches_of

__all__ = [
    "Branch",
    "Continuation",
    "Speed",
    "Tree",
    "alternatives",
    "branches_of",
    "cache_and_none",
    "continuations",
    "generation_speed",
]
