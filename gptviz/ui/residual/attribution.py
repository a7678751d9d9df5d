"""Who wrote a logit: every part's share, and that the shares add up."""

from __future__ import annotations

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.residual import Order, attribution_bars
from gptviz.ui import numbers, state
from gptviz.ui.components.plot import plot
from gptviz.ui.selection import Selection

CANDIDATES = 10
CAME, NOTHING = -1, -2  # beside the ranks 0 .. CANDIDATES - 1
SUM = (
    r"x_L = x_{\mathrm{embed}} + x_{\mathrm{pos}} + \sum_{\ell, h} z_{\ell h} W_O^{\ell h} "
    r"+ \sum_\ell x_{\mathrm{mlp}\,\ell} + \mathrm{biases}"
)
ORDERS: dict[Order, str] = {"size": "Largest first", "model": "In the model's order"}


def attribution(chosen: Selection, position: int) -> None:
    st.subheader("Who wrote the logit", anchor=False)
    st.text(f"Predicted at ‘{chosen.labels[position]}’ ({position}), the position chosen above.")
    tokens = _candidates(chosen, position)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        token = _pick(chosen, "Token", tokens, "token")
        others = {NOTHING: NOTHING} | {rank: i for rank, i in tokens.items() if i != token}
        against = _pick(chosen, "Against", others, "against")
        order = st.segmented_control(
            "Order",
            list(ORDERS),
            default="size",
            required=True,
            key="order",
            bind="query-params",
            format_func=ORDERS.__getitem__,
        )
    st.caption(
        "The stream is a sum, so a logit is one too: every bar is what one part wrote of it. L2H3 is head 3 of "
        "layer 2. Against another token, what both are given alike falls away."
    )
    parts, logit = _parts(chosen, position, token, against)
    figure = attribution_bars(
        parts, theme=chosen.theme, order=order, logit="logit" if against == NOTHING else "difference"
    )
    plot(figure, key="attribution", alt="What every part of the model wrote of the chosen token's logit.")
    total = sum(parts.values())
    st.caption(
        f"Check: the parts sum to {total:.5f}, and the model's {'logit' if against == NOTHING else 'difference'} is "
        f"{logit:.5f}; the error is {style.number(abs(total - logit))}.".replace("-", "−")
    )
    if "edits" in parts:
        st.warning("An edit put into the stream what no part wrote: that share is called “edits”.")
    _formula(chosen)


def _candidates(chosen: Selection, position: int) -> dict[int, int]:
    """What can be asked about: rank -> id, and the token that came next, where one did."""
    size = numbers.vocabulary(chosen.variant.name)
    best = chosen.run.logits[position, :size].argsort(descending=True, stable=True)[:CANDIDATES].tolist()
    came = {CAME: chosen.ids[position + 1]} if position + 1 < len(chosen.ids) else {}
    return dict(enumerate(best)) | came


def _pick(chosen: Selection, label: str, tokens: dict[int, int], key: str) -> int:
    """The id of the chosen token, or NOTHING."""
    ids = [i for i in tokens.values() if i != NOTHING]
    called = dict(zip(ids, numbers.labels_of(chosen.variant.name, np.array(ids, np.int64)), strict=True))

    def words(rank: int) -> str:
        if rank == NOTHING:
            return "nothing"
        return f"{'came next:' if rank == CAME else f'{rank + 1}.'} {called[tokens[rank]]}"

    return tokens[st.selectbox(label, list(tokens), key=key, bind="query-params", format_func=words, width=200)]


def _parts(chosen: Selection, position: int, token: int, against: int) -> tuple[dict[str, float], float]:
    """The parts, and the model's own number that they are to sum to."""
    from gptviz import analysis

    model, logits = state.checkpoint(chosen.variant.name).model, chosen.run.logits[position]
    parts, logit = analysis.logit_attribution(model, chosen.run, position, token), float(logits[token])
    if against == NOTHING:
        return parts, logit
    other = analysis.logit_attribution(model, chosen.run, position, against)
    return {name: value - other[name] for name, value in parts.items()}, logit - float(logits[against])


def _formula(chosen: Selection) -> None:
    centred = chosen.config.norm != "rmsnorm"
    with st.expander("Formula"):
        st.latex(SUM)
        mean = r"(x - \bar x)" if centred else "x"
        st.latex(rf"\mathrm{{share}}(x) = \frac{{{mean} \odot w}}{{s}} \cdot W_U[:, \mathrm{{token}}]")
        st.caption(
            "s is the final norm's scale in this run, w its weight; its bias, those of W_O, W_out and W_U are "
            "“biases”. The scale is held fixed: had a part been missing, it would have been another. Direct logit "
            "attribution: [Elhage et al. 2021](https://transformer-circuits.pub/2021/framework), "
            "[Wang et al. 2022](https://arxiv.org/abs/2211.00593)."
        )
