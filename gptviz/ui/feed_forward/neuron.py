"""One neuron: its activation along the prompt, and the tokens that its output weights promote and suppress."""

from __future__ import annotations

import streamlit as st

from gptviz.figures import style
from gptviz.figures.neuron import neuron_along_prompt, written_bars
from gptviz.ui import state
from gptviz.ui.choice import choose
from gptviz.ui.components.plot import Click, plot
from gptviz.ui.feed_forward.layer import shown_activations
from gptviz.ui.feed_forward.numbers import layer_numbers, written
from gptviz.ui.selection import Selection


def one_neuron(chosen: Selection, layer: int, position: int, neuron: int) -> None:
    """Where it answers, and what it says then."""
    st.subheader(f"Layer {layer}, neuron {neuron}", anchor=False)
    left, right = st.columns(2, gap="large")
    with left:
        _along(chosen, layer, position, neuron)
    with right:
        _writes(chosen, layer, position, neuron)


def _along(chosen: Selection, layer: int, position: int, neuron: int) -> None:
    st.caption("Where in the prompt it is active. The chosen token is shaded; click another to choose it.")
    found = layer_numbers(chosen.variant, chosen.ids, layer).neurons
    lines = {name: values[:, neuron] for name, values in shown_activations(found).items()}
    figure = neuron_along_prompt(lines, chosen.labels, theme=chosen.theme, selected=position)
    plot(figure, key="along", alt=f"Activation of neuron {neuron} at every token.", on_click=_choose_token)
    st.text(f"At ‘{chosen.labels[position]}’ ({position}): {style.number(float(found.post[position, neuron]))}")


def _choose_token(click: Click) -> None:
    choose(position=int(click["x"]))


def _writes(chosen: Selection, layer: int, position: int, neuron: int) -> None:
    scale = float(chosen.run["ln_final.hook_scale"][position, 0])
    (found,) = written(chosen.variant.name, layer, (neuron,))
    logits, labels = found.logits / scale, state.checkpoint(chosen.variant.name).tokenizer.labels(found.ids.tolist())
    post = float(layer_numbers(chosen.variant, chosen.ids, layer).neurons.post[position, neuron])
    st.caption(
        "The tokens whose logits it raises (top) and lowers (bottom), straight from its output weights to W_U, for an "
        "activation of 1. A negative activation turns both around."
    )
    plot(
        written_bars(labels, logits, theme=chosen.theme), key="written", alt="Tokens promoted and suppressed, as bars."
    )
    moved = style.number(post * float(logits[0]))
    st.text(f"Its activation is {style.number(post)} at the chosen token: ‘{labels[0]}’ moves by {moved}")
    st.caption(f"Check: over the vocabulary the moves sum to 0; the error is {style.number(abs(found.total) / scale)}.")
    _formula(chosen, scale)


def _formula(chosen: Selection, scale: float) -> None:
    layernorm = chosen.run.config.norm == "layernorm"
    centred = r"(w - \bar w)" if layernorm else "w"
    with st.expander("Formula"):
        st.latex(
            rf"\Delta_v = \left(\frac{{{centred}}}{{\sigma}} \odot \gamma\right) \cdot W_U[:, v] - \text{{mean}}_v"
        )
        st.caption(
            f"w are the neuron's output weights, a row of W_out; the final {'LayerNorm' if layernorm else 'RMSNorm'} "
            f"{'takes off their mean, ' if layernorm else ''}divides by its scale at the chosen token, σ = "
            f"{style.number(scale)}, held fixed, and multiplies by its weight γ. The mean over the vocabulary is taken "
            "off, as it changes no probability. Later layers also read what the neuron wrote; that is not in it. "
            "[Geva et al. 2020](https://arxiv.org/abs/2012.14913), [2022](https://arxiv.org/abs/2203.14680)."
        )
