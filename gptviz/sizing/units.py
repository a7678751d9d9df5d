"""Numbers with three significant figures and their unit, as a person reads them. Knows no model."""

from __future__ import annotations

from decimal import Decimal

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
SMALL = ("", "m", "µ", "n", "p")
NO_BREAK = "\u00a0"


def plain(value: float) -> str:
    """Three significant figures without a prefix: 0.996, 4, 32,800."""
    digits = f"{value:.3g}" if value < 1 else f"{Decimal(f'{value:.2e}'):,f}"
    return digits.rstrip("0").rstrip(".") if "." in digits and "e" not in digits else digits


def si(value: float, unit: str) -> str:
    """1.24e8, "B" -> "124 MB"; prefixes are powers of 1,000."""
    if value == 0:
        return f"0{NO_BREAK}{unit}"
    mantissa, exponent = f"{value:.2e}".split("e")
    step = int(exponent) // 3
    prefixes = PREFIXES if step >= 0 else SMALL
    step = max(-len(SMALL) + 1, min(step, len(PREFIXES) - 1))
    digits = f"{Decimal(mantissa).scaleb(int(exponent) - 3 * step):,f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{digits}{NO_BREAK}{prefixes[abs(step)]}{unit}"


def count(value: float) -> str:
    """124439808 -> "124M", as models are named."""
    if value < 1:
        return plain(value)
    text = si(value, "").replace(NO_BREAK, "")
    return text.replace("k", "K").replace("G", "B")


def share(part: float) -> str:
    """0.314 -> "31.4 %"; a part that is not quite nothing never reads as 0, and many times the whole as a multiple."""
    if part >= 10:
        return f"{plain(part)}{NO_BREAK}×"
    if 0 < part < 0.0005:
        return f"<{NO_BREAK}0.1{NO_BREAK}%"
    return f"{100 * part:.1f}{NO_BREAK}%"
