"""Randomly initialised models of `transformers` give the same numbers here."""

import json
from pathlib import Path

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

import gptviz
from gptviz import GPT, GPTConfig, GptvizError, generate, trace, variant

close = torch.testing.assert_close


def shaken(model: PreTrainedModel) -> PreTrainedModel:
    """Biases and norms get random values as well: zeros and ones would hide a wrong use of them."""
    for parameter in model.eval().requires_grad_(False).parameters():
        if parameter.ndim == 1:
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def tiny_gpt2(**changes) -> GPT2LMHeadModel:
    small = dict(vocab_size=60, n_positions=32, n_layer=2, n_head=4, n_embd=32, initializer_range=0.2)
    special = dict(bos_token_id=0, eos_token_id=None)
    return shaken(GPT2LMHeadModel(GPT2Config(**small | special | changes, attn_implementation="eager")))


def saved(model: PreTrainedModel, folder: Path, **config_changes) -> Path:
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | config_changes))
    return folder


@pytest.mark.parametrize(
    "changes",
    [
        dict(activation_function="gelu_new"),
        dict(activation_function="gelu"),
        dict(activation_function="gelu_fast"),
        dict(activation_function="relu"),
        dict(scale_attn_weights=False, initializer_range=0.1),
        dict(n_inner=48),
        dict(tie_word_embeddings=False),
        dict(layer_norm_epsilon=0.1),
    ],
    ids=str,
)
def test_a_gpt2_on_disk_loads_with_its_logits_and_patterns(tmp_path, changes):
    theirs, ids = tiny_gpt2(**changes), torch.randint(60, (20,))
    ours = gptviz.load(saved(theirs, tmp_path)).model
    expected, run = theirs(ids[None], output_attentions=True), trace(ours, ids)
    scale = float(expected.logits.abs().max())
    close(run.logits, expected.logits[0], rtol=1e-5, atol=1e-5 * scale)
    for layer, pattern in enumerate(expected.attentions):
        close(run[f"blocks.{layer}.attn.hook_pattern"], pattern[0], rtol=1e-5, atol=1e-5)


def test_the_other_gelu_breaks_the_parity(tmp_path):
    theirs, ids = tiny_gpt2(activation_function="gelu_new"), torch.randint(60, (20,))
    ours = gptviz.load(saved(theirs, tmp_path)).model.requires_grad_(False)
    assert ours.config.activation == "gelu_tanh"
    off = (variant(ours, activation="gelu")(ids[None]) - theirs(ids[None]).logits).abs().max()
    assert float(off) > 1e-4


def test_the_configuration_of_a_gpt2_is_read_whole(tmp_path):
    folder = saved(tiny_gpt2(n_inner=48, scale_attn_weights=False, resid_pdrop=0.2, layer_norm_epsilon=1e-6), tmp_path)
    config = gptviz.load(folder).model.config
    assert (config.vocab_size, config.block_size, config.n_layer, config.n_head, config.n_embd) == (60, 32, 2, 4, 32)
    assert (config.d_mlp, config.attn_scale, config.dropout, config.norm_eps) == (48, 1.0, 0.2, 1e-6)
    assert (config.pos_encoding, config.tie_weights, config.bos_token_id) == ("learned", True, 0)


def test_generation_with_the_cache_is_that_of_transformers(tmp_path):
    theirs, ids = tiny_gpt2(), torch.randint(60, (10,))
    ours = gptviz.load(saved(theirs, tmp_path)).model
    settings = dict(max_new_tokens=20, do_sample=False, pad_token_id=0)
    expected = theirs.generate(ids[None], attention_mask=torch.ones_like(ids[None]), **settings)[0, 10:]
    assert [step.token for step in generate(ours, ids, 20, temperature=0)] == expected.tolist()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (dict(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse_layer_idx = True"),
        (dict(reorder_and_upcast_attn=True), "reorder_and_upcast_attn"),
        (dict(add_cross_attention=True), "add_cross_attention"),
        (dict(activation_function="quick_gelu"), "'quick_gelu'"),
        (dict(activation_function=["gelu"]), r"\['gelu'\]"),
        (dict(model_type="t5"), "'t5'"),
        (dict(model_type=["gpt2"]), "gpt2"),
        (dict(n_head=5), "n_head"),
        (dict(n_layer=3), "blocks.2"),
        (dict(n_embd="32"), "n_embd"),
    ],
    ids=str,
)
def test_a_field_that_would_change_the_mathematics_is_refused_by_name(tmp_path, changes, named):
    folder = saved(tiny_gpt2(), tmp_path, **changes)
    with pytest.raises(GptvizError, match=named):
        gptviz.load(folder)


# Families that differ in their blocks: weights are copied by hand, layer by layer.


def copied(config: GPTConfig, theirs: PreTrainedModel, names: dict[str, str], qkv) -> GPT:
    """A model whose blocks have the tensors that `names` gives for each of theirs, and qkv(layer, kind) for W_QKV."""
    state, blocks = theirs.state_dict(), {}
    for layer in range(config.n_layer):
        for ours, name in names.items():
            for kind in ("weight", "bias"):
                if (tensor := state.get(f"{name.format(layer)}.{kind}")) is not None:
                    blocks[f"{ours.format(layer)}.{kind}"] = tensor
        for kind in ("weight", "bias"):
            if (tensor := qkv(state, layer, kind)) is not None:
                blocks[f"blocks.{layer}.attn.qkv.{kind}"] = tensor
    model = GPT(config).eval().requires_grad_(False)
    model.load_state_dict(blocks)
    return model


