"""Nearest-neighbour imputation that is fast for data with many features."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from mrshc.core.array_types import Float, Index, Mask
from mrshc.preprocessing.steps import Step, format_count
from mrshc.validation.parameters import check_integer, check_option

# Number of pairs whose distances are held at a time: 16 MB in double precision, and a few times
# that while they are computed. Not tuned: results do not depend on it.
_BLOCK_PAIRS = 1 << 21

# Number of nearest donors that are examined first, more if many values are missing, up to the
# second number. Sorting all donors is needed only if these do not suffice. Results do not depend on
# them, except for rounding.
_N_CANDIDATES, _MAX_CANDIDATES = 32, 256


class NeighborImputer(Step, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each missing value by the mean of its nearest neighbours.

    The result is that of :class:`sklearn.impute.KNNImputer`, over samples or over features, in a
    fraction of the time if there are thousands of possible neighbours.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours. Only neighbours that are observed in the cell in question count.
    over : {"features", "samples"}, default="features"
        Kind of neighbours.

        - "features": a missing value of a feature is imputed from the values of the most similar
          features in the same sample. Similarity is computed from the samples seen in `fit`.
        - "samples": a missing value of a sample is imputed from the values of the same feature in
          the most similar samples seen in `fit`.

    Attributes
    ----------
    n_missing_ : int
        Number of missing values in the data of `fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.

    See Also
    --------
    sklearn.impute.KNNImputer : Nearest-neighbour imputation over samples.

    Notes
    -----
    The distance of two neighbours is the Euclidean distance over the cells observed in both, scaled
    up for the missing ones. Of equally distant neighbours, the first are taken. If no neighbour has
    an observed cell in common, the mean of all observed values of the sample (over features) or of
    the feature (over samples) is used.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the data in which neighbours are searched.

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
        self._fit_X = X.copy()  # the caller may change X after the fit
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Impute the missing values of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the features of the fit.

        Returns
        -------
        X_imputed : ndarray of shape (n_samples, n_features)
            Data without missing values.
        """
        X = self._validate(X, reset=False)
        missing = np.isnan(X)
        if not missing.any():
            return X
        _refuse_empty_samples(missing)
        X = X.copy()
        known = self._fit_X
        if self.over == "features":
            # Features are compared over the samples of the fit, but donate values of X.
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
            Description without a full stop, such as "floor 100, ceiling 16000".
        """
        count = getattr(self, "n_missing_", None)
        missing = "missing values" if count is None else format_count(count, "missing value")
        one = self.over.removesuffix("s")
        return f"imputed {missing} from the {format_count(self.n_neighbors, f'nearest {one}')}"


def _refuse_empty_samples(missing: Mask) -> None:
    """Refuse samples without an observed value, which have no neighbours."""
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
    """Fill the missing cells of `target` in place.

    Cell (i, j) is set to the mean of `values[:, j]` over the k rows of `donors` that are nearest to
    `profiles[i]`, among those with an observed value in column j.

    Parameters
    ----------
    target : ndarray of shape (n_rows, n_columns)
        Data with missing cells.
    profiles : ndarray of shape (n_rows, n_compared)
        Values by which rows of `target` are compared with donors.
    donors : ndarray of shape (n_donors, n_compared)
        Values by which donors are compared.
    values : ndarray of shape (n_donors, n_columns)
        Values that the donors contribute. Over samples, they are `donors`; over features, they are
        the same features in the samples to impute.
    k : int
        Number of neighbours.
    """
    rows = np.flatnonzero(np.isnan(target).any(axis=1))
    # Distances are invariant to a shift of the columns, and lose fewer digits to cancellation near
    # zero. The shift is an observed value, so that integers remain integers: their sums are exact,
    # and ties are recognised.
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


def _split_observed(X: Float) -> tuple[Float, NDArray[np.float32]]:
    """Return the values, 0 where missing, and the indicators of observed cells.

    Indicators are in single precision, which counts up to 2^24 cells exactly and multiplies faster.
    """
    observed = ~np.isnan(X)
    return np.where(observed, X, 0.0), observed.astype(np.float32)


def _squared_distances(left: Float, right: Float, *, common: NDArray[np.float32]) -> Float:
    """Return mean squared differences over common cells; infinity if there are none.

    The factors hold the terms of a^2 - 2ab + b^2, such that their product sums each term over the
    cells observed in both rows.

    Parameters
    ----------
    left : ndarray of shape (n_rows, 3 * n_compared)
        a^2, -2a and the indicators of the rows.
    right : ndarray of shape (3 * n_compared, n_donors)
        Indicators, b and b^2 of the donors.
    common : ndarray of shape (n_rows, n_donors)
        Number of cells observed in both.
    """
    out: Float = left @ right
    np.maximum(out, 0.0, out=out)  # rounding errors can make the sum negative
    out[common == 0] = np.inf
    out /= np.maximum(common, 1.0)
    return out


def _neighbor_means(
    distances: Float, i: Index, *, columns: Index, values: NDArray[Any], k: int
) -> Float:
    """Return, for each cell, the mean over its k nearest donors that are observed in its column.

    Parameters
    ----------
    distances : ndarray of shape (n_rows, n_donors)
        Distances of rows and donors.
    i, columns : ndarray of shape (n_cells,)
        Row and column of each missing cell.
    values : ndarray of shape (n_donors, n_columns)
        Values of the donors.
    k : int
        Number of neighbours.

    Returns
    -------
    means : ndarray of shape (n_cells,)
    """
    observed = 1.0 - np.isnan(values).mean()
    # Four times k, so that k of them are very likely observed in the column.
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


def _nearest_donors(distances: Float, n_candidates: int) -> tuple[Index, Float]:
    """Return the nearest donors of each row and their distances, in increasing order.

    Both have the shape (n_rows, n_candidates).
    """
    near = np.argpartition(distances, n_candidates - 1, axis=1)[:, :n_candidates]
    near.sort(axis=1)  # then the stable sort takes the first of equally distant donors
    near_distances = np.take_along_axis(distances, near, axis=1)
    order = np.argsort(near_distances, axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(
        near_distances, order, axis=1
    )


def _means_over_candidates(candidates: Float, distances: Float, *, k: int) -> tuple[Float, Mask]:
    """Return the means over the k nearest observed candidates, and whether they are exact.

    A mean is exact if k observed candidates are nearer than the last candidate. Donors that are not
    candidates may be as near as the last one.

    Parameters
    ----------
    candidates : ndarray of shape (n_cells, n_candidates)
        Values of the nearest donors, nearest first; NaN if missing.
    distances : ndarray of shape (n_cells, n_candidates)
        Their distances.
    k : int
        Number of neighbours.

    Returns
    -------
    means : ndarray of shape (n_cells,)
    is_exact : ndarray of shape (n_cells,)
    """
    usable = ~np.isnan(candidates) & np.isfinite(distances)
    chosen = usable & (usable.cumsum(axis=1) <= k)
    is_exact = (chosen & (distances < distances[:, -1:])).sum(axis=1) == k
    means = np.where(chosen, candidates, 0.0).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    return means, is_exact


def _means_over_all_donors(distances: Float, values: NDArray[Any], *, k: int) -> Float:
    """Return the means over the k nearest of all donors of one row, one for each column.

    Parameters
    ----------
    distances : ndarray of shape (n_donors,)
        Distances of the donors.
    values : ndarray of shape (n_donors, n_columns)
        Values of the donors.
    k : int
        Number of neighbours.

    Returns
    -------
    means : ndarray of shape (n_columns,)
    """
    order = np.argsort(distances, kind="stable")
    order = order[np.isfinite(distances[order])]  # donors without a common cell are no neighbours
    means = np.empty(values.shape[1])
    for j, column in enumerate(values.T):
        chosen = order[~np.isnan(column[order])][:k]
        means[j] = column[chosen].mean() if len(chosen) else np.nanmean(column)
    return means
