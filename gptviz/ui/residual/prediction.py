"""How well every position foretold the token after it, and the prompt as a whole."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import streamlit as st

from gptviz.figures import style
from gptviz.figures.prediction import Measure, prediction_bars
from gptviz.ui import numbers, state
from gptviz.ui.badge import warn_unmasked
from gptviz.ui.choice import choose
from gptviz.ui.components.plot import Click, plot
from gptviz.ui.markdown import literal
from gptviz.ui.selection import Selection

if TYPE_CHECKING:
    from gptviz.analysis import Predictions

FORMULA = r"\mathrm{loss}_t = -\log p(x_t \mid x_{<t}),\quad \mathrm{perplexity} = e^{\frac1n \sum_t \mathrm{loss}_t}"
MEASURES: dict[Measure, str] = {"loss": "Loss", "probability": "Probability", "rank": "Rank"}


def prediction(chosen: Selection) -> None:
    st.subheader("Prediction at every position", anchor=False)
    if len(chosen.ids) < 2:
        st.info("One token alone foretells only what comes next: there is no token after it yet to compare with.")
        return
    warn_unmasked(chosen)
    measure = st.segmented_control(
        "Measure",
        list(MEASURES),
        default="loss",
        required=True,
        key="measure",
        bind="query-params",
        format_func=MEASURES.__getitem__,
    )
    st.caption(
        "How the model had judged each token before it came. Striped bars: generated tokens. Click a bar for its "
        "position above."
    )
    made = numbers.predictions(chosen.variant, chosen.ids)
    figure = prediction_bars(
        made.probability,
        made.rank,
        chosen.labels[1:],
        numbers.labels_of(chosen.variant.name, made.best),
        theme=chosen.theme,
        measure=measure,
        generated=min(chosen.generated, len(chosen.ids) - 1),
    )
    plot(figure, key="predictions", alt=f"{MEASURES[measure]} of every token of the prompt.", on_click=_choose)
    _perplexity(chosen, made)
    with st.expander("Formula"):
        st.latex(FORMULA)
        st.caption(
            "The loss is what training lowers. A perplexity of k: as unsure as a fair choice among k tokens. "
            "[Jelinek et al. 1977](https://doi.org/10.1121/1.2016299); in a GPT: "
            "[Radford et al. 2019](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)."
        )


def _choose(click: Click) -> None:
    """The bar of the token at position t + 1 was foretold at t."""
    choose(position=int(click["x"]))


def _perplexity(chosen: Selection, made: Predictions) -> None:
    from gptviz.analysis import perplexity

    tokenizer = state.checkpoint(chosen.variant.name).tokenizer
    foretold = len(chosen.ids) - 1 - chosen.generated  # of the prompt, generated tokens apart
    if foretold < 1:
        st.caption("The prompt is one token, which nothing stands before: it has no perplexity.")
        return
    loss = made.loss[:foretold]
    spelt = sum(map(len, tokenizer.pieces(chosen.ids[1 : 1 + foretold])))
    bits = f", {style.number(float(loss.sum()) / math.log(2) / spelt)} bits per byte" if spelt else ""
    st.markdown(
        f"**Perplexity of the prompt: {style.number(perplexity(loss))}**: the mean loss of {foretold} "
        f"token{'s' if foretold > 1 else ''} is {style.number(float(loss.mean()), 'nats')}{bits}."
    )
    st.caption(_what_is_counted(chosen, tokenizer.bos_id))


def _what_is_counted(chosen: Selection, bos: int | None) -> str:
    first = literal(chosen.labels[0])
    others = " Generated tokens are not counted." if chosen.generated else ""
    if chosen.ids[0] == bos:
        return f"Counted is every token after {first}, which began each window in training and is not foretold.{others}"
    return f"The first token, {first}, is not counted: nothing stands before it to foretell it.{others}"
