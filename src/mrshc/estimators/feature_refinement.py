"""From some features to all that are associated with what they show."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_array import centred_array
from mrshc.core.inference.refinement import Refined, RefineSettings, refine
from mrshc.core.parallel import one_blas_thread
from mrshc.errors import refused
from mrshc.estimators.base import check_linkage_and_metric
from mrshc.validation.estimator_data import check_matrix_with_missing, delete_attributes
from mrshc.validation.parameters import check_integer, check_number, check_option


class UnsupportedClustersWarning(UserWarning):
    """The data support fewer clusters than were asked for, or none.

    Parameters
    ----------
    finding : str
        What the data support, a sentence.
    advice : str, default=""
        What `labels_` holds and what to do in Python, sentences.

    Attributes
    ----------
    finding, advice : str
        As given; the message is both of them.
    """

    def __init__(self, finding: str, advice: str = "") -> None:
        super().__init__(finding, advice)
        self.finding = finding
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.finding} {self.advice}".rstrip()


def no_support_warning(advice: str = "") -> UnsupportedClustersWarning:
    """Return the warning that no features are associated with the clusters."""
    return UnsupportedClustersWarning(
        "There is no structure that other features support: fewer than "
        f"{RefineSettings().fewest} features are associated with what trees without them show.",
        advice=f"labels_ holds one cluster. {advice}".rstrip(),
    )


def refine_features(
    X: Any,
    start: Any,
    *,
    linkage: str = "complete",
    metric: str = "sqeuclidean",
    alpha: float = 0.05,
    max_features: int = 200,
) -> Refined:
    """Return all features that are associated with what some features show.

    What `refine=True` does after the search of :class:`MrSHC`, from any start: each feature is
    tested against trees that never saw it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples in rows, at least 3; NaN marks a missing value.
    start : array-like of int or of bool
        Columns to start with, or a mask over all columns.
    linkage, metric
        As in :class:`MrSHC`.
    alpha : float, default=0.05
        False discovery rate.
    max_features : int, default=200
        The most features, the strongest of the associated ones, that trees are built on.

    Returns
    -------
    Refined
        With `supported`, `features` (to build a tree on), `associated`, `q_values` (one for each
        feature) and `n_rounds`.

    Examples
    --------
    >>> from mrshc import refine_features
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1)  # columns 0 to 49 are useful
    >>> found = refine_features(data.X, start=range(5))
    >>> found.supported, int(data.support[found.associated].sum())
    (True, 49)
    """
    data = check_matrix_with_missing(X)
    n, p = data.shape
    if n < 3:
        raise ValueError(f"X must have at least 3 samples, got {n}.")
    linkage, metric = check_linkage_and_metric(linkage, metric)
    settings = RefineSettings(
        linkage=linkage,
        metric=metric,
        alpha=check_number("alpha", alpha, low=0.0, high=1.0, advice="The default is 0.05."),
        max_features=check_integer(
            "max_features", max_features, low=1, high=None, advice="The default is 200."
        ),
    )
    columns = _check_start_columns(start, p)
    matrix = centred_array(data, center="columns", drop_constant=True)
    with one_blas_thread():
        return refine(matrix, columns, settings)


def _check_start_columns(start: Any, p: int) -> Index:
    given = np.asarray(start)
    if given.dtype == bool and given.shape == (p,):
        given = np.flatnonzero(given)
    inside = given.ndim == 1 and given.dtype.kind in "iu" and given.size > 0
    if not inside or given.min() < 0 or given.max() >= p:
        raise refused(
            "start",
            start,
            allowed=f"hold columns of X, from 0 to {p - 1}, or a mask of {p} values with one of "
            "them True",
        )
    return np.unique(given).astype(np.intp)


def refinement_settings(estimator: Any) -> RefineSettings | None:
    """Return how to refine, if the estimator is asked to."""
    if not check_option("refine", estimator.refine, (False, True)):
        return None
    linkage, metric = check_linkage_and_metric(estimator.linkage, estimator.metric)
    return RefineSettings(linkage=linkage, metric=metric)


def store_refinement(estimator: Any, refined: Refined | None) -> None:
    """Set what a refinement found, or drop that of an earlier fit."""
    if refined is None:
        delete_attributes(estimator, "supported_", "associated_features_", "feature_qvalues_")
        return
    estimator.supported_ = refined.supported
    estimator.associated_features_ = refined.associated
    estimator.feature_qvalues_ = refined.q_values
