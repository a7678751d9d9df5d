"""Sizes against what PyTorch counts, keeps and multiplies on real models, and against published numbers."""

import itertools
import subprocess
import sys

import pytest
import torch
import transformers
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import gptviz
from gptviz import sizing
from gptviz.config import PRESETS, GPTConfig, preset
from gptviz.errors import GptvizError
from gptviz.model import GPT, Cache
from gptviz.sizing import Accelerator, Workload
from tests.memory_meter import AllocatedBytes, SavedBytes

SMALL = dict(vocab_size=97, block_size=32, n_layer=3, n_head=4, n_embd=32)
LLAMA = dict(
    pos_encoding="rotary", norm="rmsnorm", gated_mlp=True, activation="silu", tie_weights=False, qkv_bias=False
)
ARCHITECTURES = {
    "gpt": {},
    "dropout": dict(dropout=0.1),
    "llama": LLAMA,
    "grouped": dict(**LLAMA, n_kv_head=2),
    "qwen": dict(**LLAMA, n_kv_head=2, qk_norm=True),
    "pythia": dict(pos_encoding="rotary", d_rotary=2, parallel_residual=True, unembed_bias=True, tie_weights=False),
    "alibi, relu": dict(pos_encoding="alibi", activation="relu", norm_bias=False),
    "minimal": dict(n_head=1, d_head=16, pos_encoding="sinusoidal", out_bias=False, mlp_bias=False),
    "open": dict(causal=False, pos_encoding="none", d_mlp=50),
    "gated relu": dict(gated_mlp=True, activation="relu", qk_norm=True, norm="rmsnorm"),
}
every_architecture = pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES)
both_paths = pytest.mark.parametrize("attention", ["fused", "explicit"])


def small(changes):
    return GPTConfig(**{**SMALL, **changes})


def model_of(config, attention="fused"):
    """On the explicit path something listens to the pattern."""
    model = GPT(config)
    if attention == "explicit":
        for name, point in model.hook_points():
            if name.endswith("hook_pattern"):
                point.register_forward_hook(lambda *activation: None)
    return model


def random_ids(batch, length=16, vocabulary=97):
    return torch.randint(vocabulary, (batch, length))


# Parameters


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_the_parameters_that_torch_counts(name):
    config = preset(name)
    with torch.device("meta"):
        model = GPT(config)
    assert sizing.n_params(config) == sum(p.numel() for p in model.parameters())


@every_architecture
@pytest.mark.parametrize("tied", [True, False])
def test_the_table_has_the_models_names_and_shapes_in_order(changes, tied):
    config = small({**changes, "tie_weights": tied})
    rows = sizing.parameter_table(config)
    expected = [(name, tuple(p.shape)) for name, p in GPT(config).named_parameters()]
    assert [(row.name, row.shape) for row in rows] == expected
    assert sum(row.count for row in rows) == sizing.n_params(config)
    assert sum(row.share for row in rows) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "published"),
    {
        "minimal_decoder": 136_311_889,
        "gpt_from_scratch": 3_323_392,
        "gpt2": 124_439_808,
        "gpt2-medium": 354_823_168,
        "gpt2-large": 774_030_080,
        "gpt2-xl": 1_557_611_200,
        "pythia-70m": 70_426_624,
        "pythia-160m": 162_322_944,
        "pythia-410m": 405_334_016,
        "pythia-1b": 1_011_781_632,
        "pythia-1.4b": 1_414_647_808,
        "pythia-2.8b": 2_775_208_960,
        "pythia-6.9b": 6_857_302_016,
        "pythia-12b": 11_846_072_320,
        "llama2-7b": 6_738_415_616,
        "llama3-8b": 8_030_261_248,
        "llama3-70b": 70_553_706_496,
        "qwen3-0.6b": 596_049_920,
        "qwen3-1.7b": 1_720_574_976,
        "qwen3-4b": 4_022_468_096,
        "qwen3-8b": 8_190_735_360,
        "qwen3-14b": 14_768_307_200,
        "qwen3-32b": 32_762_123_264,
    }.items(),
)
def test_published_counts(name, published):
    assert sizing.n_params(preset(name)) == published


def test_gpt3_rounds_to_what_its_paper_says():
    assert sizing.n_params(preset("gpt3-175b")) == pytest.approx(175e9, rel=0.003)


