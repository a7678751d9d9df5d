"""The circuits of a head against whole matrices in float64, the model's own scores and heads built by hand."""

import copy
import math

import numpy as np
import pytest
import torch

import gptviz
from gptviz import GPT, GPTConfig, trace, variant
from gptviz.analysis import attention_stages
from gptviz.analysis.circuits import circuit_eigenvalues, eigenvalue_score, ov_circuit, ov_top, qk_circuit
from tests.test_families import CASES, NAMES, VOCAB, saved, theirs

KINDS = [
    {},
    {"n_kv_head": 2},
    {"n_kv_head": 1, "d_head": 6},
    {"pos_encoding": "rotary", "norm": "rmsnorm", "tie_weights": False},
    {"pos_encoding": "alibi", "qkv_bias": False, "norm_bias": False, "scale_by_layer": True},
    {"tie_weights": False, "unembed_bias": True, "attn_scale": 0.7},
    {"qk_norm": True, "n_kv_head": 2, "pos_encoding": "none"},
    {"gated_mlp": True, "parallel_residual": True, "out_bias": False},
]
UNIQUE = [7, 31, 2, 48, 0, 19]


class Whole:
    """The circuits of one head over the whole vocabulary: (V, V) matrices in float64, as one would write them down."""

    def __init__(self, model: GPT, layer: int, head: int):
        c, w = model.config, {name: value.double().numpy() for name, value in model.state_dict().items()}
        at, D, own = f"blocks.{layer}.", c.d_head, head // (c.n_head // c.n_kv_head)

        def rows(name: str, start: int) -> np.ndarray:
            return w[f"{at}attn.qkv.{name}"][start * D : (start + 1) * D]

        starts = [head, c.n_head + own, c.n_head + c.n_kv_head + own]
        W_Q, W_K, W_V = (rows("weight", start).T for start in starts)
        b_Q, b_K, b_V = (rows("bias", start) if c.qkv_bias else 0 for start in starts)
        read = self.norm(w["embed.weight"], w[f"{at}ln1.weight"], w.get(f"{at}ln1.bias", 0), c.norm)
        q, k, v = read @ W_Q + b_Q, read @ W_K + b_K, read @ W_V + b_V
        if c.qk_norm:
            q = self.norm(q, w[f"{at}attn.q_norm.weight"], 0, "rmsnorm")
            k = self.norm(k, w[f"{at}attn.k_norm.weight"], 0, "rmsnorm")
        written = v @ w[f"{at}attn.out.weight"][:, head * D : (head + 1) * D].T  # (V, C)
        if c.norm == "layernorm":
            written = written - written.mean(1, keepdims=True)
        self.qk = q @ k.T * c.attn_scale / (layer + 1 if c.scale_by_layer else 1)
        self.logits = written * w["ln_final.weight"] @ w["unembed.weight"].T  # biases still in it

    @staticmethod
    def norm(x, weight, bias, kind):
        if kind == "layernorm":
            x = x - x.mean(1, keepdims=True)
        return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * weight + bias


