"""What stands in the stream and who wrote a logit, against numpy and against the model with a part taken out."""

import copy

import numpy as np
import pytest
import torch

from gptviz import trace
from gptviz.analysis import additions, logit_attribution, norm_scales, stream_norms
from gptviz.edits import AblateHead

from .test_logit_lens import kinds


@kinds
def test_the_parts_sum_to_the_logit(make_model, ids, changes):
    model = make_model(**changes)
    run = trace(model, ids)
    for position, token in ((0, 3), (5, 49), (9, 0)):
        parts = logit_attribution(model, run, position, token)
        assert sum(parts.values()) == pytest.approx(float(run.logits[position, token]), abs=2e-4)


@kinds
def test_the_parts_have_names_in_the_order_of_the_forward_pass(make_model, ids, changes):
    model = make_model(**changes)
    config = model.config
    expected = ["embed", *(["pos"] if model.pos_embed is not None else [])]
    for layer in range(config.n_layer):
        expected += [*(f"L{layer}H{head}" for head in range(config.n_head)), f"mlp{layer}"]
    assert list(logit_attribution(model, trace(model, ids), 4, 7)) == [*expected, "biases"]


def numpy_reading(model, run, position, token):
    """written (C,) -> its share of the logit: the norm with the run's scale, then a row of W_U, in numpy."""
    scale = run["ln_final.hook_scale"][position].double().numpy()
    weight, row = model.ln_final.weight.double().numpy(), model.unembed.weight[token].double().numpy()
    centred = run.config.norm == "layernorm"
    return lambda written: float(((written - centred * written.mean()) / scale * weight) @ row)


@kinds
def test_each_part_is_what_its_own_vector_gives(make_model, ids, changes):
    model = make_model(**changes)
    run, position, token = trace(model, ids), 6, 11
    read, parts = numpy_reading(model, run, position, token), logit_attribution(model, run, position, token)
    assert parts["embed"] == pytest.approx(read(model.embed.weight[ids[position]].double().numpy()), abs=1e-5)
    width = model.config.d_head
    for layer, block in enumerate(model.blocks):
        for head in range(model.config.n_head):
            columns = block.attn.out.weight[:, head * width : (head + 1) * width].double().numpy()
            z = run[f"blocks.{layer}.attn.hook_z"][position, head].double().numpy()
            assert parts[f"L{layer}H{head}"] == pytest.approx(read(columns @ z), abs=1e-5)
        post, out = run[f"blocks.{layer}.mlp.hook_post"][position].double().numpy(), block.mlp.w_out.weight
        assert parts[f"mlp{layer}"] == pytest.approx(read(out.double().numpy() @ post), abs=1e-5)


def test_what_a_head_wrote_is_missing_once_it_is_silent(make_model, ids):
    # one parallel block: nothing reads the head but the output, so that the logit loses exactly the head's part
    model = make_model(n_layer=1, parallel_residual=True)
    before, after = trace(model, ids), trace(model, ids, edits=[AblateHead(0, 2)])
    position, token = 8, 20
    part = logit_attribution(model, before, position, token)["L0H2"]
    shift = float(model.ln_final.bias @ model.unembed.weight[token])
    old, new = (float(run.logits[position, token]) - shift for run in (before, after))
    scales = [float(run["ln_final.hook_scale"][position, 0]) for run in (before, after)]
    assert new * scales[1] == pytest.approx((old - part) * scales[0], abs=1e-4)
    assert logit_attribution(model, after, position, token)["L0H2"] == 0


def test_an_edit_within_the_parts_leaves_the_sum_whole(tiny_model, ids):
    run = trace(tiny_model, ids, edits=[AblateHead(1, 3, "mean")])
    parts = logit_attribution(tiny_model, run, 5, 5)
    assert "edits" not in parts
    assert sum(parts.values()) == pytest.approx(float(run.logits[5, 5]), abs=2e-4)


class Lift:
    """Adds 1 to what leaves block 0: no part of the model wrote that."""

    def changes(self, config):
        return {"blocks.0.hook_resid_post": lambda stream: stream + torch.linspace(0, 1, stream.shape[-1])}


