"""What the time-lapse draws from: the runs that have snapshots, and one prompt under every snapshot, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from gptviz import library
from gptviz.errors import GptvizError
from gptviz.training.job import lapses
from gptviz.training.lapse import Lapse, snapshots_in
from gptviz.ui import chips, state
from gptviz.ui.components.wellformed import keep_text_well_formed

if TYPE_CHECKING:
    from gptviz import Checkpoint
    from gptviz.analysis.timelapse import Moment


@dataclass(frozen=True)
class Prompt:
    """The ids that every snapshot is shown, and how they are called."""

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    names: tuple[str, ...]  # of the whole vocabulary


def runs() -> dict[str, Path]:
    """The runs that have snapshots, by the name that the page has for them: the bundled one first."""
    own = {folder.name: folder for folder in sorted(lapses().glob("*"))}
    found = {"bundled run": library.BUNDLED / "timelapse", **own}
    return {name: folder for name, folder in found.items() if snapshots_in(folder)}


def version_of(lapse: Lapse) -> float:
    """Another one once a snapshot is written anew."""
    return max((folder / "card.json").stat().st_mtime for folder in lapse.folders)


@st.cache_resource(show_spinner="Reading the snapshots.", max_entries=3)
def _snapshots(folder: str, version: float, _lapse: Lapse) -> list[Checkpoint]:
    """Shared by all sessions, which never change them."""
    import gptviz

    return [gptviz.load(each) for each in _lapse.folders]


@st.cache_resource(show_spinner="Running the prompt through every snapshot.", max_entries=6)
def moments_of(folder: str, version: float, ids: tuple[int, ...], _lapse: Lapse, _size: int) -> list[Moment]:
    import torch

    from gptviz.analysis.timelapse import moment

    return [moment(each.model, torch.tensor(ids), _size) for each in _snapshots(folder, version, _lapse)]


def choose_prompt(folder: str, version: float, lapse: Lapse) -> Prompt:
    """The prompt, which the pages share, in the run's own tokens, the first one in front."""
    import torch

    from gptviz import sampling

    state.start()
    keep_text_well_formed()
    typed = st.text_area("Prompt", key="prompt", height=76, persist_state="session", on_change=state.forget_generated)
    state.write_url()
    last = _snapshots(folder, version, lapse)[-1]
    tokenizer, config = last.tokenizer, last.model.config
    text = state.end_of(state.without_surrogates(typed))
    ids = tokenizer.encode(text, bos=tokenizer.bos_id is not None)
    if not len(ids):
        raise GptvizError("The prompt is empty, so there is nothing to compute: type something.")
    seen = sampling.window(config, torch.as_tensor(ids)).tolist()
    labels = tokenizer.labels(seen)
    _chips(labels, tokenizer.pieces(seen), seen, tokenizer.bos_id)
    left_out = f" Of {len(ids):,} tokens only the end is shown." if len(ids) > len(seen) else ""
    st.caption(f"{len(seen)} of at most {config.block_size:,} tokens (block_size).{left_out}")
    return Prompt(tuple(seen), tuple(labels), _names(folder, version, lapse))


@st.cache_resource(show_spinner=False, max_entries=3)
def _names(folder: str, version: float, _lapse: Lapse) -> tuple[str, ...]:
    tokenizer = _snapshots(folder, version, _lapse)[-1].tokenizer
    return tuple(tokenizer.labels(range(len(tokenizer))))


def _chips(labels: list[str], pieces: list[bytes], ids: list[int], bos: int | None) -> None:
    kinds: list[chips.Kind] = ["special" if i == bos else "prompt" for i in ids]
    st.html(chips.strip(chips.chips(labels, pieces, ids, kinds), state.theme()))
