"""What Python hands to the components: the bytes, and the words when they cannot be made."""

import base64
import json
import struct

import numpy as np
import plotly.graph_objects as go
import pytest

from gptviz.figures import style
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


def test_what_no_figure_can_hold_is_refused():
    figure = style.figure([{"type": "bar", "x": [{1, 2}]}], {}, "light")
    with pytest.raises(TypeError):
        plot_module.encode(figure, {})


def test_plotly_js_is_copied_once_and_is_the_installed_one(tmp_path):
    address = plot_module.publish(tmp_path / "static")
    (copy,) = (tmp_path / "static").iterdir()
    assert address == f"app/static/{copy.name}"
    assert copy.read_bytes().startswith(b"/**\n* plotly.js v")
