"""What Python hands to the components: the bytes, and the words when they cannot be made."""

import base64
import json
import struct

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures import style
from gptviz.figures.attention import attention_heatmap
from gptviz.figures.pixels import thumbnails
from gptviz.ui.components import plot as plot_module
from gptviz.ui.components import tiles as tiles_module
from gptviz.ui.components.tiles import MASKED, Row, Tile

BLUE = {"blue": ("#ffffff", "#0072b2")}


def tile(id: str = "L0H0", pixels: np.ndarray | None = None, **words: str) -> Tile:
    return Tile(id, words.pop("title", id), np.zeros((2, 2), np.uint8) if pixels is None else pixels, "blue", **words)


def encode(*rows: Row, ramps: dict[str, tuple[str, ...]] = BLUE) -> bytes:
    return tiles_module.encode(rows, ramps, "L0H0", {"size": 96})


def decode(payload: bytes) -> tuple[dict, list[np.ndarray]]:
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + length])
    pixels, at = [], 4 + length
    for each in (each for row in header["rows"] for each in row["tiles"]):
        count = each["height"] * each["width"]
        pixels.append(np.frombuffer(payload, np.uint8, count, at).reshape(each["height"], each["width"]))
        at += count
    assert at == len(payload)
    return header, pixels


def test_tiles_round_trip_with_different_shapes_and_hostile_words():
    words = {"title": "<b>é🤗\ud800", "hover": "$5 **x**\n", "detail": "d", "label": "l"}
    wide = np.array([[0, 1, 254], [MASKED, 7, 8]], np.uint8)
    header, pixels = decode(encode(Row("r0", "c", [tile(), tile("ffn", wide, **words)]), Row("r1", "", [])))
    assert [row["title"] for row in header["rows"]] == ["r0", "r1"]
    assert header["rows"][0]["tiles"][1] == {"id": "ffn", "ramp": "blue", "height": 2, "width": 3, **words}
    assert (header["selected"], header["size"], header["ramps"]) == ("L0H0", 96, {"blue": ["#ffffff", "#0072b2"]})
    np.testing.assert_array_equal(pixels[1], wide)


def test_tiles_that_are_not_contiguous_keep_their_rows():
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4).T
    _, (decoded,) = decode(encode(Row("", "", [tile(pixels=pixels)])))
    np.testing.assert_array_equal(decoded, pixels)


@pytest.mark.parametrize("pixels", [np.zeros((2, 2)), np.zeros((2, 2), np.int64), [[0, 1]]])
def test_pixels_must_be_uint8(pixels):
    with pytest.raises(TypeError, match=r"L0H0.*uint8"):
        tile(pixels=pixels)


@pytest.mark.parametrize("shape", [(4,), (2, 2, 3), (0, 4)])
def test_pixels_must_be_a_picture(shape):
    with pytest.raises(ValueError, match="L0H0"):
        tile(pixels=np.zeros(shape, np.uint8))


def test_ids_must_differ():
    with pytest.raises(ValueError, match="same id"):
        encode(Row("", "", [tile()]), Row("", "", [tile()]))


@pytest.mark.parametrize(
    ("ramps", "message"),
    [
        ({"red": ("#ffffff", "#ff0000")}, "'blue'"),
        ({"blue": ("white", "#0072b2")}, "#rrggbb"),
        ({"blue": ()}, "#rrggbb"),
    ],
)
def test_ramps_must_be_there_and_hexadecimal(ramps, message):
    with pytest.raises(ValueError, match=message):
        encode(Row("", "", [tile()]), ramps=ramps)


def test_a_figure_travels_as_one_document_with_arrays_as_base64():
    z = np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32)
    figure = go.Figure(go.Heatmap(z=z, customdata=[["<b>x</b>"]]), {"template": "none"})
    payload = plot_module.encode(figure, {"alt": 'say "hi"'})
    document = json.loads(payload)
    sent = document["figure"]["data"][0]
    decoded = np.frombuffer(base64.b64decode(sent["z"]["bdata"]), sent["z"]["dtype"])
    np.testing.assert_array_equal(decoded, z.ravel())
    assert document["options"] == {"alt": 'say "hi"'}
    assert sent["customdata"] == [["<b>x</b>"]]
    assert len(payload) < 1.8 * z.nbytes  # a list of numbers takes 5


