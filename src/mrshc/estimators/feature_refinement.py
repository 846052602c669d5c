"""Refinement: replacement of a feature set by the features associated with the clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_array import centre_array
from mrshc.core.inference.refinement import RefinementResult, refine_feature_set
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.trees.tree import min_features
from mrshc.errors import invalid_parameter_error
from mrshc.estimators.base import check_feature_count, check_linkage_and_metric
from mrshc.validation.estimator_data import check_matrix_with_missing, delete_attributes
from mrshc.validation.parameters import check_number, check_option


class UnsupportedClustersWarning(UserWarning):
    """Warning that the data support fewer clusters than expected, or no clusters.

    Parameters
    ----------
    finding : str
        Sentence that states how many clusters the data support.
    advice : str, default=""
        Sentences that state what `labels_` contains, and what can be done in Python.

    Attributes
    ----------
    finding : str
        First part of the message, which is shown in Python and on the command line.
    advice : str
        Second part of the message, which is shown only in Python.

    See Also
    --------
    MrSHC : Issues this warning from `fit`.
    SHC : Issues this warning from `fit` if `refine=True`.

    Examples
    --------
    >>> from mrshc import UnsupportedClustersWarning
    >>> print(UnsupportedClustersWarning("There is one cluster.", "Use cut(2) to cut the tree."))
    There is one cluster. Use cut(2) to cut the tree.
    """

    def __init__(self, finding: str, advice: str = "") -> None:
        # Both strings are passed to the base class: when an exception is copied or unpickled, it is
        # created again from the arguments that the base class stores.
        super().__init__(finding, advice)
        self.finding = finding
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.finding} {self.advice}".rstrip()


# The same sentence is the warning in Python, and the verdict on the command line and in the report.
NO_SUPPORT = (
    "The clusters are not supported by held-out features: fewer than "
    f"{RefinementSettings().min_features} features are associated with clusters of trees that were "
    "built without them."
)


def no_support_warning(
    *, n_given: int | None, n_expected: int | None = None
) -> UnsupportedClustersWarning:
    """Return, without issuing it, the warning that too few features support the clusters.

    Parameters
    ----------
    n_given : int or None
        Number of clusters that the user gave; None if the user did not give a number.
    n_expected : int or None, default=None
        Number of clusters to cut the tree into, as advice if `n_given` is None; None for no advice.
    """
    advice = ""
    if n_given is None and n_expected is not None:
        # Without a given number, `labels_` assigns all samples to one cluster.
        advice = f"labels_ holds one cluster. Use cut({n_expected}) to cut the tree all the same."
    elif n_given is not None and n_given > 1:
        advice = f"labels_ has all {n_given} clusters asked for."
    return UnsupportedClustersWarning(
        NO_SUPPORT,
        advice=advice,
    )


def refine_features(
    X: Any,
    start: Any,
    *,
    linkage: str = "complete",
    metric: str = "sqeuclidean",
    alpha: float = 0.05,
    max_features: int = 500,
) -> RefinementResult:
    r"""Return all features associated with the clusters of the tree built on a feature set.

    Methods that select features often miss some features that differ between the clusters. The
    refinement consists of the following steps. Trees of the samples are built on the current
    feature set. Every feature is tested for association with the clusters of a tree that was built
    without this feature. The feature set is then replaced by the features with a significant
    association. These steps are repeated until the set hardly changes. With `refine=True`,
    :class:`MrSHC` and :class:`SHC` apply the refinement after their search. With
    `selection="association"`, :class:`MrSHC` applies it to several start sets.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data with at least 3 samples and 2 features; NaN marks a missing value.
    start : array-like of int, or of bool of shape (n_features,)
        Initial feature set, given as indices of features or as a mask.
    linkage : str, default="complete"
        Linkage criterion of the trees: "single", "complete", "average", "weighted", "ward",
        "centroid" or "median".
    metric : {"sqeuclidean", "cityblock", "correlation"}, default="sqeuclidean"
        Distance between samples, as in :class:`MrSHC`. Ward's, centroid and median linkage are not
        defined for "cityblock". With "correlation", `start` and `max_features` must be at least 3
        features.
    alpha : float, default=0.05
        False discovery rate at which a feature counts as associated with the clusters.
    max_features : int, default=500
        Largest number of features in the set that replaces the current set. If more features are
        associated, those with the largest sum of squares between clusters are used.

    Returns
    -------
    RefinementResult
        Object with the following attributes.

        - `supported` : bool or None. True if at least 5 features are associated with the clusters,
          otherwise False. However, the value is None instead of False if the initial set has fewer
          than 5 features, which are too few to decide.
        - `features` : ndarray of int, indices of the features on which to build the final tree. If
          `supported` is not True, these are the features of the initial set.
        - `associated` : ndarray of int, indices of all associated features; empty if `supported` is
          not True.
        - `strength` : float, sum, over the associated features, of the sum of squares between
          clusters; 0 if `supported` is not True.
        - `q_values` : ndarray of shape (n_features,), q-value of each feature: the smallest false
          discovery rate at which the feature counts as associated.
        - `n_rounds` : int, number of rounds. In each round, all features are tested.

    Raises
    ------
    ValueError
        If X is invalid or has fewer than 3 samples.
    ParameterError
        If a parameter is invalid.

    See Also
    --------
    MrSHC : Selects features, and refines them with `refine=True` or `selection="association"`.
    SHC : Weights features, and refines them with `refine=True`.

    Notes
    -----
    A feature that was used to build a tree tends to differ between the clusters of that tree, even
    if the data are pure noise. Every feature is therefore tested with a tree that was built without
    it. Features outside the current set are tested with the tree on the whole set. The features in
    the set are divided into ten folds (or one fold for each feature if there are fewer than ten).
    The features in a fold are tested with the tree on the other folds.

    A tree is cut into 2, 3, ..., 7 clusters (but fewer than the number of samples). For each of the
    m resulting partitions, a one-way analysis of variance on the ranks of the feature gives a
    p-value. The p-values
    :math:`p_1, \ldots, p_m` are combined by the Cauchy combination test [1]_, with the statistic

    .. math::

        T = \frac{1}{m} \sum_{i=1}^{m} \tan\{(1/2 - p_i) \pi\}.

    A feature counts as associated if its q-value, as defined by Benjamini and Hochberg [2]_, is at
    most `alpha`. If more than `max_features` features are associated, those with the largest sum of
    squares between clusters, averaged over the m partitions, form the next set. The features with
    the smallest p-values would all show the clusters that are easiest to see, and no others.

    The iteration stops when a round hardly changes the set: the number of features
    that the old and the new set have in common is then at least 95 % of the size of the larger set.
    It also stops when a set occurs for the second time, when fewer than 5 features are associated,
    and after six rounds. The false discovery rate is not proved to be at most `alpha`.

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
    Starting from 5 of the 50 informative features, the refinement finds 49 of the 50:

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
        max_features=check_feature_count(
            "max_features",
            max_features,
            n_features=None,
            metric=metric,
            advice="The default is 500.",
        ),
    )
    columns = _check_start_columns(start, p)
    if columns.size < min_features(metric):
        raise invalid_parameter_error(
            "start",
            start,
            allowed=f"hold at least {min_features(metric)} columns of X for metric={metric!r}",
            advice="Add columns, or choose another metric.",
        )
    # Centring does not change the ranks on which the tests are based. A constant feature becomes
    # exactly zero, so its p-value is 1.
    matrix = centre_array(data, center="columns", drop_constant=True)
    with limit_blas_to_one_thread():  # rounding errors depend on the number of BLAS threads
        return refine_feature_set(matrix, columns, settings)