@pytest.mark.parametrize("name", sizing.PUBLISHED)
def test_what_was_published_is_what_is_counted_to_the_last_digit_that_it_gives(name):
    said, counted = sizing.PUBLISHED[name], sizing.n_params(preset(name))
    if said.exact is not None:
        assert said.exact == counted
        return
    number, scale = float(said.text[:-1]), {"M": 1e6, "B": 1e9}[said.text[-1]]
    digits = len(said.text.partition(".")[2][:-1])
    off = 0.4 if name == "gpt3-175b" else 0.5 * 10**-digits  # the paper's 175.0 is 0.4 above its own table of sizes
    assert counted / scale == pytest.approx(number, abs=off)


def test_the_sentence_about_what_was_published_says_rounded_or_the_same():
    assert sizing.published_sentence("gpt3-175b", preset("gpt3-175b")) == (
        "Published: 175.0B (Brown et al. 2020, table 2.1). Its configuration comes to 174,604,259,328, 0.23 % less."
    )
    assert sizing.published_sentence("qwen3-4b", preset("qwen3-4b")).startswith("Published: 4.0B, rounded (")
    assert "8,030,261,248, the same (" in sizing.published_sentence("llama3-8b", preset("llama3-8b"))
    assert sizing.published_sentence("llama3-8b", preset("llama3-8b", n_layer=31)) == ""
    assert sizing.published_sentence("gpt_from_scratch", preset("gpt_from_scratch")) == ""


@pytest.mark.parametrize(
    ("size", "published"),
    {
        "70m": 18_915_328,
        "160m": 85_056_000,
        "410m": 302_311_424,
        "1b": 805_736_448,
        "1.4b": 1_208_602_624,
        "2.8b": 2_517_652_480,
        "6.9b": 6_444_163_072,
        "12b": 11_327_027_200,
    }.items(),
)
def test_pythias_non_embedding_parameters_are_those_of_its_model_cards(size, published):
    config = preset(f"pythia-{size}")
    counts = sizing.component_counts(config)
    assert sizing.n_params(config) - counts["Token embedding"] - counts["Unembedding"] == published


# Hugging Face's own models of the same sizes


def hugging_face_llama(**more):
    return transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=88,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
        **more,
    )


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (transformers.GPT2Config(vocab_size=97, n_positions=32, n_embd=32, n_layer=3, n_head=4), {}),
        (
            transformers.GPTNeoXConfig(
                vocab_size=97, hidden_size=32, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4
            ),
            dict(pos_encoding="rotary", d_rotary=2, parallel_residual=True, tie_weights=False),
        ),
        (
            hugging_face_llama(),
            dict(**LLAMA, d_mlp=88, n_kv_head=2, **dict.fromkeys(("out_bias", "mlp_bias", "norm_bias"), False)),
        ),
        (
            transformers.Qwen3Config(
                vocab_size=97,
                hidden_size=32,
                intermediate_size=88,
                num_hidden_layers=3,
                num_attention_heads=4,
                num_key_value_heads=2,
                head_dim=16,
                tie_word_embeddings=True,
            ),
            dict(**{**LLAMA, "tie_weights": True}, d_mlp=88, n_kv_head=2, d_head=16, qk_norm=True)
            | dict.fromkeys(("out_bias", "mlp_bias", "norm_bias"), False),
        ),
    ],
    ids=["gpt2", "gpt_neox", "llama", "qwen3"],
)
def test_a_familys_count_is_that_of_hugging_faces_model(theirs, ours):
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(theirs)
    assert sizing.n_params(small(ours)) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", gptviz.bundled())
def test_a_bundled_models_count_is_that_of_its_weights(name):
    model = gptviz.load(name).model
    assert sizing.n_params(model.config) == sum(p.numel() for p in model.parameters())


def test_the_courses_ledger_and_pytorchs_count_differ_by_the_biases():
    config = preset("gpt_from_scratch")
    printed, counted = sizing.ledger(config, linear_biases=False), sizing.ledger(config)
    assert {line.label: line.count for line in printed if line.kind == "block"} == {
        "Norm before attention": 512,
        "Attention: W_Q, W_K, W_V": 196_608,
        "Attention: output W_O": 65_536,
        "Norm before feed-forward": 512,
        "Feed-forward: W_in": 262_144,
        "Feed-forward: W_out": 262_144,
    }
    assert (printed[-1].count, counted[-1].count) == (3_314_176, 3_323_392)
    sentence = sizing.biases_sentence(config)
    assert all(number in sentence for number in ("3,314,176", "3,323,392", "4 blocks × 2,304", "= 9,216"))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("biases", [True, False])
