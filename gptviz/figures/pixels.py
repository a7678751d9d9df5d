"""Matrices made small enough to send many of: pooled for thumbnails, quantised for a canvas.

Knows nothing of colours: 0..254 index `style.ramp(role, theme, 255)`, and 255 is a masked cell.
"""

import itertools

import numpy as np

MASKED = 255


def quantise(array: np.ndarray, maximum: float | None = None) -> np.ndarray:
    """uint8 of the same shape: 0 at zero or below, 254 at `maximum` (the array's own) or above.

    255 marks what is masked: NaN and -inf.
    """
    values = np.asarray(array, dtype=np.float32)
    masked = np.isnan(values) | np.isneginf(values)
    if maximum is None:
        maximum = float(np.max(values, where=np.isfinite(values), initial=0))
    share = np.clip(np.where(masked, 0, values) / (maximum or 1), 0, 1)
    return np.where(masked, MASKED, np.rint(share * (MASKED - 1))).astype(np.uint8)


def quantise_signed(array: np.ndarray) -> np.ndarray:
    """uint8 of the same shape: 127 at zero, 0 and 254 at the largest size below and above it; 255 where masked."""
    values = np.asarray(array, dtype=np.float32)
    seen = np.isfinite(values)
    peak = float(np.max(np.abs(values), where=seen, initial=0)) or 1.0
    return np.where(seen, np.rint((np.where(seen, values, 0) / peak + 1) * 127), MASKED).astype(np.uint8)


def pool_by_size(matrix: np.ndarray, size: int = 64) -> np.ndarray:
    """Like max_pool for numbers of either sign: a cell is what it covers of the largest size."""
    high, low = max_pool(matrix, size), -max_pool(-matrix, size)
    return np.where(np.abs(low) > np.abs(high), low, high)


def max_pool(matrix: np.ndarray, size: int = 64) -> np.ndarray:
    """The last two axes in at most `size` cells each, a cell the maximum of what it covers.

    The maximum, so that a lone bright cell survives. NaN counts only where a cell covers nothing
    else. Smaller matrices come back as they are: nothing is enlarged.
    """
    rows, columns = matrix.shape[-2:]
    if rows > size:  # whole rows are compared at once, 20 times as fast as by reduceat
        bounds = itertools.pairwise([*_starts(rows, size), rows])
        matrix = np.stack([np.fmax.reduce(matrix[..., a:b, :], axis=-2) for a, b in bounds], axis=-2)
    return np.fmax.reduceat(matrix, _starts(columns, size), axis=-1) if columns > size else matrix


def _starts(length: int, size: int) -> np.ndarray:
    """Where each of `size` cells begins: cell r of the original goes to r * size // length."""
    return -(-np.arange(size) * length // size)


def thumbnails(patterns: np.ndarray, hidden: np.ndarray, size: int = 64) -> np.ndarray:
    """A layer's heads, pooled and quantised over 0 to 1: patterns (H, T, T) -> uint8 (H, s, s), s at most `size`.

    hidden (T, T): where no query may look, and every pattern is 0. No copy of the patterns is made.
    """
    masked = max_pool(~hidden, size) == 0
    return quantise(np.where(masked, np.nan, max_pool(patterns, size)), 1)
