"""Detection of counts and raw intensities, which should be transformed before they are clustered.

Clustering by squared distances needs features whose variances can be compared. The variance of a
count or an intensity grows with its mean. Without a logarithm, the largest values determine the
clusters, and the totals of the samples do so if they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mrshc.shell.data_matrix import as_data_matrix
from mrshc.shell.wording import Parameter, Sentence, Setting
from mrshc.validation import warn_caller

# Number of values that are examined at most. Whole columns at regular intervals are examined, so
# out-of-core data need no pass over the data. Quantiles of a million values are accurate.
_MAX_VALUES = 1_000_000
# Smallest number of columns that are examined, even if there are very many samples.
_MIN_COLUMNS = 100
# Values beyond these quantiles are replaced by the quantiles before the skewness is computed, so
# that a few outlying cells in logarithms or ratios do not look like raw intensities.
_TAIL = 0.0005
# Skewness above which values are regarded as raw intensities. In the 39 real data sets that are
# logarithms or log-ratios, the skewness is at most 2.5; in raw data and in the exponentials of
# these logarithms, it is at least 3.8 (tests/preprocessing/test_scale_detection.py).
_MIN_SKEWNESS = 3.1
# Largest proportion of negative values in raw intensities. Background correction may yield negative
# intensities (29 % in the leukaemia data of Golub et al. 1999), but about half of all log-ratios
# are negative.
_MAX_NEGATIVE_SHARE = 1 / 3
# Whole numbers are regarded as counts only if the largest is at least this large. Genotypes, grades
# and answers on a scale are smaller; so are logarithms to base 2 that were rounded.
_MIN_LARGEST_COUNT = 25
# All numbers of this size or more are whole numbers in double precision, also intensities.
_MAX_LARGEST_COUNT = 2.0**53
# Smallest number of distinct positive values, so that indicators are not regarded as intensities.
_MIN_DISTINCT = 20


class RawScaleWarning(UserWarning):
    """Warning that data are on the scale of counts or raw intensities.

    Estimators do not issue this warning, since they accept any data. It is issued by
    :meth:`DataScale.warn`.

    See Also
    --------
    detect_scale : Detects counts and raw intensities.
    """


@dataclass(frozen=True, kw_only=True)
class DataScale:
    """The scale of data, as returned by :func:`detect_scale`.

    Attributes
    ----------
    kind : {"counts", "intensities", "other"}
        "counts" for whole numbers whose totals differ between the samples, "intensities" for other
        values that are heavily skewed to the right, and "other" for all other data.
    skewness : float
        Skewness of the values, or of the positive values if that is smaller; NaN if there are fewer
        than two different values.
    smallest : float
        Smallest value that was examined; NaN if all values are missing.

    See Also
    --------
    detect_scale : Detects counts and raw intensities.
    """

    kind: Literal["counts", "intensities", "other"]
    skewness: float
    smallest: float

    @property
    def message(self) -> Sentence | None:
        """Sentences that state the scale and advise on a transformation; None for other data."""
        as_is = Setting("normalize", "none")
        if self.kind == "counts":
            return Sentence(
                "The values look like counts: they are whole numbers, and the totals of the "
                "samples differ. Without normalisation and logarithms, the totals and the largest "
                "values determine the clusters. Add {cpm}, or {size_factors} if many features "
                "are positive in all samples, and {min_count} to remove features with low counts; "
                "or add {as_is} if the values are right as they "
                "are.",
                size_factors=Setting("normalize", "size-factors"),
                cpm=Setting("normalize", "cpm"),
                min_count=Setting("min_count", 10),
                as_is=as_is,
            )
        if self.kind == "intensities":
            return Sentence(
                "The values look like raw intensities: they are heavily skewed to the right "
                "(skewness {skewness:.1f}). Without logarithms, the largest values determine the "
                "clusters. {advice}; or add {as_is} if the values are right as they are.",
                skewness=self.skewness,
                advice=self._logarithm_advice(),
                as_is=as_is,
            )
        return None

    def warn(self) -> None:
        """Issue a :class:`RawScaleWarning` if the data are counts or raw intensities."""
        if self.message is not None:
            warn_caller(RawScaleWarning(self.message))

    def _logarithm_advice(self) -> Sentence:
        """Return the beginning of a sentence on how to take logarithms of the values."""
        if self.smallest > 0:
            return Sentence("Add {log2}", log2=Setting("log2", True))
        if self.smallest == 0:
            return Sentence(
                "Add {log2} with {pseudocount}, since some values are 0",
                log2=Setting("log2", True),
                pseudocount=Parameter("pseudocount"),
            )
        return Sentence(
            "Add {log2} with {floor}, since some values are not positive",
            log2=Setting("log2", True),
            floor=Parameter("floor"),
        )


def detect_scale(X: Any) -> DataScale:
    """Determine whether data are counts, raw intensities, or on another scale.

    Parameters
    ----------
    X : array-like or DataMatrix of shape (n_samples, n_features)
        Data with samples in rows; NaN marks a missing value. Out-of-core data and sparse matrices
        are accepted: at most about a million values, in columns at regular intervals, are examined.

    Returns
    -------
    DataScale
        The scale. Its attribute `message` contains advice, and its method `warn` issues a
        :class:`RawScaleWarning`.

    See Also
    --------
    CountsPerMillion : Normalises counts by the totals of the samples.
    SizeFactors : Normalises counts by the median of ratios.
    Log2 : Takes logarithms.

    Notes
    -----
    Data are regarded as counts if all values are whole numbers, none is negative, the largest is at
    least 25, and the totals of the samples differ. Other data are regarded as raw intensities if at
    most a third of the values are negative, and if the skewness of all values and that of the
    positive values exceed 3.1. To limit the influence of outliers, the 0.05 % smallest and largest
    values are replaced by the nearest other value before the skewness is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.preprocessing import detect_scale
    >>> logarithms = np.random.default_rng(0).normal(6, 2, size=(20, 200))
    >>> detect_scale(logarithms).kind
    'other'
    >>> detect_scale(2**logarithms).kind
    'intensities'
    >>> detect_scale(np.floor(2**logarithms)).kind
    'counts'
    """
    sample = _examined_columns(X)
    values = sample[np.isfinite(sample)]
    if not values.size:
        return DataScale(kind="other", skewness=np.nan, smallest=np.nan)
    positive = values[values > 0]
    skewness = float(np.fmin(_winsorised_skewness(values), _winsorised_skewness(positive)))
    kind: Literal["counts", "intensities", "other"] = "other"
    if _are_counts(values, sample):
        kind = "counts"
    elif (
        skewness > _MIN_SKEWNESS
        and np.mean(values < 0) <= _MAX_NEGATIVE_SHARE
        and np.unique(positive).size >= _MIN_DISTINCT
    ):
        kind = "intensities"
    return DataScale(kind=kind, skewness=skewness, smallest=float(values.min()))


def _examined_columns(X: Any) -> NDArray[np.float64]:
    """Return columns of X at regular intervals, with about `_MAX_VALUES` values at most."""
    matrix = as_data_matrix(X)
    n, p = matrix.shape
    n_columns = min(p, max(_MIN_COLUMNS, _MAX_VALUES // max(n, 1)))
    indices = np.linspace(0, p - 1, n_columns).astype(np.intp) if p else np.arange(0)
    return np.asarray(matrix.columns(indices), dtype=np.float64)


def _are_counts(values: NDArray[np.float64], sample: NDArray[np.float64]) -> bool:
    """Return whether data are counts; `values` are the finite values of `sample`."""
    is_in_range = _MIN_LARGEST_COUNT <= values.max() < _MAX_LARGEST_COUNT and values.min() >= 0
    if not is_in_range or np.any(values != np.rint(values)):
        return False
    # Ranks, and samples that were subsampled to the same depth, have equal totals.
    totals = np.nansum(sample, axis=1)
    return bool(totals.max() > totals.min())


def _winsorised_skewness(values: NDArray[Any]) -> float:
    """Return the skewness of values after winsorisation; NaN if all values are equal."""
    if values.size == 0:
        return np.nan
    clipped = np.clip(values, *np.quantile(values, (_TAIL, 1 - _TAIL)))
    deviations = clipped - clipped.mean()
    scale = np.abs(deviations).max()
    # Values are scaled before they are raised to a power, which could overflow.
    if scale == 0:
        return np.nan
    deviations /= scale
    variance = np.mean(deviations**2)
    return float(np.mean(deviations**3) / variance**1.5)