def test_a_figure_is_written_as_plotly_writes_it():
    arrays = {
        "x": np.arange(3),
        "y": np.array([0.5, np.nan, np.inf]),
        "z": np.arange(6, dtype=np.float32).reshape(3, 2).T,
        "ids": ["a", None, "</script>"],
        "customdata": np.array([["<b>", 1], ["é", None]], dtype=object),
        "xaxis": "x",
    }
    scatter = {"type": "scatter", "x": [1.5, float("nan")], "y": np.array([True, False]), "mode": "markers"}
    figure = go.Figure([{"type": "heatmap", **arrays}, scatter], {"template": "none", "width": np.int64(40)})
    sent, theirs = json.loads(plot_module.encode(figure, {}))["figure"], json.loads(figure.to_json())
    assert sent["layout"] == theirs["layout"]
    for ours, expected in zip(sent["data"], theirs["data"], strict=True):
        assert set(ours) == set(expected)
        for name, value in expected.items():
            np.testing.assert_array_equal(numbers(ours[name]), numbers(value))


def numbers(value):
    """What plotly.js makes of a property."""
    if not isinstance(value, dict):
        return value
    flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    return flat.reshape([int(n) for n in value["shape"].split(",")]) if "shape" in value else flat


def behind(payload: bytes) -> tuple[dict, bytes]:
    """The document of a large figure, and the bytes behind it."""
    text, _, rest = payload.partition(b"\0")
    return json.loads(text), rest


def climbed(z: dict, rest: bytes) -> np.ndarray:
    """What plot.js makes of a matrix of steps, written anew from its description."""
    (height, width), (start, length) = z["shape"], z["behind"]
    own = rest[start : start + length]
    lengths, at = struct.unpack_from(f"<{height}H", own), 2 * height
    matrix = np.full((height, width), np.nan, np.float32)
    for row, count in enumerate(lengths):
        codes = own[at : at + count]
        matrix[row, :count] = [np.nan if code == 255 else z["steps"][code] for code in codes]
        at += count
    assert at == length
    return matrix


def large_head(size: int, causal: bool = True) -> tuple[np.ndarray, np.ndarray]:
    weights = np.random.default_rng(0).random((size, size), np.float32) ** 4
    masked = np.triu(np.full((size, size), causal), 1)
    weights[masked] = 0
    return weights / weights.sum(1, keepdims=True), masked


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("scale", ["0-1", "max", "log"])
def test_a_large_head_travels_as_a_byte_a_cell(scale, causal):
    pattern, masked = large_head(300, causal)
    masked[:, 0] = True  # hidden, as the first token may be
    figure = attention_heatmap(pattern, ["a"] * 300, theme="light", scale=scale, masked=masked)
    document, rest = behind(plot_module.encode(figure, {}))
    sent = climbed(document["figure"]["data"][0]["z"], rest)
    np.testing.assert_array_equal(sent, figure.data[0].z)
    np.testing.assert_array_equal(np.isnan(sent), masked)
    assert len(rest) <= 2 * 300 + 300 * (301 if causal else 600) / 2


@pytest.mark.parametrize("causal", [True, False])
def test_the_focused_head_of_1024_tokens_is_within_its_bytes(causal):
    pattern, masked = large_head(1024, causal)
    labels = [f"·token{at % 10}" for at in range(1024)]
    figure = attention_heatmap(pattern, labels, theme="dark", masked=masked)
    assert len(plot_module.encode(figure, {})) < 1_200_000


def test_all_heads_of_1024_tokens_are_within_their_bytes():
    hidden = np.triu(np.ones((1024, 1024), bool), 1)
    pattern = large_head(1024)[0]
    pixels = thumbnails(pattern[None], hidden)[0]
    words = {"hover": "previous token 0.123, induction 0.123, self 0.123, first token 0.123, entropy (nats) 3.21"}
    rows = [
        Row(f"Layer {layer}", "", [tile(f"{layer}.{head}", pixels, **words) for head in range(12)])
        for layer in range(12)
    ]
    assert len(encode(*rows)) < 1_500_000


def test_large_arrays_of_other_figures_go_behind_as_they_are():
    small, large = np.arange(10, dtype=np.float32), np.random.default_rng(0).random((300, 301), np.float32)
    figure = go.Figure([go.Scatter(y=small), go.Heatmap(z=large)], {"template": "none"})
    document, rest = behind(plot_module.encode(figure, {}))
    assert "bdata" in document["figure"]["data"][0]["y"]
    z = document["figure"]["data"][1]["z"]
    start, length = z["behind"]
    sent = np.frombuffer(rest[start : start + length], z["dtype"]).reshape([int(n) for n in z["shape"].split(",")])
    np.testing.assert_array_equal(sent, large)


def test_what_no_figure_can_hold_is_refused():
    figure = style.figure([{"type": "bar", "x": [{1, 2}]}], {}, "light")
    with pytest.raises(TypeError):
        plot_module.encode(figure, {})


def test_plotly_js_is_copied_once_and_is_the_installed_one(tmp_path):
    address = plot_module.publish(tmp_path / "static")
    (copy,) = (tmp_path / "static").iterdir()
    assert address == f"app/static/{copy.name}"
    assert copy.read_bytes().startswith(b"/**\n* plotly.js v")
