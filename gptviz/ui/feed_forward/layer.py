"""All neurons of one layer: by token, on the activation's curve, the strongest, and how few they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.feed_forward import activation_curve, curve_range, neuron_heatmap, sparsity_bars
from gptviz.ui import state
from gptviz.ui.choice import choose
from gptviz.ui.components.plot import Click, plot
from gptviz.ui.feed_forward.numbers import layer_numbers, output_error, output_norms, sparsity, written
from gptviz.ui.selection import Selection
from gptviz.ui.table import table

if TYPE_CHECKING:
    from gptviz.analysis import Neurons

ROWS = 32  # neurons drawn at a time
STRONGEST = 8  # in the table
NAMED = 5  # on the curve, where names of more would meet
ORDERS = {"prompt": "anywhere in the prompt", "token": "at the chosen token"}
ACTIVATIONS = {
    "gelu": ("GELU", r"f(x) = x\,\Phi(x) = \tfrac{x}{2}\left(1 + \operatorname{erf}\tfrac{x}{\sqrt 2}\right)"),
    "gelu_tanh": (
        "GELU (tanh)",
        r"f(x) = \tfrac{x}{2}\left(1 + \tanh\!\left(\sqrt{2/\pi}\,(x + 0.044715\,x^3)\right)\right)",
    ),
    "relu": ("ReLU", r"f(x) = \max(x, 0)"),
    "silu": ("SiLU", r"f(x) = \frac{x}{1 + e^{-x}}"),
}
PAPERS = {
    "gelu": "[Hendrycks & Gimpel 2016](https://arxiv.org/abs/1606.08415)",
    "gelu_tanh": "[Hendrycks & Gimpel 2016](https://arxiv.org/abs/1606.08415)",
    "relu": "[Nair & Hinton 2010](https://www.cs.toronto.edu/~fritz/absps/reluICML.pdf)",
    "silu": "[Elfwing et al. 2017](https://arxiv.org/abs/1702.03118)",
}


def shown_activations(found: Neurons) -> dict[str, np.ndarray]:
    """What can be looked at, by name: (T, F) each."""
    if found.linear is None:
        return {"post-activation": found.post, "pre-activation": found.pre}
    return {"post": found.post, "gate (pre-activation)": found.pre, "linear branch": found.linear}


def by_token(chosen: Selection, layer: int, position: int, neuron: int) -> None:
    """The heatmap: a row a neuron, a column a token."""
    from gptviz.analysis import strongest

    st.subheader("Neurons by token", anchor=False)
    st.caption(
        "A row a neuron, a column a token, the strongest on top. Most neurons are near zero at most tokens. "
        "Click a cell to choose its neuron and token."
    )
    found = layer_numbers(chosen.variant, chosen.ids, layer).neurons
    values = shown_activations(found)
    name, order, first = _view(list(values), found.post.shape[1])
    ranked = strongest(found.post, position if order == "token" else None)[first : first + ROWS]
    figure = _heatmap(values[name][:, ranked].T, ranked.tolist(), chosen, name, position, neuron)
    st.session_state["neurons shown"] = ranked.tolist()
    plot(figure, key="neurons", alt=f"Layer {layer}: {name} of {len(ranked)} neurons.", on_click=_choose_cell)


def _view(names: list[str], width: int) -> tuple[str, str, int]:
    """Which numbers, in which order, from which neuron on."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.segmented_control(
            "Activation", names, default=names[0], required=True, key="activation", bind="query-params"
        )
        order = st.selectbox(
            "Strongest",
            list(ORDERS),
            key="order_neurons",
            bind="query-params",
            format_func=ORDERS.__getitem__,
            width=240,
        )
        first = st.selectbox(
            "Neurons",
            range(0, width, ROWS),
            key="neurons_from",
            bind="query-params",
            format_func=lambda first: f"{first + 1} to {min(first + ROWS, width)} of {width:,}",
            width=200,
        )
    return name, order, first


def _heatmap(
    values: np.ndarray, ranked: list[int], chosen: Selection, name: str, position: int, neuron: int
) -> go.Figure:
    cell = (ranked.index(neuron), position) if neuron in ranked else None
    return neuron_heatmap(values, ranked, chosen.labels, theme=chosen.theme, name=name, selected=cell)


def _choose_cell(click: Click) -> None:
    choose(neuron=st.session_state["neurons shown"][int(click["y"])], position=int(click["x"]))


