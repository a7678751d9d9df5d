"""What the feed-forward layers' neurons do: activations, sparsity, one neuron and the tokens it writes."""

import streamlit as st

from gptviz.figures import style
from gptviz.ui.feed_forward.layer import by_token, how_few, on_the_curve, strongest_table
from gptviz.ui.feed_forward.neuron import one_neuron
from gptviz.ui.feed_forward.numbers import layer_numbers
from gptviz.ui.frame import Selection, frame, page
from gptviz.ui.pick import pick_layer, pick_position


def choose(chosen: Selection) -> tuple[int, int, int]:
    """Layer, position and neuron; a neuron left open is the strongest one at that token."""
    from gptviz.analysis import strongest

    width = chosen.run.config.d_mlp
    if (st.session_state.get("neuron") or 0) >= width:
        st.session_state.neuron = None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layer, position = pick_layer(chosen.config), pick_position(chosen)
        neuron = st.number_input(
            "Neuron",
            0,
            width - 1,
            None,
            key="neuron",
            bind="query-params",
            placeholder="the strongest",
            help="Empty: the strongest at the chosen token.",
            width=220,
        )
    if neuron is None:
        neuron = int(strongest(layer_numbers(chosen.variant, chosen.ids, layer).neurons.post, position)[0])
    return layer, position, neuron


def share_of_parameters(chosen: Selection) -> None:
    rows = [row for row in chosen.parameters if row.component == "Feed-forward"]
    count, share, layers = sum(row.count for row in rows), sum(row.share for row in rows), chosen.run.config.n_layer
    st.caption(
        f"The feed-forward layers hold {count:,} parameters, {style.number(100 * share)}% of the model's: "
        f"{count // layers:,} in each of {layers} layers, for {chosen.run.config.d_mlp:,} neurons (d_mlp, d_ff)."
    )


def draw(chosen: Selection) -> None:
    share_of_parameters(chosen)
    layer, position, neuron = choose(chosen)
    by_token(chosen, layer, position, neuron)
    left, right = st.columns(2, gap="large")
    with left:
        on_the_curve(chosen, layer, position, neuron)
    with right:
        strongest_table(chosen, layer, position)
    one_neuron(chosen, layer, position, neuron)
    how_few(chosen, layer)


frame("Feed-forward", "After attention, every token alone goes through a wide layer of neurons.", page(draw))
