"""Who looks at whom: the prompt's tokens in two columns, joined by the attention of a layer's heads."""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.ui import state
from gptviz.ui.attention.heads import chosen_head
from gptviz.ui.components.linker import Links, linker, pack
from gptviz.ui.selection import Selection

TITLE = "Who looks at whom"
MOST = 300_000  # bytes: where all heads of the layer would be more, the chosen one comes alone
MOST_FAINT = 256  # tokens: with more, only the chosen token's lines are drawn
FAINT = 0.05  # the least weight that is drawn while no token is chosen
SENTENCE = (
    "On the left a token's attention goes out, on the right it comes in. Hover a token, here or in the prompt, to see "
    "its lines alone; a click pins it, a second click or Esc lets it go."
)


def linker_section(chosen: Selection) -> None:
    """The chosen head's attention as lines between tokens; the browser does the rest."""
    layer, head = chosen_head()
    if len(chosen.ids) > MOST_FAINT and not st.toggle(
        "Draw the lines", key="long_lines", bind="query-params", help="Of so long a text they are a megabyte a head."
    ):
        return
    tokens, heads = len(chosen.ids), chosen.config.n_head
    alone = heads * tokens**2 * (1 if chosen.variant.causal else 2) > MOST
    cut, faint = least_weight(tokens), FAINT if tokens <= MOST_FAINT else None
    sent = links(chosen.variant, chosen.ids, layer, head if alone else None)
    colours = style.head_colours(heads)
    linker(
        sent,
        chosen.labels,
        chosen=head,
        colours=[colours[each] for each in sent.heads],
        cut=cut,
        faint=faint,
        key="linker",
        alt=alternative(chosen, layer, head),
    )
    st.caption(_scale(cut, faint, alone and heads > 1))


@st.cache_resource(show_spinner=False, max_entries=24)
def links(variant: state.Variant, ids: tuple[int, ...], layer: int, head: int | None) -> Links:
    """The patterns of one head, or of all heads of the layer."""
    run = state.trace(variant, ids)
    heads = range(run.config.n_head) if head is None else (head,)
    return pack(np.stack([run.pattern(layer, each) for each in heads]), heads, causal=variant.causal)


def least_weight(tokens: int) -> float:
    """A power of ten that is less than half of an even share: a head that spreads evenly still has lines."""
    return 10.0 ** -max(2, len(str(2 * tokens)))


def _scale(cut: float, faint: float | None, alone: bool) -> str:
    unasked = "any" if faint is None else f"those below {style.number(faint)}"
    return (
        "Lines and tints grow with the square root of the weight, on a scale from 0 to 1. Weights below "
        f"{style.number(cut)} are not drawn, nor {unasked} while no token is chosen."
        + (" All heads of so long a text would be too much to send: this is the chosen one." if alone else "")
    )


def alternative(chosen: Selection, layer: int, head: int) -> str:
    """What the head does on this prompt, in words: for those who cannot see the lines."""
    from gptviz.analysis import head_kind

    scores = state.head_scores(chosen.variant, chosen.ids)
    kind = head_kind(scores, layer, head)
    pattern, last = chosen.run.pattern(layer, head), len(chosen.ids) - 1
    most = int(pattern[last].argmax())
    return (
        f"Layer {layer}, head {head}{f' ({kind})' if kind else ''}: lines from each token to those it attends to. "
        f"The last token, ‘{chosen.labels[last]}’ ({last}), attends most to ‘{chosen.labels[most]}’ ({most}): "
        f"{style.number(float(pattern[last, most]))}."
    )
