"""What every page shares: the model, its toggles, the prompt, and the next token with its transport buttons."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from gptviz.errors import GptvizError
from gptviz.figures.next_token import next_token_bars
from gptviz.figures.style import Theme, number
from gptviz.ui import chips, state
from gptviz.ui.components.plot import plot
from gptviz.ui.components.wellformed import keep_text_well_formed
from gptviz.ui.route import by_way_of_app

if TYPE_CHECKING:
    from gptviz import GPTConfig, Step, Trace
    from gptviz.sizing import Row

ENCODINGS = ("learned", "sinusoidal", "rotary", "alibi", "none")
EXAMPLES = {
    "A story begins": state.PROMPT,
    "Who is meant": "Lily and Ben went to the park. Lily said to",
    "Repeated words": "the cat sat on the mat. the cat sat on the",
    "An induction test": "zib dax mup kel zib dax mup kel zib dax",
    "Symbols and emoji": "🤗 <b>bold</b> costs $5, not **10**",
}
LAYOUT = (  # Streamlit leaves wide margins; the figures need the room
    ".stMainBlockContainer{max-width:1400px;padding:3rem 2rem 4rem}"
    "@media(max-width:640px){.stMainBlockContainer{padding:3rem 1rem 4rem}}"
)
PLAY_INTERVAL = 0.05  # seconds between the end of one repaint and the next token
LONGEST_PLAY = 400  # tokens
SHOWN_CANDIDATES = 7


@dataclass(frozen=True)
class Selection:
    """What a page is to show: the variant, the ids that the model sees, and how they are called."""

    variant: state.Variant
    config: GPTConfig
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    generated: int  # how many of the last ids were generated
    theme: Theme

    @functools.cached_property
    def run(self) -> Trace:
        """The forward pass of exactly these ids."""
        return state.trace(self.variant, self.ids)

    @functools.cached_property
    def parameters(self) -> Sequence[Row]:
        """The parameter table of the variant."""
        from gptviz import sizing

        return sizing.parameter_table(self.run.config)

    @property
    def untrained(self) -> frozenset[str]:
        """The parts of the variant that no training has touched."""
        return state.model(self.variant).untrained

    @functools.cached_property
    def future(self) -> np.ndarray:
        """Where no query may look: (T, T) bool, all False without a mask."""
        size = len(self.ids)
        return np.triu(np.full((size, size), self.variant.causal), 1)

    def visible_pattern(self, layer: int, head: int) -> np.ndarray:
        """One head's attention, NaN where no query may look."""
        return np.where(self.future, np.nan, self.run.pattern(layer, head))


def frame(title: str, sentence: str) -> Selection:
    """Draw the shared controls and return what they select. Stops the script where there is nothing to show."""
    by_way_of_app()
    st.html(f"<style>{LAYOUT}</style>")
    st.title(title, anchor=False)
    st.caption(sentence)
    state.start()
    _load()
    with _refusals():
        selection = _prompt(_sidebar())
        _badge(selection)
        _next_token(selection)
    return selection


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What can't be read or computed is said in a sentence; the controls above it stay, to choose otherwise."""
    try:
        yield
    except GptvizError as error:
        st.error(_literal(str(error)))
        st.stop()


def _literal(text: str) -> str:
    """A text within Markdown that is shown as it is: a code span with a fence longer than any run of backticks."""
    text = " ".join(text.splitlines())
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    padding = " " if "`" in text else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _load() -> None:
    """Torch and the first model, with words about what is awaited."""
    with st.spinner("Starting PyTorch: a few seconds, once for each start of the app."):
        state.import_torch()


def _names() -> list[str]:
    import gptviz

    names = gptviz.bundled()
    if not names:
        st.error("There is no model in checkpoints/. Train one: `python -m gptviz.training --help` says how.")
        st.stop()
    return names


def _sidebar() -> state.Variant:
    with st.sidebar:
        name = st.selectbox("Model", _names(), key="model", bind="query-params", on_change=_forget_toggles)
        with st.spinner(f"Reading {_literal(name)}."):
            config = state.checkpoint(name).model.config
        causal = st.toggle(
            "Causal mask",
            value=config.causal,
            key="causal",
            bind="query-params",
            help="On, a token sees itself and what came before. Off, it sees the future too: prediction is cheating.",
        )
        encoding = st.selectbox(
            "Positional encoding",
            ENCODINGS,
            index=ENCODINGS.index(config.pos_encoding),
            key="encoding",
            bind="query-params",
            format_func=lambda kind: f"{kind} (trained)" if kind == config.pos_encoding else kind,
            help="How the model is told where a token stands. Another one is swapped in: the weights never saw it.",
        )
        _describe(name, config)
    variant = state.Variant(name, causal, encoding)
    dataclasses.replace(config, **variant.changes(config))  # refuses what this architecture can't be
    return variant


