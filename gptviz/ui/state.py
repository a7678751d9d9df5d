"""What a session remembers, what the URL holds of it, and what all sessions share.

Torch is imported inside the functions that need it, so that a page can paint its title first.
"""

from __future__ import annotations

import dataclasses
import gc
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from gptviz.ui.kept import Kept

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from gptviz import GPT, Checkpoint, GPTConfig, Trace
    from gptviz.edits import Edit
    from gptviz.figures.style import Theme

SELDOM = 16  # tokens of Play between two addresses, each of which is an entry of the browser's history
LONGEST_URL = 8000  # characters; some browsers and proxies cut what is longer
MOST_BYTES = 2_000_000_000  # of traces, kept for all sessions together: GPT-2's at 1,024 tokens has 1.5 GB
MOST_TRACES = 24  # whose numbers are kept
PROMPT = "Once upon a time, there was a little girl named Lily. She"


@dataclass(frozen=True)
class Variant:
    """A model as it is shown: its name and what was toggled. Hashable, so it is a cache key."""

    name: str
    causal: bool
    pos_encoding: str

    def changes(self, config: GPTConfig) -> dict[str, Any]:
        """What differs from the configuration that was trained."""
        wanted = {"causal": self.causal, "pos_encoding": self.pos_encoding}
        return {field: value for field, value in wanted.items() if getattr(config, field) != value}


@st.cache_data(show_spinner=False, ttl=60)  # models may be added
def counterpart(variant: Variant) -> Variant | None:
    """The variant as a model that was trained that way, where there is one."""
    from gptviz import library

    name = library.counterpart(variant.name, variant.causal, variant.pos_encoding)
    return None if name is None else dataclasses.replace(variant, name=name)


@st.cache_data(show_spinner=False, ttl=60)
def has_counterparts(name: str) -> bool:
    """Whether a model has one for some mask and encoding."""
    from gptviz import library

    return library.has_counterparts(name)


@st.cache_resource(show_spinner=False)
def import_torch() -> None:
    """Pay for torch once a server. A forward takes half of the threads and leaves the others to other sessions."""
    import torch

    torch.set_num_threads(max(1, torch.get_num_threads() // 2))
    gc.collect()
    gc.freeze()  # what torch brought is never garbage: later collections need not look at it


@st.cache_resource(show_spinner=False)
def checkpoint(name: str) -> Checkpoint:
    """A model by name, read once and shared by all sessions, which never change it."""
    import gptviz

    loaded = gptviz.load(name)
    gc.collect()
    gc.freeze()
    return loaded


@st.cache_resource(show_spinner=False, max_entries=MOST_TRACES)
def model(variant: Variant) -> GPT:
    """The variant's view of the shared weights."""
    import gptviz

    trained = checkpoint(variant.name).model
    return gptviz.variant(trained, **variant.changes(trained.config))


@st.cache_resource(show_spinner=False)
def _traces() -> Kept[Trace]:
    return Kept(lambda run: run.nbytes, MOST_BYTES)


def trace(variant: Variant, ids: tuple[int, ...], edits: tuple[Edit, ...] = ()) -> Trace:
    """What the variant computes for these ids; shared, so it is only to be read.

    All but the scores before the softmax, as large as the patterns: `attention_stages` makes a head's from q and k.
    """
    return _traces().get((variant, ids, edits), lambda: _run(variant, ids, edits))


def _run(variant: Variant, ids: tuple[int, ...], edits: tuple[Edit, ...]) -> Trace:
    import torch

    import gptviz

    shown = model(variant)
    keep = [name for name, _ in shown.hook_points() if not name.endswith("hook_attn_scores")]
    return gptviz.trace(shown, torch.tensor(ids), edits=edits, keep=keep)


@st.cache_resource(show_spinner=False, max_entries=MOST_TRACES)
def next_logits(variant: Variant, ids: tuple[int, ...]) -> Tensor:
    """The logits (V,) of the token that follows; kept when the trace is not."""
    return trace(variant, ids).logits[-1].clone()


@st.cache_resource(show_spinner=False, max_entries=MOST_TRACES)
def head_scores(variant: Variant, ids: tuple[int, ...]) -> dict[str, np.ndarray]:
    """What every head does on these ids: see gptviz.analysis.head_scores."""
    import gptviz

    return gptviz.analysis.head_scores(trace(variant, ids))


@st.cache_data(show_spinner=False, max_entries=64)
def encode(name: str, text: str, bos: bool) -> tuple[int, ...]:
    """The ids of a text under a model's vocabulary."""
    return tuple(checkpoint(name).tokenizer.encode(text, bos=bos).tolist())


def end_of(text: str, most: int = 40_000) -> str:
    """The last `most` characters of a text, or a little less: from the start of a word, to split as in the whole."""
    if len(text) <= most:
        return text
    cut = re.compile(r"(?<=[^\W_]) (?=[^\W_])").search(text, len(text) - most)
    return text[cut.start() if cut else len(text) - most :]


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for every half of a surrogate pair, which no encoding can hold."""
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)


def theme() -> Theme:
    """What the browser shows: "light" or "dark"."""
    return "dark" if st.context.theme.type == "dark" else "light"


def start() -> None:
    """Once a session: take the prompt and the generated tokens from the link that opened it."""
    if "prompt" in st.session_state:
        return
    st.session_state.prompt = st.query_params.get("prompt", PROMPT)
    st.session_state.generated = _ids(st.query_params.get("generated", ""))
    st.session_state.playing = False


def see(*controls: str) -> None:
    """Remember what these controls hold."""
    seen = st.session_state.setdefault("seen", {})
    seen.update({control: st.session_state[control] for control in controls})


def changed(control: str) -> bool:
    """Whether a control holds another value than was last seen: after a switch of page Streamlit may only say so."""
    before = st.session_state.get("seen", {}).get(control)
    see(control)
    return before != st.session_state[control]


def prompt() -> str:
    """What was typed, as text that every encoding can hold."""
    return without_surrogates(st.session_state.prompt)


def forget_generated() -> None:
    """Back to the prompt as it was typed."""
    st.session_state.generated = ()
    st.session_state.playing = False


def _ids(text: str) -> tuple[int, ...]:
    """ "5.17.3" -> (5, 17, 3); anything else is nothing."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d{1,7}(\.\d{1,7})*", text) else ()


def write_url() -> bool:
    """Put the prompt and the generated tokens into the address. False, and neither, where it would be too long."""
    prompt, generated = st.session_state.prompt, st.session_state.generated
    since = len(generated) - st.session_state.get("in address", 0)
    if st.session_state.playing and 0 <= since < SELDOM:
        return True
    st.session_state["in address"] = len(generated)
    fits = _fits(generated)
    _set("prompt", prompt if fits and prompt != PROMPT else None)
    _set("generated", in_address(generated) or None)
    return fits


def in_address(generated: tuple[int, ...]) -> str:
    """As the address names these tokens; empty where there are none, and where it would be too long."""
    return ".".join(map(str, generated)) if _fits(generated) else ""


def _fits(generated: tuple[int, ...]) -> bool:
    return len(st.session_state.prompt.encode("utf-8", "replace")) * 3 + 6 * len(generated) < LONGEST_URL


def _set(name: str, value: str | None) -> None:
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value
