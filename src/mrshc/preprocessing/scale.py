"""Detection of counts and raw intensities, which should be transformed before they are clustered.

The variance of a count or an intensity grows with its mean: without a logarithm, the largest values
determine the clusters, and so do the totals of the samples if they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.core.data import as_matrix
from mrshc.core.data.matrix import ArrayMatrix

# Whole columns at regular intervals are examined, with about so many values, so that data in files
# need no pass.
_MAX_EXAMINED, _MIN_COLUMNS = 1_000_000, 100
# Values beyond these quantiles are replaced before the skewness is computed, so that a few outlying
# cells do not look like raw intensities.
_TAIL = 0.0005
# In the 39 real data sets that are logarithms or log-ratios, the skewness is at most 2.5; in raw
# data and in the exponentials of these logarithms, it is at least 3.8.
_MIN_SKEWNESS = 3.1
# Background correction may yield negative intensities (29 % in the leukaemia data of Golub et al.
# 1999), but about half of all log-ratios are negative.
_MAX_NEGATIVE_SHARE = 1 / 3
# Genotypes, grades, answers on a scale and rounded logarithms are smaller; all numbers from 2^53 on
# are whole in double precision.
_MIN_LARGEST_COUNT, _MAX_LARGEST_COUNT = 25, 2.0**53
_MIN_DISTINCT = 20  # indicators have fewer distinct positive values


class RawScaleWarning(UserWarning):
    """Warning that data are counts or raw intensities, whose largest values would dominate."""


@dataclass(frozen=True)
class DataScale:
    """The scale of data, as returned by :func:`detect_scale`.

    Attributes
    ----------
    kind : {"counts", "intensities", "other"}
        "counts" for whole numbers whose totals differ between the samples, "intensities" for other
        values that are heavily skewed to the right.
    message : str or None
        What should be done about counts and intensities.
    """

    kind: Literal["counts", "intensities", "other"]
    message: str | None = None


def detect_scale(X: Any) -> DataScale:
    """Determine whether data are counts, raw intensities, or on another scale.

    Data are counts if all values are whole numbers, none is negative, the largest is at least 25,
    and the totals of the samples differ. Other data are raw intensities if at most a third of the
    values are negative, and the skewness of all values and that of the positive values exceed 3.1.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data with samples in rows, also out-of-core or sparse; about a million values are examined.

    Returns
    -------
    scale : DataScale
        Has `kind`, "counts", "intensities" or "other", and `message`, advice as text or None.

    See Also
    --------
    CountsPerMillion, SizeFactors : Normalise counts.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.preprocessing import detect_scale
    >>> logarithms = np.random.default_rng(0).normal(6, 2, size=(20, 200))
    >>> detect_scale(logarithms).kind
    'other'
    >>> detect_scale(np.floor(2**logarithms)).kind
    'counts'
    """
    matrix = as_matrix(X)
    if matrix is None:
        matrix = ArrayMatrix(np.asarray(X, dtype=np.float64))
    n, p = matrix.shape
    n_columns = min(p, max(_MIN_COLUMNS, _MAX_EXAMINED // max(n, 1)))
    examined = matrix.columns(np.linspace(0, max(p - 1, 0), n_columns).astype(np.intp))
    values = examined[np.isfinite(examined)]
    if not values.size:
        return DataScale("other")
    smallest, largest = float(values.min()), float(values.max())
    is_whole = smallest >= 0 and _MIN_LARGEST_COUNT <= largest < _MAX_LARGEST_COUNT
    # Ranks, and samples that were subsampled to the same depth, have equal totals.
    if is_whole and (values == np.rint(values)).all() and np.ptp(np.nansum(examined, axis=1)) > 0:
        return DataScale(
            "counts",
            "The values look like counts: they are whole numbers, and the totals of the samples "
            "differ. Without normalisation and logarithms, the totals and the largest values "
            "determine the clusters. Add normalize='cpm', or normalize='size-factors' if many "
            "features are positive in all samples, and min_count=10 to remove features with low "
            "counts; or add normalize='none' if the values are right as they are.",
        )
    positive = values[values > 0]
    skewness = np.fmin(_winsorised_skewness(values), _winsorised_skewness(positive))
    is_skewed = skewness > _MIN_SKEWNESS and np.unique(positive).size >= _MIN_DISTINCT
    if not is_skewed or (values < 0).mean() > _MAX_NEGATIVE_SHARE:
        return DataScale("other")
    addition = ""
    if smallest <= 0:
        what, values_are = (
            ("pseudocount=1", "0") if smallest == 0 else ("floor=100", "not positive")
        )
        addition = f" with {what} or another number, since some values are {values_are}"
    return DataScale(
        "intensities",
        "The values look like raw intensities: they are heavily skewed to the right (skewness "
        f"{skewness:.1f}). Without logarithms, the largest values determine the clusters. Add "
        f"log2=True{addition}; or add normalize='none' if the values are right as they are.",
    )


def _winsorised_skewness(values: np.ndarray) -> float:
    """Return the skewness after winsorisation; NaN if all values are equal."""
    if not values.size:
        return np.nan
    clipped = np.clip(values, *np.quantile(values, (_TAIL, 1 - _TAIL)))
    deviations = clipped - clipped.mean()
    unit = np.abs(deviations).max()  # powers of large values could overflow
    if unit == 0:
        return np.nan
    deviations /= unit
    return float(np.mean(deviations**3) / np.mean(deviations**2) ** 1.5)
