"""`python -m gptviz.training`: trains from a text file, resumes after a kill, evaluates, and saves a checkpoint."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from types import FrameType
from typing import Any

import torch
from tqdm import tqdm

from ..checkpoints import Checkpoint, check_replaceable, save
from ..errors import GptvizError
from ..model import GPT
from ..sampling import generate
from ..tokenizer import Tokenizer
from . import arguments as flags
from . import card
from .arguments import Arguments, Texts
from .loop import begin, train
from .options import Progress
from .processes import any_of_us, local_device, process_group, rank_and_world, wait_for_the_others
from .report import Report
from .run import Run
from .sharding import whole
from .texts import name_of

STATE = "last.pt"
INTERRUPTED = 130
SAMPLE = 60  # tokens of a text in a report


class _Stop:
    """Once entered, Ctrl-C or a TERM signal asks for a stop after the step at hand; a second one is obeyed at once."""

    def __enter__(self) -> _Stop:
        self.asked = False
        self._before = {kind: signal.signal(kind, self._ask) for kind in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for kind, handler in self._before.items():
            signal.signal(kind, handler)

    def _ask(self, kind: int, frame: FrameType | None) -> None:
        self.asked = True
        self.__exit__()


def main(words: Sequence[str]) -> int:
    """The exit status: 0, 2 for bad input, 130 for a run that was interrupted and can go on."""
    try:
        arguments = flags.parse(words)
        with process_group(arguments.device):
            return _run(words, arguments)
    except (GptvizError, OSError) as error:
        print(f"gptviz.training: {error}", file=sys.stderr)
        return 2


def _run(words: Sequence[str], arguments: Arguments) -> int:
    check_replaceable(arguments.out)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    texts = flags.read_texts(arguments)
    tokenizer = _tokenizer(arguments, texts)
    run = _saved(arguments, texts, tokenizer) if arguments.finish else _train(arguments, texts, tokenizer)
    rank, processes = rank_and_world()
    if run.step < run.options.steps and not arguments.finish:
        _say(f"Stopped after {run.step} of {run.options.steps} steps: the same command goes on from there.")
        return INTERRUPTED
    run.model = whole(run.model)
    if rank == 0:
        _finish(arguments, texts, tokenizer, run, flags.command(words, arguments, processes))
    wait_for_the_others()
    return 0


def _tokenizer(arguments: Arguments, texts: Texts) -> Tokenizer:
    """The run's vocabulary, which the first process makes when the run begins."""
    path, begun = arguments.run / "tokenizer.json", (arguments.run / STATE).exists()
    if rank_and_world()[0] == 0 and not begun:
        made = flags.make_tokenizer(arguments, texts.stories)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(made.to_json(), encoding="utf-8")
        partial.replace(path)
    wait_for_the_others()
    tokenizer = flags.read_tokenizer(path)
    if begun:
        flags.check_vocabulary(arguments, tokenizer)
    return tokenizer


def _saved(arguments: Arguments, texts: Texts, tokenizer: Tokenizer) -> Run:
    """The run where it is, without another step."""
    if not (arguments.run / STATE).exists():
        raise GptvizError(f"There is nothing to finish: no run has begun in {arguments.run}.")
    return begin(
        flags.make_config(arguments, tokenizer),
        texts.stories,
        tokenizer,
        flags.make_options(arguments),
        resume=arguments.run / STATE,
        device=local_device(arguments.device),
        sharded=arguments.fsdp,
    )


def _train(arguments: Arguments, texts: Texts, tokenizer: Tokenizer) -> Run:
    """The run at its end, or where a signal stopped it."""
    started: list[Run] = []
    steps = train(
        flags.make_config(arguments, tokenizer),
        texts.stories,
        tokenizer,
        flags.make_options(arguments),
        validation=texts.watched[: arguments.eval_stories],
        resume=arguments.run / STATE,
        save_every=arguments.save_every,
        device=local_device(arguments.device),
        snapshots=flags.make_snapshots(arguments),
        compiled=arguments.compile,
        sharded=arguments.fsdp,
        on_start=started.append,
    )
    report = _report(arguments, tokenizer, started)
    quiet = True if rank_and_world()[0] else None  # None: where there is no terminal
    with _Stop() as stop, closing(steps), tqdm(total=arguments.steps, unit="step", disable=quiet) as bar:
        for progress in steps:
            _show(bar, progress)
            report(progress)
            if any_of_us(stop.asked):
                break
    return started[0]


def _report(arguments: Arguments, tokenizer: Tokenizer, started: list[Run]) -> Callable[[Progress], None]:
    """Writes to --report, where that is given, in the first of the processes."""
    if arguments.report is None or rank_and_world()[0]:
        return lambda progress: None
    if arguments.fsdp:
        raise GptvizError("--report shows what the model writes, which takes the whole model: leave out --fsdp.")
    arguments.report.parent.mkdir(parents=True, exist_ok=True)
    return Report(arguments.report, arguments.steps, lambda: _sample(started[0].model, tokenizer))


def _sample(model: GPT, tokenizer: Tokenizer) -> str:
    """What the model writes from nothing, always with the same draws."""
    begins = torch.tensor([tokenizer.bos_id or 0])
    written: list[int] = []
    for step in generate(model, begins, SAMPLE, temperature=0.8, seed=0):
        if step.token == tokenizer.bos_id:
            break
        written.append(step.token)
    return tokenizer.decode(written)


def _show(bar: tqdm[Any], progress: Progress) -> None:
    if bar.n == 0:
        bar.n = bar.initial = progress.step - 1  # what an earlier process did takes no part in the rate
    bar.update(progress.step - bar.n)
    bar.set_postfix_str(f"loss {progress.loss:.3f}, {progress.tokens_per_second:,.0f} tokens/s", refresh=False)
    if progress.val_loss is not None:
        bar.write(f"step {progress.step}: loss {progress.loss:.4f}, on held-out stories {progress.val_loss:.4f}")


def _say(sentence: str) -> None:
    if rank_and_world()[0] == 0:
        print(sentence)


def _finish(arguments: Arguments, texts: Texts, tokenizer: Tokenizer, run: Run, command: str) -> None:
    """Evaluate the trained model, choose how it is stored, and save it with its card."""
    _say("Evaluating ...")
    stored = card.choose_storage(run.model, tokenizer, texts.to_evaluate())
    text = arguments.text_name or name_of(arguments.text)
    about = {
        "name": arguments.name,
        "description": arguments.description or card.described(run.model.config, text),
        "text": text,
        "licence": arguments.licence,
        "source": arguments.source,
        "command": command,
        **card.facts(run, stored, rank_and_world()[1]),
    }
    save(Checkpoint(stored.model, tokenizer, about), arguments.out, stored.dtype)
    _say(f"{arguments.out} is written.")
    for name in ("validation", "held_out", "head_scores", "storage"):
        if name in about:
            _say(f"{name}: {json.dumps(about[name])}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
