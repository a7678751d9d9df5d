"""The model against independent implementations, its defining properties, and what it refuses."""

import cmath
import copy
import math
import warnings
from itertools import product
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gptviz import GPT, GPTConfig, GptvizError, trace, variant
from gptviz.config import PosEncoding
from gptviz.model import ACTIVATIONS, LongerThanTrained, view

ENCODINGS = get_args(PosEncoding)
close = torch.testing.assert_close


def explicit(model: GPT) -> GPT:
    """The same model with a listener on every pattern, so that attention is computed step by step."""
    own = view(model)
    for name, point in own.hook_points():
        if name.endswith("hook_pattern"):
            point.register_forward_hook(lambda module, args, output: None)
    return own


# Construction


def test_weights_begin_normal_with_the_configured_deviation_and_biases_at_zero():
    model = GPT(GPTConfig(vocab_size=512, block_size=128, n_layer=2, n_head=4, n_embd=256, unembed_bias=True))
    for name, parameter in model.requires_grad_(False).named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "ln" in name:
            assert bool((parameter == 1).all()), name
        else:
            assert float(parameter.std()) == pytest.approx(0.02, rel=0.03), name
            assert abs(float(parameter.mean())) < 0.001, name


def test_tied_weights_are_one_tensor_and_untied_are_two(make_model):
    tied, untied = make_model(), make_model(tie_weights=False)
    assert tied.unembed.weight is tied.embed.weight
    assert untied.unembed.weight is not untied.embed.weight
    assert not torch.equal(untied.unembed.weight, untied.embed.weight)


class PublishedHead(nn.Module):
    """A block's attention of the minimal decoder as it was published: one head, no output projection."""

    def __init__(self, d_model: int, d_head: int):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(d_model, d_head, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.q_proj(x) @ self.k_proj(x).transpose(-2, -1) / math.sqrt(self.q_proj.out_features)
        mask = torch.tril(torch.ones(x.shape[1], x.shape[1]))
        return torch.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1) @ self.v_proj(x)


def test_the_minimal_decoder_as_published_cannot_add_its_head_to_the_stream():
    x = torch.randn(1, 4, 768)
    with pytest.raises(RuntimeError, match=r"must match|broadcast"):
        x + PublishedHead(768, 64)(x)


