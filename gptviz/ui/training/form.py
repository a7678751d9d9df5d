"""What is to be trained, on which text: the form of the Training page's live half. Needs no torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from gptviz import library
from gptviz.errors import GptvizError
from gptviz.training import grammar
from gptviz.training.job import Job
from gptviz.training.live import Live

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "small: 2 layers, 4 heads, width 128": ("gpt_from_scratch", dict(n_layer=2, n_embd=128, dropout=0.0)),
    "tiny: 1 layer, 2 heads, width 64": (
        "gpt_from_scratch",
        dict(n_layer=1, n_head=2, n_embd=64, block_size=64, dropout=0.0),
    ),
    "gpt_from_scratch: 4 layers, 4 heads, width 256": ("gpt_from_scratch", {}),
    "minimal_decoder: 4 layers, 1 head, width 192": (
        "minimal_decoder",
        dict(n_layer=4, n_embd=192, block_size=128, pos_scale=0.1),
    ),
}
TEXTS = ("Story grammar", "Pasted text", "A file")
ENCODINGS = ("as the preset has it", "learned", "sinusoidal", "rotary", "alibi", "none")
LONGEST = 20_000_000  # characters of a text
Do = Callable[..., None]


def draw(do: Do) -> None:
    """`do` runs a function and keeps what it can't do for the next drawing."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**The model**")
        st.selectbox("Preset", list(MODELS), key="live_preset", bind="query-params")
        st.text_input(
            "Name", library.free_name("mine"), max_chars=60, key="live_name", help="What the library will call it."
        )
        st.number_input("Steps", 1, 100_000, 600, 100, key="live_steps", bind="query-params")
        _more()
    with right:
        st.markdown("**The text**")
        source = st.segmented_control("Text", TEXTS, default=TEXTS[0], required=True, key="live_source")
        _text(source)
    st.button("Start", icon=":material/play_arrow:", type="primary", key="live_start", on_click=do, args=(_start,))


def _more() -> None:
    with st.expander("More choices"):
        st.selectbox("Positional encoding", ENCODINGS, key="live_encoding")
        st.toggle("Causal mask", True, key="live_causal", help="Off, the model sees what it is to predict: it cheats.")
        st.selectbox(
            "Optimizer", ("muon", "adamw"), key="live_optimizer", help="Muon learns faster a step; AdamW is the usual."
        )
        st.number_input("Learning rate", 1e-5, 1.0, 2e-3, 1e-3, format="%g", key="live_rate", help="AdamW's.")
        st.number_input("Batch", 1, 256, 16, key="live_batch", help="Windows a step.")
        words = "Share of windows that are one segment again and again: induction heads form sooner with them."
        st.slider("Repeats", 0.0, 0.5, 0.1, 0.01, key="live_repeats", help=words)
        st.number_input("Seed", 0, 2**31 - 1, 0, key="live_seed")
        st.toggle("Keep snapshots for the time-lapse", True, key="live_snapshots")


def _text(source: str) -> None:
    if source == TEXTS[0]:
        st.caption(
            "Little stories from a grammar that comes with gptviz: the same ones each time, and no file is needed."
        )
        st.text(grammar.stories(1)[0])
    elif source == TEXTS[1]:
        st.text_area("Paste a text", key="live_text", height=220, persist_state="session")
        st.caption(
            "Paragraphs, or stories between lines <|endoftext|>. A tenth of them is kept from training, to measure on."
        )
    else:
        st.file_uploader("A text file (UTF-8)", type=["txt", "md"], key="live_file")


def _start() -> None:
    said = st.session_state
    text, text_name = _chosen_text()
    model, changes = MODELS[said.live_preset]
    changes = dict(changes) if said.live_causal else dict(changes, causal=False)
    if said.live_encoding != ENCODINGS[0]:
        changes["pos_encoding"] = said.live_encoding
    options = {"steps": said.live_steps, "batch_size": said.live_batch, "seed": said.live_seed}
    options |= {"optimizer": said.live_optimizer, "learning_rate": said.live_rate, "repeats": said.live_repeats}
    name, kept = said.live_name.strip(), said.live_snapshots
    job = Job(name=name, preset=model, changes=changes, options=options, text=text, snapshots=kept)
    Live().start(replace(job, text_name=text_name))


def _chosen_text() -> tuple[str | None, str]:
    source = st.session_state.live_source
    if source == TEXTS[0]:
        return None, Job.text_name
    if source == TEXTS[1]:
        return _fitting(st.session_state.live_text), "pasted text"
    file = st.session_state.get("live_file")
    if file is None:
        raise GptvizError("There is no file yet: choose one, or take the story grammar.")
    name = re.sub(r"[^\w.-]+", "-", file.name)[:60].lstrip("-") or "a file"
    try:
        return _fitting(file.getvalue().decode("utf-8-sig")), name
    except UnicodeDecodeError as error:
        raise GptvizError(f"{file.name} is not UTF-8 text: {error}") from error


def _fitting(text: str) -> str:
    if len(text) > LONGEST:
        raise GptvizError(
            f"The text has {len(text):,} characters; here at most {LONGEST:,} are taken. The command line takes any: "
            "python -m gptviz.training --help."
        )
    return text
