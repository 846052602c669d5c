"""Refinement of a feature set to all features associated with its clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_array import centre_array
from mrshc.core.inference.refinement import RefinementResult, RefinementSettings, refine_feature_set
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.errors import invalid_parameter_error
from mrshc.estimators.base import check_linkage_and_metric
from mrshc.validation.estimator_data import check_matrix_with_missing, delete_attributes
from mrshc.validation.parameters import check_integer, check_number, check_option


class UnsupportedClustersWarning(UserWarning):
    """Warning that the data support fewer clusters than requested, or none.

    Parameters
    ----------
    finding : str
        Sentence that says how many clusters the data support.
    advice : str, default=""
        Sentences that say what `labels_` holds, and how to proceed in Python.

    Attributes
    ----------
    finding : str
        First part of the message, which applies in Python and on the command line.
    advice : str
        Second part of the message, which applies in Python only.

    See Also
    --------
    MrSHC : Issues this warning from `fit`.

    Examples
    --------
    >>> from mrshc import UnsupportedClustersWarning
    >>> print(UnsupportedClustersWarning("There is one cluster.", "Use cut(2) to cut the tree."))
    There is one cluster. Use cut(2) to cut the tree.
    """

    def __init__(self, finding: str, advice: str = "") -> None:
        # Both are arguments of the base class, so that a copy or a pickle is complete.
        super().__init__(finding, advice)
        self.finding = finding
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.finding} {self.advice}".rstrip()


def no_support_warning(advice: str = "") -> UnsupportedClustersWarning:
    """Return the warning that too few features are associated with the clusters."""
    return UnsupportedClustersWarning(
        "There is no structure that other features support: fewer than "
        f"{RefinementSettings().min_features} features are associated with what trees without them "
        "show.",
        # The clusters are not supported, so that `labels_` reports none of them.
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
) -> RefinementResult:
    r"""Return all features associated with the clusters of a given feature set.

    A selection of features is often incomplete. The refinement builds trees on the present feature
    set, tests every feature against clusters from trees that do not contain it, and replaces the
    set by the associated features, until the set is stable. :class:`MrSHC` and :class:`SHC` do this
    after their search if `refine=True`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data with at least 3 samples; NaN marks a missing value.
    start : array-like of int, or of bool of shape (n_features,)
        Initial feature set: indices of features, or a mask.
    linkage : str, default="complete"
        Linkage criterion of the trees: "single", "complete", "average", "weighted", "ward",
        "centroid" or "median".
    metric : {"sqeuclidean", "cityblock"}, default="sqeuclidean"
        Distance between samples. Ward's, centroid and median linkage are defined for "sqeuclidean"
        only.
    alpha : float, default=0.05
        False discovery rate of the associated features.
    max_features : int, default=200
        Largest number of features on which trees are built: those of the associated features with
        the smallest p-values.

    Returns
    -------
    RefinementResult
        Object with the attributes

        - `supported` : bool or None. False if fewer than 5 features are associated: the data show
          no structure that features outside the trees support. None in the same case if the
          initial set itself has fewer than 5 features, too few to decide.
        - `features` : ndarray of int, features to build a tree on; the initial set if `supported`
          is not True.
        - `associated` : ndarray of int, all associated features.
        - `q_values` : ndarray of shape (n_features,), smallest false discovery rate at which each
          feature is associated.
        - `n_rounds` : int, number of rounds.

    See Also
    --------
    MrSHC : Selects features, and refines them with `refine=True`.
    SHC : Weights features, and refines them with `refine=True`.

    Notes
    -----
    A feature used to build a tree agrees with its clusters even in pure noise. Features outside the
    present set are tested against the tree on the set. The members of the set are divided into ten
    folds, and the members of a fold are tested against the tree on the other folds.

    A test uses the cuts of the tree into 2 to 6 clusters, each improved by k-means iterations that
    start from the cut. For each cut, the p-value is that of a one-way analysis of variance on
    ranks. The p-values :math:`p_k` of the cuts are combined by the Cauchy combination test [1]_,
    with the statistic

    .. math::

        T = \frac{1}{K} \sum_{k=1}^{K} \tan\{(1/2 - p_k) \pi\}.

    The associated features are those with a q-value of Benjamini and Hochberg [2]_ of at most
    `alpha`. The iteration stops when two successive sets share 95 % of their features, when a set
    occurs again, or after ten rounds. Control of the false discovery rate was verified in
    simulations, but is not proved.

    References
    ----------
    .. [1] Liu, Y. and Xie, J. (2020). Cauchy combination test: a powerful test with analytic
       p-value calculation under arbitrary dependency structures. Journal of the American
       Statistical Association 115(529), 393-402. https://doi.org/10.1080/01621459.2018.1554485
    .. [2] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical
       and powerful approach to multiple testing. Journal of the Royal Statistical Society B 57(1),
       289-300. https://doi.org/10.1111/j.2517-6161.1995.tb02031.x

    Examples
    --------
    From 5 of the 50 informative features to 49 of them:

    >>> from mrshc import refine_features
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1)  # features 0 to 49 are informative
    >>> refined = refine_features(data.X, start=range(5))
    >>> refined.supported, int(data.support[refined.associated].sum())
    (True, 49)
    """
    data = check_matrix_with_missing(X)
    n, p = data.shape
    if n < 3:
        raise ValueError(
            f"X must have at least 3 samples, got {n}. Check that samples are in rows."
        )
    linkage, metric = check_linkage_and_metric(linkage, metric)
    settings = RefinementSettings(
        linkage=linkage,
        metric=metric,
        alpha=check_number("alpha", alpha, low=0.0, high=1.0, advice="The default is 0.05."),
        max_features=check_integer(
            "max_features", max_features, low=1, high=None, advice="The default is 200."
        ),
    )
    columns = _check_start_columns(start, p)
    # Rank tests do not depend on the mean of a feature, and constant features have no ranks.
    matrix = centre_array(data, center="columns", drop_constant=True)
    with limit_blas_to_one_thread():  # sums, and so results, depend on the number of BLAS threads
        return refine_feature_set(matrix, columns, settings)


def _check_start_columns(start: Any, p: int) -> Index:
    """Return the distinct columns of a start set that is given as indices or as a mask."""
    columns = np.asarray(start)
    if columns.dtype == bool and columns.shape == (p,):
        columns = np.flatnonzero(columns)
    are_indices = columns.ndim == 1 and columns.dtype.kind in "iu" and columns.size > 0
    # Negative indices would count from the end in numpy; here they are more likely a mistake.
    if not are_indices or columns.min() < 0 or columns.max() >= p:
        raise invalid_parameter_error(
            "start",
            start,
            allowed=f"hold columns of X, from 0 to {p - 1}, or a mask of {p} values with at least "
            "one of them True",
        )
    return np.unique(columns).astype(np.intp)


def refinement_settings(estimator: Any) -> RefinementSettings | None:
    """Return the settings of the refinement, or None if the estimator has `refine=False`."""
    if not check_option("refine", estimator.refine, (False, True)):
        return None
    linkage, metric = check_linkage_and_metric(estimator.linkage, estimator.metric)
    return RefinementSettings(linkage=linkage, metric=metric)


def store_refinement(estimator: Any, refined: RefinementResult | None) -> None:
    """Set the fitted attributes of a refinement; None deletes those of an earlier fit."""
    if refined is None:
        delete_attributes(estimator, "supported_", "associated_features_", "feature_qvalues_")
        return
    estimator.supported_ = refined.supported
    estimator.associated_features_ = refined.associated
    estimator.feature_qvalues_ = refined.q_values