def test_with_an_output_projection_the_minimal_decoder_is_the_published_one(make_model, ids):
    model = make_model(
        n_head=1,
        d_head=8,
        qkv_bias=False,
        out_bias=False,
        unembed_bias=True,
        tie_weights=False,
        pos_encoding="sinusoidal",
    )
    position = torch.arange(10).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, 32, 2) * (-math.log(10000.0) / 32))
    pe = torch.zeros(10, 32)
    pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
    x = model.embed.weight[ids][None] + pe
    for block in model.blocks:
        head = PublishedHead(32, 8)
        names = ("q_proj.weight", "k_proj.weight", "v_proj.weight")
        head.load_state_dict(dict(zip(names, block.attn.qkv.weight.split(8), strict=True)))
        x = x + head(F.layer_norm(x, (32,), block.ln1.weight, block.ln1.bias)) @ block.attn.out.weight.T
        inner = F.layer_norm(x, (32,), block.ln2.weight, block.ln2.bias) @ block.mlp.w_in.weight.T + block.mlp.w_in.bias
        x = x + nn.GELU()(inner) @ block.mlp.w_out.weight.T + block.mlp.w_out.bias
    x = F.layer_norm(x, (32,), model.ln_final.weight, model.ln_final.bias)
    close(model(ids[None]), x @ model.unembed.weight.T + model.unembed.bias, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changes", [dict(n_embd=33, n_head=3), dict(n_head=3, d_head=6), dict(n_head=1, n_embd=5)])
@pytest.mark.parametrize("encoding", ["sinusoidal", "learned", "alibi", "none"])
def test_odd_widths_and_heads_that_do_not_fill_the_width_run(make_model, ids, changes, encoding):
    assert make_model(**changes, pos_encoding=encoding)(ids[None]).shape == (1, 10, 50)


def test_activations_by_hand():
    # x Phi(x) at 1 is Phi(1); the tanh form differs in the fourth digit; silu(1) = 1 / (1 + 1/e)
    expected = {"gelu": 0.841345, "gelu_tanh": 0.841192, "relu": 1.0, "silu": 0.731059}
    assert {name: float(f(torch.tensor(1.0))) for name, f in ACTIVATIONS.items()} == pytest.approx(expected, abs=1e-6)


def test_the_two_gelus_differ_by_up_to_five_ten_thousandths():
    x = torch.linspace(-5, 5, 2001)
    assert 3e-4 < float((ACTIVATIONS["gelu"](x) - ACTIVATIONS["gelu_tanh"](x)).abs().max()) < 5e-4


# Attention


@pytest.mark.parametrize(("encoding", "causal", "n_kv_head"), [*product(ENCODINGS, [True, False], [4, 2, 1])])
def test_step_by_step_and_fused_attention_give_the_same_logits(make_model, ids, encoding, causal, n_kv_head):
    model = make_model(pos_encoding=encoding, causal=causal, n_kv_head=n_kv_head)
    close(explicit(model)(ids[None]), model(ids[None]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("encoding", "causal"), [*product(ENCODINGS, [True, False])])
def test_patterns_are_weights_that_see_the_future_only_without_the_mask(make_model, ids, encoding, causal):
    run = trace(make_model(pos_encoding=encoding, causal=causal), ids)
    for layer in range(2):
        pattern = run[f"blocks.{layer}.attn.hook_pattern"]
        close(pattern.sum(-1), torch.ones(4, 10))
        future = pattern[:, torch.ones(10, 10, dtype=torch.bool).triu(1)]
        assert bool((future == 0).all() if causal else (future > 0).all())


@pytest.mark.parametrize(("encoding", "causal"), [*product(ENCODINGS, [True, False])])
def test_a_later_token_changes_an_earlier_logit_only_without_the_mask(make_model, ids, encoding, causal):
    model, other = make_model(pos_encoding=encoding, causal=causal), ids.clone()
    other[-1] = 3
    for run in (model, explicit(model)):
        moved = (run(ids[None]) - run(other[None]))[0, :-1].abs().max()
        assert float(moved) < 1e-6 if causal else float(moved) > 1e-3


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_without_mask_only_a_model_without_positions_ignores_the_order(make_model, ids, encoding):
    model, order = make_model(pos_encoding=encoding, causal=False), torch.randperm(10)
    moved = float((model(ids[None])[:, order] - model(ids[order][None])).abs().max())
    assert moved < 1e-5 if encoding == "none" else moved > 1e-2


@pytest.mark.parametrize(
    ("encoding", "by_distance"), [("rotary", True), ("alibi", True), ("none", True), ("learned", False)]
)
def test_scores_of_one_repeated_token_depend_on_the_distance_only(make_model, encoding, by_distance):
    run = trace(make_model(pos_encoding=encoding, causal=False), torch.full((12,), 7))
    scores = run["blocks.0.attn.hook_attn_scores"]
    close_by = torch.allclose(scores[:, 1:, 1:], scores[:, :-1, :-1], atol=1e-4)
    assert close_by is by_distance


def scores_by_hand(model: GPT, q: torch.Tensor, k: torch.Tensor, head: int, i: int, j: int) -> float:
    """The score of one query and one key, with complex numbers for rotary and a loop for everything else."""
    if model.config.pos_encoding == "rotary":
        half = len(q) // 2
        pairs = [(complex(q[n], q[n + half]), complex(k[n], k[n + half])) for n in range(half)]
        turns = [cmath.exp(1j * (i - j) / 10000 ** (n / half)) for n in range(half)]
        dot = sum((a * turn * b.conjugate()).real for (a, b), turn in zip(pairs, turns, strict=True))
    else:
        dot = sum(a * b for a, b in zip(q.tolist(), k.tolist(), strict=True))
    slope = [1 / 4, 1 / 16, 1 / 64, 1 / 256][head] if model.config.pos_encoding == "alibi" else 0.0
    return dot / math.sqrt(len(q)) - slope * abs(i - j)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_scores_are_the_products_of_queries_and_keys(make_model, ids, encoding):
    model = make_model(pos_encoding=encoding, n_kv_head=2)
    run = trace(model, ids)
    q, k, scores = (run[f"blocks.1.attn.{name}"] for name in ("hook_q", "hook_k", "hook_attn_scores"))
    for head, (i, j) in product(range(4), [(0, 0), (5, 2), (9, 9), (9, 0)]):
        by_hand = scores_by_hand(model, q[i, head], k[j, head // 2], head, i, j)
        assert float(scores[head, i, j]) == pytest.approx(by_hand, abs=1e-4)
    assert bool(torch.isneginf(scores[:, 0, 1:]).all())


@pytest.mark.parametrize("run_as", [lambda model: model, explicit], ids=["fused", "explicit"])
def test_a_forward_pass_leaves_nothing_on_any_module(make_model, ids, run_as):
    model = run_as(make_model(pos_encoding="rotary", qk_norm=True))
    before = [(name, copy.copy(vars(module))) for name, module in model.named_modules()]
    model(ids[None])
    for (name, was), (_, module) in zip(before, model.named_modules(), strict=True):
        assert vars(module).keys() == was.keys(), name
        assert all(vars(module)[key] is was[key] for key in was), name


@pytest.mark.parametrize(("encoding", "gated"), [*product(ENCODINGS, [True, False])])
def test_gradients_reach_every_parameter_and_agree_between_both_kinds_of_attention(make_model, ids, encoding, gated):
    shared = make_model(pos_encoding=encoding, gated_mlp=gated, qk_norm=gated, tie_weights=False)
    model = copy.deepcopy(shared).requires_grad_()
    gradients = []
    for run in (model, explicit(model)):
        model.zero_grad()
        run.loss(ids[None, :-1], ids[None, 1:]).backward()
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    assert all(bool(gradient.any()) for gradient in gradients[0].values())
    close(gradients[0], gradients[1], atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("run_as", [lambda model: model, explicit], ids=["fused", "explicit"])
def test_dropout_acts_in_training_alone(make_model, ids, run_as):
    model = run_as(copy.deepcopy(make_model(dropout=0.5)))
    assert torch.equal(model(ids[None]), model(ids[None]))
    model.train()
    assert not torch.allclose(model(ids[None]), model(ids[None]))


def test_the_loss_is_the_mean_surprise_in_nats(tiny_model, ids):
    probabilities = tiny_model(ids[None, :-1])[0].softmax(-1)
    surprise = [-math.log(float(probabilities[at, token])) for at, token in enumerate(ids[1:].tolist())]
    assert float(tiny_model.loss(ids[None, :-1], ids[None, 1:])) == pytest.approx(sum(surprise) / 9, rel=1e-5)


def test_a_batch_is_its_rows(tiny_model, ids):
    rows = torch.stack([ids, ids.flip(0)])
    close(tiny_model(rows), torch.cat([tiny_model(rows[:1]), tiny_model(rows[1:])]), atol=1e-5, rtol=1e-5)


# Errors


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ([[3, 50]], r"50 is outside the vocabulary: ids go from 0 to 49"),
        ([[-1, 3]], r"-1 is outside the vocabulary"),
        ([[]], "at least one token id"),
        ([3, 4], "at least one token id"),
        ([[1.0, 2.0]], "whole numbers"),
        ([[True, False]], "whole numbers"),
        ([[1] * 33], r"33 tokens.*block_size = 32: leave out 1"),
    ],
)
def test_ids_that_the_model_cannot_run_on_are_refused_in_a_sentence(tiny_model, wrong, sentence):
    with pytest.raises(GptvizError, match=sentence):
        tiny_model(torch.tensor(wrong))


@pytest.mark.parametrize("encoding", [encoding for encoding in ENCODINGS if encoding != "learned"])
def test_longer_than_trained_runs_with_a_warning_where_positions_have_no_table(make_model, encoding):
    model = make_model(pos_encoding=encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(torch.zeros(1, 32, dtype=torch.long))
    with pytest.warns(LongerThanTrained, match="33 tokens are more than the 32"):
        logits = model(torch.zeros(1, 33, dtype=torch.long))
    assert logits.shape == (1, 33, 50)


# Variants


def test_a_variant_shares_every_tensor_and_leaves_the_original_alone(tiny_model, ids):
    before, config = tiny_model(ids[None]), tiny_model.config
    other = variant(tiny_model, causal=False, activation="relu")
    shared = dict(tiny_model.named_parameters())
    assert {name: p.data_ptr() for name, p in other.named_parameters()} == {n: p.data_ptr() for n, p in shared.items()}
    assert not torch.allclose(other(ids[None]), before)
    other.train()
    assert tiny_model.config == config
    assert not tiny_model.training
    assert torch.equal(tiny_model(ids[None]), before)


@pytest.mark.parametrize(
    "changes",
    [
        dict(causal=False),
        dict(pos_encoding="alibi"),
        dict(pos_encoding="sinusoidal", pos_scale=0.5),
        dict(pos_encoding="rotary", rope_base=500.0),
        dict(attn_scale=1.0),
        dict(activation="gelu_tanh"),
        dict(norm_eps=0.1),
        dict(pos_encoding="none"),
    ],
    ids=str,
)
def test_a_variant_computes_what_a_model_built_that_way_does(tiny_model, ids, changes):
    built = GPT(GPTConfig(**tiny_model.config.to_dict() | changes)).eval()
    built.load_state_dict(tiny_model.state_dict(), strict=False)
    assert torch.equal(variant(tiny_model, **changes)(ids[None]), built(ids[None]))
    assert not torch.allclose(built(ids[None]), tiny_model(ids[None]), atol=1e-6)


def test_pos_scale_zero_is_no_encoding(tiny_model, ids):
    close(variant(tiny_model, pos_scale=0.0)(ids[None]), variant(tiny_model, pos_encoding="none")(ids[None]))


def test_a_change_that_needs_other_weights_is_refused_by_name(tiny_model):
    with pytest.raises(GptvizError, match=r"n_embd, n_head can't be changed"):
        variant(tiny_model, n_head=2, causal=False, n_embd=16)
    with pytest.raises(GptvizError, match="no_such_field"):
        variant(tiny_model, no_such_field=1)


def test_an_unknown_encoding_is_refused_with_the_known_ones(tiny_model):
    with pytest.raises(GptvizError, match=r"pos_encoding = \"relative\" is not one of 'learned', 'sinusoidal'"):
        variant(tiny_model, pos_encoding="relative")


@pytest.mark.parametrize("encoding", [encoding for encoding in ENCODINGS if encoding != "learned"])
def test_learned_positions_that_nobody_learned_are_made_up_the_same_every_time_and_named(make_model, ids, encoding):
    model = make_model(pos_encoding=encoding)
    one, two = variant(model, pos_encoding="learned"), variant(model, pos_encoding="learned")
    assert one.untrained == {"pos_embed"}
    assert torch.equal(one.pos_embed.weight, two.pos_embed.weight)
    assert float(one.pos_embed.weight.detach().std()) == pytest.approx(model.config.init_std, rel=0.1)
    assert not torch.allclose(one(ids[None]), model(ids[None]))
    assert model.untrained == frozenset()
    assert variant(one, causal=False).untrained == {"pos_embed"}
    assert variant(one, pos_encoding=encoding).untrained == frozenset()


def test_trained_positions_are_kept_where_the_encoding_stays(tiny_model):
    other = variant(tiny_model, pos_encoding="learned", causal=False)
    assert other.untrained == frozenset()
    assert other.pos_embed.weight is tiny_model.pos_embed.weight


def test_making_a_variant_does_not_touch_the_random_state(make_model):
    state = torch.get_rng_state()
    variant(make_model(pos_encoding="rotary"), pos_encoding="learned")
    assert torch.equal(torch.get_rng_state(), state)


def test_hooks_on_a_variant_are_its_own(tiny_model, ids):
    model, heard = copy.deepcopy(tiny_model).requires_grad_(), []
    other = variant(model)
    other.blocks[0].register_forward_hook(lambda *args: heard.append("forward"))
    other.blocks[0].register_forward_pre_hook(lambda *args: heard.append("before"))
    other.blocks[0].register_full_backward_hook(lambda *args: heard.append("backward"))
    model.loss(ids[None, :-1], ids[None, 1:]).backward()
    assert heard == []
    other.loss(ids[None, :-1], ids[None, 1:]).backward()
    assert heard == ["before", "forward", "backward"]
