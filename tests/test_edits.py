"""Interventions do what their names say, are values, and refuse what a model has not."""

import json

import numpy as np
import pytest
import torch

from gptviz import GptvizError, generate, trace
from gptviz.edits import AblateHead, from_json, to_json

close = torch.testing.assert_close


def test_an_ablated_head_no_longer_writes_what_it_wrote(make_model, ids):
    model = make_model(n_kv_head=2)
    plain, ablated = trace(model, ids), trace(model, ids, edits=[AblateHead(1, 2)])
    w_o = model.blocks[1].attn.out.weight.unflatten(1, (4, 8))[:, 2]  # (C, D) of head 2
    contribution = plain["blocks.1.attn.hook_z"][:, 2] @ w_o.T
    assert float(contribution.abs().max()) > 0.1
    close(ablated["blocks.1.hook_attn_out"], plain["blocks.1.hook_attn_out"] - contribution, atol=1e-5, rtol=1e-5)


def test_a_head_ablated_to_its_mean_writes_the_same_at_every_position(tiny_model, ids):
    plain, ablated = trace(tiny_model, ids), trace(tiny_model, ids, edits=[AblateHead(1, 2, "mean")])
    w_o = tiny_model.blocks[1].attn.out.weight[:, 16:24]
    written = plain["blocks.1.attn.hook_z"][:, 2] @ w_o.T
    expected = plain["blocks.1.hook_attn_out"] - written + written.mean(0)
    close(ablated["blocks.1.hook_attn_out"], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("to", ["zero", "mean"])
def test_ablation_leaves_the_other_heads_and_all_that_stands_before_alone(tiny_model, ids, to):
    plain, ablated = trace(tiny_model, ids), trace(tiny_model, ids, edits=[AblateHead(1, 2, to)])
    others = [0, 1, 3]
    assert torch.equal(ablated["blocks.1.attn.hook_z"][:, others], plain["blocks.1.attn.hook_z"][:, others])
    assert torch.equal(ablated["blocks.1.attn.hook_pattern"], plain["blocks.1.attn.hook_pattern"])
    assert torch.equal(ablated["blocks.1.hook_resid_pre"], plain["blocks.1.hook_resid_pre"])
    assert not torch.allclose(ablated.logits, plain.logits, atol=1e-3)


def test_a_trace_shows_activations_as_they_are_after_the_edits(tiny_model, ids):
    run = trace(tiny_model, ids, edits=[AblateHead(0, 3)])
    assert not run["blocks.0.attn.hook_z"][:, 3].any()


def test_all_heads_ablated_leave_the_bias_of_the_output_projection(tiny_model, ids):
    run = trace(tiny_model, ids, edits=[AblateHead(0, head) for head in range(4)])
    close(run["blocks.0.hook_attn_out"], tiny_model.blocks[0].attn.out.bias.expand(10, 32))


def test_of_two_edits_on_one_activation_the_later_sees_what_the_first_did(tiny_model, ids):
    z = trace(tiny_model, ids)["blocks.0.attn.hook_z"][:, 1]
    to_mean, to_zero = AblateHead(0, 1, "mean"), AblateHead(0, 1)
    both = trace(tiny_model, ids, edits=[to_zero, to_mean])["blocks.0.attn.hook_z"][:, 1]
    mean = trace(tiny_model, ids, edits=[to_mean])["blocks.0.attn.hook_z"][:, 1]
    assert not both.any()
    close(mean, z.mean(0).expand(10, 8))


def test_generation_is_edited_at_every_step(tiny_model, ids):
    edits = [AblateHead(0, 1), AblateHead(1, 0, "mean")]
    so_far = ids
    for step in generate(tiny_model, ids, 5, temperature=0, edits=edits):
        close(step.logits, trace(tiny_model, so_far, edits=edits).logits[-1], atol=1e-5, rtol=1e-5)
        so_far = torch.cat([so_far, torch.tensor([step.token])])


def test_edits_are_values_that_serve_as_keys():
    assert AblateHead(0, 1) == AblateHead(0, 1, "zero")
    assert len({AblateHead(0, 1), AblateHead(0, 1), AblateHead(0, 1, "mean"), AblateHead(1, 1)}) == 3
    assert {(AblateHead(0, 1),): "kept"}[(AblateHead(0, 1),)] == "kept"


def test_edits_survive_json():
    for edit in (AblateHead(3, 2), AblateHead(0, 0, "mean")):
        assert from_json(json.loads(json.dumps(to_json(edit)))) == edit


def test_numpys_integers_are_indexes_as_well(tiny_model, ids):
    layer, head = np.unravel_index(np.int64(6), (2, 4))
    assert torch.equal(
        trace(tiny_model, ids, edits=[AblateHead(layer, head)]).logits,
        trace(tiny_model, ids, edits=[AblateHead(1, 2)]).logits,
    )


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (AblateHead(2, 0), "no layer 2: this model's go from 0 to 1"),
        (AblateHead(-1, 0), "no layer -1"),
        (AblateHead(0, 4), "no head 4: this model's go from 0 to 3"),
        (AblateHead("0", 0), "no layer '0'"),
        (AblateHead(0, 1.0), "no head 1.0"),
        (AblateHead(0, True), "no head True"),
        (AblateHead(None, 0), "no layer None"),
        (AblateHead(0, 0, "noise"), "'zero' or to its 'mean', not to 'noise'"),
    ],
    ids=str,
)
def test_an_edit_of_what_the_model_has_not_is_a_sentence(tiny_model, ids, edit, sentence):
    with pytest.raises(GptvizError, match=sentence):
        trace(tiny_model, ids, edits=[edit])
    with pytest.raises(GptvizError, match=sentence):
        generate(tiny_model, ids, edits=[edit])


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "Explode", "layer": 0},
        {"layer": 0, "head": 0},
        {"kind": "AblateHead", "layer": 0},
        {"kind": "AblateHead", "layer": 0, "head": 0, "neuron": 3},
        {"kind": "AblateHead", "layer": [0], "head": 0},
        {"kind": ["AblateHead"], "layer": 0, "head": 0},
        {},
        [1, 2],
        "AblateHead",
        None,
    ],
    ids=str,
)
def test_json_that_is_no_edit_is_refused_with_the_kinds_there_are(value):
    with pytest.raises(GptvizError, match="AblateHead"):
        from_json(value)
