"""The prompt: typing it, its first token, and the strip of tokens that the model sees."""

from __future__ import annotations

import streamlit as st

from gptviz.errors import GptvizError
from gptviz.ui import chips, state
from gptviz.ui.components.wellformed import keep_text_well_formed
from gptviz.ui.markdown import literal
from gptviz.ui.selection import Selection

EXAMPLES = {
    "A story begins": state.PROMPT,
    "Who is meant": "Lily and Ben went to the park. Lily said to",
    "Repeated words": "the cat sat on the mat. the cat sat on the",
    "An induction test": "zib dax mup kel zib dax mup kel zib dax",
    "Symbols and emoji": "🤗 <b>bold</b> costs $5, not **10**",
}


def choose_prompt(variant: state.Variant) -> Selection:
    text = _prompt_box()
    bos = _bos_toggle(variant.name)
    try:
        typed = state.encode(variant.name, state.end_of(text), bos)
    except GptvizError as error:
        typed = st.session_state.get("last_typed", {}).get(variant.name)
        if not typed:
            raise
        st.error(literal(str(error)))
        st.caption("Below is still the last prompt that could be read.")
    if not typed:
        st.info(f"The prompt is empty, so there is nothing to compute. Type something, such as “{state.PROMPT}”")
        st.stop()
    st.session_state["last_typed"] = {variant.name: typed}
    selection = _select(variant, typed)
    _chips(selection, len(typed), text)
    return selection


def _prompt_box() -> str:
    box, menu = st.columns([6, 1], vertical_alignment="bottom")
    with menu, st.popover("Examples", width="stretch"):
        for name, text in EXAMPLES.items():
            st.button(name, key=f"example {name}", on_click=_use_example, args=(text,), width="stretch")
    with box:
        keep_text_well_formed()
        typed = st.text_area(
            "Prompt", key="prompt", height=76, persist_state="session", on_change=state.forget_generated
        )
    text = state.without_surrogates(typed)
    if "\ufffd" in text:
        st.caption("U+FFFD (\ufffd) stands where the text held half of a surrogate pair, which is no character.")
    if not state.write_url():
        st.caption("Prompt and generated text are too long for a link: they stay in this session.")
    return text


def _use_example(text: str) -> None:
    st.session_state.prompt = text
    state.forget_generated()


def _bos_toggle(name: str) -> bool:
    tokenizer = state.checkpoint(name).tokenizer
    known = tokenizer.bos_id is not None
    label = "a first token" if tokenizer.bos_id is None else tokenizer.labels([tokenizer.bos_id])[0]
    return st.toggle(
        f"Begin with {literal(label)}",
        value=known,
        key="bos",
        bind="query-params",
        disabled=not known,
        help="Every window in training began with this token, so the model expects it and rests attention on it."
        if known
        else "This model's vocabulary has no beginning-of-text token.",
    )


def _select(variant: state.Variant, typed: tuple[int, ...]) -> Selection:
    import torch

    from gptviz import sampling

    loaded = state.checkpoint(variant.name)
    config, size = loaded.model.config, len(loaded.tokenizer)
    generated = tuple(i for i in st.session_state.generated if i < size)  # a link may hold any number
    st.session_state.generated = generated
    seen = tuple(sampling.window(config, torch.tensor(typed + generated)).tolist())
    labels = tuple(loaded.tokenizer.labels(seen))
    kept = len(seen) - (typed[0] == config.bos_token_id)  # the window slides, its first token stays
    return Selection(variant, config, seen, labels, min(len(generated), kept), state.theme())


def _chips(selection: Selection, typed: int, text: str) -> None:
    tokenizer, ids = state.checkpoint(selection.variant.name).tokenizer, selection.ids
    first_generated = len(ids) - selection.generated
    kinds: list[chips.Kind] = [
        "special" if i == tokenizer.bos_id else "generated" if at >= first_generated else "prompt"
        for at, i in enumerate(ids)
    ]
    row = chips.chips(selection.labels, tokenizer.pieces(ids), ids, kinds)
    st.html(chips.strip(row, selection.theme))
    total = typed + len(st.session_state.generated)
    _say_length(len(ids), total, selection, text)


def _say_length(seen: int, total: int, selection: Selection, text: str) -> None:
    size = selection.config.block_size
    st.caption(f"{seen} of at most {size:,} tokens (block_size), {selection.generated} of them generated.")
    kept_first = selection.ids[0] == selection.config.bos_token_id
    unread = len(text) - len(state.end_of(text))
    if total > seen or unread:
        first = f" Of the prompt's {len(text):,} characters the first {unread:,} were not even split." if unread else ""
        st.warning(
            f"The model sees {size:,} tokens at a time. Of {total:,} tokens {total - seen:,} are left out; "
            f"what is shown is the end{' after the first token' if kept_first else ''}.{first}"
        )
    if not text:
        st.info(f"The prompt is empty: the model sees its first token, and what it wrote since. Try “{state.PROMPT}”")
