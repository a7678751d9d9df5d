"""What the command line says: its flags, and the configuration, options, texts and vocabulary that they ask for."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args

from ..config import PRESETS, GPTConfig, preset
from ..errors import GptvizError
from ..tokenizer import END_OF_TEXT, Tokenizer, train_bpe
from .data import read_stories
from .options import Optimizer, Options, Precision
from .snapshots import Snapshots, log_spaced
from .texts import HUB, stories_of

Arguments = argparse.Namespace

HELD_OUT = 200  # stories of the built-in grammar that are kept from training

_DESCRIPTION = """Train a GPT on stories, evaluate it, and save it as a checkpoint that gptviz opens. After an
interruption the same command goes on where it was. Several processes share the work under torchrun:
torchrun --nproc-per-node 2 -m gptviz.training ..."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise GptvizError(f"{message[0].upper()}{message[1:]}. --help lists what there is.")


def parser() -> argparse.ArgumentParser:
    made = _Parser("python -m gptviz.training", description=_DESCRIPTION, allow_abbrev=False)
    text = "a UTF-8 text whose stories a line <|endoftext|> separates, or hf:ORG/NAME[/FILE], a text on the Hub"
    made.add_argument("text", metavar="TEXT", nargs="?", help=f"{text} [the built-in story grammar]")
    made.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the checkpoint to write")
    made.add_argument("--name", help="the checkpoint's name [that of FOLDER]")
    made.add_argument(
        "--state", dest="run", type=Path, metavar="FOLDER", help="where the unfinished run is kept [runs/NAME]"
    )
    for group in (_add_model, _add_texts, _add_options, _add_snapshots, _add_machine, _add_card):
        group(made)
    return made


