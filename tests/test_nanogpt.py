"""nanoGPT's ckpt.pt: against a GPT-2 of `transformers` with the same weights, and its character vocabularies."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import gptviz
from gptviz import GptvizError, generate, trace
from gptviz.tokenizer import CharTokenizer, IdsTokenizer

close = torch.testing.assert_close
CHARACTERS = "\n !?abcdefghijklmnopqrstuvwxyz🤗é"
ARGS: dict[str, Any] = dict(
    n_layer=2, n_head=4, n_embd=32, block_size=24, bias=True, vocab_size=len(CHARACTERS), dropout=0.1
)
STOI = {char: i for i, char in enumerate(CHARACTERS)}
META = {"vocab_size": len(CHARACTERS), "itos": dict(enumerate(CHARACTERS)), "stoi": STOI}


def reference(bias: bool, activation: str = "gelu") -> GPT2LMHeadModel:
    """The same mathematics: without biases is with biases of zero, and with norms that shift by nothing."""
    shape = dict(
        vocab_size=len(CHARACTERS), n_positions=24, n_layer=2, n_head=4, n_embd=32, activation_function=activation
    )
    special = dict(bos_token_id=None, eos_token_id=None)
    model = GPT2LMHeadModel(GPT2Config(**shape, **special, attn_implementation="eager")).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():
        parameter += 0.2 * torch.randn_like(parameter)
        if name.endswith("bias") and not bias:
            parameter.zero_()
    return model


def nanogpt(model: GPT2LMHeadModel, path: Path, prefix: str = "", **args: Any) -> Path:
    """As nanoGPT's train.py writes it: linear layers the other way round than in a Conv1D, W_U stored as well."""
    args = ARGS | args
    state = {}
    for name, tensor in model.state_dict().items():
        turned = tensor.T if any(f"{part}.weight" in name for part in ("c_attn", "c_proj", "c_fc")) else tensor
        if args["bias"] or not name.endswith("bias"):
            state[prefix + name] = turned.contiguous()
    state[f"{prefix}lm_head.weight"] = state[f"{prefix}transformer.wte.weight"]
    state[f"{prefix}transformer.h.0.attn.bias"] = torch.ones(1, 1, 24, 24).tril()  # without flash attention
    optimizer = torch.optim.AdamW([torch.zeros(3, requires_grad=True)]).state_dict()
    whole = dict(model=state, optimizer=optimizer, model_args=args, iter_num=250, best_val_loss=torch.tensor(1.4697))
    path.parent.mkdir(exist_ok=True)
    torch.save(whole | {"config": {"dataset": "shakespeare_char", "compile": True}}, path)
    return path


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module._orig_mod."])
@pytest.mark.parametrize("bias", [True, False])
def test_it_has_the_logits_and_patterns_of_the_same_gpt2(tmp_path, bias, prefix):
    theirs, ids = reference(bias), torch.randint(len(CHARACTERS), (20,))
    loaded = gptviz.load(nanogpt(theirs, tmp_path / "ckpt.pt", prefix, bias=bias))
    expected, run = theirs(ids[None], output_attentions=True), trace(loaded.model, ids)
    scale = float(expected.logits.abs().max())
    close(run.logits, expected.logits[0], rtol=1e-5, atol=1e-5 * scale)
    for layer, pattern in enumerate(expected.attentions):
        close(run[f"blocks.{layer}.attn.hook_pattern"], pattern[0], rtol=1e-5, atol=1e-5)
    settings = dict(max_new_tokens=10, do_sample=False, pad_token_id=0)
    wanted = theirs.generate(ids[None, :8], attention_mask=torch.ones(1, 8, dtype=torch.long), **settings)[
        0, 8:
    ].tolist()
    assert [step.token for step in generate(loaded.model, ids[:8], 10, temperature=0)] == wanted


def test_without_biases_the_norms_have_none_either(tmp_path):
    with_, without = (
        gptviz.load(nanogpt(reference(bias), tmp_path / str(bias) / "ckpt.pt", bias=bias)).model
        for bias in (True, False)
    )
    names = [name for name, _ in without.named_parameters() if name.endswith("bias")]
    assert names == []
    assert with_.blocks[0].ln1.bias is not None
    for model in (with_, without):
        assert sum(parameter.numel() for parameter in model.parameters()) == gptviz.sizing.n_params(model.config)


