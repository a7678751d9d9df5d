"""Randomly initialised models of every family, saved by `transformers`, give the same numbers here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import PreTrainedModel

import gptviz
from gptviz import GptvizError, generate, trace

close = torch.testing.assert_close

T = 40  # tokens; more than the tiny models' windows
VOCAB = 60
LLAMA_SHAPE = dict(
    vocab_size=VOCAB,
    hidden_size=48,
    intermediate_size=40,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    rms_norm_eps=1e-3,
)
NEOX_SHAPE = {k: v for k, v in LLAMA_SHAPE.items() if k not in ("num_key_value_heads", "rms_norm_eps")} | dict(
    rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
)
SHAPES: dict[str, dict[str, Any]] = {
    "GPT2": dict(vocab_size=VOCAB, n_positions=64, n_layer=3, n_head=4, n_embd=48),
    "GPTNeo": dict(
        vocab_size=VOCAB,
        max_position_embeddings=64,
        num_layers=3,
        num_heads=4,
        hidden_size=48,
        window_size=7,
        attention_types=[[["global", "local"], 1], [["local"], 1]],
    ),
    "GPTNeoX": NEOX_SHAPE,
    "Llama": LLAMA_SHAPE,
    "Mistral": LLAMA_SHAPE | dict(sliding_window=9),
    "Qwen2": LLAMA_SHAPE,
    "Qwen3": LLAMA_SHAPE | dict(head_dim=12),
}
CLASSES = {"GPT2": "GPT2LMHeadModel"}

LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=500000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=32,
)
WINDOWS = dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)

CASES: list[tuple[str, dict[str, Any]]] = [
    ("GPT2", {}),
    ("GPT2", dict(n_head=3, tie_word_embeddings=False)),
    ("GPTNeo", {}),
    ("GPTNeo", dict(attention_types=[[["global"], 3]], tie_word_embeddings=False, intermediate_size=30)),
    ("GPTNeo", dict(num_heads=3, activation_function="gelu")),
    ("GPTNeoX", {}),
    ("GPTNeoX", dict(use_parallel_residual=False, tie_word_embeddings=True)),
    ("GPTNeoX", dict(num_attention_heads=3, attention_bias=False)),
    (
        "GPTNeoX",
        dict(
            rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=1.0),
            hidden_act="gelu_new",
        ),
    ),
    ("Llama", {}),
    ("Llama", dict(num_key_value_heads=1, tie_word_embeddings=True)),
    ("Llama", dict(num_attention_heads=3, num_key_value_heads=3, head_dim=10)),
    ("Llama", dict(attention_bias=True, mlp_bias=True, hidden_act="gelu")),
    ("Llama", dict(rope_parameters=LLAMA3)),
    ("Llama", dict(rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0))),
    ("Mistral", {}),
    ("Mistral", dict(sliding_window=None, num_key_value_heads=1, head_dim=6)),
    ("Mistral", dict(sliding_window=1000, tie_word_embeddings=True)),
    ("Qwen2", {}),
    ("Qwen2", WINDOWS),
    ("Qwen2", dict(num_key_value_heads=1, tie_word_embeddings=True)),
    ("Qwen3", {}),
    ("Qwen3", WINDOWS | dict(attention_bias=True)),
    ("Qwen3", dict(num_attention_heads=5, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True)),
]
NAMES = [f"{family}-{','.join(f'{k}={v}' for k, v in changes.items())[:60]}" for family, changes in CASES]


def shaken(model: PreTrainedModel) -> PreTrainedModel:
    """Weights that make attention far from uniform; biases and norms get random values, not 0 and 1."""
    for parameter in model.eval().requires_grad_(False).parameters():
        parameter += 0.2 * torch.randn_like(parameter)
    return model


def theirs(family: str, **changes: Any) -> PreTrainedModel:
    config_class = getattr(transformers, f"{family}Config")
    special = dict(bos_token_id=1, eos_token_id=None, pad_token_id=None)
    config = config_class(**SHAPES[family] | special | changes, attn_implementation="eager")
    name = CLASSES.get(family, f"{family}ForCausalLM")
    return shaken(getattr(transformers, name)(config))


def saved(model: PreTrainedModel, folder: Path, edit: Callable[[dict[str, Any]], Any] = dict, **how: Any) -> Path:
    model.save_pretrained(folder, **how)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(edit(config) or config))
    return folder


def assert_same(ours: gptviz.GPT, expected: PreTrainedModel, ids: torch.Tensor) -> None:
    """Logits and patterns, to 1e-5 of the largest, by the explicit and by the fused attention."""
    wanted = expected(ids[None], output_attentions=True)
    run, scale = trace(ours, ids), float(wanted.logits.abs().max())
    close(run.logits, wanted.logits[0], rtol=1e-5, atol=1e-5 * scale)
    close(ours(ids[None]), wanted.logits, rtol=1e-5, atol=1e-5 * scale)
    for layer, pattern in enumerate(wanted.attentions):
        close(run[f"blocks.{layer}.attn.hook_pattern"], pattern[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("family", "changes"), CASES, ids=NAMES)
def test_a_saved_model_has_the_same_logits_patterns_and_size(tmp_path, family, changes):
    expected = theirs(family, **changes)
    ours = gptviz.load(saved(expected, tmp_path)).model
    assert_same(ours, expected, torch.randint(VOCAB, (T,)))
    count = sum(parameter.numel() for parameter in expected.parameters())
    assert sum(parameter.numel() for parameter in ours.parameters()) == count
    assert gptviz.sizing.n_params(ours.config) == count


@pytest.mark.parametrize(("family", "changes"), CASES, ids=NAMES)
def test_generation_with_the_cache_is_the_same(tmp_path, family, changes):
    expected = theirs(family, **changes)
    ours, ids = gptviz.load(saved(expected, tmp_path)).model, torch.randint(VOCAB, (10,))
    settings = dict(max_new_tokens=25, do_sample=False, pad_token_id=0)
    wanted = expected.generate(ids[None], attention_mask=torch.ones_like(ids[None]), **settings)[0, 10:].tolist()
    assert [step.token for step in generate(ours, ids, 25, temperature=0)] == wanted
    assert [step.token for step in generate(ours, ids, 25, temperature=0, cache=False)] == wanted


@pytest.mark.parametrize("family", SHAPES)
def test_the_patterns_are_far_from_uniform(tmp_path, family):
    """Else a wrong mask or encoding would hardly show."""
    run = trace(gptviz.load(saved(theirs(family), tmp_path)).model, torch.randint(VOCAB, (T,)))
    assert float(run["blocks.1.attn.hook_pattern"][:, -1].max()) > 0.15


@pytest.mark.parametrize("family", SHAPES)
def test_one_token_runs(tmp_path, family):
    expected = theirs(family)
    assert_same(gptviz.load(saved(expected, tmp_path)).model, expected, torch.tensor([5]))


@pytest.mark.parametrize("family", SHAPES)
def test_several_files_with_an_index_are_one_model(tmp_path, family):
    expected = theirs(family)
    folder = saved(expected, tmp_path, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    assert_same(gptviz.load(folder).model, expected, torch.randint(VOCAB, (T,)))


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("family", SHAPES)
def test_weights_of_16_bits_load_as_32_or_as_they_are(tmp_path, family, stored):
    ids = torch.randint(VOCAB, (T,))
    folder = saved(theirs(family).to(stored), tmp_path)
    expected = getattr(transformers, CLASSES.get(family, f"{family}ForCausalLM")).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    expected.requires_grad_(False)
    ours = gptviz.load(folder).model
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float32}
    assert_same(ours, expected.float(), ids)
    small = gptviz.load(folder, dtype=str(stored).removeprefix("torch.")).model
    assert {parameter.dtype for parameter in small.parameters()} == {stored}
    wanted = ours(ids[None]).detach()
    for logits in (small(ids[None]).detach().float(), trace(small, ids).logits[None]):
        assert float((logits - wanted).abs().max()) < 0.15 * float(wanted.abs().max())
    assert len(list(generate(small, ids, 3, temperature=0))) == 3


def rope_of_transformers_4(config: dict[str, Any]) -> None:
    """The same configuration as version 4 wrote it."""
    rope = config.pop("rope_parameters")
    theta, kind = rope.pop("rope_theta"), rope.pop("rope_type")
    share = rope.pop("partial_rotary_factor", None)
    if config["model_type"] == "gpt_neox":
        config |= dict(rotary_emb_base=theta, rotary_pct=share)
    else:
        config["rope_theta"] = theta
    config["rope_scaling"] = None if kind == "default" else {"type": kind, **rope}
    config["torch_dtype"] = config.pop("dtype")


@pytest.mark.parametrize(
    ("family", "changes"), [case for case in CASES if case[0] not in ("GPT2", "GPTNeo")], ids=NAMES[5:]
)
def test_a_configuration_of_transformers_4_is_the_same(tmp_path, family, changes):
    expected = theirs(family, **changes)
    new = gptviz.load(saved(expected, tmp_path)).model.config
    assert "rope_parameters" in json.loads((tmp_path / "config.json").read_text())
    old = gptviz.load(saved(expected, tmp_path, rope_of_transformers_4)).model.config
    assert old == new


def test_a_longer_input_than_the_window_of_each_layer_is_masked():
    config = gptviz.GPTConfig(vocab_size=VOCAB, block_size=16, n_layer=3, n_head=1, n_embd=8, windows=(0, 3))
    run = trace(gptviz.GPT(config).eval(), torch.arange(8))
    seen = [(run[f"blocks.{layer}.attn.hook_pattern"][0] > 0).sum(-1).tolist() for layer in range(3)]
    assert seen == [[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 3, 3, 3, 3, 3], [1, 2, 3, 4, 5, 6, 7, 8]]
    both = trace(gptviz.variant(gptviz.GPT(config).eval(), causal=False), torch.arange(8))
    assert (both["blocks.1.attn.hook_pattern"][0] > 0).sum(-1).tolist() == [3, 4, 5, 5, 5, 5, 4, 3]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("Llama", dict(rope_parameters=dict(rope_type="yarn", rope_theta=1e4, factor=4.0)), "'yarn'.*linear, llama3"),
    ("Llama", dict(rope_parameters=dict(rope_type="default", attention_factor=2.0)), "attention_factor = 2.0"),
    ("Llama", dict(rope_parameters=dict(full_attention={"rope_type": "default"})), "full_attention"),
    ("Llama", dict(rope_parameters=[1]), "rope_parameters"),
    ("Llama", dict(rope_parameters=dict(rope_type=["x"])), "'x'"),
    ("Llama", dict(rope_parameters=dict(rope_type="llama3", rope_theta=1e4)), "'factor'"),
    ("Llama", dict(rope_parameters=LLAMA3 | dict(low_freq_factor=4.0)), "rope_low"),
    ("Llama", dict(rope_parameters=dict(rope_type="default", partial_rotary_factor=0.5)), "partial_rotary_factor"),
    ("Llama", dict(rope_parameters=dict(rope_type="default", rope_theta="x")), "rope_theta"),
    ("Llama", dict(rope_interleaved=True), "rope_interleaved"),
    ("Llama", dict(attn_logit_softcapping=50.0), "attn_logit_softcapping = 50.0"),
    ("Llama", dict(residual_multiplier=0.22), "residual_multiplier"),
    ("Llama", dict(quantization_config={"quant_method": "gptq"}), "quantization_config"),
    ("Llama", dict(auto_map={"AutoModelForCausalLM": "modeling.Evil"}), "auto_map"),
    ("Llama", dict(hidden_act="relu2"), 'hidden_act = "relu2"'),
    ("Llama", dict(num_key_value_heads=3), "n_kv_head"),
    ("Llama", dict(attention_bias=1), "attention_bias = 1"),
    ("Llama", dict(head_dim=-1), "d_head"),
    ("Llama", dict(hidden_size=10**30), "n_embd"),
    ("Llama", dict(num_hidden_layers=10**9), "n_layer"),
    ("GPT2", dict(add_cross_attention=True), "add_cross_attention"),
    ("GPTNeo", dict(attention_types=[[["global"], 10**12]]), "attention_types"),
    ("GPTNeo", dict(attention_types=[[["global"], 10**9]], num_layers=10**9), "attention_types"),
    ("GPTNeo", dict(attention_types=[[["sparse"], 3]]), "attention_types"),
    ("GPTNeo", dict(attention_types="global"), "attention_types"),
    ("GPTNeo", dict(window_size=0), "window_size"),
    ("GPTNeoX", dict(rope_parameters=dict(rope_type="default", partial_rotary_factor=1e300)), "d_rotary"),
    ("GPTNeoX", dict(num_attention_heads=0), "n_head"),
    ("Mistral", dict(sliding_window=0), "sliding_window"),
    ("Mistral", dict(layer_types=["full_attention"] * 3), "layer_types"),
    ("Qwen2", dict(layer_types=["sliding_attention"] * 3), "layer_types"),
    ("Qwen2", dict(layer_types=["full_attention"]), "layer_types"),
    ("Qwen3", dict(mlp_bias=True), "mlp_bias"),
]


@pytest.mark.parametrize(
    ("family", "changes", "named"), REFUSED, ids=[f"{f}-{next(iter(c))}-{i}" for i, (f, c, _) in enumerate(REFUSED)]
)
def test_what_can_t_be_computed_is_refused_by_name(tmp_path, family, changes, named):
    folder = saved(theirs(family), tmp_path, lambda config: config | changes)
    with pytest.raises(GptvizError, match=named) as error:
        gptviz.load(folder)
    assert "\n" not in str(error.value)


SEEN_ON_THE_HUB = [
    ("GPT2", dict(n_ctx=64, task_specific_params={"text-generation": {"do_sample": True}}, summary_type="cls_index")),
    ("GPTNeo", dict(gradient_checkpointing=False, attention_layers=["global", "local", "local"], resid_dropout=0)),
    ("GPTNeoX", dict(classifier_dropout=0.1, torch_dtype="float16", transformers_version="4.24.0")),
    (
        "Llama",
        dict(is_llama_config=True, rope_interleaved=False, pretraining_tp=1, **{"transformers.js_config": {"a": 1}}),
    ),
    ("Qwen2", dict(use_mrope=False, max_window_layers=28, eos_token_id=[1, 2])),
]


@pytest.mark.parametrize(("family", "extra"), SEEN_ON_THE_HUB)
def test_fields_that_no_forward_reads_are_let_through(tmp_path, family, extra):
    expected = theirs(family)
    ours = gptviz.load(saved(expected, tmp_path, lambda config: extra | config)).model
    assert_same(ours, expected, torch.randint(VOCAB, (T,)))


def test_a_norm_s_weight_of_another_model_is_named(tmp_path):
    folder = saved(theirs("Llama"), tmp_path, lambda config: config | {"hidden_size": 64})
    with pytest.raises(GptvizError, match=r"embed_tokens\.weight has the shape \(60, 48\) in the file and \(60, 64\)"):
        gptviz.load(folder)


def test_a_grouped_projection_of_another_model_is_named(tmp_path):
    folder = saved(theirs("Llama"), tmp_path, lambda config: config | {"num_key_value_heads": 4})
    with pytest.raises(GptvizError, match=r"self_attn\.k_proj\.weight has the shape \(24, 48\) .* \(48, 48\)"):
        gptviz.load(folder)


@pytest.mark.parametrize("family", SHAPES)
def test_a_foreign_model_can_be_saved_as_one_of_ours(tmp_path, family):
    loaded = gptviz.load(saved(theirs(family), tmp_path / "theirs"))
    again, ids = gptviz.load(gptviz.save(loaded, tmp_path / "ours")).model, torch.randint(VOCAB, (1, T))
    assert again.config == loaded.model.config
    assert torch.equal(again(ids), loaded.model(ids))
