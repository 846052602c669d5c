"""COSA, clustering objects on subsets of attributes."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Mask
from mrshc.core.cosa.sample_weights import CosaResult, cosa_distances, feature_scales
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.trees.cluster_centres import cluster_centres
from mrshc.core.trees.tree import EUCLIDEAN_LINKAGES, LINKAGES, Linkage, agglomerate
from mrshc.estimators.base import TreeCutter, all_constant_error, no_common_feature_error
from mrshc.validation.estimator_data import check_samples
from mrshc.validation.parameters import (
    check_integer_or_keyword,
    check_n_jobs,
    check_number,
    check_option,
)

# Linkages that are defined for any dissimilarity.
_LINKAGES = tuple(linkage for linkage in LINKAGES if linkage not in EUCLIDEAN_LINKAGES)
# Range of `scale`. Scaled differences are of the order of 1. With a scale outside of this range,
# each sample would have one feature with a weight, or all weights would be equal.
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-3, 1e3
# A mean weight that is smaller than 1 / p by this fraction is regarded as equal to 1 / p. The value
# is far above rounding errors, and far below differences of interest.
_RELATIVE_ROUNDING = 1e-9


class COSA(TreeCutter):
    r"""Clustering objects on subsets of attributes (COSA) of Friedman and Meulman.

    In COSA [1]_, every sample has its own weights of the features. A feature has a large weight for
    a sample if its values hardly differ between the sample and its nearest neighbours. The clusters
    of a tree on the resulting distances may therefore differ in different features. No weight is
    exactly zero, unless a feature cannot be scaled: COSA weights features but does not select them.

    Parameters
    ----------
    scale : float, default=0.2
        Scale :math:`\lambda` of the weights, from 0.001 to 1000. With a small scale, the weights of
        a sample are concentrated on few features. With a large scale, all weights are nearly equal.
    n_neighbors : int or "auto", default="auto"
        Number of nearest neighbours that determine the weights of a sample, less than the number of
        samples. "auto" is the square root of the number of samples, rounded down.
    linkage : {"single", "complete", "average", "weighted"}, default="average"
        Linkage criterion of the tree, as in :func:`scipy.cluster.hierarchy.linkage`. The other
        linkages are defined for Euclidean distances only.
    n_clusters : int or None, default=None
        Number of clusters into which the tree is cut. If None, the tree is built but not cut.
    n_jobs : int or None, default=None
        Number of workers, as in joblib: -1 means all processors, and None means 1 unless a
        :obj:`joblib.parallel_config` context sets another number. The number of workers does not
        affect the result.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample. Clusters are numbered 0, 1, ... in the order of the leaves of the
        tree, from left to right. Defined only if `n_clusters` is not None.
    dissimilarity_ : ndarray of shape (n_samples, n_samples)
        Distances between the samples, on which the tree is built.
    feature_weights_ : ndarray of shape (n_samples, n_features_in_)
        Weights of the features for each sample. The weights of a sample sum to 1.
    mean_feature_weights_ : ndarray of shape (n_features_in_,)
        Mean of `feature_weights_` over the samples.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the weights converged within 100 iterations.
    n_features_selected_ : int
        Number of features whose mean weight is at least average. The method `get_support` returns a
        mask of these features; see Notes.
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
    mrshc.compare : Runs several methods on the same data.

    Notes
    -----
    The difference of the samples i and j in feature k is
    :math:`d_{ijk} = 1.35 |x_{ik} - x_{jk}| / (q_{3k} - q_{1k})`, where :math:`q_{1k}` and
    :math:`q_{3k}` are the :math:`\lfloor n/4 \rfloor`-th and the :math:`\lfloor 3n/4 \rfloor`-th
    smallest value of the feature. All weights start at 1/p. Each iteration computes the distances

    .. math::

        D_{ij} = -\frac{p}{\nu_{ij}} \eta S_{ij} \log \left( \frac{1}{S_{ij}}
        \sum_k v_{ijk} e^{-d_{ijk}/\eta} \right), \quad
        v_{ijk} = \max(w_{ik}, w_{jk}), \quad S_{ij} = \sum_k v_{ijk},

    where the sums are over the :math:`\nu_{ij}` features that both samples have. The weights
    :math:`w_{ik}` are then set proportional to :math:`\exp(-m_{ik}/\lambda)`, where :math:`m_{ik}`
    is the :math:`\lfloor K/2 + 1 \rfloor`-th smallest :math:`d_{ijk}` among the K nearest
    neighbours j of sample i. In iteration t = 0, 1, ..., :math:`\eta = \lambda (1 + 0.1 t)`. The
    weights have converged if their mean change in 11 successive iterations is at most
    :math:`10^{-5}`. The change is :math:`\sum_{ik} |\Delta w_{ik}| / (2n(1 - 1/p))`, and is
    examined after every 11 iterations. The numbers 1.35, 0.1, 11, 100 and :math:`10^{-5}` and the
    defaults of `scale` and `n_neighbors` are those of the R package rCOSA. `dissimilarity_`
    contains the distances of the last iteration. They belong to the weights before the last update,
    which equal `feature_weights_` once the weights do not change any more.

    `get_support`, `transform` and `n_features_selected_` refer to the features whose mean weight is
    at least 1/p, the weight that all features would have if they were equally important. This is a
    summary of the weights. The tree is built on all features, and `markers` treats all of them as
    features on which the tree is built. The additional trees that `markers` needs are built on
    absolute differences with the mean weights.

    A feature cannot be scaled if its quartiles are equal. The weights of such a feature are zero,
    and the result does not depend on it; p is the number of the other features.

    Missing values (NaN) are allowed. The quartiles of a feature are computed from its observed
    values, :math:`m_{ik}` from those of the K neighbours that have feature k. The weight is 1/p if
    the sample or all of its neighbours lack the feature.

    The time is proportional to the number of pairs of samples times the number of features. The
    memory is a small multiple of that of X in double precision.

    References
    ----------
    .. [1] Friedman, J. H. and Meulman, J. J. (2004). Clustering objects on subsets of attributes
       (with discussion). Journal of the Royal Statistical Society B 66(4), 815-849.
       https://doi.org/10.1111/j.1467-9868.2004.02059.x

    Examples
    --------
    >>> from mrshc import COSA
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)  # features 0 to 49 are informative
    >>> model = COSA(n_clusters=3).fit(data.X)
    >>> model.feature_weights_.shape
    (60, 500)
    >>> weights = model.mean_feature_weights_
    >>> bool(weights[:50].mean() > weights[50:].mean())
    True
    """

    # Distance of the additional trees that the method `markers` builds, not a parameter.
    metric = "cityblock"

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
            Data with at least 3 samples and 2 features; NaN marks a missing value. Data that are
            out-of-core, sparse or on a device are loaded into memory, since the weights need as
            much memory as the data.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : COSA
            Fitted estimator.

        Raises
        ------
        ValueError
            If X is invalid, if the quartiles of every feature are equal, or if two samples have no
            observed feature in common.
        ParameterError
            If a parameter is invalid.
        """
        data = check_samples(self, X)
        n, p = data.shape
        linkage: Linkage = check_option("linkage", self.linkage, _LINKAGES)
        n_clusters = self._check_n_clusters(n)
        settings = self._check_settings(n)
        values = data.values if data.in_memory else data.columns(np.arange(p))
        scales = feature_scales(values)
        is_scaled: Mask = scales > 0
        _refuse_unscaled_features(values, is_scaled)
        if not is_scaled.all():
            values = values[:, is_scaled]
        _refuse_disjoint_samples(values)
        with limit_blas_to_one_thread():  # rounding errors depend on the number of BLAS threads
            result = cosa_distances(values, scales[is_scaled], **settings)
        self._store_result(result, is_scaled)
        weights = self.mean_feature_weights_
        support = weights * is_scaled.sum() >= 1.0 - _RELATIVE_ROUNDING
        self._scales = scales
        self._store_tree(agglomerate(result.distances, linkage), support)
        self._store_cut(n_clusters)
        centres = None
        if n_clusters is not None:
            # The data are in memory, so they are not read again from a file.
            part = ArrayMatrix(values)
            whole = cluster_centres(
                part,
                self.labels_,
                features=np.arange(values.shape[1]),
                metric="cityblock",
                weights=self._tree_feature_weights(),
            )
            centres = replace(whole, features=np.flatnonzero(is_scaled))
        self._store_centres(centres)
        return self

    def _check_settings(self, n: int) -> dict[str, Any]:
        """Return the settings of the algorithm; raise ParameterError if one of them is invalid."""
        advice = "The default is 'auto', the square root of the number of samples."
        n_neighbors = check_integer_or_keyword(
            "n_neighbors", self.n_neighbors, "auto", low=1, high=n - 1, advice=advice
        )
        limits: Any = {"low": _SMALLEST_SCALE, "high": _LARGEST_SCALE}
        return {
            "scale": check_number("scale", self.scale, **limits, advice="The default is 0.2."),
            "n_neighbors": isqrt(n) if n_neighbors is None else n_neighbors,
            "n_jobs": check_n_jobs(self.n_jobs),
        }

    def _store_result(self, result: CosaResult, is_scaled: Mask) -> None:
        """Set the fitted attributes that describe distances and weights."""
        self.dissimilarity_: Float = result.distances
        self.feature_weights_: Float = result.weights
        if not is_scaled.all():
            self.feature_weights_ = np.zeros((len(result.weights), is_scaled.size))
            self.feature_weights_[:, is_scaled] = result.weights
        self.mean_feature_weights_: Float = self.feature_weights_.mean(axis=0)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self._is_scaled = is_scaled

    def sample_distances(self, X: Any) -> Float:
        """Return the pairwise distances of the samples, from which the tree is built.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_samples)
            The attribute `dissimilarity_`.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        """
        self.data_of_fit(X)  # raises ValueError if X cannot be the data of the fit
        return self.dissimilarity_

    def _tree_features(self) -> Mask:
        return self._is_scaled

    def _tree_feature_weights(self) -> Float:
        # Absolute differences of unscaled data are weighted, so the weights include the scales.
        return self.mean_feature_weights_[self._is_scaled] / self._scales[self._is_scaled]

    def _distance_weights(self) -> Float:
        # The features are multiplied by the square roots of these weights.
        return self.mean_feature_weights_[self._support] / self._scales[self._support] ** 2


def _refuse_unscaled_features(X: NDArray[Any], is_scaled: Mask) -> None:
    """Raise ValueError if the quartiles of every feature are equal."""
    if is_scaled.any():
        return
    if (np.nanmin(X, axis=0) == np.nanmax(X, axis=0)).all():
        raise all_constant_error(X.shape[1])
    raise ValueError(
        "X must have a feature whose quartiles differ, but most values of each of its "
        f"{X.shape[1]} features are equal. COSA divides by the quartile range; use another method."
    )


def _refuse_disjoint_samples(X: NDArray[Any]) -> None:
    """Raise ValueError if two samples have no observed feature in common."""
    is_observed = (~np.isnan(X)).astype(np.float64)
    if is_observed.all():
        return
    disjoint = np.argwhere(is_observed @ is_observed.T == 0.0)
    if disjoint.size:
        raise no_common_feature_error(*disjoint[0].tolist())
