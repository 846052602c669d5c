"""Hierarchical clustering on the features of highest variance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mrshc.core import parallel
from mrshc.core.data.matrix import variances
from mrshc.core.missing_values import complete
from mrshc.core.trees import Tree, linkage_matrix
from mrshc.estimators.base import (
    HierarchicalClusterer,
    check_cut,
    check_feature_count,
    check_linkage_and_metric,
    count_varying,
)
from mrshc.validation import check_samples


class HighVarianceHC(HierarchicalClusterer):
    """Hierarchical clustering on the features of highest variance (HC-HMV in [1]_).

    With all features, it is classical hierarchical clustering. A high variance need not be a
    difference between clusters: it includes the variation within them.

    Parameters
    ----------
    n_features_to_select : int
        Number of features. Of equal variances, the first are taken.
    n_clusters : int or None, default=None
        Number of clusters of the cut; None for a tree without clusters.
    linkage : str, default="complete"
        "single", "complete", "average", "weighted", "ward", "centroid" or "median".
    metric : {"sqeuclidean", "cityblock", "correlation"}, default="sqeuclidean"
        Distance of samples in the selected features. Ward's, centroid and median linkage are not
        defined for "cityblock".

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, in the order of the leaves; only if `n_clusters` is given.
    n_features_selected_ : int
        Number of features; `get_support` returns their mask.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in scipy's format; also as `children_`, `distances_` and `n_leaves_`.

    See Also
    --------
    AssociationHC, MrSHC

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745

    Examples
    --------
    >>> from mrshc import HighVarianceHC
    >>> X = [[0, 0, 0], [0, 1, 0], [9, 0, 0], [9, 1, 0]]
    >>> model = HighVarianceHC(1, n_clusters=2).fit(X)
    >>> model.labels_
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
        """Select the features, build the tree, and cut it unless `n_clusters` is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, in any of the forms that :meth:`MrSHC.fit` takes.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        with parallel.threads(1):
            check_linkage_and_metric(self.linkage, self.metric)
            matrix, summary = check_samples(self, X)
            n, p = matrix.shape
            advice = "With all features, it is classical hierarchical clustering."
            q = self.n_features_to_select
            q = check_feature_count("n_features_to_select", q, p, self.metric, advice)
            n_clusters = check_cut(self.n_clusters, n)
            count_varying(summary, "sqeuclidean")
            order = np.argsort(-variances(matrix), kind="stable")
            features = np.sort(order[:q])
            distances = complete(matrix.columns(features)).distances(self.metric)
            tree = Tree(linkage_matrix(distances, self.linkage))
            self._store_tree(tree, features, p)
            self._store_labels(matrix, None if n_clusters is None else tree.cut(n_clusters))
        return self
