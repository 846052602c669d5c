"""Procedures that build a tree from data and return its first split, with a statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.inference.branch_significance import MIN_BRANCH_SAMPLES, MIN_NODE_SAMPLES
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.tree import Metric, agglomerate
from mrshc.estimators.refits import clone_for_refit, fit_observed_features

# Function of the selected features and of the mask of the first branch.
Statistic = Callable[[Float, Mask], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstSplit:
    """First split of a tree whose branches both have enough samples.

    Attributes
    ----------
    statistic : float
        Statistic of the split; NaN if there is no such split.
    rows : ndarray of shape (m,)
        Indices of the samples of the split, without outlying samples.
    is_first : ndarray of bool of shape (m,)
        Mask of the samples of the first branch.
    """

    statistic: float
    rows: Index
    is_first: Mask


class Procedure(Protocol):
    """A way to build a tree from data of shape (n, p)."""

    def split(self, X: NDArray[Any], *, seed: int) -> FirstSplit:
        """Return the first split of the data. `seed` determines the random numbers of a fit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refit:
    """Fit of an estimator, with the selection of the features.

    Attributes
    ----------
    model : TreeClusterer
        Estimator whose parameters are used.
    statistic : callable
        Statistic of a split.
    """

    model: Any
    statistic: Statistic

    def split(self, X: NDArray[Any], *, seed: int) -> FirstSplit:
        """Return the first split of a fit to the data."""
        model = clone_for_refit(self.model, seed=seed)

        def divide(part: NDArray[Any]) -> tuple[Float, Mask]:
            support = fit_observed_features(model, part)
            return compared_columns(model, part, support=support), model.cut(2) == 0

        return _split_without_outliers(X, divide, statistic=self.statistic)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeOfAllFeatures:
    """Tree from all features of the data, without a selection.

    Attributes
    ----------
    model : TreeClusterer
        Estimator whose linkage and metric are used.
    statistic : callable
        Statistic of a split.
    """

    model: Any
    statistic: Statistic

    def split(self, X: NDArray[Any], *, seed: int) -> FirstSplit:
        """Return the first split of the tree; `seed` is not used."""

        def divide(part: NDArray[Any]) -> tuple[Float, Mask]:
            distances = complete_missing_cells(part).distances(self.model.metric)
            columns = _normalise_rows(_fill_missing(part), self.model.metric)
            return columns, agglomerate(distances, self.model.linkage).cut(2) == 0

        return _split_without_outliers(X, divide, statistic=self.statistic)


def _split_without_outliers(
    X: NDArray[Any],
    divide: Callable[[NDArray[Any]], tuple[Float, Mask]],
    *,
    statistic: Statistic,
) -> FirstSplit:
    """Return the first split in which both branches have enough samples.

    `divide` returns the selected features of data and the mask of the first branch. If a branch is
    too small, its samples are left out and the data are divided again, because features that were
    selected for a few outlying samples do not show clusters of the others.
    """
    rows = np.arange(len(X))
    while rows.size >= MIN_NODE_SAMPLES:
        columns, is_first = divide(X[rows])
        n_first = int(is_first.sum())
        if min(n_first, rows.size - n_first) >= MIN_BRANCH_SAMPLES:
            value = statistic(columns, is_first)
            return FirstSplit(statistic=value, rows=rows, is_first=is_first)
        rows = rows[is_first == (2 * n_first > rows.size)]
    return FirstSplit(statistic=np.nan, rows=rows[:0], is_first=np.empty(0, dtype=bool))


def compared_columns(model: Any, X: NDArray[Any], *, support: Mask) -> Float:
    """Return the selected features of X as they are compared by the distances of a fitted model.

    They are multiplied by their weights, if the model has weights. For correlation distances, each
    sample is centred and scaled.
    """
    columns = _fill_missing(X[:, support])
    weights = model._distance_weights()
    if weights is not None:
        columns *= np.sqrt(weights)
    return _normalise_rows(columns, model.metric)


def _normalise_rows(columns: Float, metric: Metric) -> Float:
    """Return samples of mean zero and length one for correlation distances, else unchanged."""
    if metric != "correlation":
        return columns
    centred = columns - columns.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return centred / np.where(lengths > 0.0, lengths, 1.0)


def _fill_missing(columns: NDArray[Any]) -> Float:
    """Return the columns with missing values replaced by the means.

    A missing value then contributes nothing to the projection of its sample.
    """
    columns = columns.astype(np.float64)
    is_missing = np.isnan(columns)
    if not is_missing.any():
        return columns
    # The mean of a column without values would be NaN.
    means = np.nansum(columns, axis=0) / (~is_missing).sum(axis=0).clip(min=1)
    return np.where(is_missing, means, columns)
