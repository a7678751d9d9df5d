"""A trace is the truth about one forward pass: every activation, under its name, and nobody else's."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest
import torch
from torch import nn

from gptviz import GPT, GptvizError, generate, trace, variant
from gptviz.config import PosEncoding
from gptviz.edits import AblateHead

ENCODINGS = get_args(PosEncoding)
close = torch.testing.assert_close

# Sizes that differ from one another, so that no shape is right by chance.
UNEVEN = dict(n_layer=2, n_embd=20, n_head=4, n_kv_head=2, d_head=6, d_mlp=28)
T, C, H, H_KV, D, F = 10, 20, 4, 2, 6, 28


def shapes(**architecture) -> dict[str, tuple[int, ...]]:
    """The names and shapes that every architecture should have, and those of this one."""
    rotary, parallel = architecture.get("pos_encoding") == "rotary", architecture.get("parallel_residual", False)
    block = {
        **dict.fromkeys(("hook_resid_pre", "hook_resid_post", "hook_attn_out", "hook_mlp_out"), (T, C)),
        **({} if parallel else {"hook_resid_mid": (T, C)}),
        **dict.fromkeys(("ln1.hook_normalized", "ln2.hook_normalized"), (T, C)),
        **dict.fromkeys(("ln1.hook_scale", "ln2.hook_scale"), (T, 1)),
        **dict.fromkeys(("attn.hook_q", "attn.hook_z"), (T, H, D)),
        **dict.fromkeys(("attn.hook_k", "attn.hook_v"), (T, H_KV, D)),
        **({"attn.hook_rot_q": (T, H, D), "attn.hook_rot_k": (T, H_KV, D)} if rotary else {}),
        **dict.fromkeys(("attn.hook_attn_scores", "attn.hook_pattern"), (H, T, T)),
        **dict.fromkeys(("mlp.hook_pre", "mlp.hook_post"), (T, F)),
        **({"mlp.hook_pre_linear": (T, F)} if architecture.get("gated_mlp") else {}),
    }
    if architecture.get("qk_norm"):
        block |= {"attn.q_norm.hook_normalized": (T, H, D), "attn.q_norm.hook_scale": (T, H, 1)}
        block |= {"attn.k_norm.hook_normalized": (T, H_KV, D), "attn.k_norm.hook_scale": (T, H_KV, 1)}
    added = architecture.get("pos_encoding", "learned") in ("learned", "sinusoidal")
    return {
        "hook_embed": (T, C),
        **({"hook_pos_embed": (T, C)} if added else {}),
        **{f"blocks.{layer}.{name}": shape for layer in range(2) for name, shape in block.items()},
        "ln_final.hook_scale": (T, 1),
        "ln_final.hook_normalized": (T, C),
    }


ARCHITECTURES = [dict(pos_encoding=encoding) for encoding in ENCODINGS] + [
    dict(causal=False),
    dict(gated_mlp=True, norm="rmsnorm", pos_encoding="rotary"),
    dict(parallel_residual=True, pos_encoding="rotary", d_rotary=2),
    dict(qk_norm=True),
]


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_a_trace_has_every_activation_of_its_architecture_and_no_other(make_model, ids, architecture):
    run = trace(make_model(**UNEVEN, **architecture), ids)
    assert {name: tuple(activation.shape) for name, activation in run.activations.items()} == shapes(**architecture)
    assert run.logits.shape == (10, 50)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_the_sums_of_the_residual_stream_hold(make_model, ids, architecture):
    model = make_model(**UNEVEN, **architecture)
    run = trace(model, ids)
    stream = run["hook_embed"] + (run["hook_pos_embed"] if "hook_pos_embed" in run.activations else 0)
    for layer in range(2):
        block = f"blocks.{layer}."
        assert torch.equal(run[f"{block}hook_resid_pre"], stream)
        mid = stream + run[f"{block}hook_attn_out"]
        if not architecture.get("parallel_residual"):
            close(run[f"{block}hook_resid_mid"], mid)
        stream = run[f"{block}hook_resid_post"]
        close(stream, mid + run[f"{block}hook_mlp_out"])
    close(run.logits, run["ln_final.hook_normalized"] @ model.unembed.weight.T, atol=1e-5, rtol=1e-5)


def test_attention_and_feed_forward_are_read_from_the_stream_the_block_began_with_where_they_are_parallel(
    make_model, ids
):
    model = make_model(parallel_residual=True)
    run, block = trace(model, ids), model.blocks[1]
    expected = nn.functional.layer_norm(run["blocks.1.hook_resid_pre"], (32,), block.ln2.weight, block.ln2.bias)
    close(run["blocks.1.ln2.hook_normalized"], expected, atol=1e-5, rtol=1e-5)


def test_norm_hooks_are_those_of_torch_layer_norm(tiny_model, ids):
    run = trace(tiny_model, ids)
    for name, norm, stream in [
        ("blocks.0.ln1", tiny_model.blocks[0].ln1, "blocks.0.hook_resid_pre"),
        ("blocks.1.ln2", tiny_model.blocks[1].ln2, "blocks.1.hook_resid_mid"),
        ("ln_final", tiny_model.ln_final, "blocks.1.hook_resid_post"),
    ]:
        theirs = nn.LayerNorm(32)
        theirs.load_state_dict(norm.state_dict())
        close(run[f"{name}.hook_normalized"], theirs(run[stream]).detach(), atol=1e-5, rtol=1e-5)
        close(run[f"{name}.hook_scale"][:, 0], (run[stream].var(-1, correction=0) + 1e-5).sqrt())


def test_norm_hooks_are_those_of_torch_rms_norm(make_model, ids):
    model = make_model(norm="rmsnorm")
    run = trace(model, ids)
    theirs = nn.RMSNorm(32, eps=1e-5)
    theirs.load_state_dict(model.ln_final.state_dict())
    stream = run["blocks.1.hook_resid_post"]
    close(run["ln_final.hook_normalized"], theirs(stream).detach(), atol=1e-5, rtol=1e-5)
    close(run["ln_final.hook_scale"][:, 0], (stream.square().mean(-1) + 1e-5).sqrt())


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_attention_hooks_follow_from_one_another(make_model, ids, architecture):
    model = make_model(**UNEVEN, **architecture)
    run = trace(model, ids)
    for layer in range(2):
        scores, pattern, v, z = (
            run[f"blocks.{layer}.attn.hook_{name}"] for name in ("attn_scores", "pattern", "v", "z")
        )
        close(scores.softmax(-1), pattern)
        for head in range(4):
            close(z[:, head], pattern[head] @ v[:, head // 2], atol=1e-5, rtol=1e-5)  # two heads share a value
        out = model.blocks[layer].attn.out
        written = z.flatten(1) @ out.weight.T + out.bias
        close(run[f"blocks.{layer}.hook_attn_out"], written.detach(), atol=1e-5, rtol=1e-5)


def test_the_feed_forward_hooks_stand_around_the_activation(tiny_model, ids):
    run = trace(tiny_model, ids)
    close(run["blocks.0.mlp.hook_post"], nn.GELU()(run["blocks.0.mlp.hook_pre"]))


def test_a_trace_gives_the_logits_of_the_model(make_model, ids):
    for encoding in ENCODINGS:
        model = make_model(pos_encoding=encoding)
        close(trace(model, ids).logits, model(ids[None])[0], atol=1e-5, rtol=1e-5)


def test_what_is_captured_is_a_detached_float32_copy_that_nothing_else_holds(make_model, ids):
    model = copy.deepcopy(make_model()).bfloat16().requires_grad_()
    run = trace(model, ids)
    own = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}
    captured = [run.logits, *run.activations.values()]
    for tensor in captured:
        assert (tensor.dtype, tensor.device.type, tensor.requires_grad) == (torch.float32, "cpu", False)
        assert tensor.is_contiguous()
        assert tensor.untyped_storage().nbytes() == 4 * tensor.numel()
    storages = [tensor.untyped_storage().data_ptr() for tensor in captured]
    assert len({*storages}) == len(storages)
    assert not own & {*storages}


def test_writing_into_a_trace_changes_no_model(make_model, ids):
    model = copy.deepcopy(make_model())
    before = trace(model, ids)
    for activation in (spoiled := trace(model, ids)).activations.values():
        activation.fill_(7.0)
    spoiled.ids.fill_(3)
    assert torch.equal(trace(model, ids).logits, before.logits)
    assert ids[0] == 7


@pytest.mark.parametrize(
    ("architecture", "name", "why"),
    [
        (dict(pos_encoding="rotary"), "hook_pos_embed", "'rotary' no position is added"),
        (dict(pos_encoding="none"), "hook_pos_embed", "'none' no position is added"),
        (dict(), "blocks.0.attn.hook_rot_q", "only rotary.*'learned'"),
        (dict(parallel_residual=True), "blocks.1.hook_resid_mid", "parallel residual"),
        (dict(), "blocks.2.hook_resid_pre", "no architecture has it"),
        (dict(), "hook_nonsense", "no architecture has it"),
    ],
)
def test_asking_for_an_absent_activation_says_why_it_is_absent(make_model, ids, architecture, name, why):
    model = make_model(**architecture)
    with pytest.raises(GptvizError, match=why):
        trace(model, ids)[name]
    with pytest.raises(GptvizError, match=why):
        trace(model, ids, keep=[name])


@pytest.mark.parametrize(("encoding", "name"), [("learned", "hook_pos_embed"), ("rotary", "blocks.0.attn.hook_rot_k")])
def test_an_activation_that_was_only_not_kept_is_not_blamed_on_the_architecture(make_model, ids, encoding, name):
    run = trace(make_model(pos_encoding=encoding), ids, keep=["hook_embed"])
    with pytest.raises(GptvizError, match="not kept"):
        run[name]


def test_keep_limits_what_is_kept_and_changes_no_value(tiny_model, ids):
    everything = trace(tiny_model, ids)
    some = trace(tiny_model, ids, keep=["blocks.1.attn.hook_pattern", "hook_embed"])
    assert some.activations.keys() == {"blocks.1.attn.hook_pattern", "hook_embed"}
    for name, activation in some.activations.items():
        close(activation, everything[name], atol=1e-5, rtol=1e-5)
    nothing = trace(tiny_model, ids, keep=())
    assert not nothing.activations
    close(nothing.logits, everything.logits, atol=1e-5, rtol=1e-5)


def test_pattern_is_one_head_as_numpy(tiny_model, ids):
    run = trace(tiny_model, ids)
    assert run.pattern(1, 2).tolist() == run["blocks.1.attn.hook_pattern"][2].tolist()


def test_one_token_is_enough(make_model):
    for encoding in ENCODINGS:
        run = trace(make_model(pos_encoding=encoding), [7])
        assert run["blocks.0.attn.hook_pattern"].tolist() == [[[1.0]]] * 4
        assert run["blocks.0.hook_resid_pre"].shape == (1, 32)


@pytest.mark.parametrize("wrong", [[], [50], [-1], [0.5], [[1, 2]]])
def test_ids_that_cannot_be_traced_are_refused(tiny_model, wrong):
    with pytest.raises(GptvizError):
        trace(tiny_model, wrong)


def test_dropout_is_off_while_looking_even_in_training(make_model, ids):
    still = make_model(dropout=0.5)
    model = copy.deepcopy(still).train()
    run, again, reference = trace(model, ids), trace(model, ids), trace(still, ids)
    assert model.training
    assert all(module.training for module in model.modules())
    for name, activation in run.activations.items():
        assert torch.equal(activation, again[name])
        assert torch.equal(activation, reference[name])


def test_the_pattern_hook_stands_before_dropout(make_model, ids):
    model, seen = copy.deepcopy(make_model(dropout=0.5)).train(), []
    model.blocks[0].attn.hook_pattern.register_forward_hook(lambda module, args, output: seen.append(output.detach()))
    model(ids[None])
    close(seen[0].sum(-1), torch.ones(1, 4, 10))  # dropped weights would leave sums of anything but 1


# Isolation


def bits(run) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in {"logits": run.logits, **run.activations}.items()}


def hooks(model: GPT) -> int:
    """How many hooks of any kind hang on the model."""
    return sum(len(held) for module in model.modules() for name, held in vars(module).items() if "_hooks" in name)


@pytest.fixture
def one_thread():
    """One thread inside each operation, whose sums then have one order: results are equal bit for bit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_eight_threads_on_one_model_never_see_one_another(tiny_model, one_thread):
    changes = [{}, dict(causal=False), dict(pos_encoding="rotary"), dict(pos_encoding="alibi")]
    edits = [(), (AblateHead(0, 1),), (AblateHead(1, 3, "mean"), AblateHead(0, 0))]
    jobs = [
        (torch.randint(50, (2 + n % 7,)), changes[n % 4], edits[n % 3], ["hook_embed"] if n % 5 == 0 else None)
        for n in range(60)
    ]

    def run(job) -> dict[str, bytes]:
        prompt, change, edit, keep = job
        return bits(trace(variant(tiny_model, **change) if change else tiny_model, prompt, edit, keep))

    alone = [run(job) for job in jobs]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(run, 5 * jobs))
    assert together == 5 * alone
    assert hooks(tiny_model) == 0