def test_what_an_edit_put_into_the_stream_has_a_name(tiny_model, ids):
    run = trace(tiny_model, ids, edits=[Lift()])
    parts = logit_attribution(tiny_model, run, 5, 5)
    put_in = numpy_reading(tiny_model, run, 5, 5)(np.linspace(0, 1, 32))
    assert parts["edits"] == pytest.approx(put_in, abs=1e-4)
    assert sum(parts.values()) == pytest.approx(float(run.logits[5, 5]), abs=2e-4)


def test_a_logit_by_hand(make_model):
    """The embedding (3, 0, -3, 0) alone, to which the block adds nothing: mean 0, standard deviation 3/sqrt 2."""
    model = copy.deepcopy(make_model(vocab_size=3, n_layer=1, n_head=1, n_embd=4, pos_encoding="none", norm_eps=1e-12))
    for parameter in model.parameters():
        parameter.zero_()
    model.embed.weight[1] = torch.tensor([3.0, 0, -3, 0])
    model.embed.weight[2] = torch.tensor([0.0, 1, -1, 0])
    model.ln_final.weight.fill_(1)
    model.ln_final.bias.fill_(0.5)
    parts = logit_attribution(model, trace(model, torch.tensor([1])), 0, 2)
    assert parts["embed"] == pytest.approx(2**0.5)  # (0, 1, -1, 0) . (3, 0, -3, 0) / (3 / sqrt 2)
    assert parts["biases"] == pytest.approx(0)  # 0.5 (1 - 1)
    assert parts["L0H0"] == parts["mlp0"] == 0


@kinds
def test_the_stream_is_the_sum_of_what_is_added(make_model, ids, changes):
    run = trace(make_model(**changes), ids)
    assert additions(run).error < 1e-5


@kinds
def test_lengths_shares_and_cosines_are_numpys(make_model, ids, changes):
    run = trace(make_model(**changes), ids)
    added, layers = additions(run), run.config.n_layer
    assert added.names == [f"{part} {layer}" for layer in range(layers) for part in ("attn", "mlp")]
    stream = run["blocks.0.hook_resid_pre"].numpy().astype(float)
    np.testing.assert_allclose(stream_norms(run)[0], np.sqrt((stream**2).sum(-1)), rtol=1e-5)
    for at, name in enumerate(added.names):
        part, layer = name.split()
        wrote = run[f"blocks.{layer}.hook_{part}_out"].numpy().astype(float)
        lengths = np.sqrt((wrote**2).sum(-1)), np.sqrt((stream**2).sum(-1))
        np.testing.assert_allclose(added.norm[at], lengths[0], rtol=1e-4)
        np.testing.assert_allclose(added.share[at], lengths[0] / lengths[1], rtol=1e-4)
        np.testing.assert_allclose(added.cosine[at], (wrote * stream).sum(-1) / lengths[0] / lengths[1], atol=1e-4)
        stream = stream + wrote
    np.testing.assert_allclose(stream_norms(run)[-1], np.sqrt((stream**2).sum(-1)), rtol=1e-4)


def test_layernorms_scale_is_the_standard_deviation_and_rmsnorms_the_root_mean_square(make_model, ids):
    run = trace(make_model(), ids)
    names, scales = norm_scales(run)
    assert names == ["ln1 0", "ln2 0", "ln1 1", "ln2 1", "ln_final"]
    mid = run["blocks.1.hook_resid_mid"].numpy()
    np.testing.assert_allclose(scales[3], np.sqrt(mid.var(-1) + 1e-5), rtol=1e-4)
    run = trace(make_model(norm="rmsnorm"), ids)
    last = run["blocks.1.hook_resid_post"].numpy()
    np.testing.assert_allclose(norm_scales(run)[1][-1], np.sqrt((last**2).mean(-1) + 1e-5), rtol=1e-4)


def test_one_token_has_all_of_it(tiny_model):
    run = trace(tiny_model, torch.tensor([4]))
    assert additions(run).norm.shape == (4, 1)
    assert stream_norms(run).shape == (3, 1)
