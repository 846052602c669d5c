"""Compact encoding of numbers for an HTML page, with enough digits to distinguish samples."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest binary exponent of a packed value. The binary exponents of single precision range from
# -126 to 127. If one sample is extreme, this limit leaves most of the range to the other samples.
_MAX_CELL_EXPONENT = 100
# Smallest and largest binary exponent of a scale. The binary exponents of double precision range
# from -1022 to 1023. Within these limits, a scale has full precision and its reciprocal is finite.
_MIN_SCALE_EXPONENT, _MAX_SCALE_EXPONENT = -1000, 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedValues:
    """Values of features in single precision: each value is `centre + scale * cell`.

    Single precision has about seven digits. If all values of a feature have a large offset in
    common, most of these digits would be used for the offset, and few would be left for the
    differences between samples. Therefore differences from a centre are stored.

    Attributes
    ----------
    cells : ndarray of shape (n_samples, n_features), float32
        Scaled differences from the centre; NaN where a value is missing.
    centre : ndarray of shape (n_features,)
        One of the values of each feature. Differences between integers are therefore integers.
    scale : ndarray of shape (n_features,)
        Power of two near the standard deviation of each feature. Division by a power of two does
        not cause rounding error.
    """

    cells: NDArray[np.float32]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]


def pack_values(values: NDArray[np.float64], *, outlying: NDArray[np.intp]) -> PackedValues:
    """Return values in single precision, relative to the centre and scale of each feature.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Values of the features; values that are not finite become missing.
    outlying : ndarray of int
        Indices of samples that are not used to compute the centre and the scale of a feature,
        unless the feature is observed only in these samples.

    Returns
    -------
    packed : PackedValues
        Scaled differences, centres and scales.
    """
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
    """Return the value of each feature nearest to its mean, and the spread of each feature.

    The spread is the root mean square deviation from the value nearest to the mean. NaN marks a
    missing value.
    """
    observed = ~np.isnan(X)
    # Scale by a power of two first, since squares of very large or very small numbers would
    # overflow or underflow.
    unit = _binary_exponent(np.where(observed, np.abs(X), 0.0).max(axis=0, initial=0.0)) + 1
    Y = np.ldexp(np.where(observed, X, 0.0), -unit)
    n_observed = np.maximum(observed.sum(axis=0), 1)
    mean = Y.sum(axis=0, where=observed) / n_observed
    nearest = np.where(observed, np.abs(Y - mean), np.inf).argmin(axis=0)
    columns = np.arange(X.shape[1])
    squares = ((Y - Y[nearest, columns]) ** 2).sum(axis=0, where=observed)
    return np.nan_to_num(X[nearest, columns]), np.ldexp(np.sqrt(squares / n_observed), unit)


def _binary_exponent(sizes: NDArray[np.float64]) -> NDArray[np.intc]:
    """Return the exponent of the largest power of two that does not exceed each size.

    The exponent of zero is set to 0.
    """
    return np.where(sizes > 0, np.frexp(sizes)[1] - 1, 0)


def encode_base64(values: Any, dtype: str) -> str:
    """Return the bytes of an array as base64 text, row by row.

    Parameters
    ----------
    values : array-like
        Numbers to encode.
    dtype : str
        numpy data type with its byte order, such as "<f4". The page reads little-endian arrays.
    """
    return b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