def _forget_toggles() -> None:
    """Another model begins as it was trained, with nothing generated yet."""
    for key in ("causal", "encoding", "bos", "layer", "head"):
        st.session_state.pop(key, None)
    _forget_generated()


def _forget_generated() -> None:
    st.session_state.generated = ()
    st.session_state.playing = False


def _describe(name: str, config: GPTConfig) -> None:
    from gptviz import sizing

    heads = f"{config.n_layer} layers × {config.n_head} heads"
    st.caption(
        f"{number(sizing.n_params(config))} parameters: {heads}, n_embd (d_model) {config.n_embd}, "
        f"vocabulary {config.vocab_size:,}, context {config.block_size:,} tokens."
    )
    validation = state.checkpoint(name).card.get("validation", {})
    if "bits_per_byte" in validation:
        st.caption(
            f"Validation: {number(validation['nats_per_token'])} nats per token, "
            f"{number(validation['bits_per_byte'])} bits per byte."
        )


def _prompt(variant: state.Variant) -> Selection:
    text = _prompt_box()
    bos = _bos_toggle(variant.name)
    try:
        typed = state.encode(variant.name, state.end_of(text), bos)
    except GptvizError as error:
        typed = st.session_state.get("last_typed", {}).get(variant.name)
        if not typed:
            raise
        st.error(_literal(str(error)))
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
        typed = st.text_area("Prompt", key="prompt", height=76, persist_state="session", on_change=_forget_generated)
    text = state.without_surrogates(typed)
    if "\ufffd" in text:
        st.caption("U+FFFD (\ufffd) stands where the text held half of a surrogate pair, which is no character.")
    if not state.write_url():
        st.caption("This prompt is too long for a link: it stays in this session.")
    return text


def _use_example(text: str) -> None:
    st.session_state.prompt = text
    _forget_generated()


