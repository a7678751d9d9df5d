"""Adding a model: files, a folder of this machine, or a name on the Hub; and what was found in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

from gptviz.errors import GptvizError
from gptviz.figures.style import number
from gptviz.ui import state
from gptviz.ui.markdown import literal
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.checkpoints.adding import Report

WAYS = ("Files", "Folder", "Hugging Face Hub")
READABLE = (
    "Readable: folders of gptviz; Hugging Face folders (config.json, .safetensors in one or several "
    "files, tokenizer.json) of GPT-2, GPT-Neo and TinyStories, GPT-NeoX and Pythia, Llama and SmolLM, Mistral, Qwen2 "
    "and Qwen3; nanoGPT's ckpt.pt with meta.pkl. Files are read as data: no code in them is run."
)


def add_form() -> None:
    """The three ways in; what happened is said below, and stays said."""
    way = st.segmented_control(
        "Add a model from", WAYS, default=WAYS[0], required=True, key="add_way", bind="query-params"
    )
    st.caption(READABLE)
    name = st.text_input("Name (optional)", key="add_name", max_chars=64, placeholder="as the file is called")
    {"Files": _files, "Folder": _folder, "Hugging Face Hub": _hub}[way](name or None)
    _last()


def _files(name: str | None) -> None:
    given = st.file_uploader("Files of one model, or a .zip of its folder", accept_multiple_files=True, key=_uploader())
    if st.button("Add these files", key="add_files_now", type="primary", disabled=not given):
        from gptviz import checkpoints

        _try(lambda: checkpoints.add_uploads([(file.name, file) for file in given], name))


def _uploader() -> str:
    """A new one after each attempt, so that it is empty again."""
    return f"add_files {st.session_state.get('models_count', 0)}"


def _folder(name: str | None) -> None:
    path = st.text_input("Folder, file or .zip on this machine", key="add_path", placeholder="~/nanoGPT/out/ckpt.pt")
    if st.button("Add this folder", key="add_folder_now", type="primary", disabled=not path.strip()):
        _try(lambda: _from_disk(Path(path.strip()).expanduser(), name))


def _from_disk(path: Path, name: str | None) -> Report:
    """A folder or a file; a zip is taken as one that was uploaded."""
    from gptviz import checkpoints

    if path.suffix.lower() == ".zip" and path.is_file():
        with path.open("rb") as archive:
            return checkpoints.add_uploads([(path.name, archive)], name)
    return checkpoints.add(path, name)


def _hub(name: str | None) -> None:
    wanted = st.text_input("Name on the Hub", key="add_hub", placeholder="roneneldan/TinyStories-1M")
    if st.button("Fetch and add", key="add_hub_now", type="primary", disabled=not wanted.strip()):
        from gptviz import checkpoints

        bar, session = st.progress(0.0, "Asking the Hub"), get_script_run_ctx()

        def tell(done: int, total: int) -> None:
            add_script_run_ctx(threading.current_thread(), session)  # files come in threads of their own
            bar.progress(min(1.0, done / total) if total else 0.0, f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB")

        _try(lambda: checkpoints.add(f"hf:{wanted.strip().removeprefix('hf:')}", name, progress=tell))
        bar.empty()


def _try(add: Callable[[], Report]) -> None:
    """Add, and remember what came of it; all is drawn anew: the list above, and the uploader without these files."""
    st.session_state.models_count = st.session_state.get("models_count", 0) + 1
    try:
        with st.spinner("Reading and checking the model"):
            st.session_state.models_added = add()
            st.session_state.pop("models_said", None)
    except (GptvizError, MemoryError) as error:
        st.session_state.models_said = str(error) or "The model is larger than the memory there is."
        st.session_state.pop("models_added", None)
    st.rerun()


def _last() -> None:
    if said := st.session_state.get("models_said"):
        st.error(literal(said))
    report: Report | None = st.session_state.get("models_added")
    if report is None:
        return
    st.success(f"{literal(report.name)} was added. It is among the models in the sidebar of every page.")
    none = "none: a prompt is token ids"
    perplexity = "not measured: no vocabulary, or one that can't write the sentence"
    rows = [
        ["Parameters", f"{report.parameters:,}, in {report.tensors:,} tensors; none missing, none left over"],
        ["All finite", "yes"],
        ["Vocabulary", none if report.entries is None else f"{report.entries:,} entries"],
        [
            "Perplexity",
            perplexity if report.perplexity is None else f"{number(report.perplexity)} per token, on a sentence",
        ],
    ]
    st.html(table(["Checked", "Found"], rows, theme=state.theme()))
