"""Positional encodings against numbers worked by hand, other implementations, and what defines each of them."""

import math

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from gptviz import GPTConfig, positions


def rotated(x: torch.Tensor, at: torch.Tensor, dim: int, base: float = 10000.0) -> torch.Tensor:
    angles = positions.rotary_angles(at, GPTConfig(n_embd=dim, n_head=1, rope_base=base))
    return positions.rotate(x, angles.cos(), angles.sin())


def test_sinusoidal_values_by_hand():
    # width 4 has the frequencies 1 and 10000^(-2/4) = 0.01, a sine and a cosine of each
    expected = torch.tensor(
        [[0, 1, 0, 1], [0.841471, 0.540302, 0.0099998, 0.99995], [0.909297, -0.416147, 0.0199987, 0.9998]]
    )
    torch.testing.assert_close(positions.sinusoidal(torch.arange(3), 4), expected, atol=1e-6, rtol=0)


def test_sinusoidal_values_of_an_odd_width_by_hand():
    # width 3 has the frequencies 1 and 10000^(-2/3) = 0.00215443, and no room for the second cosine
    expected = torch.tensor([[0, 1, 0], [0.841471, 0.540302, 0.00215443]])
    torch.testing.assert_close(positions.sinusoidal(torch.arange(2), 3), expected, atol=1e-6, rtol=0)