LLAMA_NAMES = {
    "embed": "model.embed_tokens",
    "blocks.{}.ln1": "model.layers.{}.input_layernorm",
    "blocks.{}.ln2": "model.layers.{}.post_attention_layernorm",
    "blocks.{}.attn.out": "model.layers.{}.self_attn.o_proj",
    "blocks.{}.attn.q_norm": "model.layers.{}.self_attn.q_norm",
    "blocks.{}.attn.k_norm": "model.layers.{}.self_attn.k_norm",
    "blocks.{}.mlp.w_gate": "model.layers.{}.mlp.gate_proj",
    "blocks.{}.mlp.w_in": "model.layers.{}.mlp.up_proj",
    "blocks.{}.mlp.w_out": "model.layers.{}.mlp.down_proj",
    "ln_final": "model.norm",
    "unembed": "lm_head",
}


def llama_qkv(state, layer: int, kind: str) -> torch.Tensor | None:
    names = [f"model.layers.{layer}.self_attn.{x}_proj.{kind}" for x in "qkv"]
    return torch.cat([state[name] for name in names]) if names[0] in state else None


NO_BIASES = dict.fromkeys(("qkv_bias", "out_bias", "mlp_bias", "norm_bias"), False)
LLAMA = dict(pos_encoding="rotary", norm="rmsnorm", activation="silu", gated_mlp=True, tie_weights=False, **NO_BIASES)
SMALL = dict(vocab_size=60, n_layer=2, n_embd=32, n_head=4, block_size=32, d_mlp=40)
THEIR_SMALL = dict(
    vocab_size=60,
    num_hidden_layers=2,
    hidden_size=32,
    num_attention_heads=4,
    max_position_embeddings=32,
    intermediate_size=40,
    initializer_range=0.2,
    attn_implementation="eager",
)


def assert_same(ours: GPT, theirs: PreTrainedModel) -> None:
    ids = torch.randint(60, (20,))
    expected, run = theirs(ids[None], output_attentions=True), trace(ours, ids)
    close(run.logits, expected.logits[0], rtol=1e-4, atol=1e-5 * float(expected.logits.abs().max()))
    close(ours(ids[None]), expected.logits, rtol=1e-4, atol=1e-5 * float(expected.logits.abs().max()))
    for layer, pattern in enumerate(expected.attentions):
        close(run[f"blocks.{layer}.attn.hook_pattern"], pattern[0], rtol=1e-4, atol=1e-5)


def test_rms_norm_gated_ffn_and_grouped_heads_are_llamas():
    rope = dict(rope_type="default", rope_theta=5000.0)
    theirs = shaken(LlamaForCausalLM(LlamaConfig(**THEIR_SMALL, num_key_value_heads=2, rope_parameters=rope)))
    config = GPTConfig(**SMALL, **LLAMA, n_kv_head=2, rope_base=5000.0, norm_eps=1e-6)
    assert_same(copied(config, theirs, LLAMA_NAMES, llama_qkv), theirs)


def test_norms_on_queries_and_keys_and_a_head_of_its_own_width_are_qwen3s():
    theirs = shaken(Qwen3ForCausalLM(Qwen3Config(**THEIR_SMALL, num_key_value_heads=2, head_dim=12)))
    config = GPTConfig(**SMALL, **LLAMA, n_kv_head=2, d_head=12, qk_norm=True, norm_eps=1e-6)
    assert_same(copied(config, theirs, LLAMA_NAMES, llama_qkv), theirs)


def neox_qkv(state, layer: int, kind: str) -> torch.Tensor:
    """GPT-NeoX keeps q, k and v of each head together; here all heads' q come first."""
    tensor = state[f"gpt_neox.layers.{layer}.attention.query_key_value.{kind}"]
    return tensor.unflatten(0, (4, 3, 8)).transpose(0, 1).flatten(0, 2)


@pytest.mark.parametrize("parallel", [True, False])
def test_a_parallel_residual_and_partial_rotary_are_gpt_neoxs(parallel):
    rope = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
    kind = dict(use_parallel_residual=parallel, rope_parameters=rope)
    theirs = shaken(GPTNeoXForCausalLM(GPTNeoXConfig(**THEIR_SMALL, **kind)))
    names = {
        "embed": "gpt_neox.embed_in",
        "blocks.{}.ln1": "gpt_neox.layers.{}.input_layernorm",
        "blocks.{}.ln2": "gpt_neox.layers.{}.post_attention_layernorm",
        "blocks.{}.attn.out": "gpt_neox.layers.{}.attention.dense",
        "blocks.{}.mlp.w_in": "gpt_neox.layers.{}.mlp.dense_h_to_4h",
        "blocks.{}.mlp.w_out": "gpt_neox.layers.{}.mlp.dense_4h_to_h",
        "ln_final": "gpt_neox.final_layer_norm",
        "unembed": "lm_head",
    }
    config = GPTConfig(**SMALL, pos_encoding="rotary", d_rotary=4, parallel_residual=parallel, tie_weights=False)
    assert_same(copied(config, theirs, names, neox_qkv), theirs)
