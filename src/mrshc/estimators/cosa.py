"""COSA, clustering objects on subsets of attributes."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any, Self

import numpy as np

from mrshc.core import parallel
from mrshc.core.centres import cluster_centres
from mrshc.core.cosa import cosa, feature_scales
from mrshc.core.data.matrix import ArrayMatrix
from mrshc.core.linkages import EUCLIDEAN_LINKAGES, LINKAGES
from mrshc.core.trees import Tree, linkage_matrix
from mrshc.estimators.base import HierarchicalClusterer, check_cut, count_varying
from mrshc.estimators.shc import no_common_feature
from mrshc.validation import (
    check_integer_or,
    check_n_jobs,
    check_number,
    check_option,
    check_samples,
)

_LINKAGES = tuple(linkage for linkage in LINKAGES if linkage not in EUCLIDEAN_LINKAGES)
# Mean weights that are smaller than 1 / p by rounding errors only are regarded as equal to it.
_RELATIVE_ROUNDING = 1e-9


class COSA(HierarchicalClusterer):
    """Clustering objects on subsets of attributes, of Friedman and Meulman [1]_.

    Every sample has its own weights of the features: a feature has a large weight where the sample
    hardly differs from its nearest neighbours. Clusters may therefore differ in different features.
    Features are weighted, not selected.

    Parameters
    ----------
    scale : float, default=0.2
        Scale of the weights, from 0.001 to 1000. With a small scale, the weights of a sample are
        concentrated on few features.
    n_neighbors : int or "auto", default="auto"
        Number of neighbours that determine the weights of a sample. "auto" is the square root of
        the number of samples, rounded down.
    linkage : {"single", "complete", "average", "weighted"}, default="average"
        Linkage of the tree; the others are not defined for these distances.
    n_clusters : int or None, default=None
        Number of clusters of the cut; None for a tree without clusters.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The result does not depend on it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, in the order of the leaves; only if `n_clusters` is given.
    dissimilarity_ : ndarray of shape (n_samples, n_samples)
        Distances of the samples.
    feature_weights_ : ndarray of shape (n_samples, n_features_in_)
        Weights of the features for each sample, which sum to one.
    mean_feature_weights_ : ndarray of shape (n_features_in_,)
        Their means. Features with at least the weight 1 / p count as selected.
    n_iter_, converged_ : int, bool
        Number of iterations, and whether the weights stopped changing.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in scipy's format; also as `children_`, `distances_` and `n_leaves_`.

    See Also
    --------
    AssociationHC, MrSHC, SHC

    References
    ----------
    .. [1] Friedman, J. H. and Meulman, J. J. (2004). Clustering objects on subsets of attributes.
       Journal of the Royal Statistical Society B 66(4), 815-849.
       https://doi.org/10.1111/j.1467-9868.2004.02059.x

    Examples
    --------
    >>> from mrshc import COSA
    >>> from mrshc.datasets import make_simulation_1
    >>> model = COSA(n_clusters=4).fit(make_simulation_1(0, mu=2.0).X)
    >>> model.dissimilarity_.shape
    (60, 60)
    """

    metric = "cityblock"  # of the additional trees of `markers`, not a parameter

    def __init__(
        self,
        *,
        scale: float = 0.2,
        n_neighbors: Any = "auto",
        linkage: str = "average",
        n_clusters: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.scale = scale
        self.n_neighbors = n_neighbors
        self.linkage = linkage
        self.n_clusters = n_clusters
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the weights, build the tree, and cut it unless `n_clusters` is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, in any of the forms that :meth:`MrSHC.fit` takes; they are loaded into memory.
            Every two samples must share an observed feature.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        with parallel.threads(check_n_jobs(self.n_jobs)):
            matrix, summary = check_samples(self, X)
            n, p = matrix.shape
            check_option("linkage", self.linkage, _LINKAGES)
            n_clusters = check_cut(self.n_clusters, n)
            scale = check_number("scale", self.scale, low=1e-3, high=1e3)
            n_neighbors = check_integer_or(
                "n_neighbors", self.n_neighbors, "auto", low=1, high=n - 1
            )
            count_varying(summary, "cityblock")
            values = matrix.values if matrix.in_memory else matrix.columns(np.arange(p))
            scales = feature_scales(values)
            is_scaled = scales > 0
            if not is_scaled.any():
                raise ValueError(
                    "X must have a feature whose quartiles differ, but most values of each of its "
                    f"{p} features are equal. COSA divides by the quartile range; use another "
                    "method."
                )
            values = values[:, is_scaled]
            observed = (~np.isnan(values)).astype(np.float64)
            disjoint = np.argwhere(observed @ observed.T == 0.0)
            if disjoint.size:
                raise no_common_feature(*disjoint[0])
            result = cosa(
                values,
                scales[is_scaled],
                scale=scale,
                n_neighbors=isqrt(n) if n_neighbors is None else n_neighbors,
            )
            self.dissimilarity_ = result.distances
            self._scales, self._is_scaled = scales, is_scaled
            self.feature_weights_ = np.zeros((n, p))
            self.feature_weights_[:, self._is_scaled] = result.weights
            self.mean_feature_weights_ = self.feature_weights_.mean(axis=0)
            self.n_iter_, self.converged_ = result.n_iter, result.converged
            n_scaled = int(self._is_scaled.sum())
            large = self.mean_feature_weights_ * n_scaled >= 1.0 - _RELATIVE_ROUNDING
            tree = Tree(linkage_matrix(result.distances, self.linkage))
            self._store_tree(tree, np.flatnonzero(large), p)
            self._store_labels(matrix, None)
            if n_clusters is not None:
                self.labels_ = self.cut(n_clusters)
                centres = cluster_centres(
                    ArrayMatrix(values),
                    self.labels_,
                    features=np.arange(n_scaled),
                    metric="cityblock",
                    weights=self._tree_weights(),
                )
                self._centres = replace(centres, features=np.flatnonzero(self._is_scaled))
        return self

    def _tree_features(self) -> np.ndarray:
        return self._is_scaled

    def _tree_weights(self) -> np.ndarray:
        # The data are not scaled, so the weights include the scales.
        return self.mean_feature_weights_[self._is_scaled] / self._scales[self._is_scaled]

    def _compared_weights(self) -> np.ndarray:
        return self.mean_feature_weights_[self._support] / self._scales[self._support] ** 2
