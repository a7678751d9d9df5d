"""A stage's words and formula are those of the layer that is shown."""

import pytest

from gptviz import GPTConfig
from gptviz.ui.attention.stages import described

SHAPE = dict(vocab_size=10, block_size=8, n_layer=2, n_head=2, n_embd=8)


def formula(name: str, layer: int = 0, **changes) -> str:
    return described(GPTConfig(**SHAPE | changes), layer, name)[2]


@pytest.mark.parametrize("bias", [True, False])
def test_biases_stand_in_the_formula_where_the_model_has_them(bias):
    assert all((f"b_{letter}" in formula("vectors", qkv_bias=bias)) is bias for letter in "QKV")
    assert ("b_O" in formula("output", out_bias=bias)) is bias


def test_another_factor_than_one_over_the_root_is_written_as_it_is():
    assert r"\sqrt{D}" in formula("scaled")
    assert formula("scaled", attn_scale=1.0) == r"S_{ij} = 1\; q_i \cdot k_j"
    assert "0.25" in formula("scaled", layer=1, scale_by_layer=True)
    title, sentence, _ = described(GPTConfig(**SHAPE, attn_scale=1.0), 0, "scaled")
    assert (title, sentence.split(",")[0]) == ("scaled", "Multiplied by 1")


def test_a_window_is_masked_too():
    assert formula("masked") == r"S_{ij} = -\infty \;\text{ for }\; j > i"
    assert r"j > i \;\text{ or }\; |i - j| \ge 3" in formula("masked", windows=(3,))
    assert "j > i" not in formula("masked", windows=(3,), causal=False)
