"""Numbers of the page as text, short but precise enough to tell samples apart."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest packed value, as an exponent of two. Single precision reaches from 2^-126 to 2^127: this
# leaves most of the range to usual samples where one sample is very far out.
_MAX_CELL_EXPONENT = 100
# Exponents of two that give a scale of full precision, and whose inverse is finite.
_MIN_SCALE_EXPONENT, _MAX_SCALE_EXPONENT = -1000, 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedValues:
    """Values of features in single precision: each is `centre + scale * cell`.

    Single precision has seven digits. Of the values themselves, these could all be digits of an
    offset that samples share; so what is held is the difference from a value of the feature.
    """

    cells: NDArray[np.float32]  # (n, q), NaN where missing
    centre: NDArray[np.float64]  # (q,), one of the feature's values: whole numbers stay whole
    scale: NDArray[np.float64]  # (q,), powers of two near the spread: scaling does not round


def pack_values(values: NDArray[np.float64], *, outlying: NDArray[np.intp]) -> PackedValues:
    """Return values relative to the centre and the spread of each feature.

    Outlying samples count for neither, unless a feature is known in them only.
    """
    X = np.where(np.isfinite(values), values, np.nan)
    usual = X.copy()
    usual[outlying] = np.nan
    usual = np.where(np.isnan(usual).all(axis=0), X, usual)
    centre, spread = _centre_and_spread(usual)
    differences = X - centre
    farthest = np.abs(np.nan_to_num(differences)).max(axis=0, initial=0.0)
    exponent = _binary_exponent(np.where(spread > 0, spread, farthest))
    exponent = np.maximum(exponent, _binary_exponent(farthest) - _MAX_CELL_EXPONENT)
    exponent = np.clip(exponent, _MIN_SCALE_EXPONENT, _MAX_SCALE_EXPONENT)
    cells = np.ldexp(differences, -exponent).astype(np.float32)
    return PackedValues(cells=cells, centre=centre, scale=np.ldexp(1.0, exponent))


def _centre_and_spread(
    X: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the value of each feature that is nearest to the mean, and the deviation from it."""
    seen = ~np.isnan(X)
    # Scaled before they are squared, so that very large and very small numbers stay finite.
    unit = _binary_exponent(np.where(seen, np.abs(X), 0.0).max(axis=0, initial=0.0)) + 1
    Y = np.ldexp(np.where(seen, X, 0.0), -unit)
    n_seen = np.maximum(seen.sum(axis=0), 1)
    mean = Y.sum(axis=0, where=seen) / n_seen
    nearest = np.where(seen, np.abs(Y - mean), np.inf).argmin(axis=0)
    columns = np.arange(X.shape[1])
    squares = ((Y - Y[nearest, columns]) ** 2).sum(axis=0, where=seen)
    return np.nan_to_num(X[nearest, columns]), np.ldexp(np.sqrt(squares / n_seen), unit)


def _binary_exponent(sizes: NDArray[np.float64]) -> NDArray[np.intc]:
    """Return the exponent of the largest power of two that is not above each size; 0 for zero."""
    return np.where(sizes > 0, np.frexp(sizes)[1] - 1, 0)


def encode_base64(values: Any, kind: str) -> str:
    """Return numbers of a kind of numpy's (little-endian), a row after the other, as text."""
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
