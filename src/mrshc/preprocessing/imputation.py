"""Nearest-neighbour imputation that is fast for data with many features."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from mrshc.preprocessing.steps import NewSampleUse, Step, format_count
from mrshc.validation import check_integer, check_option

# Maximum number of distances in memory at a time. In double precision, the distances take 16 MB,
# and their computation takes a few times as much memory. The number has not been tuned; it does not
# affect the result.
_BLOCK_PAIRS = 1 << 21

# A donor is a row whose values may be used for imputation. At first, only the nearest donors of a
# row, called candidates, are examined. Their number is `_N_CANDIDATES` divided by the proportion of
# observed values, but at most `_MAX_CANDIDATES`, and in any case at least four times the number of
# neighbours. All donors are sorted only if the candidates do not suffice. The two constants affect
# the result only by rounding errors.
_N_CANDIDATES, _MAX_CANDIDATES = 32, 256


class NeighborImputer(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each missing value by a mean over the nearest features or samples.

    With `over="samples"`, the result is the same as that of :class:`sklearn.impute.KNNImputer`.
    With `over="features"`, the same method is applied to the transposed data. If there are
    thousands of possible neighbours, the computation takes a fraction of the time of `KNNImputer`.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours from which a missing value is imputed. For a missing value of feature j
        in sample i, the neighbours are the most similar features that are observed in sample i, or
        the most similar samples in which feature j is observed.
    over : {"features", "samples"}, default="features"
        Whether the neighbours are features or samples.

        - "features": a missing value is replaced by the mean of the nearest features in the same
          sample. The distances between features are computed from the data passed to `fit`.
        - "samples": a missing value is replaced by the mean of the same feature in the nearest
          samples. The neighbours are samples of the data passed to `fit`.

    Attributes
    ----------
    n_missing_ : int
        Number of missing values in the data passed to `fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    sklearn.impute.KNNImputer : Nearest-neighbour imputation over samples.

    Notes
    -----
    The distance between two features is their mean squared difference over the samples in which
    both features are observed. The distance between two samples is their mean squared difference
    over the features that are observed in both samples. Among equally distant neighbours, those
    with the smallest indices are used. For some missing values, no neighbour has a defined
    distance. Such a value is replaced by a mean of observed values: with `over="features"`, those
    of the same sample; with `over="samples"`, those of the same feature in the data passed to
    `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.preprocessing import NeighborImputer
    >>> X = [[1.0, 1.1, 9.0], [2.0, 2.1, 8.0], [3.0, np.nan, 7.0]]
    >>> NeighborImputer(n_neighbors=1).fit_transform(X)[2]
    array([3., 3., 7.])
    """

    def __init__(
        self, n_neighbors: int = 5, over: Literal["features", "samples"] = "features"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.over = over

    @property
    def new_sample_use(self) -> NewSampleUse:
        """How the step is applied to new samples, given what a saved result contains."""
        return "imputation"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the data from which the nearest neighbours are determined.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN marks a missing value.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : NeighborImputer
            Fitted transformer.

        Raises
        ------
        ValueError
            If a feature or a sample has no observed value, or if X is not numeric or contains
            infinity.
        ParameterError
            If a parameter is invalid.
        """
        check_option("over", self.over, ("features", "samples"))
        check_integer("n_neighbors", self.n_neighbors, low=1, high=None, advice="5 is usual.")
        X = self._validate(X, reset=True)
        missing = np.isnan(X)
        empty = missing.all(axis=0)
        if empty.any():
            raise ValueError(
                "Every feature needs an observed value, but X has "
                f"{format_count(empty.sum(), 'feature')} without one, first feature "
                f"{self._feature_label(empty.argmax())}. Drop such features before imputing."
            )
        _refuse_empty_samples(missing)
        self.n_missing_ = int(missing.sum())
        self._fit_X = X.copy()  # a copy, since the caller may change X after the fit
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return X with its missing values imputed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the same features as in `fit`.

        Returns
        -------
        X_imputed : ndarray of shape (n_samples, n_features)
            Data without missing values.

        Raises
        ------
        ValueError
            If a sample has no observed value, if the features differ from those of the fit, or if X
            is not numeric or contains infinity.
        """
        X = self._validate(X, reset=False)
        missing = np.isnan(X)
        if not missing.any():
            return X
        _refuse_empty_samples(missing)
        X = X.copy()
        known = self._fit_X
        if self.over == "features":
            # Distances between features are computed from the data of the fit, but the imputed
            # values are means of values of X.
            _fill_missing_cells(
                X.T, profiles=known.T, donors=known.T, values=X.T.copy(), k=self.n_neighbors
            )
        else:
            _fill_missing_cells(
                X, profiles=X.copy(), donors=known, values=known, k=self.n_neighbors
            )
        return X

    def describe(self) -> str:
        """Return a description of the step for the log of :func:`prepare`.

        Returns
        -------
        str
            Description without a full stop, such as "imputed 12 missing values from the 5 nearest
            features".
        """
        count = getattr(self, "n_missing_", None)
        missing = "missing values" if count is None else format_count(count, "missing value")
        one = self.over.removesuffix("s")
        return f"imputed {missing} from the {format_count(self.n_neighbors, f'nearest {one}')}"


def _refuse_empty_samples(missing: NDArray[np.bool_]) -> None:
    """Raise ValueError if a sample has no observed value; `missing` marks the missing values."""
    empty = missing.all(axis=1)
    if empty.any():
        raise ValueError(
            "Every sample needs an observed value, but X has "
            f"{format_count(empty.sum(), 'sample')} without one, first sample {empty.argmax()}. "
            "Drop such samples before imputing."
        )


def _fill_missing_cells(
    target: NDArray[Any],
    *,
    profiles: NDArray[Any],
    donors: NDArray[Any],
    values: NDArray[Any],
    k: int,
) -> None:
    """Replace the missing values of `target`, in place, by means over the nearest donors.

    To impute column j of row i, the donors whose value in `values[:, j]` is observed are sorted by
    the distance between their row of `donors` and `profiles[i]`. The missing value is set to the
    mean of `values[:, j]` over the k nearest of these donors.

    Parameters
    ----------
    target : ndarray of shape (n_rows, n_columns)
        Data whose missing values are replaced.
    profiles : ndarray of shape (n_rows, n_compared)
        Values by which the rows of `target` are compared with the donors.
    donors : ndarray of shape (n_donors, n_compared)
        Values by which the donors are compared with the rows of `target`.
    values : ndarray of shape (n_donors, n_columns)
        Values over which the means are taken. If the neighbours are samples, `values` equals
        `donors`. If the neighbours are features, `values` contains the values of the features in
        the samples to be imputed.
    k : int
        Number of neighbours.
    """
    rows = np.flatnonzero(np.isnan(target).any(axis=1))
    # The columns are shifted towards zero, since the distances then lose fewer digits to
    # cancellation. Shifting does not change the distances. Each column is shifted by one of its
    # observed values, so integers remain integers. Sums of integers are exact, so equal distances
    # are recognised as equal.
    first = (~np.isnan(donors)).argmax(axis=0)
    shift = donors[first, np.arange(donors.shape[1])].astype(np.float64)
    B, N = _split_observed(donors - shift)
    right = np.hstack([N, B, B * B]).T
    step = max(1, _BLOCK_PAIRS // len(donors))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        A, M = _split_observed(profiles[block] - shift)
        distances = _squared_distances(np.hstack([A * A, -2.0 * A, M]), right, common=M @ N.T)
        part = target[block]
        i, columns = np.nonzero(np.isnan(part))
        part[i, columns] = _neighbor_means(distances, i, columns=columns, values=values, k=k)
        target[block] = part


def _split_observed(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Return X with missing values replaced by 0, and the indicators of observed values.

    An indicator is 1 if the value is observed, and 0 if the value is missing. Indicators are in
    single precision, in which matrix products are computed faster. Counts up to 2^24 are exact.
    """
    observed = ~np.isnan(X)
    return np.where(observed, X, 0.0), observed.astype(np.float32)


def _squared_distances(
    left: NDArray[np.float64], right: NDArray[np.float64], *, common: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the mean squared difference between each row and each donor.

    The mean is taken over the columns that are observed in both the row and the donor. If there are
    no such columns, infinity is returned. The squared difference between a value a of the row and a
    value b of the donor is a^2 - 2ab + b^2. The matrix product of `left` and `right` sums these
    three terms over the columns that are observed in both.

    Parameters
    ----------
    left : ndarray of shape (n_rows, 3 * n_compared)
        Values a^2, values -2a and indicators of observed values of the rows, side by side.
    right : ndarray of shape (3 * n_compared, n_donors)
        Indicators of observed values, values b and values b^2 of the donors, one above the other.
    common : ndarray of shape (n_rows, n_donors)
        Number of columns that are observed in both the row and the donor.

    Returns
    -------
    distances : ndarray of shape (n_rows, n_donors)
        Mean squared differences.
    """
    out: NDArray[np.float64] = left @ right
    np.maximum(out, 0.0, out=out)  # rounding errors can make the sum negative
    out[common == 0] = np.inf
    out /= np.maximum(common, 1.0)
    return out


def _neighbor_means(
    distances: NDArray[np.float64],
    i: NDArray[np.intp],
    *,
    columns: NDArray[np.intp],
    values: NDArray[Any],
    k: int,
) -> NDArray[np.float64]:
    """Return, for each missing value, the mean over the k nearest donors.

    Only donors with an observed value in the column of the missing value are used.

    Parameters
    ----------
    distances : ndarray of shape (n_rows, n_donors)
        Distances between rows and donors.
    i, columns : ndarray of shape (n_cells,)
        Row and column of each missing value.
    values : ndarray of shape (n_donors, n_columns)
        Values of the donors.
    k : int
        Number of neighbours.

    Returns
    -------
    means : ndarray of shape (n_cells,)
        Mean for each missing value.
    """
    observed = 1.0 - np.isnan(values).mean()
    # With at least 4 k candidates, it is likely that k of them are observed in the column of a
    # missing value.
    n_wanted = max(4 * k, min(int(_N_CANDIDATES / observed), _MAX_CANDIDATES))
    near, near_distances = _nearest_donors(distances, min(n_wanted, distances.shape[1]))
    means, is_exact = np.empty(len(i)), np.empty(len(i), dtype=bool)
    step = max(1, _BLOCK_PAIRS // near.shape[1])
    for start in range(0, len(i), step):
        cells = slice(start, start + step)
        rows = i[cells]
        candidates = values[near[rows], columns[cells, None]].astype(np.float64)
        means[cells], is_exact[cells] = _means_over_candidates(
            candidates, near_distances[rows], k=k
        )
    for row in np.unique(i[~is_exact]):
        remaining = np.flatnonzero(~is_exact & (i == row))
        means[remaining] = _means_over_all_donors(
            distances[row], values[:, columns[remaining]], k=k
        )
    return means


def _nearest_donors(
    distances: NDArray[np.float64], n_candidates: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the indices and the distances of the `n_candidates` nearest donors of each row.

    Both arrays have the shape (n_rows, n_candidates). Each row is sorted by increasing distance.
    """
    near = np.argpartition(distances, n_candidates - 1, axis=1)[:, :n_candidates]
    near.sort(axis=1)  # the stable sort below then orders equal distances by index
    near_distances = np.take_along_axis(distances, near, axis=1)
    order = np.argsort(near_distances, axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(
        near_distances, order, axis=1
    )


def _means_over_candidates(
    candidates: NDArray[np.float64], distances: NDArray[np.float64], *, k: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the means over the k nearest observed candidates, and whether each is exact.

    The candidates are the nearest donors. A mean is exact if it equals the mean over the k nearest
    of all observed donors. This is certain if k observed candidates are nearer than the last
    candidate. Otherwise, a donor that is not a candidate may belong to the k nearest observed
    donors.

    Parameters
    ----------
    candidates : ndarray of shape (n_cells, n_candidates)
        Values of the candidates, nearest candidate first; NaN if missing.
    distances : ndarray of shape (n_cells, n_candidates)
        Distances of the candidates.
    k : int
        Number of neighbours.

    Returns
    -------
    means : ndarray of shape (n_cells,)
        Mean for each missing value.
    is_exact : ndarray of shape (n_cells,)
        Whether each mean is exact.
    """
    usable = ~np.isnan(candidates) & np.isfinite(distances)
    chosen = usable & (usable.cumsum(axis=1) <= k)
    is_exact = (chosen & (distances < distances[:, -1:])).sum(axis=1) == k
    means = np.where(chosen, candidates, 0.0).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    return means, is_exact


def _means_over_all_donors(
    distances: NDArray[np.float64], values: NDArray[Any], *, k: int
) -> NDArray[np.float64]:
    """Return the mean of each column over the k donors that are nearest to one row.

    Only donors with an observed value in the column are used. If all distances of these donors are
    infinite, the mean is taken over all observed values of the column.

    Parameters
    ----------
    distances : ndarray of shape (n_donors,)
        Distances between the row and the donors.
    values : ndarray of shape (n_donors, n_columns)
        Values of the donors.
    k : int
        Number of neighbours.

    Returns
    -------
    means : ndarray of shape (n_columns,)
        Mean of each column.
    """
    order = np.argsort(distances, kind="stable")
    order = order[np.isfinite(distances[order])]  # infinite if no column is observed in both
    means = np.empty(values.shape[1])
    for j, column in enumerate(values.T):
        chosen = order[~np.isnan(column[order])][:k]
        means[j] = column[chosen].mean() if len(chosen) else np.nanmean(column)
    return means
