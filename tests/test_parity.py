"""A randomly initialised GPT-2 of `transformers` gives the same numbers here; test_families.py has the others."""

import json
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

import gptviz
from gptviz import GptvizError, generate, trace, variant

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
        dict(scale_attn_by_inverse_layer_idx=True, n_layer=3),
        dict(reorder_and_upcast_attn=True),
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
        (dict(quantization_config={"bits": 4}), "quantization_config"),
        (dict(add_cross_attention=True), "add_cross_attention"),
        (dict(activation_function="quick_gelu"), 'activation_function = "quick_gelu"'),
        (dict(activation_function=["gelu"]), r'\["gelu"\]'),
        (dict(model_type="t5"), "'t5'"),
        (dict(model_type=["gpt2"]), "gpt2"),
        (dict(n_head=5), "n_head"),
        (dict(n_layer=3), r"h\.2\."),
        (dict(n_embd="32"), "n_embd"),
    ],
    ids=str,
)
def test_a_field_that_would_change_the_mathematics_is_refused_by_name(tmp_path, changes, named):
    folder = saved(tiny_gpt2(), tmp_path, **changes)
    with pytest.raises(GptvizError, match=named):
        gptviz.load(folder)