def test_its_gelu_is_the_exact_one_unless_it_says_otherwise(tmp_path):
    theirs, ids = reference(True, "gelu_new"), torch.randint(len(CHARACTERS), (1, 20))
    as_it_says = gptviz.load(nanogpt(theirs, tmp_path / "a" / "ckpt.pt", activation="gelu_new")).model
    close(as_it_says(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
    silent = gptviz.load(nanogpt(theirs, tmp_path / "b" / "ckpt.pt")).model
    assert (as_it_says.config.activation, silent.config.activation) == ("gelu_tanh", "gelu")
    assert float((silent(ids) - theirs(ids).logits).detach().abs().max()) > 1e-4


def test_what_it_says_of_its_training_is_in_the_card(tmp_path):
    card = gptviz.load(nanogpt(reference(True), tmp_path / "run" / "ckpt.pt").parent).card
    assert card["name"] == "run"
    assert card["steps"] == 250
    assert card["validation"]["nats_per_token"] == pytest.approx(1.4697)


def test_without_a_vocabulary_a_prompt_is_ids(tmp_path):
    loaded = gptviz.load(nanogpt(reference(True), tmp_path / "ckpt.pt"))
    assert isinstance(loaded.tokenizer, IdsTokenizer)
    assert loaded.tokenizer.encode("3 5").tolist() == [3, 5]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("meta.pkl", pickle.dumps(META)),
        ("meta.pkl", pickle.dumps(META, protocol=0)),
        ("meta.json", json.dumps(META).encode()),
        ("vocab.json", json.dumps(STOI, ensure_ascii=False).encode()),
    ],
)
def test_a_vocabulary_of_characters_beside_it_is_read(tmp_path, name, content):
    nanogpt(reference(True), tmp_path / "ckpt.pt")
    (tmp_path / name).write_bytes(content)
    tokenizer = gptviz.load(tmp_path / "ckpt.pt").tokenizer
    assert len(tokenizer) == len(CHARACTERS)
    assert tokenizer.encode("a b\n🤗").tolist() == [STOI[char] for char in "a b\n🤗"]
    assert tokenizer.labels(tokenizer.encode("a b\n🤗é")) == ["a", "·", "b", "⏎", "🤗", "é"]
    assert tokenizer.decode(tokenizer.encode("hello é\n")) == "hello é\n"
    with pytest.raises(GptvizError, match=r"knows 32 characters, and 'Z' \(U\+005A\), at character 2 of the text"):
        tokenizer.encode("hiZ")
    with pytest.raises(GptvizError, match="surrogate"):
        tokenizer.encode("\ud800")
    with pytest.raises(GptvizError, match="no beginning-of-text"):
        tokenizer.encode("a", bos=True)


def test_it_can_be_saved_as_one_of_ours_with_its_characters(tmp_path):
    nanogpt(reference(False), tmp_path / "theirs" / "ckpt.pt", bias=False)
    (tmp_path / "theirs" / "meta.pkl").write_bytes(pickle.dumps(META))
    loaded = gptviz.load(tmp_path / "theirs")
    again = gptviz.load(gptviz.save(loaded, tmp_path / "ours"))
    ids = again.tokenizer.encode("hello")
    assert isinstance(again.tokenizer, CharTokenizer)
    assert ids.tolist() == loaded.tokenizer.encode("hello").tolist()
    assert torch.equal(again.model(ids[None]), loaded.model(ids[None]))
    assert again.card["steps"] == 250


def test_a_padding_row_has_a_label(tmp_path):
    theirs = reference(True)
    theirs.resize_token_embeddings(64, mean_resizing=False)
    nanogpt(theirs, tmp_path / "ckpt.pt", vocab_size=64)
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps(META))
    tokenizer = gptviz.load(tmp_path).tokenizer
    assert tokenizer.labels([31, 40, 63]) == ["é", "<unused·40>", "<unused·63>"]
    with pytest.raises(GptvizError, match="ids go from 0 to 63"):
        tokenizer.labels([64])