def test_ledgers_add_up(name, biases):
    lines = sizing.ledger(preset(name), linear_biases=biases)
    each = sum(line.count for line in lines if line.kind == "block")
    blocks = next(line.count for line in lines if line.kind == "subtotal")
    assert blocks == preset(name).n_layer * each
    assert lines[-1].count == blocks + sum(line.count for line in lines if line.kind == "part")
    if biases:
        assert lines[-1].count == sizing.n_params(preset(name)) == sum(sizing.component_counts(preset(name)).values())


def test_no_size_is_too_absurd_to_count_but_a_table_of_it_is_refused():
    absurd = GPTConfig(n_layer=2**31 - 1, n_embd=2**31 - 1, n_head=1)
    assert sizing.n_params(absurd) > 10**28
    assert sizing.contexts(absurd)[-1] == 4096
    with pytest.raises(GptvizError, match="n_layer = 2,147,483,647"):
        sizing.parameter_table(absurd)


# Memory


@every_architecture
@both_paths
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_training_activations_are_what_autograd_keeps(changes, attention, batch, checkpointing):
    config = small(changes)
    workload = Workload(
        batch=batch,
        context=16,
        dtype="float32",
        training=True,
        attention=attention,
        checkpointing=checkpointing,
        device="cpu",
    )
    model = model_of(config, attention).train()
    if checkpointing:
        for block in model.blocks:
            block.forward = checkpointed(block.forward)
    with SavedBytes(model) as saved:
        model.loss(random_ids(batch), random_ids(batch)).backward()
    assert sizing.memory(config, workload).activations == pytest.approx(saved.peak, rel=0.01)


def checkpointed(forward):
    return lambda x, geometry, cache=None: checkpoint(forward, x, geometry, cache, use_reentrant=True)


def test_the_course_models_activations_are_what_autograd_keeps():
    config = preset("gpt_from_scratch")
    model = GPT(config).train()
    with SavedBytes(model) as saved:
        model.loss(random_ids(2, 128, 512), random_ids(2, 128, 512))
        kept = saved.live
    workload = Workload(batch=2, dtype="float32", training=True, device="cpu")
    assert sizing.memory(config, workload).activations == pytest.approx(kept, rel=0.1)


@every_architecture
@both_paths
@pytest.mark.parametrize("batch", [1, 3])
def test_inference_activations_are_the_peak_of_what_is_allocated(changes, attention, batch):
    config = small(changes)
    model = model_of(config, attention).eval()
    ids = random_ids(batch, 32)
    with torch.no_grad(), AllocatedBytes() as allocated:
        model(ids)
    workload = Workload(batch=batch, dtype="float32", attention=attention, device="cpu")
    assert sizing.memory(config, workload).activations == pytest.approx(allocated.peak, rel=0.1)


@every_architecture
def test_the_kv_cache_is_what_the_model_keeps(changes):
    config = small(changes)
    cache = Cache(config)
    with torch.no_grad():
        GPT(config).eval()(random_ids(3), cache)
    kept = sum(layer.k.nbytes + layer.v.nbytes for layer in cache.layers)
    assert sizing.kv_cache(config, Workload(batch=3, context=16, dtype="float32")) == kept


@pytest.mark.parametrize(
    ("name", "make"),
    {
        "adamw": lambda parameters: torch.optim.AdamW(parameters),
        "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        "sgd_momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    }.items(),
)
def test_weights_gradients_and_optimizer_are_what_torch_holds(name, make):
    config = small({})
    model = GPT(config)
    optimizer = make(model.parameters())
    model.loss(random_ids(1), random_ids(1)).backward()
    optimizer.step()
    states = [tensor for state in optimizer.state.values() for tensor in state.values() if torch.is_tensor(tensor)]
    need = sizing.memory(config, Workload(dtype="float32", training=True, optimizer=name))
    assert need.weights == sum(p.nbytes for p in model.parameters())
    assert need.gradients == sum(p.grad.nbytes for p in model.parameters())
    assert need.optimizer == sum(tensor.nbytes for tensor in states if tensor.ndim)  # without step counters


def test_muon_keeps_one_number_of_a_blocks_matrices_and_two_of_the_rest():
    config = preset("gpt_from_scratch")
    matrices = 4 * (196_608 + 65_536 + 2 * 262_144)
    rest = 3_323_392 - matrices
    need = sizing.memory(config, Workload(training=True, dtype="float32", optimizer="muon"))
    assert need.optimizer == 4 * (matrices + 2 * rest)


