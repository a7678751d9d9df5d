"""The whole forward pass at a glance."""

import numpy as np
import streamlit as st

from gptviz import sizing
from gptviz.figures import style
from gptviz.figures.overview import residual_norms
from gptviz.figures.pixels import max_pool, quantise
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.components.tiles import Row, Tile, tiles
from gptviz.ui.frame import Selection, frame

THUMBNAIL = 64  # cells a side
ROLES = ("attention", "feed_forward", "token", "position", "residual", "logits")


def picture(id: str, title: str, values: np.ndarray, role: str, hover: str, label: str) -> Tile:
    """A tile of activations (T, n) by their size: a row a token, the n columns pooled until it is twice as wide as high."""
    small = max_pool(np.abs(values), THUMBNAIL)
    pixels = quantise(max_pool(small, max(8, 2 * len(small))))
    return Tile(id, title, pixels, role, hover=hover, label=label)


def open_tile(id: str) -> None:
    """A head's tile opens it on its page."""
    kind, _, where = id.partition(" ")
    if kind == "head":
        st.session_state.layer, st.session_state.head = map(int, where.split("."))
        st.session_state["open"] = "attention"


def embedding_row(chosen: Selection) -> Row:
    run, config = chosen.run, chosen.config
    shown = [picture("embed", "token embedding", run["hook_embed"].numpy(), "token", "one row of W_E a token", "W_E")]
    if "hook_pos_embed" in run.activations:
        position = run["hook_pos_embed"].numpy()
        shown.append(picture("position", "position", position, "position", "added to the embedding", "W_pos"))
    stream = run["blocks.0.hook_resid_pre"].numpy()
    shown.append(picture("sum", "residual stream", stream, "residual", "what block 0 reads", "sum"))
    return Row(
        "Embedding",
        caption(chosen, f"({len(chosen.ids)}, {config.n_embd})", "Token embedding", "Position embedding"),
        shown,
    )


def caption(chosen: Selection, shape: str, *components: str) -> str:
    """The shape of what leaves a stage, and how many parameters made it."""
    rows = sizing.parameter_table(state.model(chosen.variant).config)
    count = sum(row.count for row in rows if row.component in components)
    return f"{shape} · {count:,} parameters"


def block_row(chosen: Selection, layer: int, parameters: int) -> Row:
    run, name = chosen.run, f"blocks.{layer}."
    heads = [head_tile(chosen, layer, head) for head in range(chosen.config.n_head)]
    post = run[name + "mlp.hook_post"].numpy()
    share = float((post > 0).mean())
    ffn = picture(
        f"ffn {layer}", f"FFN {layer}", post, "feed_forward", f"{share:.0%} of the activations are positive", "FFN"
    )
    after = run[name + "hook_resid_post"]
    norms = after.norm(dim=-1, keepdim=True).numpy()
    mean = f"mean norm {style.number(float(norms.mean()))}"
    stream = picture(f"stream {layer}", f"residual stream after block {layer}", norms, "residual", mean, "‖x‖")
    return Row(
        f"Block {layer}",
        f"({len(chosen.ids)}, {chosen.config.n_embd}) · {parameters:,} parameters",
        [*heads, ffn, stream],
    )


def head_tile(chosen: Selection, layer: int, head: int) -> Tile:
    pattern = shown_pattern(chosen, layer, head)
    title = f"layer {layer}, head {head}"
    return Tile(
        f"head {layer}.{head}",
        title,
        quantise(max_pool(pattern, THUMBNAIL), 1),
        "attention",
        "click to open",
        label=f"head {head}",
    )


def shown_pattern(chosen: Selection, layer: int, head: int) -> np.ndarray:
    """The pattern with NaN where the mask forbids looking."""
    pattern = chosen.run.pattern(layer, head).copy()
    if chosen.variant.causal:
        pattern[np.triu_indices(len(pattern), 1)] = np.nan
    return pattern


def output_row(chosen: Selection) -> Row:
    run = chosen.run
    final = picture(
        "final", "final norm", run["ln_final.hook_normalized"].numpy(), "residual", "what W_U reads", "norm"
    )
    probabilities = run.logits.softmax(-1).numpy()
    logits = picture(
        "logits", "probabilities", probabilities, "logits", "softmax of the logits at every position", "next token"
    )
    tied = "tied: W_U is W_E" if chosen.config.tie_weights else "W_U of its own"
    return Row(
        "Output",
        caption(chosen, f"({len(chosen.ids)}, {chosen.config.vocab_size})", "Unembedding") + f" · {tied}",
        [final, logits],
    )


def draw(chosen: Selection) -> None:
    rows = sizing.parameter_table(state.model(chosen.variant).config)
    block = sum(row.count for row in rows if row.name.startswith("blocks.0."))
    stages = [
        embedding_row(chosen),
        *(block_row(chosen, i, block) for i in range(chosen.config.n_layer)),
        output_row(chosen),
    ]
    st.subheader("From tokens to logits", anchor=False)
    st.caption("Every picture is this prompt's own forward pass, rows are tokens: click a head to open it.")
    ramps = {role: tuple(style.ramp(role, chosen.theme, 255)) for role in ROLES}
    tiles(
        stages,
        ramps=ramps,
        selected=None,
        key="pipeline",
        tile_size=84,
        arrows_pick=False,
        on_pick=open_tile,
        alt="the forward pass",
    )


def norms(chosen: Selection) -> None:
    st.subheader("Length of the residual stream", anchor=False)
    st.caption("Every block adds to the stream, so it grows with depth; the first token is often by far the longest.")
    names = ["blocks.0.hook_resid_pre", *(f"blocks.{i}.hook_resid_post" for i in range(chosen.config.n_layer))]
    lengths = np.stack([chosen.run[name].norm(dim=-1).numpy() for name in names])
    figure = residual_norms(lengths, chosen.labels, theme=chosen.theme, scale="log")
    plot(figure, key="norms", alt="Norm of the residual stream by depth and token.")


chosen = frame(
    "Overview", "One prompt on its way through a GPT: every number here comes from the forward pass of this model."
)
if st.session_state.pop("open", None):
    st.switch_page("pages/attention.py")
draw(chosen)
norms(chosen)
