"""The presets' exact sizes, values that follow from others, and what is refused."""

import dataclasses
import json

import pytest
import torch

from gptviz import GPT, GptvizError, preset
from gptviz.config import PRESETS, GPTConfig


def n_parameters(config: GPTConfig) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in GPT(config).parameters())


def test_the_minimal_decoder_has_136_311_889_parameters():
    assert n_parameters(preset("minimal_decoder")) == 136_311_889


def test_the_gpt_from_scratch_has_3_323_392_parameters():
    assert n_parameters(preset("gpt_from_scratch")) == 3_323_392


def test_without_biases_in_its_linear_layers_the_gpt_from_scratch_has_3_314_176_parameters():
    without = preset("gpt_from_scratch", qkv_bias=False, out_bias=False, mlp_bias=False)
    assert n_parameters(without) == 3_314_176
    assert 4 * (3 * 256 + 256 + 4 * 256 + 256) == 3_323_392 - 3_314_176 == 9_216


def test_the_course_presets_are_the_published_architectures():
    minimal, scratch = preset("minimal_decoder"), preset("gpt_from_scratch")
    assert (minimal.vocab_size, minimal.n_embd, minimal.n_layer, minimal.d_head) == (50257, 768, 12, 64)
    assert (minimal.n_head, minimal.d_mlp, minimal.pos_encoding) == (1, 3072, "sinusoidal")
    assert (minimal.qkv_bias, minimal.out_bias, minimal.tie_weights) == (False, False, False)
    assert (minimal.mlp_bias, minimal.unembed_bias) == (True, True)
    assert (scratch.vocab_size, scratch.block_size, scratch.n_layer, scratch.n_head) == (512, 128, 4, 4)
    assert (scratch.n_embd, scratch.dropout, scratch.pos_encoding) == (256, 0.1, "learned")
    assert (scratch.qkv_bias, scratch.tie_weights, scratch.unembed_bias) == (True, True, False)


@pytest.mark.parametrize(
    ("name", "millions"),
    # as the papers and model cards give them
    [
        ("gpt2", 124),
        ("gpt2-medium", 355),
        ("gpt2-large", 774),
        ("gpt2-xl", 1558),
        ("pythia-70m", 70),
        ("llama2-7b", 6738),
    ],
)
def test_a_published_preset_has_its_published_size(name, millions):
    assert round(n_parameters(preset(name)) / 1e6) == millions


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_valid_configuration(name):
    assert GPTConfig.from_dict(preset(name).to_dict()) == preset(name)


def test_a_preset_can_be_changed_and_an_unknown_one_is_named():
    assert preset("gpt_from_scratch", n_layer=2).n_layer == 2
    with pytest.raises(GptvizError, match=r"'gpt5'.*gpt_from_scratch"):
        preset("gpt5")


def test_derived_values_follow_the_fields_they_depend_on():
    config = GPTConfig(n_embd=96, n_head=6)
    assert (config.n_kv_head, config.d_head, config.d_mlp, config.d_rotary, config.attn_scale) == (6, 16, 384, 16, 0.25)
    wider = GPTConfig(n_embd=96, n_head=6, d_head=64)
    assert (wider.d_rotary, wider.attn_scale) == (64, 0.125)


def test_a_configuration_is_frozen_keyword_only_and_a_cache_key():
    config = GPTConfig(n_layer=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.n_layer = 2
    with pytest.raises(TypeError):
        GPTConfig(50257)
    assert len({config, GPTConfig(n_layer=1), GPTConfig(n_layer=2)}) == 2


def test_a_configuration_survives_json():
    config = GPTConfig(pos_encoding="rotary", n_kv_head=4, bos_token_id=0, rope_base=500000.0)
    assert GPTConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_a_field_that_is_unknown_is_named():
    assert GPTConfig.from_dict({"windows": [0, 4]}) == GPTConfig(windows=(0, 4))
    with pytest.raises(GptvizError, match="'sliding_window'"):
        GPTConfig.from_dict({"n_layer": 2, "sliding_window": 128})


WRONG = [
    dict(pos_encoding="relative"),
    dict(pos_encoding=["learned"]),
    dict(norm="batchnorm"),
    dict(activation="swish"),
    dict(n_layer=0),
    dict(n_head=-1),
    dict(n_embd="768"),
    dict(n_embd=768.0),
    dict(n_layer=True),
    dict(vocab_size=2**40),
    dict(vocab_size=None),
    dict(causal=1),
    dict(dropout=1.0),
    dict(dropout=-0.1),
    dict(rope_base=0.0),
    dict(norm_eps=0.0),
    dict(attn_scale=float("nan")),
    dict(pos_scale=float("inf")),
    dict(pos_scale=10**400),
    dict(init_std=10**400),
    dict(n_head=7),
    dict(n_kv_head=5),
    dict(d_rotary=3, pos_encoding="rotary"),
    dict(d_rotary=65),
    dict(bos_token_id=50257),
    dict(bos_token_id=-1),
    dict(windows=()),
    dict(windows=[-1]),
    dict(windows=["4"]),
    dict(windows=4),
    dict(windows=[2**40]),
    dict(rope_scaling="yarn"),
    dict(rope_factor=0.0),
    dict(rope_low=4.0, rope_scaling="llama3"),
    dict(rope_trained=0),
    dict(scale_by_layer=1),
]


@pytest.mark.parametrize(
    "wrong", WRONG, ids=lambda wrong: f"{next(iter(wrong))}={str(next(iter(wrong.values())))[:12]}"
)
def test_a_value_that_no_model_can_have_is_refused_by_name(wrong):
    with pytest.raises(GptvizError, match=next(iter(wrong))):
        GPTConfig(**wrong)


def test_an_odd_head_is_refused_for_rotary_positions_only():
    with pytest.raises(GptvizError, match="even"):
        GPTConfig(n_embd=9, n_head=3, pos_encoding="rotary")
    assert GPTConfig(n_embd=9, n_head=3).d_head == 3


def test_layers_take_turns_with_the_windows_and_may_scale_by_their_number():
    config = GPTConfig(n_layer=5, windows=(0, 256, 8), d_head=64, scale_by_layer=True)
    assert [config.window(layer) for layer in range(5)] == [0, 256, 8, 0, 256]
    assert [config.scale(layer) for layer in range(3)] == [0.125, 0.0625, 0.125 / 3]
    assert GPTConfig().scale(7) == GPTConfig().attn_scale
    assert len({config, GPTConfig.from_dict(json.loads(json.dumps(config.to_dict())))}) == 1
