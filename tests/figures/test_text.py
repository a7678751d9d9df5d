import json
import unicodedata

import numpy as np
import pytest

from gptviz.figures.style import literal, number
from gptviz.figures.text import shortened, tex


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (0.41, "0.41"),
        (np.float32(0.41), "0.41"),
        (0.4126, "0.413"),
        (1.0, "1"),
        (-1.5, "−1.5"),
        (12.345, "12.3"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1234.5, "1,230"),
        (0.001, "0.001"),
        (0.0009996, "0.001"),
        (0.000123, "1.23 × 10⁻⁴"),
        (0.00004, "4.00 × 10⁻⁵"),
        (-3.14159e-12, "−3.14 × 10⁻¹²"),
        (2.5e6, "2.50 × 10⁶"),
        (124_439_808, "124,439,808"),
        (np.int64(-1200), "−1,200"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (float("nan"), "not a number"),
    ],
)
def test_numbers_read_as_a_person_writes_them(x, shown):
    assert number(x) == shown


def test_a_unit_stays_on_the_line_of_its_number():
    assert number(2.5, "nats") == "2.5\u00a0nats"
    assert number(60, "MB") == "60\u00a0MB"


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("&lt;", "&amp;lt;"),
        ("$5 and `z` :red[w]", "$5 and `z` :red[w]"),
        ('"quoted"', '"quoted"'),
        ("a\x00b", "a␀b"),
        ("\x7f", "␡"),
        ("\x9b", "U+009B"),
        ("\ud800", "\ufffd"),
        ("\u200d", "U+200D"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("שלום", "\u2068שלום\u2069"),
        ("", ""),
    ],
)
def test_text_is_shown_and_never_interpreted(typed, given):
    assert literal(typed) == given


@pytest.mark.parametrize("control", ["\u202e", "\u2066", "\u2069", "\u200f", "\u2028"])
def test_nothing_typed_can_turn_its_neighbours_round(control):
    shown = literal(f"abc{control}ש")
    assert control not in shown.strip("\u2068\u2069")
    assert f"U+{ord(control):04X}" in shown


def test_every_character_of_the_basic_plane_can_be_sent_and_drawn():
    shown = "".join(literal(chr(code)) for code in range(0x10000))
    assert json.dumps(shown).encode()
    shown.encode()  # no lone surrogate
    assert not [c for c in shown if unicodedata.category(c) == "Cc"]


def test_a_very_long_token_keeps_both_ends():
    assert shortened("-" * 24) == "-" * 24
    cut = shortened("a" * 60 + "z" * 60)
    assert len(cut) == 24
    assert cut.startswith("aaa")
    assert cut.endswith("zzz")
    assert "…" in cut


@pytest.mark.parametrize(
    ("x", "written"),
    [
        (0.41, "0.41"),
        (-2.5, "-2.5"),
        (0.00004, r"4.00 \times 10^{-5}"),
        (12345.0, "12{,}300"),
        (float("-inf"), r"-\infty "),
    ],
)
def test_a_number_in_a_formula(x, written):
    assert tex(x) == written
