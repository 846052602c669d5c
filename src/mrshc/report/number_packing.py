"""Compact encoding of numbers for an HTML page, with enough digits to distinguish samples."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest binary exponent of a packed value. The binary exponents of single precision range from
# -126 to 127. With this limit, an extreme sample does not overflow, and values that are smaller by
# a factor of up to 2^226 keep full precision.
_MAX_CELL_EXPONENT = 100
# Smallest and largest binary exponent of a scale. The binary exponents of double precision range
# from -1022 to 1023. Within these limits, a scale has full precision and its reciprocal is finite.
_MIN_SCALE_EXPONENT, _MAX_SCALE_EXPONENT = -1000, 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedValues:
    """Values of features in single precision: each value is `centre + scale * cell`.

    Single precision has about seven digits. If all values of a feature share a large offset, most
    of these digits would represent the offset, and few would be left for the differences between
    samples. Therefore differences from a centre are stored.

    Attributes
    ----------
    cells : ndarray of shape (n_samples, n_features), float32
        Differences from the centre, divided by the scale; NaN where a value is missing.
    centre : ndarray of shape (n_features,)
        For each feature, its observed value nearest to the mean; 0 if no value is observed. If the
        values of a feature are integers, so are the differences from the centre.
    scale : ndarray of shape (n_features,)
        For each feature, a power of two near the standard deviation, or a larger power of two if a
        sample is extreme. Division by a power of two does not cause rounding error.
    """

    cells: NDArray[np.float32]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]


def pack_values(values: NDArray[np.float64], *, outlying: NDArray[np.intp]) -> PackedValues:
    """Return values in single precision, centred and scaled separately for each feature."""
    X = np.where(np.isfinite(values), values, np.nan)
    usual = X.copy()
    usual[outlying] = np.nan
    usual = np.where(np.isnan(usual).all(axis=0), X, usual)
    centre, spread = _centre_and_spread(usual)
    differences = X - centre
    farthest = np.abs(np.nan_to_num(differences)).max(axis=0, initial=0.0)
    exponent = _binary_exponent(np.where(spread > 0, spread, farthest))
    # Increase the scale where necessary to keep the most extreme sample within the range of single
    # precision.
    exponent = np.maximum(exponent, _binary_exponent(farthest) - _MAX_CELL_EXPONENT)
    exponent = np.clip(exponent, _MIN_SCALE_EXPONENT, _MAX_SCALE_EXPONENT)
    cells = np.ldexp(differences, -exponent).astype(np.float32)
    return PackedValues(cells=cells, centre=centre, scale=np.ldexp(1.0, exponent))


def _centre_and_spread(
    X: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the centre and the spread of each feature; NaN marks a missing value.

    The centre is the observed value nearest to the mean. The spread is the root mean square
    deviation from the centre.
    """
    observed = ~np.isnan(X)
    # The values are first scaled by a power of two, since the squares of very large numbers would
    # overflow, and the squares of very small numbers would underflow.
    unit = _binary_exponent(np.where(observed, np.abs(X), 0.0).max(axis=0, initial=0.0)) + 1
    Y = np.ldexp(np.where(observed, X, 0.0), -unit)
    n_observed = np.maximum(observed.sum(axis=0), 1)
    mean = Y.sum(axis=0, where=observed) / n_observed
    nearest = np.where(observed, np.abs(Y - mean), np.inf).argmin(axis=0)
    columns = np.arange(X.shape[1])
    squares = ((Y - Y[nearest, columns]) ** 2).sum(axis=0, where=observed)
    return np.nan_to_num(X[nearest, columns]), np.ldexp(np.sqrt(squares / n_observed), unit)


def _binary_exponent(sizes: NDArray[np.float64]) -> NDArray[np.intc]:
    """Return, for each size, the exponent of the largest power of two that does not exceed it.

    For a size of zero, 0 is returned.
    """
    return np.where(sizes > 0, np.frexp(sizes)[1] - 1, 0)


def encode_base64(values: Any, dtype: str) -> str:
    """Return the bytes of an array as base64 text, row by row."""
    return b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
