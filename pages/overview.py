"""The whole forward pass at a glance."""

import numpy as np
import streamlit as st

from gptviz.figures import style
from gptviz.figures.overview import residual_norms
from gptviz.figures.pixels import max_pool, quantise, thumbnails
from gptviz.ui import state
from gptviz.ui.components.plot import plot
from gptviz.ui.components.tiles import Row, Tile, tiles
from gptviz.ui.frame import Selection, frame, page

THUMBNAIL = 64  # cells a side
PAGE_OF = {"embed": "embeddings", "pos": "embeddings", "sum": "embeddings", "ffn": "feed_forward"}
ROLES = ("attention", "feed_forward", "token", "position", "residual", "logits")


def stream_tile(id: str, title: str, values: np.ndarray, role: str, hover: str, label: str) -> Tile:
    """Activations (T, n) by their size: a row a token, the columns pooled until it is at most twice as wide as high."""
    small = max_pool(np.abs(values), THUMBNAIL)
    pixels = quantise(max_pool(small, max(8, 2 * len(small))))
    return Tile(id, title, pixels, role, hover=hover, label=label)


def head_tile(layer: int, head: int, pixels: np.ndarray) -> Tile:
    title = f"layer {layer}, head {head}"
    return Tile(f"{layer}.{head}", title, pixels, "attention", hover="click to open", label=f"head {head}")


def embedding_row(chosen: Selection) -> Row:
    run, made_up = chosen.run, chosen.untrained
    shown = [stream_tile("embed", "token embedding", run["hook_embed"].numpy(), "token", "a row of W_E a token", "W_E")]
    if "hook_pos_embed" in run.activations:
        what = "random, never trained" if made_up else f"{run.config.pos_encoding}, added to the embedding"
        shown.append(stream_tile("pos", "position", run["hook_pos_embed"].numpy(), "position", what, "W_pos"))
    stream = run["blocks.0.hook_resid_pre"].numpy()
    shown.append(stream_tile("sum", "residual stream", stream, "residual", "what block 0 reads", "sum"))
    return Row("Embedding", stage(chosen, run.config.n_embd, "embed.", "pos_embed."), shown)


def block_row(chosen: Selection, layer: int) -> Row:
    run, name = chosen.run, f"blocks.{layer}."
    small = thumbnails(run[name + "attn.hook_pattern"].numpy(), chosen.hidden(layer), THUMBNAIL)
    heads = [head_tile(layer, head, pixels) for head, pixels in enumerate(small)]
    post = run[name + "mlp.hook_post"].numpy()
    positive = f"{(post > 0).mean():.0%} of the activations are positive; click to open"
    ffn = stream_tile(f"ffn {layer}", f"FFN {layer}", post, "feed_forward", positive, "FFN")
    norms = run[name + "hook_resid_post"].norm(dim=-1, keepdim=True).numpy()
    mean = f"mean norm {style.number(float(norms.mean()))}"
    stream = stream_tile(f"stream {layer}", f"residual stream after block {layer}", norms, "residual", mean, "‖x‖")
    return Row(f"Block {layer}", stage(chosen, run.config.n_embd, name), [*heads, ffn, stream])


def output_row(chosen: Selection) -> Row:
    run = chosen.run
    normed = run["ln_final.hook_normalized"].numpy()
    final = stream_tile("final", "final norm", normed, "residual", "what W_U reads", "norm")
    some = run.logits.split(THUMBNAIL)  # rows at a time: all shares at once are as large as the logits
    shares = np.concatenate([max_pool(logits.softmax(-1).numpy(), THUMBNAIL) for logits in some])
    after = stream_tile("next", "next token", shares, "logits", "softmax of the logits, at every position", "softmax")
    tied = "tied: W_U is W_Eᵀ" if run.config.tie_weights else "W_U of its own"
    caption = f"{stage(chosen, run.config.vocab_size, 'ln_final.', 'unembed.')} · {tied}"
    return Row("Output", caption, [final, after])


def stage(chosen: Selection, width: int, *names: str) -> str:
    """The shape of what leaves a stage, and how many parameters, whose names begin so, made it."""
    parameters = sum(row.count for row in chosen.parameters if row.name.startswith(names))
    return f"({len(chosen.ids)}, {width}) · {parameters:,} parameters"


def open_tile(id: str) -> None:
    """A tile opens its page, a head's or an FFN's with its layer chosen; some have nothing behind them."""
    part, _, layer = id.partition(" ")
    if "." in id:
        st.session_state.layer, st.session_state.head = map(int, id.split("."))
        st.session_state.open_page = "pages/attention.py"
    elif part in PAGE_OF:
        st.session_state.open_page = f"pages/{PAGE_OF[part]}.py"
        if layer:
            st.session_state.layer = int(layer)


@st.cache_resource(show_spinner=False, max_entries=24)
def stages(variant: state.Variant, ids: tuple[int, ...], _chosen: Selection) -> list[Row]:
    """The pictures of every stage."""
    blocks = [block_row(_chosen, layer) for layer in range(_chosen.config.n_layer)]
    return [embedding_row(_chosen), *blocks, output_row(_chosen)]


def pipeline(chosen: Selection) -> None:
    st.subheader("From tokens to logits", anchor=False)
    st.caption(
        "Every picture is this prompt's own forward pass, a row a token. A click opens heads, FFNs and embeddings."
    )
    tiles(
        stages(chosen.variant, chosen.ids, chosen),
        ramps={role: tuple(style.ramp(role, chosen.theme, 255)) for role in ROLES},
        selected=None,
        key="pipeline",
        tile_size=84,
        arrows_pick=False,
        on_pick=open_tile,
        alt="The forward pass, stage by stage.",
    )


def norms(chosen: Selection) -> None:
    st.subheader("Length of the residual stream", anchor=False)
    st.caption("Every block adds what it writes to the stream, which may take away from it, too.")
    names = ["blocks.0.hook_resid_pre", *(f"blocks.{i}.hook_resid_post" for i in range(chosen.config.n_layer))]
    lengths = np.stack([chosen.run[name].norm(dim=-1).numpy() for name in names])
    figure = residual_norms(lengths, chosen.labels, theme=chosen.theme, scale="log")
    plot(figure, key="norms", alt="Norm of the residual stream by depth and token.")


def draw(chosen: Selection) -> None:
    if page := st.session_state.pop("open_page", None):
        st.switch_page(page)
    pipeline(chosen)
    norms(chosen)


frame("Overview", "One prompt on its way through a GPT. Every number comes from this model's forward pass.", page(draw))