def centred(matrix: np.ndarray) -> np.ndarray:
    return matrix - matrix.mean(1, keepdims=True)


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_the_qk_circuit_is_that_of_the_whole_matrix(make_model, changes):
    model = make_model(**changes)
    for layer, head in ((0, 0), (0, 3), (1, 2)):
        found = qk_circuit(model, UNIQUE, layer, head)
        assert (found.shape, found.dtype) == ((6, 6), np.float32)
        np.testing.assert_allclose(found, Whole(model, layer, head).qk[np.ix_(UNIQUE, UNIQUE)], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_the_ov_circuit_differs_between_sources_as_the_whole_matrix_does(make_model, changes):
    """What is the same for all sources is left out: so it's the differences that are known without a formula for it."""
    model = make_model(**changes)
    for layer, head in ((0, 1), (1, 3)):
        found, whole = ov_circuit(model, UNIQUE, layer, head), centred(Whole(model, layer, head).logits)
        assert (found.shape, found.dtype) == ((6, 6), np.float32)
        expected = whole[np.ix_(UNIQUE, UNIQUE)]
        np.testing.assert_allclose(found - found[:1], expected - expected[:1], rtol=1e-4, atol=1e-4)


def without_biases(model: GPT) -> GPT:
    twin = copy.deepcopy(model)
    for name, parameter in twin.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
    return twin


@pytest.mark.parametrize("changes", [{}, {"n_kv_head": 2}, {"tie_weights": False, "unembed_bias": True}], ids=str)
def test_no_bias_is_in_the_ov_circuit_or_an_eigenvalue_but_those_of_q_and_k_are_in_the_scores(make_model, changes):
    model = make_model(**changes)
    bare = without_biases(model)
    np.testing.assert_allclose(ov_circuit(model, UNIQUE, 1, 2), ov_circuit(bare, UNIQUE, 1, 2), atol=1e-4)
    expected = centred(Whole(bare, 1, 2).logits)[np.ix_(UNIQUE, UNIQUE)]
    np.testing.assert_allclose(ov_circuit(model, UNIQUE, 1, 2), expected, rtol=1e-4, atol=1e-4)
    for one, other in zip(circuit_eigenvalues(model, 1, 2), circuit_eigenvalues(bare, 1, 2), strict=True):
        assert eigenvalue_score(one) == pytest.approx(eigenvalue_score(other), abs=1e-4)
    assert np.abs(qk_circuit(model, UNIQUE, 1, 2) - qk_circuit(bare, UNIQUE, 1, 2)).max() > 0.01


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_the_eigenvalues_are_those_of_the_whole_matrices(make_model, changes):
    model = make_model(**changes)
    found, whole = circuit_eigenvalues(model, 1, 1), Whole(model, 1, 1)
    for few, matrix in ((found.qk, whole.qk / model.config.scale(1)), (found.ov, whole.logits)):
        every = np.linalg.eigvals(centred(matrix))
        assert few.shape == (model.config.d_head,)
        assert few.sum() == pytest.approx(every.sum(), rel=1e-3, abs=1e-3)
        largest = [sorted(np.abs(values), reverse=True)[: len(few)] for values in (few, every)]
        np.testing.assert_allclose(*largest, rtol=1e-3, atol=1e-3)
        assert eigenvalue_score(few) == pytest.approx(every.sum().real / np.abs(every).sum(), abs=1e-3)


def test_the_vocabulary_in_pieces_has_the_same_eigenvalues(make_model, monkeypatch):
    model = make_model()
    at_once = circuit_eigenvalues(model, 0, 2)
    monkeypatch.setattr("gptviz.analysis.circuits.AT_ONCE", 7)
    for one, other in zip(at_once, circuit_eigenvalues(model, 0, 2), strict=True):
        np.testing.assert_allclose(np.sort_complex(one), np.sort_complex(other), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("changes", [{}, {"tie_weights": False}], ids=str)
def test_padding_beyond_the_vocabulary_does_not_count(make_model, changes):
    model = make_model(**changes)
    cut = copy.deepcopy(model)
    for rows in (cut.embed, cut.unembed):
        rows.weight = torch.nn.Parameter(rows.weight[:40].clone(), requires_grad=False)
    cut.config = GPTConfig.from_dict(cut.config.to_dict() | {"vocab_size": 40})
    known = [7, 31, 2, 0]
    np.testing.assert_allclose(ov_circuit(model, known, 0, 0, size=40), ov_circuit(cut, known, 0, 0), atol=1e-5)
    found, expected = circuit_eigenvalues(model, 0, 0, size=40), circuit_eigenvalues(cut, 0, 0)
    assert eigenvalue_score(found.ov) == pytest.approx(eigenvalue_score(expected.ov), abs=1e-6)
    assert eigenvalue_score(found.qk) == pytest.approx(eigenvalue_score(expected.qk), abs=1e-6)
    for one, other in zip(ov_top(model, known, 0, 0, size=40), ov_top(cut, known, 0, 0), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("encoding", ["none", "alibi", "rotary", "learned"])
def test_layer_0_gives_these_scores_where_no_position_enters(make_model, ids, encoding):
    """Rotary turns q and k alike where they stand in the same place: on the diagonal."""
    model = variant(make_model(pos_encoding=encoding), pos_encoding="none" if encoding == "learned" else encoding)
    for head in range(4):
        scaled = attention_stages(trace(model, ids), 0, head).scaled
        found = qk_circuit(model, ids.tolist(), 0, head)
        if encoding == "rotary":
            scaled, found = np.diag(scaled), np.diag(found)
        np.testing.assert_allclose(found, scaled, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("family", "changes"), CASES, ids=NAMES)
def test_every_family_s_layer_0_computes_with_them(tmp_path, family, changes):
    loaded = gptviz.load(saved(theirs(family, **changes), tmp_path)).model.requires_grad_(False)
    model = variant(loaded, pos_encoding="none", causal=False, windows=(0,))
    ids = torch.randperm(VOCAB)[:9]
    run, config = trace(model, ids), model.config
    weight = model.blocks[0].attn.out.weight.reshape(config.n_embd, config.n_head, config.d_head)
    for head in range(config.n_head):
        scores = run["blocks.0.attn.hook_attn_scores"][head].numpy()
        np.testing.assert_allclose(qk_circuit(model, ids.tolist(), 0, head), scores, rtol=1e-3, atol=1e-3)
        values = run["blocks.0.attn.hook_v"][:, head // (config.n_head // config.n_kv_head)]
        written = (values - values[:1]) @ weight[:, head].T  # against the first token
        if config.norm == "layernorm":
            written -= written.mean(1, keepdim=True)
        logits = ((written * model.ln_final.weight) @ model.unembed.weight.T).numpy()
        found = ov_circuit(model, ids.tolist(), 0, head)
        np.testing.assert_allclose(found - found[:1], centred(logits)[:, ids], rtol=1e-3, atol=1e-3)


def built(**weights: np.ndarray) -> GPT:
    """One head that reads one-hot tokens: V = C = D = 4, every matrix the identity but for those that are given."""
    shape = dict(vocab_size=4, block_size=4, n_layer=1, n_head=1, n_embd=4, attn_scale=1.0, norm_eps=1e-12)
    off = dict(qkv_bias=False, out_bias=False, tie_weights=False, norm="rmsnorm", pos_encoding="none")
    model = GPT(GPTConfig(**shape | off)).requires_grad_(False).eval()
    q, k, v, o, e, u = (torch.tensor(weights.get(name, np.eye(4)), dtype=torch.float32) for name in "qkvoeu")
    model.blocks[0].attn.qkv.weight.copy_(torch.cat([q.T, k.T, v.T]))
    model.blocks[0].attn.out.weight.copy_(o.T)
    model.embed.weight.copy_(e)
    model.unembed.weight.copy_(u)
    return model


def test_a_head_that_copies_by_hand():
    """One-hot rows have a root mean square of 1/2, so the norm doubles them; the mean of a row is a quarter of that."""
    model = built()
    np.testing.assert_allclose(ov_circuit(model, [0, 1, 3], 0, 0), 2 * np.eye(3) - 0.5, atol=1e-6)
    np.testing.assert_allclose(qk_circuit(model, [0, 1, 3], 0, 0), 4 * np.eye(3), atol=1e-6)
    eigenvalues = circuit_eigenvalues(model, 0, 0)
    np.testing.assert_allclose(sorted(eigenvalues.ov.real), [0, 2, 2, 2], atol=1e-6)
    assert eigenvalue_score(eigenvalues.ov) == pytest.approx(1)
    assert eigenvalue_score(eigenvalues.qk) == pytest.approx(1)
    top = ov_top(model, [2, 0], 0, 0, count=1)
    assert (top.promoted.tolist(), top.rank.tolist()) == ([[2], [0]], [1, 1])
    np.testing.assert_allclose(top.raised, [[1.5], [1.5]], atol=1e-6)


def test_a_head_that_does_the_opposite_of_copying():
    model = built(o=-np.eye(4), k=-np.eye(4))
    eigenvalues = circuit_eigenvalues(model, 0, 0)
    assert eigenvalue_score(eigenvalues.ov) == pytest.approx(-1)
    assert eigenvalue_score(eigenvalues.qk) == pytest.approx(-1)
    top = ov_top(model, [2, 0], 0, 0, count=1)
    assert (top.suppressed.tolist(), top.rank.tolist()) == ([[2], [0]], [4, 4])


def test_a_head_that_writes_the_next_token_neither_copies_nor_does_the_opposite():
    """Its eigenvalues are the fourth roots of 1 but for 1 itself, times 2: -2, 2i and -2i, which sum to -2."""
    onwards = np.roll(np.eye(4), 1, axis=1)  # row s has its 1 in column s + 1
    model = built(v=onwards, q=onwards)
    eigenvalues = circuit_eigenvalues(model, 0, 0)
    assert eigenvalue_score(eigenvalues.ov) == pytest.approx(-1 / 3)
    assert eigenvalue_score(eigenvalues.qk) == pytest.approx(-1 / 3)
    assert ov_top(model, [0, 1, 2, 3], 0, 0, count=1).promoted.ravel().tolist() == [1, 2, 3, 0]
    assert qk_circuit(model, [0, 1, 2, 3], 0, 0).argmax(1).tolist() == [1, 2, 3, 0]


def test_a_head_that_writes_nothing_has_no_score():
    model = built(o=np.zeros((4, 4)))
    assert not ov_circuit(model, [0, 1], 0, 0).any()
    assert math.isnan(eigenvalue_score(circuit_eigenvalues(model, 0, 0).ov))


def test_weights_that_are_no_numbers_have_no_score():
    model = built(o=np.full((4, 4), np.nan))
    assert math.isnan(eigenvalue_score(circuit_eigenvalues(model, 0, 0).ov))
    assert eigenvalue_score(circuit_eigenvalues(model, 0, 0).qk) == pytest.approx(1)


def test_the_tops_are_the_ends_of_the_circuit_over_the_vocabulary(make_model):
    model = make_model(n_kv_head=2)
    top = ov_top(model, UNIQUE, 1, 3, count=4)
    every = ov_circuit(model, range(50), 1, 3)[UNIQUE]
    order = np.argsort(-every, axis=1)
    np.testing.assert_array_equal(top.promoted, order[:, :4])
    np.testing.assert_array_equal(top.suppressed, order[:, :-5:-1])
    np.testing.assert_allclose(top.raised, np.take_along_axis(every, order[:, :4], 1), atol=1e-5)
    np.testing.assert_allclose(top.lowered, np.take_along_axis(every, order[:, :-5:-1], 1), atol=1e-5)
    assert top.rank.tolist() == [list(row).index(token) + 1 for row, token in zip(order, UNIQUE, strict=True)]
    assert ov_top(model, UNIQUE, 1, 3, count=99).promoted.shape == (6, 50)


def test_one_token(make_model):
    model = make_model()
    assert qk_circuit(model, [5], 0, 0).shape == ov_circuit(model, [5], 0, 0).shape == (1, 1)
    assert ov_top(model, [5], 0, 0).promoted.shape == (1, 5)


@pytest.mark.parametrize("changes", [{}, {"qk_norm": True, "norm": "rmsnorm"}], ids=str)
def test_weights_of_16_bits_give_nearly_the_same(make_model, changes):
    model = make_model(**changes)
    small = copy.deepcopy(model).to(torch.bfloat16)
    for circuit in (qk_circuit, ov_circuit):
        wanted, found = circuit(model, UNIQUE, 1, 1), circuit(small, UNIQUE, 1, 1)
        assert found.dtype == np.float32
        assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()
