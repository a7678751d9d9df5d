"""What stands in the stream, and what attention and FFN add to it."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from gptviz.figures import style
from gptviz.figures.logit_lens import layer_names
from gptviz.figures.residual import cosine_heatmap, stream_heatmap
from gptviz.ui import numbers
from gptviz.ui.components.plot import plot
from gptviz.ui.selection import Selection

SHOWN = {
    "norm": (
        "Length",
        "How long the stream's vector is: what every part adds to. It grows where parts agree, and shrinks "
        "where one takes away what others wrote.",
    ),
    "share": (
        "Length added",
        "How long the vector is that attention (attn) or FFN (mlp) adds, over the length of the stream it is added to: "
        "at 1, it is as long as all that stood there before.",
    ),
    "cosine": (
        "Direction added",
        "The cosine of what is added with the stream it is added to: near 0 it writes into directions of its own, "
        "at −1 it takes away what is there, at 1 it makes it stronger.",
    ),
    "scale": (
        "Norm's scale",
        "What every norm divides the stream by before a part reads it: a long stream drowns what is added to it.",
    ),
}
SERIAL = r"x \leftarrow x + \mathrm{attn}(\mathrm{norm}(x)),\qquad x \leftarrow x + \mathrm{FFN}(\mathrm{norm}(x))"
PARALLEL = r"x \leftarrow x + \mathrm{attn}(\mathrm{norm}(x)) + \mathrm{FFN}(\mathrm{norm}(x))"
RMS = r"\mathrm{RMSNorm}(x) = \frac{x}{s}\,w,\qquad s = \sqrt{\tfrac1C \textstyle\sum_i x_i^2 + \epsilon}"
LAYER = r"\mathrm{LayerNorm}(x) = \frac{x - \bar x}{s}\,w + b,\qquad s = \sqrt{\mathrm{Var}(x) + \epsilon}"
PAPERS = {
    "layernorm": "[Ba et al. 2016](https://arxiv.org/abs/1607.06450)",
    "rmsnorm": "[Zhang & Sennrich 2019](https://arxiv.org/abs/1910.07467)",
}


def stream(chosen: Selection) -> None:
    st.subheader("The stream and what is added to it", anchor=False)
    shown = st.segmented_control(
        "Show",
        list(SHOWN),
        default="norm",
        required=True,
        key="stream",
        bind="query-params",
        format_func=lambda name: SHOWN[name][0],
    )
    title, sentence = SHOWN[shown]
    st.caption(sentence)
    plot(_figure(chosen, shown), key="stream_heatmap", alt=f"{title} by place in the model and token.")
    error = numbers.additions(chosen.variant, chosen.ids).error
    st.caption(
        "Check: in every block, what came in + attention + FFN = what goes out; "
        f"the largest error is {style.number(error)} times the largest number there."
    )
    _formula(chosen)


def _figure(chosen: Selection, shown: str) -> go.Figure:
    from gptviz import analysis

    labels, theme = chosen.labels, chosen.theme
    if shown == "norm":
        lengths = analysis.stream_norms(chosen.run)
        return stream_heatmap(lengths, layer_names(len(lengths)), labels, theme=theme, name="length")
    if shown == "scale":
        names, scales = analysis.norm_scales(chosen.run)
        return stream_heatmap(scales, names, labels, theme=theme, name="scale")
    added = numbers.additions(chosen.variant, chosen.ids)
    if shown == "share":
        return stream_heatmap(added.share, added.names, labels, theme=theme, name="length added / stream")
    return cosine_heatmap(added.cosine, added.names, labels, theme=theme)


def _formula(chosen: Selection) -> None:
    config = chosen.config
    with st.expander("Formula"):
        st.latex(PARALLEL if config.parallel_residual else SERIAL)
        st.latex(RMS if config.norm == "rmsnorm" else LAYER)
        st.caption(
            f"C = {config.n_embd} (n_embd, d_model), ε = {style.number(config.norm_eps)}. Residual connections: "
            "[He et al. 2015](https://arxiv.org/abs/1512.03385); the stream as what all parts read from and write to: "
            "[Elhage et al. 2021](https://transformer-circuits.pub/2021/framework); the norm: "
            f"{PAPERS.get(config.norm, '')}."
        )
