"""The prompt: typing it, its first token, and the strip of tokens that the model sees."""

from __future__ import annotations

import streamlit as st

from gptviz.ui import chips, state
from gptviz.ui.components.wellformed import keep_text_well_formed
from gptviz.ui.markdown import literal
from gptviz.ui.selection import Selection
from gptviz.ui.transport import follow_text

LENGTH = "text_length"  # where the page says how long the text is
EXAMPLES = {
    "A story begins": state.PROMPT,
    "Who is meant": "Lily and Ben went to the park. Lily said to",
    "Repeated words": "the cat sat on the mat. the cat sat on the",
    "An induction test": "zib dax mup kel zib dax mup kel zib dax",
    "Symbols and emoji": "🤗 <b>bold</b> costs $5, not **10**",
}


def prompt_box() -> None:
    """The prompt's field, its examples, and whether a first token stands before it."""
    box, menu = st.columns([6, 1], vertical_alignment="bottom")
    with menu, st.popover("Examples", width="stretch"):
        for name, text in EXAMPLES.items():
            st.button(name, key=f"example {name}", on_click=_use_example, args=(text,), width="stretch")
    with box:
        keep_text_well_formed()
        st.text_area("Prompt", key="prompt", height=76, persist_state="session", on_change=_type)
    _bos_toggle(st.session_state.model)


def _type() -> None:
    """Another prompt: what was generated after the old one goes, and with it what Back and Reset do."""
    if not state.changed("prompt"):
        return
    state.forget_generated()
    follow_text()


def show_tokens(selection: Selection | None) -> None:
    """The prompt as the model sees it, and in words what it does not see."""
    text = state.prompt()
    if "\ufffd" in text:
        st.caption("U+FFFD (\ufffd) stands where the text held half of a surrogate pair, which is no character.")
    if not state.write_url():
        st.caption("Prompt and generated text are too long for a link: they stay in this session.")
    if selection is None:
        st.info(f"The prompt is empty, so there is nothing to compute. Type something, such as “{state.PROMPT}”")
        return
    if selection.unread:
        st.error(literal(selection.unread))
        st.caption("Below is still the last prompt that could be read.")
    st.html(chips.strip(token_chips(selection), selection.theme))
    _say_length(selection, text)


def _use_example(text: str) -> None:
    st.session_state.prompt = text
    state.forget_generated()


def _bos_toggle(name: str) -> None:
    tokenizer = state.checkpoint(name).tokenizer
    known = tokenizer.bos_id is not None
    label = "a first token" if tokenizer.bos_id is None else tokenizer.labels([tokenizer.bos_id])[0]
    st.toggle(
        f"Begin with {literal(label)}",
        value=known,
        key="bos",
        bind="query-params",
        on_change=follow_text,
        disabled=not known,
        help="Every window in training began with this token, so the model expects it and rests attention on it."
        if known
        else "This model's vocabulary has no beginning-of-text token.",
    )


def token_chips(selection: Selection) -> list[chips.Chip]:
    """A chip for every token that the model sees."""
    tokenizer, ids = state.checkpoint(selection.variant.name).tokenizer, selection.ids
    first_generated = len(ids) - selection.generated
    kinds: list[chips.Kind] = [
        "special" if i == tokenizer.bos_id else "generated" if at >= first_generated else "prompt"
        for at, i in enumerate(ids)
    ]
    return chips.chips(selection.labels, tokenizer.pieces(ids), ids, kinds)


def length(selection: Selection) -> str:
    """How many tokens the model sees, in words."""
    seen, size = len(selection.ids), selection.config.block_size
    return f"{seen} of at most {size:,} tokens (block_size), {selection.generated} of them generated."


def _say_length(selection: Selection, text: str) -> None:
    size, seen, total = selection.config.block_size, len(selection.ids), len(selection.whole)
    with st.container(key=LENGTH):
        st.caption(length(selection))
    kept_first = selection.ids[0] == selection.config.bos_token_id
    unread = len(text) - len(state.end_of(text))
    if total > seen or unread:
        first = f" Of the prompt's {len(text):,} characters the first {unread:,} were not even split." if unread else ""
        st.warning(
            f"The model sees {size:,} tokens at a time. Of {total:,} tokens {total - seen:,} "
            f"{'is' if total - seen == 1 else 'are'} left out; "
            f"what is shown is the end{' after the first token' if kept_first else ''}.{first}"
        )
    if not text:
        st.info(f"The prompt is empty: the model sees its first token, and what it wrote since. Try “{state.PROMPT}”")
