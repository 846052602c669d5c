"""What the estimators share: a tree on selected features, and how parameters are read."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.conversion import stored_matrix, table_in_memory
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import one_blas_thread
from mrshc.core.robust.missing_values import completed
from mrshc.core.trees.tree import EUCLIDEAN_LINKAGES, LINKAGES, METRICS, Linkage, Metric, Tree
from mrshc.errors import Parameter, ParameterError, PythonOnly, Sentence, Setting
from mrshc.estimators.marker_table import marker_table
from mrshc.validation.estimator_data import check_n_features, check_samples, forget
from mrshc.validation.parameters import (
    check_increasing,
    check_integer,
    check_integer_or,
    check_number,
    check_option,
    check_seed,
)
from mrshc.validation.tables import check_columns

if TYPE_CHECKING:
    import pandas as pd

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

    linkage: Any
    metric: Any

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

    def sample_distances(self, X: Any) -> Float:
        """Return the distances between samples that the tree is built on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_samples)
            In the selected features; where cells are missing, what is expected of them.
        """
        data = self.data_of_fit(X)
        columns = data.columns(np.flatnonzero(self._support)).astype(np.float64)
        with one_blas_thread():
            return completed(columns, apart=self._outlying).distances(self.metric)

    @property
    def _outlying(self) -> Index:
        return getattr(self, "outlier_samples_", np.empty(0, np.intp))

    def markers(self, X: Any, *, k: int | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Return the features that mark each cluster, and those that tell each split apart.

        A feature that helped to make a cluster would always seem to mark it. So it is tested, by
        ranks, against the cluster as trees without the feature see it: ten trees, each on nine
        tenths of the selected features. Features that were not selected are tested against the
        clusters themselves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit.
        k : int or None, default=None
            Cut the tree into so many clusters first; None takes those of the fit.
        alpha : float, default=0.05
            Largest q-value (Benjamini and Hochberg, within each cluster and each split) of a
            feature to be listed; 1 lists all of them.

        Returns
        -------
        markers : DataFrame
            A row for each feature of each contrast, the largest effect first: `contrast`
            ("cluster": its samples against all others; "split": the two branches of a node),
            `node` (scipy's number), `inside` and `outside` (the clusters on either side, as a
            text), `n_inside`, `n_outside`, `feature` (its column), `name`, `selected`,
            `mean_inside`, `mean_outside`, `effect_size` (the difference of the means in standard
            deviations within the two groups), `p_value`, `q_value`.
        """
        data = self.data_of_fit(X)
        alpha = check_number("alpha", alpha, low=0.0, high=1.0, advice="The default is 0.05.")
        return marker_table(
            data,
            tree=self._tree,
            labels=self._labels_at(k),
            support=self._support,
            weights=self._weights(),
            outlying=self._outlying,
            names=getattr(self, "feature_names_in_", None),
            linkage=self.linkage,
            metric=self.metric,
            alpha=alpha,
        )

    def transform(self, X: Any) -> Any:
        """Return the selected features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples with the features of the fit.

        Returns
        -------
        X : array-like of shape (n_samples, n_features_selected_)
            The columns of `get_support()`; in memory, wherever X is stored.
        """
        check_is_fitted(self)
        if (data := stored_matrix(X)) is None:
            return super().transform(check_columns(table_in_memory(X)))
        check_n_features(self, data.shape[1])
        return data.columns(np.flatnonzero(self._support))

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Return the data of the fit as the tree was built on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data of the fit.

        Returns
        -------
        data : DataMatrix
            The same; with `robust`, winsorised. Data that are not in memory are not read.
        """
        check_is_fitted(self)
        data = check_samples(self, X, reset=False)
        if data.shape[0] != self.n_leaves_:
            raise ValueError(
                f"X must be the data of the fit, with {self.n_leaves_} samples, got "
                f"{data.shape[0]}."
            )
        return data

    def _labels_at(self, k: int | None) -> Labels:
        if k is not None:
            return self.cut(k)
        if not hasattr(self, "labels_"):
            raise ParameterError(
                "markers needs clusters, but {n_clusters} was None. Give {k}.",
                n_clusters=Parameter("n_clusters"),
                k=Parameter("k"),
            )
        labels: Labels = self.labels_
        return labels

    def _weights(self) -> Float | None:
        """Return the weights of the selected features in the distances; None: all the same."""
        return None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self._support


class TreeCutter(TreeClusterer):
    """A tree without clusters of its own: it is cut into `n_clusters`, if that is given."""

    n_clusters: int | None

    def _wanted_clusters(self, n_samples: int) -> int | None:
        advice = Sentence("{none}", none=PythonOnly("Give None to make the tree only."))
        limits: Any = {"low": 1, "high": n_samples, "advice": advice}
        return check_integer_or("n_clusters", self.n_clusters, None, **limits)

    def _keep_cut(self, n_clusters: int | None) -> None:
        if n_clusters is not None:
            self.labels_ = self.cut(n_clusters)
        else:
            forget(self, "labels_")

    def fit_predict(self, X: Any, y: Any = None) -> Labels:
        """Fit and return `labels_`; needs `n_clusters`."""
        if self.n_clusters is None:
            raise ParameterError(
                "fit_predict needs {n_clusters}, got None. {advice}",
                n_clusters=Parameter("n_clusters"),
                advice="Set it, or fit and cut(k).",
            )
        return self.fit(X, y).labels_


def keep_n_passes(estimator: Any, n_passes: int | None) -> None:
    """Store the number of passes over the data; None for data in memory that need none."""
    if n_passes is None:
        forget(estimator, "n_passes_")
    else:
        estimator.n_passes_ = n_passes


def linkage_and_metric(linkage: Any, metric: Any) -> tuple[Linkage, Metric]:
    """Return a linkage and a metric that go together."""
    check_option("metric", metric, METRICS)
    check_option("linkage", linkage, LINKAGES)
    if linkage in EUCLIDEAN_LINKAGES and metric != "sqeuclidean":
        raise ParameterError(
            "{linkage} is defined for {metric} only, got {value!r}. {advice}",
            linkage=Setting("linkage", linkage),
            metric=Setting("metric", "sqeuclidean"),
            value=metric,
            advice="Choose another linkage or that metric.",
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
    return int(check_seed(random_state).randint(np.iinfo(np.int32).max))
