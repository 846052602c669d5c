"""Imputation by the nearest features or samples."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.metrics.pairwise import nan_euclidean_distances

from mrshc.preprocessing.steps import Step, format_count
from mrshc.validation import check_integer, check_option


class NeighborImputer(OneToOneFeatureMixin, Step):
    """Replace each missing value by a mean over the nearest features or samples.

    Distances are mean squared differences over what is observed in both. With `over="samples"`, the
    result is that of :class:`sklearn.impute.KNNImputer`; with `over="features"`, it is that for the
    transposed data. Where no neighbour has a distance, the mean of all observed values is taken.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours. For a missing value of feature j in sample i, these are the nearest
        features that are observed in sample i, or the nearest samples of the fit in which feature j
        is observed. Of equal distances, the first are used.
    over : {"features", "samples"}, default="features"
        What the neighbours are. Distances between features are those in the data of the fit.

    Attributes
    ----------
    n_missing_ : int
        Number of missing values in the data of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.preprocessing import NeighborImputer
    >>> X = [[1.0, 1.1, 9.0], [2.0, 2.1, 8.0], [3.0, np.nan, 7.0]]
    >>> NeighborImputer(n_neighbors=1).fit_transform(X)[2]
    array([3., 3., 7.])
    """

    new_samples = "imputation"

    def __init__(
        self, n_neighbors: int = 5, over: Literal["features", "samples"] = "features"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.over = over

    def _describe(self) -> str:
        count = getattr(self, "n_missing_", None)
        missing = "missing values" if count is None else format_count(count, "missing value")
        nearest = format_count(self.n_neighbors, f"nearest {self.over.removesuffix('s')}")
        return f"imputed {missing} from the {nearest}"

    def _learn(self, X: np.ndarray) -> None:
        check_option("over", self.over, ("features", "samples"))
        check_integer("n_neighbors", self.n_neighbors, low=1, advice="5 is usual.")
        if (empty := np.isnan(X).all(axis=0)).any():
            count = format_count(empty.sum(), "feature")
            raise ValueError(
                f"Every feature needs an observed value, but X has {count} without one, first "
                f"feature {self.label(empty.argmax())}. Drop such features before imputing."
            )
        self._refuse_empty_samples(X)
        self.n_missing_ = int(np.isnan(X).sum())
        self._known = X.copy()  # the caller may change X

    def _apply(self, X: np.ndarray) -> np.ndarray:
        self._refuse_empty_samples(X)
        if self.over == "samples":
            return _fill(X.copy(), X, self._known, self._known, self.n_neighbors)
        known = self._known.T
        return _fill(X.T.copy(), known, known, X.T, self.n_neighbors).T

    @staticmethod
    def _refuse_empty_samples(X: np.ndarray) -> None:
        if (empty := np.isnan(X).all(axis=1)).any():
            count = format_count(empty.sum(), "sample")
            raise ValueError(
                f"Every sample needs an observed value, but X has {count} without one, first "
                f"sample {empty.argmax()}. Drop such samples before imputing."
            )


def _fill(
    target: np.ndarray, profiles: np.ndarray, donors: np.ndarray, values: np.ndarray, k: int
) -> np.ndarray:
    """Fill missing values of `target`, in place, by means of `values` over the k nearest donors.

    Row i is compared with the donors by `profiles[i]`. Donors whose value is missing are left out.
    """
    rows = np.flatnonzero(np.isnan(target).any(axis=1))
    # Columns are shifted by one of their values: distances then lose no digits to cancellation, and
    # those of integers are exact, so that equal distances are recognised.
    shift = donors[(~np.isnan(donors)).argmax(axis=0), np.arange(donors.shape[1])]
    moved = (donors - shift).astype(np.float64)
    for block in np.array_split(rows, max(rows.size * len(donors) >> 22, 1)):  # 32 MB each
        if not block.size:
            continue
        distances = nan_euclidean_distances(profiles[block] - shift, moved, squared=True)
        distances[np.isnan(distances)] = np.inf  # no column is observed in both
        for i, row in zip(block, distances, strict=True):
            near = _nearest(row, min(_N_NEAR + 4 * k, row.size))
            for j in np.flatnonzero(np.isnan(target[i])):
                chosen = near[~np.isnan(values[near, j])][:k]
                if chosen.size < k or row[chosen[-1]] == row[near[-1]]:  # others may be as near
                    order = _nearest(row, row.size)
                    chosen = order[~np.isnan(values[order, j])][:k]
                chosen = chosen[np.isfinite(row[chosen])]
                target[i, j] = values[chosen, j].mean() if chosen.size else np.nanmean(values[:, j])
    return target


# So many donors are sorted at first; all of them only if these do not suffice.
_N_NEAR = 64


def _nearest(distances: np.ndarray, count: int) -> np.ndarray:
    """Return the nearest donors in increasing order; of equal distances, the first come first."""
    nearest = np.arange(distances.size)
    if count < distances.size:
        nearest = np.sort(np.argpartition(distances, count - 1)[:count])
    return nearest[np.argsort(distances[nearest], kind="stable")]
