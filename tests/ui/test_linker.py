"""What Python hands to the linker: the bytes, and the words when they cannot be made."""

import json
import struct

import numpy as np
import pytest

from gptviz.ui.attention.linker import least_weight
from gptviz.ui.components.linker import encode, pack

WORDS = ["<b>x</b>", "é🤗\ud800", "$5"]
OPTIONS = {"chosen": 1, "colours": ["#aabbcc", "#112233"], "cut": 0.01, "faint": None, "alt": 'say "hi"'}


def patterns(heads: int = 2, size: int = 3, causal: bool = True) -> np.ndarray:
    """Rows that sum to 1, (heads, size, size)."""
    weights = np.random.default_rng(0).random((heads, size, size))
    weights = np.tril(weights) if causal else weights
    return weights / weights.sum(-1, keepdims=True)


def decode(payload: bytes) -> tuple[dict, np.ndarray]:
    (length,) = struct.unpack_from("<I", payload)
    return json.loads(payload[4 : 4 + length]), np.frombuffer(payload, "<u2", offset=4 + length)


def test_the_rows_of_a_masked_head_end_at_the_diagonal():
    given = patterns()
    header, weights = decode(encode(pack(given, [0, 1], causal=True), WORDS, OPTIONS))
    by_hand = [given[head, query, key] for head in range(2) for query in range(3) for key in range(query + 1)]
    np.testing.assert_allclose(weights / 65535, by_hand, atol=0.5 / 65535)
    assert (header["heads"], header["triangle"], header["labels"]) == ([0, 1], True, WORDS)
    assert {name: header[name] for name in OPTIONS} == OPTIONS


def test_without_a_mask_every_weight_is_sent():
    given = patterns(causal=False)
    header, weights = decode(encode(pack(given, [4, 1], causal=False), WORDS, OPTIONS))
    np.testing.assert_allclose(weights / 65535, given.ravel(), atol=0.5 / 65535)
    assert (header["heads"], header["triangle"]) == ([4, 1], False)


def test_one_token_is_a_weight_a_head():
    assert np.frombuffer(pack(np.ones((3, 1, 1)), range(3), causal=True).data, "<u2").tolist() == [65535] * 3


def test_a_sum_just_above_one_does_not_wrap_to_zero():
    assert np.frombuffer(pack(np.full((1, 1, 1), 1.0000001), [0], causal=True).data, "<u2").tolist() == [65535]


@pytest.mark.parametrize("shape", [(3, 3), (1, 3, 3), (2, 3, 4)])
def test_patterns_must_be_square_and_one_a_head(shape):
    with pytest.raises(ValueError, match=r"\(2, T, T\)"):
        pack(np.zeros(shape), [0, 1], causal=True)


@pytest.mark.parametrize(
    ("labels", "change", "message"),
    [
        (WORDS[:2], {}, "2 labels for 3 tokens"),
        (WORDS, {"chosen": 7}, "head 7"),
        (WORDS, {"colours": ["#aabbcc"]}, "1 colours for 2 heads"),
        (WORDS, {"colours": ["#aabbcc", "red"]}, "#rrggbb"),
    ],
)
def test_what_does_not_fit_is_refused(labels, change, message):
    with pytest.raises(ValueError, match=message):
        encode(pack(patterns(), [0, 1], causal=True), labels, {**OPTIONS, **change})


@pytest.mark.parametrize("tokens", [1, 2, 15, 49, 50, 128, 499, 500, 1024, 4096])
def test_a_head_that_spreads_evenly_still_has_lines(tokens):
    assert least_weight(tokens) <= 0.5 / tokens
    assert least_weight(tokens) <= 0.01
