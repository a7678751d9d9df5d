"""The most likely ways on, as a tree: its logits take forward passes, its probabilities under other settings do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..capture import Trace
from ..model import GPT
from ..sampling import next_token_table
from .rows import Rows


@dataclass(frozen=True)
class Tree:
    """levels[d] are the logits (branches^d, V) after every path of d tokens.

    Node i's children are the nodes i * branches and on of the next level, its most likely token first.
    """

    branches: int
    levels: tuple[Tensor, ...]


@dataclass(frozen=True)
class Branch:
    """One token of the tree."""

    path: tuple[int, ...]  # the tokens that lead to it and it itself
    prob: float  # given the path before it
    joint: float  # of the whole path
    start: float  # where its share of the unit interval begins: after its elder siblings, within its parent's


def alternatives(model: GPT, run: Trace, branches: int = 3, depth: int = 3, size: int | None = None) -> Tree:
    """The `branches` most likely tokens after a trace's, after each of these again, and so on, `depth` tokens deep.

    Which are the most likely is the same for every temperature, so a tree serves for all sampling settings.
    The run is the model's own, unedited. size: how many of the V rows of W_U are tokens; the padding is left out.
    """
    rows = Rows.after(model, run)
    levels = [rows.logits()[:, :size].cpu()]
    branches = min(branches, levels[0].shape[1])
    for _ in range(depth - 1):
        tokens = _best(levels[-1], branches)  # (n, branches)
        parents = torch.arange(len(tokens)).repeat_interleave(branches)
        rows.extend(parents.to(rows.ids.device), tokens.flatten().to(rows.ids.device))
        levels.append(rows.logits()[:, :size].cpu())
    return Tree(branches, tuple(levels))


def _best(logits: Tensor, count: int) -> Tensor:
    """In the order of `next_token_table`, equal ones too."""
    return logits.float().sort(dim=-1, descending=True, stable=True).indices[:, :count]


def branches_of(tree: Tree, **settings: Any) -> list[Branch]:
    """The tree's tokens with their probabilities under next_token_table's settings; those filtered out are left out."""
    return list(_grown(tree, settings, (), 0, 1.0, 0.0))


def _grown(
    tree: Tree, settings: dict[str, Any], path: tuple[int, ...], node: int, joint: float, start: float
) -> Iterator[Branch]:
    table = next_token_table(tree.levels[len(path)][node], **settings)
    for child in range(tree.branches):
        prob = float(table.probs[child])
        if prob == 0:
            return
        branch = Branch((*path, int(table.ids[child])), prob, joint * prob, start)
        yield branch
        if len(branch.path) < len(tree.levels):
            yield from _grown(tree, settings, branch.path, node * tree.branches + child, branch.joint, start)
        start += branch.joint