def test_sinusoidal_is_the_published_table():
    position = torch.arange(64).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, 48, 2) * (-math.log(10000.0) / 48))
    table = torch.zeros(64, 48)
    table[:, 0::2], table[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
    torch.testing.assert_close(positions.sinusoidal(torch.arange(64), 48), table, atol=1e-5, rtol=0)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_a_shift_of_the_sinusoidal_encoding_is_one_rotation_of_every_pair(k):
    dim, at = 16, torch.arange(50)
    turn = torch.zeros(dim, dim, dtype=torch.float64)
    for pair in range(dim // 2):
        angle = k / 10000 ** (2 * pair / dim)
        block = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        turn[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = torch.tensor(block, dtype=torch.float64)
    shifted = positions.sinusoidal(at, dim).double() @ turn.T
    torch.testing.assert_close(positions.sinusoidal(at + k, dim).double(), shifted, atol=1e-5, rtol=0)
    torch.testing.assert_close(turn @ turn.T, torch.eye(dim, dtype=torch.float64))


def test_rotary_values_by_hand():
    # four dimensions are the pairs (0, 2), which turns by 1 a position, and (1, 3), which turns by 0.01
    turned = rotated(torch.eye(4)[:2].expand(3, 2, 4), torch.tensor([0, 1, 2]), 4)
    expected = torch.tensor(
        [
            [[1, 0, 0, 0], [0, 1, 0, 0]],
            [[0.540302, 0, 0.841471, 0], [0, 0.99995, 0, 0.0099998]],
            [[-0.416147, 0, 0.909297, 0], [0, 0.9998, 0, 0.0199987]],
        ]
    )
    torch.testing.assert_close(turned, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_rotary_is_a_multiplication_of_complex_numbers(base):
    x, at = torch.randn(20, 3, 8), torch.arange(20) * 7
    pairs = torch.complex(x[..., :4].double(), x[..., 4:].double())
    unit = torch.tensor([[complex(0, p * base ** (-2 * i / 8)) for i in range(4)] for p in at.tolist()]).exp()
    turned = pairs * unit[:, None]
    expected = torch.cat([turned.real, turned.imag], dim=-1).float()
    torch.testing.assert_close(rotated(x, at, 8, base), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_rotary_is_llamas(base):
    rope = dict(rope_type="default", rope_theta=base)
    config = LlamaConfig(hidden_size=32, num_attention_heads=2, rope_parameters=rope)
    q, at = torch.randn(1, 2, 30, 16), torch.arange(30)
    cos, sin = LlamaRotaryEmbedding(config)(q, at[None])
    expected, _ = apply_rotary_pos_emb(q, q, cos, sin)
    torch.testing.assert_close(rotated(q.transpose(1, 2), at, 16, base), expected.transpose(1, 2), atol=1e-5, rtol=1e-5)


def test_partial_rotary_turns_the_first_dimensions_alone():
    x, at = torch.randn(5, 2, 10), torch.arange(5)
    turned = rotated(x, at, 4)
    assert torch.equal(turned[..., 4:], x[..., 4:])
    assert torch.equal(turned[..., :4], rotated(x[..., :4], at, 4))


def test_rotary_scores_depend_on_the_distance_only():
    q, k = torch.randn(2, 1, 1, 8)
    at = torch.arange(40)
    near = rotated(q.expand(40, 1, 8), at, 8)[:, 0] @ rotated(k.expand(40, 1, 8), at, 8)[:, 0].T
    far = rotated(q.expand(40, 1, 8), at + 300, 8)[:, 0] @ rotated(k.expand(40, 1, 8), at + 300, 8)[:, 0].T
    torch.testing.assert_close(far, near, atol=1e-4, rtol=1e-4)
    for distance in range(40):
        diagonal = near.diagonal(-distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=1e-4)
    assert float(near[:, 0].std()) > 0.01  # and on the distance they do depend


def test_rotary_changes_no_length():
    x, at = torch.randn(20, 2, 8), torch.arange(20)
    torch.testing.assert_close(rotated(x, at, 8).norm(dim=-1), x.norm(dim=-1))


def test_alibi_slopes_of_eight_heads_are_halves():
    halves = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert positions.alibi_slopes(8).tolist() == halves


@pytest.mark.parametrize("n_head", [1, 2, 3, 6, 12, 16, 20, 25])
def test_alibi_slopes_are_blooms(n_head):
    # BLOOM multiplies them by the key's position: at position 1 stand the slopes themselves
    theirs = build_alibi_tensor(torch.ones(1, 2), n_head, torch.float32)[:, 0, 1]
    torch.testing.assert_close(positions.alibi_slopes(n_head), theirs)


def test_alibi_bias_by_hand_falls_with_distance_on_both_sides():
    # two heads have the slopes 1/16 and 1/256
    at = torch.arange(3)
    distance = torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert torch.equal(positions.alibi_bias(at, at, 2), torch.stack([-distance / 16, -distance / 256]))


def test_alibi_bias_of_a_later_query_is_the_last_row():
    at = torch.arange(6)
    assert torch.equal(positions.alibi_bias(at[4:], at, 4), positions.alibi_bias(at, at, 4)[:, 4:])


def test_the_causal_mask_hides_what_lies_ahead():
    at = torch.arange(3)
    ahead = [[False, True, True], [False, False, True], [False, False, False]]
    assert positions.causal_mask(at, at).tolist() == ahead
    assert positions.causal_mask(at[1:], at).tolist() == ahead[1:]


def turning(**changes) -> torch.Tensor:
    """The angle of every pair at position 1."""
    config = GPTConfig(n_embd=64, n_head=1, pos_encoding="rotary", rope_base=500000.0, **changes)
    return positions.rotary_angles(torch.tensor([1]), config)[0]


def test_the_llama3_scaling_is_that_of_transformers():
    rope = dict(
        rope_type="llama3",
        rope_theta=500000.0,
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=64,
    )
    theirs = LlamaRotaryEmbedding(LlamaConfig(hidden_size=64, num_attention_heads=1, rope_parameters=rope)).inv_freq
    ours = turning(rope_scaling="llama3", rope_factor=8.0, rope_trained=64)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=0)


def test_the_llama3_scaling_by_hand():
    # over 8,192 tokens the first pair turns 8192 / 2 pi = 1303 times, more than 4: it keeps its pace; the last,
    # at 500000^(-62/64) = 3.01e-6, turns 0.004 times, fewer than 1: it slows by 8
    plain, scaled = turning(), turning(rope_scaling="llama3", rope_factor=8.0)
    assert float(scaled[0]) == float(plain[0]) == 1.0
    assert float(scaled[-1]) == pytest.approx(3.01e-6 / 8, rel=0.01)
    assert bool((scaled <= plain).all())
    assert bool((scaled >= plain / 8 * 0.9999).all())


def test_the_linear_scaling_stretches_the_positions():
    torch.testing.assert_close(turning(rope_scaling="linear", rope_factor=4.0), turning() / 4)


def test_a_window_hides_what_lies_farther_back():
    at = torch.arange(4)
    beyond = [
        [False, False, True, True],
        [False, False, False, True],
        [True, False, False, False],
        [True, True, False, False],
    ]
    assert positions.beyond_window(at, at, 2).tolist() == beyond
    assert positions.beyond_window(at[3:], at, 2).tolist() == beyond[3:]