def test_mixed_precision_takes_sixteen_bytes_a_parameter():
    need = sizing.memory(preset("gpt2"), Workload(training=True, dtype="mixed"))
    assert need.weights + need.gradients + need.optimizer == 16 * 124_439_808


def test_llama_2_7b_by_hand():
    need = sizing.memory(preset("llama2-7b"), Workload(dtype="bfloat16", context=4096))
    assert need.weights == 2 * 6_738_415_616
    assert need.kv_cache == 2**31  # half a MiB a token, as every account of it says
    assert sizing.memory(preset("llama2-7b"), Workload(dtype="int4")).weights == 6_738_415_616 // 2


def test_explicit_attention_and_dropout_cost_what_the_square_takes():
    config = preset("gpt2", n_layer=1, n_head=1, d_head=64)
    kept = [
        sizing.memory(config, Workload(training=True, attention=path, dtype="float32")).activations
        for path in ("fused", "explicit")
    ]
    square, mask, sums = 4 * 1024**2, 1024**2, 4 * 1024
    assert kept[1] - kept[0] == square + mask - sums


def test_fits():
    small_one, large_one = sizing.fits(12 * 10**9, {"8 GB": 8 * 10**9, "16 GB": 16 * 10**9})
    assert (small_one.fits, small_one.n, small_one.share) == (False, 2, 1.5)
    assert (large_one.fits, large_one.n, large_one.share) == (True, 1, 0.75)


# Operations


@every_architecture
@pytest.mark.parametrize("batch", [1, 3])
def test_forward_and_training_operations_are_what_torch_counts(changes, batch):
    config = small(changes)
    model = model_of(config, "explicit").train()
    ids = random_ids(batch)
    with FlopCounterMode(display=False) as forward:
        loss = model.loss(ids, ids)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    workload = Workload(batch=batch, context=16)
    assert sizing.flops(config, workload).total == forward.get_total_flops()
    step = sizing.flops(config, Workload(batch=batch, context=16, training=True))
    assert step.total == forward.get_total_flops() + backward.get_total_flops() == 3 * forward.get_total_flops()


@every_architecture
def test_operations_of_a_decoded_token_are_what_torch_counts(changes):
    config = small(changes)
    model, cache = model_of(config, "explicit").eval(), Cache(config)
    ids = random_ids(2)
    with torch.no_grad():
        model(ids[:, :-1], cache)
        with FlopCounterMode(display=False) as counted:
            model(ids[:, -1:], cache)
    assert sizing.decode_flops(config, Workload(batch=2, context=16)).total == counted.get_total_flops()


def test_checkpointing_computes_the_blocks_again():
    config, workload = preset("gpt2"), Workload(training=True, checkpointing=True)
    once, again = sizing.flops(config, Workload()), sizing.flops(config, workload)
    assert again.total == 4 * once.total - once.unembed


def test_the_rule_of_thumb_is_near_for_a_wide_model():
    config = preset("gpt3-175b")
    for training in (False, True):
        workload = Workload(training=training)
        assert sizing.six_nd(config, workload) == pytest.approx(sizing.flops(config, workload).total, rel=0.05)
    assert sizing.six_nd(config, Workload(training=True, context=1)) == 6 * sizing.n_params(config)


# The roofline


def test_decoding_llama_waits_for_memory_and_its_prefill_for_arithmetic():
    config = preset("llama3-8b")
    prefill, decode = sizing.roofline(config, Workload(), sizing.ACCELERATORS["NVIDIA H100 SXM"])
    assert (prefill.bound, decode.bound) == ("compute", "memory")
    assert prefill.seconds == pytest.approx(prefill.flops / 989e12)
    read = 2 * (8_030_261_248 - 128_256 * 4096) + 2 * 2 * 32 * 8192 * 8 * 128  # W_E is looked up, W_U multiplied
    assert decode.bytes == read
    assert decode.tokens_per_second == pytest.approx(3.35e12 / read)


def test_larger_batches_share_the_weights_and_end_on_the_roof():
    config, accelerator = preset("llama3-8b"), Accelerator(flops=100e12, bandwidth=1e12, memory=80e9)
    paces = sizing.decode_over_batches(config, Workload(context=64), accelerator, [1, 16, 4096])
    assert [pace.bound for pace in paces] == ["memory", "memory", "compute"]
    assert paces[1].tokens_per_second > 15 * paces[0].tokens_per_second
    for pace in paces:
        assert pace.flops / pace.seconds == pytest.approx(accelerator.attainable(pace.intensity))


