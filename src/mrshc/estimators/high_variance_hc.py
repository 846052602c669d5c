"""Hierarchical clustering on the features of highest variance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.tree import agglomerate
from mrshc.estimators.base import (
    TreeCutter,
    all_constant_error,
    centres_of_cut,
    check_feature_count,
    check_linkage_and_metric,
)
from mrshc.validation.estimator_data import check_samples


class HighVarianceHC(TreeCutter):
    """Hierarchical clustering on the features of highest variance.

    This method is called HC-HMV in [1]_. If all features are selected, it is the same as classical
    hierarchical clustering.

    Parameters
    ----------
    n_features_to_select : int
        Number of features to select. Among features with equal variance, those with the smallest
        indices are selected.
    n_clusters : int or None, default=None
        Number of clusters into which the tree is cut. If None, the tree is built but not cut.
    linkage : str, default="complete"
        Linkage criterion of the tree: "single", "complete", "average", "weighted", "ward",
        "centroid" or "median", as in :func:`scipy.cluster.hierarchy.linkage`.
    metric : {"sqeuclidean", "cityblock", "correlation"}, default="sqeuclidean"
        Distance between samples: the sum of squared ("sqeuclidean") or absolute ("cityblock")
        differences over the selected features, or 1 minus the Pearson correlation of the samples
        over these features ("correlation"), of which there must then be at least 3; see the notes
        of :class:`MrSHC`. Ward's, centroid and median linkage are not defined for "cityblock".

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. Clusters are numbered 0, 1, ... in the order of the leaves of the
        tree, from left to right. Defined only if `n_clusters` is not None.
    n_features_selected_ : int
        Number of features on which the tree is built. The method `get_support` returns a mask of
        these features.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_ : ndarray of shape (n_samples - 1, 2)
        Numbers of the two nodes that each merge joins, as in
        :class:`sklearn.cluster.AgglomerativeClustering`.
    distances_ : ndarray of shape (n_samples - 1,)
        Height of each merge.
    n_leaves_ : int
        Number of leaves of the tree, which equals the number of samples.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is an AnnData object, or a DataFrame whose column
        names are strings.
    sample_names_in_ : ndarray of shape (n_samples,)
        Names of the samples (index of X). Defined only if X is a pandas DataFrame or an AnnData
        object.

    See Also
    --------
    MrSHC : Multi-rank sparse hierarchical clustering.
    SHC : Sparse hierarchical clustering of Witten and Tibshirani.
    mrshc.preprocessing.VarianceFilter : Transformer that selects the same features.

    Notes
    -----
    A feature with a high variance need not differ between clusters, because the variance includes
    the variation within the clusters. The paper [1]_ uses the method as a baseline, with as many
    features as :class:`MrSHC` selects.

    Missing values (NaN) are allowed. The variance of a feature is computed from its observed
    values. Distances between samples are expected distances; see the notes of :class:`MrSHC`.

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
    >>> model.get_support()
    array([ True, False, False])
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
            Data with at least 3 samples and 2 features; NaN marks a missing value. X may be
            out-of-core, sparse or on a device such as a GPU; see :meth:`MrSHC.fit`.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : HighVarianceHC
            Fitted estimator.

        Raises
        ------
        ValueError
            If X is invalid, or if all features are constant.
        ParameterError
            If a parameter is invalid.
        """
        data = check_samples(self, X)
        n, p = data.shape
        linkage, metric = check_linkage_and_metric(self.linkage, self.metric)
        q = check_feature_count(
            "n_features_to_select",
            self.n_features_to_select,
            n_features=p,
            metric=metric,
            advice="With all features, it is classical hierarchical clustering.",
        )
        n_clusters = self._check_n_clusters(n)
        variances = data.variances()
        # If no feature varies, all distances are zero, so every tree would be equally good.
        if not variances.any():
            raise all_constant_error(p)
        support = np.zeros(p, dtype=bool)
        # With a stable sort, the choice among equal variances does not depend on the platform.
        support[np.argsort(-variances, kind="stable")[:q]] = True
        with limit_blas_to_one_thread():
            # Distances computed in single precision would lose digits to cancellation.
            features = np.flatnonzero(support)
            columns = data.columns(features).astype(np.float64)
            distances = complete_missing_cells(columns).distances(metric)
        tree = agglomerate(distances, linkage)
        centres = centres_of_cut(data, tree, n_clusters, features=features, metric=metric)
        self._store_tree(tree, support)
        self._store_cut(n_clusters)
        self._store_centres(centres)
        return self