def on_the_curve(chosen: Selection, layer: int, position: int, neuron: int) -> None:
    """Every neuron at the chosen token, on the activation's own curve."""
    from gptviz.analysis import activation_curve as by_definition
    from gptviz.analysis import strongest

    kind = chosen.run.config.activation
    name, formula = ACTIVATIONS[kind]
    numbers = layer_numbers(chosen.variant, chosen.ids, layer)
    found = numbers.neurons
    pre = found.pre[position]
    gated = found.linear is not None
    st.subheader(f"On the curve of {name}", anchor=False)
    st.caption(
        f"Every neuron at the chosen token: what goes into {name}, and what comes out."
        + (" Gated: what comes out is then multiplied by the linear branch." if gated else "")
    )
    out = by_definition(kind, pre) if gated else found.post[position]
    at = curve_range(pre)
    figure = activation_curve(
        pre,
        np.asarray(out),
        (at, by_definition(kind, at)),
        theme=chosen.theme,
        name=name,
        named=strongest(found.post, position)[:NAMED].tolist(),
        selected=neuron,
        across="gate (pre-activation)" if gated else "pre-activation",
        up=f"{name} of the gate" if gated else "post-activation",
    )
    plot(figure, key="curve", alt=f"All neurons of layer {layer} on the activation's curve.", on_click=_choose_point)
    what = f"{name}(gate) × linear branch" if gated else f"{name}(pre)"
    st.caption(f"Check: hook_post is {what}; the largest error is {style.number(numbers.activation_error)}.")
    _formula(chosen, formula, PAPERS[kind], gated)


def _choose_point(click: Click) -> None:
    if click["customdata"] is not None:
        choose(neuron=int(click["customdata"]))


def _formula(chosen: Selection, formula: str, paper: str, gated: bool) -> None:
    config = chosen.run.config
    b_in, b_out = (r" + b_{in}", r" + b_{out}") if config.mlp_bias else ("", "")
    inside = r"\big(f(x W_{gate}) \odot x W_{in}\big)" if gated else f"f(x W_{{in}}{b_in})"
    with st.expander("Formula"):
        st.latex(formula)
        st.latex(rf"\operatorname{{FFN}}(x) = {inside}\, W_{{out}}{b_out}")
        st.caption(
            f"f is the activation ({paper}), x the normalised stream: {config.n_embd:,} numbers (n_embd, d_model), "
            f"widened to {config.d_mlp:,} (d_mlp, d_ff). [Vaswani et al. 2017, section 3.3](https://arxiv.org/abs/1706.03762)."
            + (" Gated: [Shazeer 2020](https://arxiv.org/abs/2002.05202)." if gated else "")
        )


def strongest_table(chosen: Selection, layer: int, position: int) -> None:
    """The strongest neurons at the chosen token, in numbers."""
    error = output_error(chosen.variant, chosen.ids, layer, position)
    st.subheader("Strongest at this token", anchor=False)
    st.text(f"‘{chosen.labels[position]}’ ({position})")
    branches = ["Gate", "Linear"] if chosen.run.config.gated_mlp else ["Pre"]
    rows = _strongest_rows(chosen, layer, position)
    st.html(table(["Neuron", *branches, "Post", "Writes", "Promotes"], rows, theme=chosen.theme))
    st.caption(
        "Writes: the length of what the neuron adds to the stream, |post| × ‖its row of W_out‖. Check: all neurons "
        f"together{', plus the bias,' if chosen.run.config.mlp_bias else ''} are hook_mlp_out at this token; the "
        f"largest error is {style.number(error)}."
    )


def _strongest_rows(chosen: Selection, layer: int, position: int) -> list[tuple[str, ...]]:
    from gptviz.analysis import strongest

    found = layer_numbers(chosen.variant, chosen.ids, layer).neurons
    ranked = strongest(found.post, position)[:STRONGEST].tolist()
    branches = [found.pre] if found.linear is None else [found.pre, found.linear]
    sizes = np.abs(found.post[position]) * output_norms(chosen.variant.name, layer)
    columns = [*(branch[position] for branch in branches), found.post[position], sizes]
    return [
        (str(neuron), *(style.number(float(column[neuron])) for column in columns), promoted)
        for neuron, promoted in zip(ranked, _promoted(chosen, layer, ranked), strict=True)
    ]


def _promoted(chosen: Selection, layer: int, ranked: list[int]) -> list[str]:
    """The tokens that each neuron raises the most."""
    labels = state.checkpoint(chosen.variant.name).tokenizer.labels
    best = [found.ids[:3].tolist() for found in written(chosen.variant.name, layer, tuple(ranked))]
    return [" ".join(f"‘{style.shortened(label, 12)}’" for label in labels(ids)) for ids in best]


def how_few(chosen: Selection, layer: int) -> None:
    """Sparsity of every layer on this prompt."""
    st.subheader("How few neurons do the work", anchor=False)
    st.caption(
        f"Of hook_post at all {len(chosen.ids)} tokens. Near zero: below 1% of the layer's largest activation here. "
        "90% carriers: the fewest neurons that hold 90% of a token's sum of squares, on average."
    )
    few = sparsity(chosen.variant, chosen.ids)
    shares = {"above zero": few.positive, "near zero": few.near_zero, "90% carriers": few.carriers}
    figure = sparsity_bars(shares, theme=chosen.theme, selected=layer)
    plot(figure, key="sparsity", alt="Shares of active, idle and carrying neurons in every layer, as bars.")
    with st.expander("Formula"):
        st.latex(
            r"\text{carriers}_t = \frac{1}{F} \min\Big\{k : "
            r"\sum_{n \in \text{top } k} a_{tn}^2 \ge 0.9 \sum_n a_{tn}^2\Big\}"
        )
        st.caption(
            "a is hook_post, t a token, n a neuron, F how many there are (d_mlp). Few are active: [Li et al. 2022](https://arxiv.org/abs/2210.06313)."
        )