# Growth


@pytest.mark.parametrize("training", [False, True])
@both_paths
def test_the_parts_of_growth_have_the_growth_they_are_named_for(training, attention):
    config, at = preset("gpt2"), [512, 1024, 2048, 4096]
    workload = Workload(training=training, attention=attention)
    work = sizing.flops_over_context(config, workload, at)
    for small_one, large_one in itertools.pairwise(range(4)):
        assert work.linear[large_one] == 2 * work.linear[small_one]
        assert work.quadratic[large_one] == 4 * work.quadratic[small_one]
    held = sizing.memory_over_context(config, workload, at)
    assert len(set(held.constant)) == 1
    assert (max(held.quadratic) > 0) is (attention == "explicit")
    if training and attention == "explicit":
        assert held.quadratic[3] == 4 * held.quadratic[2]
    parts = zip(held.constant, held.linear, held.quadratic, strict=True)
    total = sizing.memory(config, Workload(training=training, attention=attention, context=1024)).total
    assert [sum(part) for part in parts][1] == total


def test_at_the_crossing_both_parts_are_equal():
    config = preset("gpt2")
    T = sizing.crossing(config)
    work = sizing.flops_over_context(config, Workload(), [T])
    assert work.linear[0] == pytest.approx(work.quadratic[0], rel=1e-3)


def test_growth_with_depth_is_the_parameters_of_deeper_models():
    config, at = preset("gpt2"), [1, 12, 48]
    grown = sizing.parameters_over_depth(config, at)
    expected = [sizing.n_params(preset("gpt2", n_layer=layers)) for layers in at]
    assert [a + b for a, b in zip(grown.constant, grown.linear, strict=True)] == expected


# Bad input, and no torch


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        (dict(batch=0), "batch = 0"),
        (dict(batch=-3), "batch = -3"),
        (dict(batch=2.5), "batch = 2.5"),
        (dict(context=10**30), "context = 1000"),
        (dict(dtype="float7"), "dtype = 'float7' is not one of 'float32'"),
        (dict(training=True, dtype="int4"), "can't be trained"),
    ],
)
def test_a_workload_that_is_none_is_refused_in_a_sentence(fields, complaint):
    with pytest.raises(GptvizError, match=complaint):
        Workload(**fields)


def test_more_context_than_learned_positions_is_refused():
    with pytest.raises(GptvizError, match="context = 2,000 is more than the 1,024 learned positions"):
        sizing.memory(preset("gpt2"), Workload(context=2000))
    assert sizing.memory(preset("pythia-70m"), Workload(context=20_000)).kv_cache > 0


@pytest.mark.parametrize(
    ("name", "tflops", "bandwidth", "memory"),
    [  # dense 16-bit TFLOP/s, GB/s and GB, from the makers' specifications
        ("NVIDIA T4", 65, 320, 16),
        ("NVIDIA L4", 242 / 2, 300, 24),
        ("NVIDIA RTX 4090", 165.2, 1008, 24),
        ("NVIDIA A100 80 GB", 312, 2039, 80),
        ("NVIDIA H100 SXM", 1979 / 2, 3350, 80),
        ("NVIDIA H200 SXM", 1979 / 2, 4800, 141),
    ],
)
def test_accelerators_are_as_their_makers_state_them_without_sparsity(name, tflops, bandwidth, memory):
    known = sizing.ACCELERATORS[name]
    assert known.flops == pytest.approx(1e12 * tflops, rel=1e-3)
    assert (known.bandwidth, known.memory) == pytest.approx((1e9 * bandwidth, 1e9 * memory))
    assert known.arithmetic.startswith("dense")
    assert known.source.startswith("https://")


@pytest.mark.parametrize("flops", [0, -1, float("nan"), float("inf")])
def test_an_accelerator_without_speed_is_refused(flops):
    with pytest.raises(GptvizError, match="flops ="):
        Accelerator(flops=flops, bandwidth=1, memory=1)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "B", "0 B"),
        (999.6, "B", "1 kB"),
        (1.24e8, "B", "124 MB"),
        (3.48e-6, "s", "3.48 µs"),
        (2e27, "B", "2,000 YB"),
    ],
)
def test_numbers_have_three_figures_and_a_prefix(value, unit, text):
    assert sizing.si(value, unit).replace("\u00a0", " ") == text


def test_sizing_does_without_torch():
    code = "import sys, gptviz.sizing; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
