"""Compact encoding of numbers for the page, with enough digits to distinguish samples."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest exponent of two of a packed value. Single precision ranges from 2^-126 to 2^127. If one
# sample is extreme, this limit leaves most of the range to the other samples.
_MAX_CELL_EXPONENT = 100
# Double precision ranges from 2^-1022 to 2^1023. Within these limits the scale has full precision
# and its reciprocal is finite.
_MIN_SCALE_EXPONENT, _MAX_SCALE_EXPONENT = -1000, 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedValues:
    """Values of features in single precision: each value is `centre + scale * cell`.

    Single precision has about seven digits. If a feature has a large offset, these would all be
    spent on the offset that the samples share. Differences from a centre are stored instead.

    Attributes
    ----------
    cells : ndarray of shape (n_samples, n_features), float32
        Scaled differences from the centre; NaN where a value is missing.
    centre : ndarray of shape (n_features,)
        One of the values of each feature, so that differences of integers are integers.
    scale : ndarray of shape (n_features,)
        Power of two near the standard deviation of each feature, so that scaling does not round.
    """

    cells: NDArray[np.float32]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]


def pack_values(values: NDArray[np.float64], *, outlying: NDArray[np.intp]) -> PackedValues:
    """Return values relative to the centre and the spread of each feature.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Values; those that are not finite become missing.
    outlying : ndarray of int
        Samples that are left out when centre and spread are computed, unless a feature is observed
        only in them.

    Returns
    -------
    packed : PackedValues
        Cells, centres and scales.
    """
    X = np.where(np.isfinite(values), values, np.nan)
    usual = X.copy()
    usual[outlying] = np.nan
    usual = np.where(np.isnan(usual).all(axis=0), X, usual)
    centre, spread = _centre_and_spread(usual)
    differences = X - centre
    farthest = np.abs(np.nan_to_num(differences)).max(axis=0, initial=0.0)
    exponent = _binary_exponent(np.where(spread > 0, spread, farthest))
    # A larger scale keeps the most extreme sample within the range of single precision.
    exponent = np.maximum(exponent, _binary_exponent(farthest) - _MAX_CELL_EXPONENT)
    exponent = np.clip(exponent, _MIN_SCALE_EXPONENT, _MAX_SCALE_EXPONENT)
    cells = np.ldexp(differences, -exponent).astype(np.float32)
    return PackedValues(cells=cells, centre=centre, scale=np.ldexp(1.0, exponent))


def _centre_and_spread(
    X: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the value of each feature nearest to its mean, and the root mean square deviation."""
    observed = ~np.isnan(X)
    # Scaled by a power of two first: squares of very large or very small numbers would overflow or
    # underflow.
    unit = _binary_exponent(np.where(observed, np.abs(X), 0.0).max(axis=0, initial=0.0)) + 1
    Y = np.ldexp(np.where(observed, X, 0.0), -unit)
    n_observed = np.maximum(observed.sum(axis=0), 1)
    mean = Y.sum(axis=0, where=observed) / n_observed
    nearest = np.where(observed, np.abs(Y - mean), np.inf).argmin(axis=0)
    columns = np.arange(X.shape[1])
    squares = ((Y - Y[nearest, columns]) ** 2).sum(axis=0, where=observed)
    return np.nan_to_num(X[nearest, columns]), np.ldexp(np.sqrt(squares / n_observed), unit)


def _binary_exponent(sizes: NDArray[np.float64]) -> NDArray[np.intc]:
    """Return the exponent of the largest power of two that is not above each size; 0 for zero."""
    return np.where(sizes > 0, np.frexp(sizes)[1] - 1, 0)


def encode_base64(values: Any, dtype: str) -> str:
    """Return the bytes of an array in base64, row by row.

    Parameters
    ----------
    values : array-like
        Numbers.
    dtype : str
        Type of numpy with its byte order, such as "<f4": JavaScript reads little-endian arrays.
    """
    return b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