class Broken:
    """An edit that fails in the middle of the forward pass."""

    def changes(self, config):
        return {"blocks.1.attn.hook_pattern": self.fail}

    def fail(self, pattern):
        raise ZeroDivisionError


def test_an_exception_in_the_middle_leaves_nothing_behind(tiny_model, ids):
    before = bits(trace(tiny_model, ids))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            trace(tiny_model, ids, edits=[Broken()])
        with pytest.raises(ZeroDivisionError):
            next(generate(tiny_model, ids, edits=[Broken()]))
    assert hooks(tiny_model) == 0
    assert bits(trace(tiny_model, ids)) == before


def test_a_refused_edit_or_name_leaves_nothing_behind(tiny_model, ids):
    for wrong in (dict(edits=[AblateHead(0, 0), AblateHead(9, 0)]), dict(keep=["nowhere"])):
        with pytest.raises(GptvizError):
            trace(tiny_model, ids, **wrong)
    assert hooks(tiny_model) == 0


def test_a_head_ablated_in_one_session_moves_no_other_sessions_logits(tiny_model, ids):
    before, plain = trace(tiny_model, ids), tiny_model(ids[None])
    mine = generate(tiny_model, ids, 3, temperature=0, edits=[AblateHead(0, 1)])
    next(mine)
    ablated = trace(tiny_model, ids, edits=[AblateHead(0, 1)])
    assert not torch.allclose(ablated.logits, before.logits, atol=1e-3)
    assert bits(trace(tiny_model, ids)) == bits(before)
    assert torch.equal(tiny_model(ids[None]), plain)
    next(mine)


