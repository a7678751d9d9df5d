"""Conversions between sRGB hex colours and OKLab (Ottosson 2020), where equal steps look equal.

https://bottosson.github.io/posts/oklab/. Knows no role and no theme: see `style`.
"""

from collections.abc import Sequence

import numpy as np

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def to_linear(colour: str) -> np.ndarray:
    """Linear-light RGB (3,) in 0..1 of a `#RRGGBB` colour."""
    srgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def to_hex(linear: np.ndarray) -> str:
    """`#RRGGBB` of linear-light RGB (3,), clipped to what a screen can show."""
    light = np.clip(linear, 0, 1)
    srgb = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(float(c) * 255):02X}" for c in srgb)


def to_lab(colour: str) -> np.ndarray:
    """OKLab (3,) of a `#RRGGBB` colour: lightness in 0..1, then the two hue axes."""
    return _TO_LAB @ np.cbrt(_TO_LMS @ to_linear(colour))


def from_lab(lab: np.ndarray) -> np.ndarray:
    """Linear-light RGB (3,) of an OKLab colour; outside 0..1 where no screen can show it."""
    return np.linalg.solve(_TO_LMS, np.linalg.solve(_TO_LAB, lab) ** 3)


def blend(stops: Sequence[str], steps: int) -> list[str]:
    """`steps` hex colours evenly spaced along `stops`, straight through OKLab between two."""
    labs = np.array([to_lab(stop) for stop in stops])  # (stops, 3)
    at = np.linspace(0, len(stops) - 1, steps)
    path = np.stack([np.interp(at, np.arange(len(stops)), axis) for axis in labs.T], axis=1)
    return [to_hex(from_lab(lab)) for lab in path]


def hue_circle(n: int, lightness: float, chroma: float) -> list[str]:
    """n hex colours of one lightness and one chroma, their hues evenly spaced."""
    angles = 2 * np.pi * np.arange(n) / max(n, 1) + np.radians(245)  # starts at blue
    labs = np.stack([np.full(n, lightness), chroma * np.cos(angles), chroma * np.sin(angles)], 1)
    return [to_hex(from_lab(lab)) for lab in labs]


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast ratio of two colours, 1 (none) to 21."""
    low, high = sorted(float(to_linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (high + 0.05) / (low + 0.05)
