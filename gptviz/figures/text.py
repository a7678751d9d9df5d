"""Numbers and tokens as text: three significant figures, and strings that a chart shows literally.

Knows nothing of colours or figures. `style` hands both functions on.
"""

import html
import math
import numbers
import re
import unicodedata
from decimal import Decimal

MINUS = "−"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
# Explicit bidirectional controls could close the isolate put around a token, so they are named.
_NAMED = re.compile("[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ISOLATE, _POP = "\u2068", "\u2069"


def number(x: float, unit: str = "") -> str:
    """x with three significant figures, a true minus sign and, after a no-break space, its unit.

    Whole numbers (`int`) keep every digit: they are counts. Below 0.001 and from a million up a
    float is written `4.00 × 10⁻⁵`; between them, zeros that carry nothing are dropped: `0.41`.
    """
    return f"{_plain(x)}\u00a0{unit}" if unit else _plain(x)


def tex(x: float) -> str:
    """The same number for a LaTeX formula."""
    plain = _plain(x).replace(MINUS, "-").replace(",", "{,}").replace("∞", r"\infty ")
    mantissa, _, exponent = plain.partition(" × 10")
    return rf"{mantissa} \times 10^{{{exponent.translate(_DIGITS)}}}" if exponent else mantissa


def _plain(x: float) -> str:
    if isinstance(x, numbers.Integral):
        return f"{int(x):,}".replace("-", MINUS)
    if not math.isfinite(x):
        return "not a number" if math.isnan(x) else ("∞" if x > 0 else f"{MINUS}∞")
    sign = MINUS if x < 0 else ""
    mantissa, exponent = f"{abs(float(x)):.2e}".split("e")
    if x == 0 or -3 <= int(exponent) < 6:
        return sign + _trimmed(f"{Decimal(mantissa).scaleb(int(exponent)):,f}")
    return f"{sign}{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def _trimmed(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def literal(text: str) -> str:
    """`text` as Plotly must be given it to show exactly these characters and nothing else.

    Markup is escaped, control characters become visible, right-to-left runs stay inside the text.
    """
    shown = _NAMED.sub(lambda found: f"U+{ord(found[0]):04X}", "".join(map(_visible, text)))
    if shown and all(unicodedata.category(c) in ("Cf", "Mn", "Me") for c in shown):
        shown = " ".join(f"U+{ord(c):04X}" for c in shown)
    shown = html.escape(shown, quote=False)
    right_to_left = any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in shown)
    return f"{_ISOLATE}{shown}{_POP}" if right_to_left else shown


def _visible(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)  # NUL is ␀
    if code == 0x7F:
        return "␡"
    if 0x80 <= code < 0xA0:
        return f"U+{code:04X}"
    return "\ufffd" if 0xD800 <= code < 0xE000 else char


def shortened(text: str, most: int = 24) -> str:
    """`text` in at most `most` characters: a long one loses its middle."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"