def test_a_trace_does_not_carry_hooks_that_hang_on_the_model_itself(tiny_model, ids):
    model, heard = copy.deepcopy(tiny_model), []
    handle = model.blocks[0].register_forward_hook(lambda *args: heard.append(1))
    trace(model, ids)
    assert heard == []
    assert hooks(model) == 1
    handle.remove()


def test_a_trace_says_what_it_was_made_from(tiny_model, ids):
    run = trace(tiny_model, ids, edits=[AblateHead(0, 1)])
    assert torch.equal(run.ids, ids)
    assert run.edits == (AblateHead(0, 1),)
    assert json.loads(json.dumps(run.config.to_dict())) == tiny_model.config.to_dict()


@pytest.mark.parametrize("architecture", [a for a in ARCHITECTURES if a.get("causal", True)], ids=str)
def test_the_first_positions_are_what_they_alone_would_give(make_model, architecture):
    model = make_model(**UNEVEN, **architecture)
    ids = torch.arange(T) % model.config.vocab_size
    cut, alone = trace(model, ids).until(T - 3), trace(model, ids[: T - 3])
    assert cut.ids.equal(alone.ids)
    close(cut.logits, alone.logits)
    assert set(cut.activations) == set(alone.activations)
    for name, activation in alone.activations.items():
        close(cut[name], activation)


def test_without_a_mask_the_first_positions_are_not_their_own(make_model):
    with pytest.raises(GptvizError, match="causal mask"):
        trace(make_model(causal=False), torch.arange(5)).until(3)