def _check_start_columns(start: Any, p: int) -> Index:
    """Return the distinct indices of the initial features, in increasing order.

    Raise ParameterError if `start` is neither a sequence of indices from 0 to p - 1 nor a boolean
    mask of length p, or if `start` selects no feature. Here p is the number of features.
    """
    columns = np.asarray(start)
    if columns.dtype == bool and columns.shape == (p,):
        columns = np.flatnonzero(columns)
    are_indices = columns.ndim == 1 and columns.dtype.kind in "iu" and columns.size > 0
    # numpy counts negative indices from the end, but here a negative index is more likely to be a
    # mistake.
    if not are_indices or columns.min() < 0 or columns.max() >= p:
        raise invalid_parameter_error(
            "start",
            start,
            allowed=f"hold columns of X, from 0 to {p - 1}, or a mask of {p} values with at least "
            "one of them True",
        )
    return np.unique(columns).astype(np.intp)


def refinement_settings(estimator: Any) -> RefinementSettings | None:
    """Return the refinement settings of an estimator, or None if its `refine` is False.

    Raise ParameterError if `refine`, `linkage` or `metric` is invalid.
    """
    if not check_option("refine", estimator.refine, (False, True)):
        return None
    linkage, metric = check_linkage_and_metric(estimator.linkage, estimator.metric)
    return RefinementSettings(linkage=linkage, metric=metric)


def store_refinement(estimator: Any, refined: RefinementResult | None) -> None:
    """Set the fitted attributes that describe a refinement.

    If `refined` is None, delete these attributes, which may exist from an earlier fit.
    """
    if refined is None:
        delete_attributes(estimator, "supported_", "associated_features_", "feature_qvalues_")
        return
    estimator.supported_ = refined.supported
    estimator.associated_features_ = refined.associated
    estimator.feature_qvalues_ = refined.q_values
