"""What the estimators share: a tree on selected features, and how parameters are read."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mrshc.core.arrays import Labels, Mask
from mrshc.core.tree import EUCLIDEAN_LINKAGES, LINKAGES, METRICS, Linkage, Metric, Tree
from mrshc.validation import check_increasing, check_integer, check_integer_or, check_option

# The paper's candidates, for data with at least a hundred features, and ours for fewer.
_CANDIDATES = (10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 250, 300, 350, 400, 450, 500)
_FEW_FEATURES = 100
_SMALL_CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 40)

ALL_CONSTANT = (
    "X must have a feature that varies, but all {} of its features are constant. Check that "
    "samples are in rows and features in columns."
)


class TreeClusterer(SelectorMixin, ClusterMixin, BaseEstimator):
    """What every estimator here ends with: selected features and a tree on them."""

    def _keep_tree(self, tree: Tree, support: Mask) -> None:
        self._tree = tree
        self._support = support
        self.linkage_matrix_ = tree.linkage_matrix
        self.children_ = tree.linkage_matrix[:, :2].astype(np.intp)
        self.distances_ = tree.linkage_matrix[:, 2].copy()
        self.n_leaves_ = tree.n_samples
        self.n_features_selected_ = int(support.sum())

    def cut(self, k: int) -> Labels:
        """Cut the tree into k clusters: undo its last k - 1 merges.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to the number of samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels 0..k-1, numbered by first appearance.
        """
        check_is_fitted(self)
        advice = "A tree has no more clusters than samples."
        return self._tree.cut(check_integer("k", k, low=1, high=self.n_leaves_, advice=advice))

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self._support


class TreeCutter(TreeClusterer):
    """A tree without clusters of its own: it is cut into `n_clusters`, if that is given."""

    n_clusters: int | None

    def _wanted_clusters(self, n_samples: int) -> int | None:
        advice = "Give None to make the tree only."
        limits: Any = {"low": 1, "high": n_samples, "advice": advice}
        return check_integer_or("n_clusters", self.n_clusters, None, **limits)

    def _keep_cut(self, n_clusters: int | None) -> None:
        if n_clusters is not None:
            self.labels_ = self.cut(n_clusters)
        elif hasattr(self, "labels_"):  # of an earlier fit
            del self.labels_

    def fit_predict(self, X: Any, y: Any = None) -> Labels:
        """Fit and return `labels_`; needs `n_clusters`."""
        if self.n_clusters is None:
            raise ValueError("fit_predict needs n_clusters, got None. Set it, or fit and cut(k).")
        return self.fit(X, y).labels_


def linkage_and_metric(linkage: Any, metric: Any) -> tuple[Linkage, Metric]:
    """Return a linkage and a metric that go together."""
    check_option("metric", metric, METRICS)
    check_option("linkage", linkage, LINKAGES)
    if linkage in EUCLIDEAN_LINKAGES and metric != "sqeuclidean":
        raise ValueError(
            f"linkage={linkage!r} is defined for metric='sqeuclidean' only, got {metric!r}. "
            "Choose another linkage or that metric."
        )
    return linkage, metric


def feature_targets(wanted: Any, *, n_features: int, n_constant: int) -> tuple[int, ...]:
    """Return the numbers of features to try."""
    n_varying = n_features - n_constant
    if n_varying == 0:
        raise ValueError(ALL_CONSTANT.format(n_features))
    if isinstance(wanted, str) and wanted == "auto":
        return _default_targets(n_varying)
    advice = "Lower it, or relax the filter on the features."
    if isinstance(wanted, Number):
        limits: Any = {"low": 1, "high": n_features, "advice": advice}
        return (check_integer("n_features_to_select", wanted, **limits),)
    return check_increasing("n_features_to_select", wanted, low=1, high=n_features, advice=advice)


def _default_targets(p: int) -> tuple[int, ...]:
    if p >= _FEW_FEATURES:
        return tuple(q for q in _CANDIDATES if q < p)
    half = max(2, (p + 1) // 2)
    return tuple(q for q in _SMALL_CANDIDATES if q <= min(half, p)) or (p,)


def seed_of(random_state: Any) -> int:
    """Return the number from which all streams of a fit are derived."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