def _add_model(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("the model")
    group.add_argument("--preset", default="gpt_from_scratch", choices=PRESETS, metavar="NAME", help="[%(default)s]")
    group.add_argument("--set", nargs="+", action="extend", default=[], metavar="FIELD=VALUE", help="changes to it")


def _add_texts(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("text and vocabulary")
    group.add_argument("--validation", type=Path, metavar="FILE", help="stories to evaluate the finished model on")
    group.add_argument("--stories", type=int, metavar="N", help="take only TEXT's first N stories")
    kept = f"keep the last N of them for evaluation [none; of the grammar's a tenth, {HELD_OUT} at most]"
    group.add_argument("--held-out", type=int, metavar="N", help=kept)
    watched = "evaluate on this many of them while training [%(default)s]"
    group.add_argument("--eval-stories", type=int, default=40, metavar="N", help=watched)
    vocabulary = group.add_mutually_exclusive_group()
    vocabulary.add_argument("--vocab-size", type=int, default=512, metavar="N", help="entries to train [%(default)s]")
    vocabulary.add_argument("--tokenizer", type=Path, metavar="FILE", help="a tokenizer.json to use instead")


def _add_options(made: argparse.ArgumentParser) -> None:
    group, default = made.add_argument_group("training"), Options()
    kinds: dict[str, dict[str, Any]] = {
        "steps": dict(type=int),
        "batch_size": dict(type=int, help="windows a step, of all processes together"),
        "optimizer": dict(choices=get_args(Optimizer)),
        "learning_rate": dict(type=float, help="AdamW's"),
        "matrix_rate": dict(type=float, help="Muon's"),
        "warmup": dict(type=int, help="steps"),
        "decay": dict(type=float, help="share of the steps over which the rates fall to 1 %%"),
        "clip": dict(type=float, help="largest norm of the gradient"),
        "aligned": dict(type=float, help="share of windows that begin with a story"),
        "repeats": dict(type=float, help="share of windows that are one segment repeated"),
        "seed": dict(type=int),
        "precision": dict(choices=get_args(Precision)),
        "eval_every": dict(type=int, help="steps"),
    }
    for name, kind in kinds.items():
        words = f"{kind.pop('help', '')} [%(default)s]".strip()
        metavar = "N" if kind.get("type") is int else "X" if "type" in kind else None
        flag = "--" + name.replace("_", "-")
        group.add_argument(flag, default=getattr(default, name), metavar=metavar, help=words, **kind)


def _add_snapshots(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("snapshots: the model as it was along the way")
    group.add_argument("--snapshots", type=Path, metavar="FOLDER", help="where they are written, a checkpoint a step")
    steps = "after which steps, besides 0 and the last [16 of them, log-spaced]"
    group.add_argument("--snapshot-steps", type=int, nargs="+", metavar="N", help=steps)


def _add_machine(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("the machine")
    group.add_argument("--save-every", type=int, default=100, metavar="N", help="steps between saves [%(default)s]")
    group.add_argument(
        "--finish", action="store_true", help="save what the run has learned so far, without a step more"
    )
    group.add_argument("--report", type=Path, metavar="FILE", help="append the progress to it, as lines of JSON")
    group.add_argument("--threads", type=int, metavar="N", help="threads that torch may use")
    group.add_argument("--device", default="cpu", choices=("cpu", "cuda", "mps"), help="[%(default)s]")
    group.add_argument("--compile", action="store_true", help="let torch.compile translate the model first")
    sharded = "shard weights, gradients and optimizer over the processes (FSDP2), for what one device can't hold"
    group.add_argument("--fsdp", action="store_true", help=sharded)


def _add_card(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("what the card says")
    group.add_argument("--description", help="one sentence [made from the configuration]")
    group.add_argument("--text-name", metavar="NAME", help="what the text is [its file's name]")
    group.add_argument("--licence", help="the text's")
    group.add_argument("--source", help="where the text is from")


def parse(words: Sequence[str]) -> Arguments:
    """Raises GptvizError for what can't be meant."""
    arguments = parser().parse_args(words)
    least_values = (("stories", 1), ("held_out", 0), ("eval_stories", 1), ("save_every", 1), ("threads", 1))
    for name, least in least_values:
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise GptvizError(f"--{name.replace('_', '-')} {value} is too few: at least {least}.")
    if arguments.held_out is None:
        arguments.held_out = 0 if arguments.text else min(HELD_OUT, (arguments.stories or 10 * HELD_OUT) // 10)
    arguments.name = arguments.name or arguments.out.resolve().name
    arguments.run = arguments.run or Path("runs", arguments.name)
    if arguments.run.resolve().is_relative_to(arguments.out.resolve()):
        raise GptvizError(
            f"--state {arguments.run} is in --out {arguments.out}, which is replaced at the end: use another."
        )
    _check_snapshots(arguments)
    return arguments


def _check_snapshots(arguments: Arguments) -> None:
    if not arguments.snapshot_steps:
        return
    if arguments.snapshots is None:
        raise GptvizError("--snapshot-steps needs --snapshots FOLDER, where the snapshots are written.")
    outside = [step for step in arguments.snapshot_steps if not 0 <= step <= arguments.steps]
    if outside:
        raise GptvizError(f"--snapshot-steps {outside[0]} is no step of this run, which has {arguments.steps}.")


def command(words: Sequence[str], arguments: Arguments, processes: int) -> str:
    """The command in one line, with the file names of its paths: it tells nothing about the machine."""
    named = ("text", "out", "run", "validation", "tokenizer", "snapshots", "report")
    paths = [getattr(arguments, name) for name in named]
    names = {str(Path(path)): Path(path).name for path in paths if path is not None and not str(path).startswith(HUB)}
    start = f"torchrun --nproc-per-node {processes}" if processes > 1 else "python"
    return f"{start} -m gptviz.training {shlex.join(_renamed(word, names) for word in words)}"


def _renamed(word: str, names: dict[str, str]) -> str:
    flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{flag}{equals}{names.get(str(Path(value)), value)}" if value else word


@dataclass(frozen=True)
class Texts:
    """The stories to train on, those of the same text kept from it, and those of the validation file."""

    stories: Sequence[str]
    held_out: Sequence[str]
    validation: Sequence[str]

    @property
    def watched(self) -> Sequence[str]:
        """What the loss is measured on while training: the held-out stories, so that nothing is tuned on the others."""
        return self.held_out or self.validation

    def to_evaluate(self) -> dict[str, Sequence[str]]:
        """What the finished model is measured on, by the name that the card has for it."""
        texts = {"validation": self.validation, "held_out": self.held_out}
        return {name: stories for name, stories in texts.items() if stories}


def read_texts(arguments: Arguments) -> Texts:
    stories, held_out = stories_of(arguments.text, arguments.stories), arguments.held_out
    if held_out >= len(stories):
        raise GptvizError(f"--held-out {held_out} leaves nothing of the text's {len(stories)} stories to train on.")
    kept = len(stories) - held_out
    validation = read_stories(arguments.validation) if arguments.validation else []
    return Texts(stories[:kept], stories[kept:], validation)


def make_tokenizer(arguments: Arguments, stories: Sequence[str]) -> Tokenizer:
    """The vocabulary of --tokenizer, or one trained on the stories."""
    if arguments.tokenizer is None:
        return train_bpe(stories, arguments.vocab_size)
    return read_tokenizer(arguments.tokenizer)


def check_vocabulary(arguments: Arguments, tokenizer: Tokenizer) -> None:
    """Raises GptvizError where the vocabulary of a run that has begun is not the one that is asked for."""
    same = len(tokenizer) <= arguments.vocab_size  # a short text may not give as many entries as were asked for
    if arguments.tokenizer is not None:
        same = tokenizer.to_json() == read_tokenizer(arguments.tokenizer).to_json()
    if not same:
        raise GptvizError(
            f"The run in {arguments.run} has another vocabulary, of {len(tokenizer)} entries: use another --state."
        )


def read_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise GptvizError(f"{path.name} is not UTF-8 text: {error}") from error
    bos = tokenizer.backend.token_to_id(END_OF_TEXT)
    if bos is None:
        raise GptvizError(f"{path.name} has no {END_OF_TEXT}, with which every training window begins.")
    return Tokenizer(tokenizer.backend, bos)


def make_config(arguments: Arguments, tokenizer: Tokenizer) -> GPTConfig:
    """The preset with the changes of --set, for this vocabulary."""
    changes = dict(_change(text) for text in arguments.set)
    config = preset(arguments.preset, **{"vocab_size": len(tokenizer), "bos_token_id": tokenizer.bos_id} | changes)
    if config.vocab_size < len(tokenizer):
        raise GptvizError(f"vocab_size = {config.vocab_size} is less than the vocabulary's {len(tokenizer)} entries.")
    return config


def _change(text: str) -> tuple[str, Any]:
    """n_layer=4 -> ("n_layer", 4); a value that is no JSON is text: pos_encoding=rotary."""
    name, equals, value = text.partition("=")
    if not equals:
        raise GptvizError(f"--set {text}: write FIELD=VALUE, as in n_layer=4.")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def make_snapshots(arguments: Arguments) -> Snapshots | None:
    if arguments.snapshots is None:
        return None
    asked = arguments.snapshot_steps
    steps = (0, *asked, arguments.steps) if asked else log_spaced(arguments.steps)
    return Snapshots(arguments.snapshots, tuple(sorted(set(steps))))


def make_options(arguments: Arguments) -> Options:
    return Options(**{name: getattr(arguments, name) for name in Options.__dataclass_fields__})
