"""The schedule's shape, which parameters are trained how, and what Muon's step does to a matrix."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch

from gptviz import GPT
from gptviz.training.optim import Muon, optimizers, orthogonalise
from gptviz.training.options import schedule


def test_the_rate_rises_stays_and_falls_to_one_percent():
    rates = [schedule(step, 100, 10, 0.4) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert set(rates[9:61]) == {1.0}
    assert rates[80] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(0.025)
    assert min(rates[60:]) >= 0.01
    assert all(a >= b for a, b in pairwise(rates[60:]))
    assert schedule(100_000 - 1, 100_000, 10, 0.4) == 0.01


def test_without_warm_up_and_decay_the_rate_is_constant():
    assert {schedule(step, 50, 0, 0.0) for step in range(50)} == {1.0}


@pytest.mark.parametrize("kind", ["adamw", "muon"])
@pytest.mark.parametrize(
    "changes", [{}, {"tie_weights": False, "unembed_bias": True}, {"n_kv_head": 2, "gated_mlp": True, "qk_norm": True}]
)
def test_every_parameter_is_trained_exactly_once(make_model: Callable[..., GPT], kind: str, changes: dict[str, object]):
    model = make_model(**changes)
    made = optimizers(model, kind, 1e-3, 0.02)
    trained = [id(p) for optimizer in made for group in optimizer.param_groups for p in group["params"]]
    assert sorted(trained) == sorted(id(p) for p in model.parameters())


def test_muon_takes_the_blocks_matrices_and_adamw_decays_matrices_only(tiny_model: GPT):
    names = {id(p): name for name, p in tiny_model.named_parameters()}
    adamw, muon = optimizers(tiny_model, "muon", 1e-3, 0.02)
    of_muon = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    assert of_muon == {
        f"blocks.{i}.{part}.weight" for i in (0, 1) for part in ("attn.qkv", "attn.out", "mlp.w_in", "mlp.w_out")
    }
    decayed = {names[id(p)] for g in adamw.param_groups if g["weight_decay"] for p in g["params"]}
    assert decayed == {"embed.weight", "pos_embed.weight"}


@pytest.mark.parametrize("shape", [(16, 16), (8, 64), (64, 8), (96, 32), (3, 5)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_orthogonalise_brings_singular_values_near_one(shape: tuple[int, int], scale: float):
    matrix = scale * torch.randn(shape)
    out = orthogonalise(matrix)
    s = torch.linalg.svdvals(out)
    assert out.shape == shape
    assert s.min() > 0.5
    assert s.max() < 1.3
    u0, _, v0 = torch.linalg.svd(matrix, full_matrices=False)
    assert torch.trace((u0 @ v0).T @ out) > 0.7 * min(shape)  # it points where U V^T points


def test_orthogonalise_of_zeros_is_zero():
    assert torch.equal(orthogonalise(torch.zeros(4, 6)), torch.zeros(4, 6))


def test_a_fused_matrix_is_stepped_as_the_matrices_it_holds():
    rows, gradient = [8, 4, 4], torch.randn(16, 8)
    fused = torch.nn.Parameter(torch.zeros(16, 8))
    apart = [torch.nn.Parameter(torch.zeros(n, 8)) for n in rows]
    fused.grad = gradient.clone()
    for p, part in zip(apart, gradient.split(rows), strict=True):
        p.grad = part.clone()
    Muon([{"params": [fused], "rows": rows}]).step()
    Muon([{"params": apart}]).step()
    assert torch.equal(fused.detach(), torch.cat([p.detach() for p in apart]))


def test_the_fused_projection_is_split_by_the_widths_of_q_k_and_v(make_model: Callable[..., GPT]):
    grouped = make_model(n_kv_head=2)
    _, muon = optimizers(grouped, "muon", 1e-3, 0.02)
    assert [group["rows"] for group in muon.param_groups] == [[32, 16, 16], None]


def test_muon_s_momentum_is_nesterov_s():
    """A single number is a 1 x 1 matrix, whose direction is its sign."""
    p = torch.nn.Parameter(torch.zeros(1, 1))
    muon = Muon([{"params": [p]}], lr=0.1, momentum=0.9)
    p.grad = torch.tensor([[1.0]])
    muon.step()
    assert muon.state[p]["mean"].item() == pytest.approx(0.1)
    p.grad = torch.tensor([[-1.0]])
    muon.step()
    assert muon.state[p]["mean"].item() == pytest.approx(-0.01)
    assert abs(p.item()) < 0.06  # once down, once up by nearly as much
