"""Matrices made small enough to send many of: pooled for thumbnails, quantised for a canvas.

Knows nothing of colours: 0..254 index `style.ramp(role, theme, 255)`, and 255 is a masked cell.
"""

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


def max_pool(matrix: np.ndarray, size: int = 64) -> np.ndarray:
    """The last two axes in at most `size` cells each, a cell the maximum of what it covers.

    The maximum, so that a lone bright cell survives. NaN counts only where a cell covers nothing
    else. Smaller matrices come back as they are: nothing is enlarged.
    """
    for axis in (-1, -2):
        length = matrix.shape[axis]
        if length > size:
            starts = -(-np.arange(size) * length // size)  # cell r goes to r * size // length
            matrix = np.fmax.reduceat(matrix, starts, axis=axis)
    return matrix
