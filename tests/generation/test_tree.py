"""Every probability of the tree against a plain forward pass of its path."""

import itertools

import pytest
import torch

from gptviz import next_token_table, trace
from gptviz.generation import alternatives, branches_of

MODELS = [
    dict(),
    dict(causal=False),
    dict(pos_encoding="rotary", n_kv_head=1),
    dict(pos_encoding="alibi"),
    dict(block_size=11),
]
SETTINGS = [dict(), dict(temperature=0.6, top_k=2), dict(top_p=0.4), dict(temperature=0)]


def probabilities(model, ids, settings):
    """By token id, after the settings, from the last block_size ids."""
    table = next_token_table(model(ids[-model.config.block_size :][None])[0, -1], **settings)
    return torch.empty_like(table.probs).scatter_(0, table.ids, table.probs)


@pytest.mark.parametrize("changes", MODELS, ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_every_probability_is_the_models(make_model, ids, changes, settings):
    model = make_model(**changes)
    tree = alternatives(model, trace(model, ids), branches=2, depth=3)
    for branch in branches_of(tree, **settings):
        *before, token = branch.path
        probs = probabilities(model, torch.cat([ids, torch.tensor(before, dtype=torch.long)]), settings)
        assert branch.prob == pytest.approx(float(probs[token]), abs=1e-4)
        rest = probs[probs > probs[token] + 1e-6]
        assert len(rest) < 2, "only the most likely are in the tree"


def test_a_path_is_as_likely_as_its_tokens_together(tiny_model, ids):
    found = {branch.path: branch for branch in branches_of(alternatives(tiny_model, trace(tiny_model, ids), 3, 3))}
    assert len(found) == 3 + 9 + 27
    for path, branch in found.items():
        product = 1.0
        for end in range(1, len(path) + 1):
            product *= found[path[:end]].prob
        assert branch.joint == pytest.approx(product)


def test_shares_of_the_unit_interval_lie_within_their_parents_and_apart(tiny_model, ids):
    found = branches_of(alternatives(tiny_model, trace(tiny_model, ids), 3, 3), temperature=2.0)
    spans = {branch.path: (branch.start, branch.start + branch.joint) for branch in found}
    for path, (start, end) in spans.items():
        low, high = spans.get(path[:-1], (0, 1))
        assert low - 1e-9 <= start <= end <= high + 1e-9
    for a, b in itertools.combinations([path for path in spans if len(path) == 3], 2):
        assert spans[a][1] <= spans[b][0] + 1e-9 or spans[b][1] <= spans[a][0] + 1e-9


def test_what_a_filter_removes_has_no_branch(tiny_model, ids):
    tree = alternatives(tiny_model, trace(tiny_model, ids), 3, 2)
    assert len(branches_of(tree, temperature=0)) == 2
    assert len(branches_of(tree, top_k=2)) == 2 + 4


def test_a_vocabulary_smaller_than_the_branches(tiny_model):
    tree = alternatives(tiny_model, trace(tiny_model, torch.tensor([1])), branches=4, depth=2, size=2)
    assert {branch.path[-1] for branch in branches_of(tree)} == {0, 1}


def test_one_level_and_one_branch(tiny_model, ids):
    (only,) = branches_of(alternatives(tiny_model, trace(tiny_model, ids), 1, 1))
    assert only.path == (int(tiny_model(ids[None])[0, -1].argmax()),)