def _bos_toggle(name: str) -> bool:
    tokenizer = state.checkpoint(name).tokenizer
    known = tokenizer.bos_id is not None
    label = "a first token" if tokenizer.bos_id is None else tokenizer.labels([tokenizer.bos_id])[0]
    return st.toggle(
        f"Begin with {_literal(label)}",
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
    unread = len(text) - len(state.end_of(text))
    if total > seen or unread:
        first = f" Of the prompt's {len(text):,} characters the first {unread:,} were not even split." if unread else ""
        st.warning(
            f"The model sees {size:,} tokens at a time. {total - seen:,} earlier tokens are left out; "
            f"what is shown is the end.{first}"
        )
    if not text:
        st.info(f"The prompt is empty: the model sees its first token alone. Try “{state.PROMPT}”")


def _badge(selection: Selection) -> None:
    """Says in words where what is shown is not what was trained."""
    changes = selection.variant.changes(selection.config)
    if not changes:
        return
    words = []
    if "causal" in changes:
        words.append(f"the causal mask is {'on' if changes['causal'] else 'off'}")
    if "pos_encoding" in changes:
        words.append(
            f"positions are {changes['pos_encoding']} in place of {selection.config.pos_encoding}"
            + (", a table of random numbers" if state.model(selection.variant).untrained else "")
        )
    st.warning(
        f"Not as trained: {' and '.join(words)}. The weights never saw this, so it shows what they depend on, "
        f"not what a model trained this way would do. {_effect(selection)}",
        icon=":material/experiment:",
    )


def _effect(selection: Selection) -> str:
    """The change in the next token's distribution, in numbers."""
    import torch.nn.functional as F

    trained = state.Variant(selection.variant.name, selection.config.causal, selection.config.pos_encoding)
    before, after = (F.log_softmax(run.logits[-1], -1) for run in (state.trace(trained, selection.ids), selection.run))
    divergence = float((before.exp() * (before - after)).sum())
    return f"KL divergence of the next-token distribution, KL(trained ‖ shown): {number(divergence)} nats."


def _settings() -> dict[str, Any]:
    """The sampling settings, as next_token_table takes them; 0 and the neutral ends switch a filter off."""
    with st.expander("Sampling settings"):
        temperature = st.slider(
            "Temperature",
            0.0,
            2.0,
            0.8,
            0.05,
            key="temperature",
            bind="query-params",
            help="0: the likeliest token.",
        )
        top_k = st.number_input(
            "Top-k", 0, None, 40, key="top_k", bind="query-params", help="Keep this many tokens; 0 is off."
        )
        top_p = st.slider(
            "Top-p",
            0.0,
            1.0,
            1.0,
            0.01,
            key="top_p",
            bind="query-params",
            help="Keep the fewest that hold p; 1: off.",
        )
        min_p = st.slider(
            "Min-p",
            0.0,
            1.0,
            0.0,
            0.01,
            key="min_p",
            bind="query-params",
            help="Keep p × the best's share; 0: off.",
        )
        st.number_input("Seed", 0, 2**31 - 1, 0, key="seed", bind="query-params", help="Chooses the draws.")
    return dict(temperature=temperature, top_k=top_k or None, top_p=top_p if top_p < 1 else None, min_p=min_p or None)


def _next_token(selection: Selection) -> None:
    controls, picture = st.columns([2, 3], gap="medium", border=True)
    with controls:
        st.markdown(
            "**Next token**", help="The draw for this seed and place falls on the token marked ◆: Step adds it."
        )
        buttons = st.container()
        settings = _settings()
    step = _upcoming(selection, settings)
    with buttons:
        _transport(step)
    with picture:
        _bars(selection, step)


def _upcoming(selection: Selection, settings: dict[str, Any]) -> Step:
    """The token that Step will add."""
    from gptviz import sampling

    seed = st.session_state.seed
    typed = len(st.session_state.last_typed[selection.variant.name])
    position = typed + len(st.session_state.generated)
    size = len(state.checkpoint(selection.variant.name).tokenizer)  # rows of W_U beyond are padding, no tokens
    return sampling.sample(selection.run.logits[-1, :size], **settings, seed=seed, position=position)


def _bars(selection: Selection, step: Step) -> None:
    tokenizer = state.checkpoint(selection.variant.name).tokenizer
    shown = step.probs.argsort(descending=True, stable=True)[:SHOWN_CANDIDATES].tolist()
    shown += [step.token] if step.token not in shown else []
    figure = next_token_bars(
        tokenizer.labels(shown),
        step.probs[shown].numpy(),
        theme=selection.theme,
        sampled=shown.index(step.token),
        argmax=0,
        draw=step.draw,
    )
    plot(figure, key="next_token", alt="The most likely next tokens and their probabilities, as bars.")


def _transport(step: Step) -> None:
    playing, generated = st.session_state.playing, bool(st.session_state.generated)
    with st.container(horizontal=True):
        _button("Step", "skip_next", playing, _append, step.token)
        _button("Play", "play_arrow", playing, _play, True)
        _button("Stop", "stop", not playing, _play, False)
        _button("Back", "undo", not generated, _back)
        _button("Reset", "restart_alt", not generated, _forget_generated)
    if playing:
        st.session_state["drawing"] = st.session_state.get("drawing", 0) + 1
        _ticker(step.token, st.session_state["drawing"])


def _button(label: str, icon: str, disabled: bool, then: Callable[..., None], *args: Any) -> None:
    st.button(label, icon=f":material/{icon}:", key=label.lower(), on_click=then, args=args, disabled=disabled)


def _append(token: int) -> None:
    st.session_state.generated += (token,)


def _back() -> None:
    st.session_state.playing = False
    st.session_state.generated = st.session_state.generated[:-1]


def _play(on: bool) -> None:
    st.session_state.playing = on


@st.fragment(run_every=PLAY_INTERVAL)
def _ticker(token: int, drawing: int) -> None:
    """The browser asks for the next token once it has painted the last: each tick adds one and redraws the page."""
    if st.session_state.get("drawn") != drawing:  # called by the page itself, not by a tick
        st.session_state["drawn"] = drawing
        return
    if not st.session_state.playing:
        return
    _append(token)
    bos = state.checkpoint(st.session_state.model).tokenizer.bos_id
    if token == bos or len(st.session_state.generated) >= LONGEST_PLAY:
        st.session_state.playing = False
    st.rerun()
