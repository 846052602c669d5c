"""Hierarchical clustering on the features of highest variance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mrshc.core.parallel import one_blas_thread
from mrshc.core.robust.missing_values import completed
from mrshc.core.trees.tree import agglomerate
from mrshc.estimators.base import ALL_CONSTANT, TreeCutter, linkage_and_metric
from mrshc.validation.estimator_data import check_samples
from mrshc.validation.parameters import check_integer


class HighVarianceHC(TreeCutter):
    """Hierarchical clustering on the features of highest variance (HC-HMV in the paper).

    With all features it is classical hierarchical clustering.

    Parameters
    ----------
    n_features_to_select : int
        Number of features to keep. Of features with equal variance the first are kept.
    n_clusters : int or None, default=None
        Number of clusters to cut the tree into; None makes the tree only.
    linkage, metric
        As in :class:`MrSHC`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, if `n_clusters` was given.
    linkage_matrix_, children_, distances_, n_leaves_, n_features_selected_
        As in :class:`MrSHC`.

    Examples
    --------
    >>> from mrshc import HighVarianceHC
    >>> X = [[0, 0, 0], [0, 1, 0], [9, 0, 0], [9, 1, 0]]
    >>> HighVarianceHC(1, n_clusters=2).fit(X).labels_
    array([0, 0, 1, 1])
    """

    def __init__(
        self,
        n_features_to_select: int,
        *,
        n_clusters: int | None = None,
        linkage: str = "complete",
        metric: str = "sqeuclidean",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select the features, build the tree and cut it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples in rows, at least 3, and at least 2 features; NaN marks a missing value. It may
            be stored elsewhere, as in :class:`MrSHC`.
        y : ignored
            There for scikit-learn.

        Returns
        -------
        self : HighVarianceHC
        """
        data = check_samples(self, X)
        n, p = data.shape
        q = check_integer(
            "n_features_to_select",
            self.n_features_to_select,
            low=1,
            high=p,
            advice="All features make classical hierarchical clustering.",
        )
        n_clusters = self._wanted_clusters(n)
        linkage, metric = linkage_and_metric(self.linkage, self.metric)
        variances = data.variances()
        if not variances.any():
            raise ValueError(ALL_CONSTANT.format(p))
        support = np.zeros(p, dtype=bool)
        support[np.argsort(-variances, kind="stable")[:q]] = True
        with one_blas_thread():
            columns = data.columns(np.flatnonzero(support)).astype(np.float64)
            distances = completed(columns).distances(metric)
        self._keep_tree(agglomerate(distances, linkage), support)
        self._keep_cut(n_clusters)
        return self
