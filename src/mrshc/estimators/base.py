"""Base classes of the estimators, and the validation of their common parameters."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.conversion import as_stored_matrix, unwrap_anndata
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.tree import EUCLIDEAN_LINKAGES, LINKAGES, METRICS, Linkage, Metric, Tree
from mrshc.errors import Parameter, ParameterError, PythonOnly, Sentence, Setting
from mrshc.estimators.marker_table import marker_table
from mrshc.validation.estimator_data import check_n_features, check_samples, delete_attributes
from mrshc.validation.parameters import (
    check_increasing_integers,
    check_integer,
    check_integer_or_keyword,
    check_number,
    check_option,
    check_seed,
)
from mrshc.validation.tables import check_numeric_columns

if TYPE_CHECKING:
    import pandas as pd

# Candidates for the number of features with "auto". The first list is that of the paper, for its
# data with hundreds of features or more.
_PAPER_CANDIDATES = (10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 250, 300, 350, 400, 450, 500)
# With fewer features than this, most candidates of the paper would select nearly all features.
_FEW_FEATURES = 100
# Denser for small numbers, where one feature more or less changes the tree most. The paper gives
# none for so few features.
_SMALL_CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 40)


class TreeClusterer(SelectorMixin, ClusterMixin, BaseEstimator):
    """Base class of estimators that select features and build a tree of the samples on them.

    Attributes
    ----------
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_ : ndarray of shape (n_samples - 1, 2)
        Nodes joined by each merge, as in :class:`sklearn.cluster.AgglomerativeClustering`.
    distances_ : ndarray of shape (n_samples - 1,)
        Height of each merge.
    n_leaves_ : int
        Number of leaves of the tree, one for each sample.
    n_features_selected_ : int
        Number of features on which the tree is built.
    """

    linkage: Any
    metric: Any

    def _store_tree(self, tree: Tree, support: Mask) -> None:
        """Set the fitted attributes of a tree on the features of the mask."""
        self._tree = tree
        self._support = support
        self.linkage_matrix_ = tree.linkage_matrix
        self.children_ = tree.linkage_matrix[:, :2].astype(np.intp)
        # A copy, so that changing the heights does not change the tree.
        self.distances_ = tree.linkage_matrix[:, 2].copy()
        self.n_leaves_ = tree.n_samples
        self.n_features_selected_ = int(support.sum())

    def cut(self, k: int) -> Labels:
        """Cut the tree into k clusters by undoing its last k - 1 merges.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to the number of samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each sample, numbered 0, 1, ..., k - 1 in order of first appearance.
        """
        check_is_fitted(self)
        advice = "A tree has no more clusters than samples."
        return self._tree.cut(check_integer("k", k, low=1, high=self.n_leaves_, advice=advice))

    def sample_distances(self, X: Any) -> Float:
        """Return the distances between samples on which the tree is built.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data that were passed to `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_samples)
            Distances in the selected features; expected distances if values are missing.
        """
        data = self.data_of_fit(X)
        # Only the selected columns are read, which are few even if X is out-of-core.
        columns = data.columns(np.flatnonzero(self._support)).astype(np.float64)
        with limit_blas_to_one_thread():
            return complete_missing_cells(columns, excluded=self._outlier_rows).distances(
                self.metric
            )

    @property
    def _outlier_rows(self) -> Index:
        """Indices of the outlying samples; empty unless a robust fit found some."""
        return getattr(self, "outlier_samples_", np.empty(0, np.intp))

    def markers(self, X: Any, *, k: int | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Return the features that differ between clusters, and between the branches of each split.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data that were passed to `fit`.
        k : int or None, default=None
            Number of clusters into which the tree is cut first. None uses `labels_`.
        alpha : float, default=0.05
            Largest q-value of the features to list; 1 lists all of them.

        Returns
        -------
        markers : DataFrame
            One row for each listed feature of each contrast, in decreasing order of the absolute
            effect size within a contrast, with the columns

            - `contrast` : "cluster" for the samples of a cluster against all others, "split" for
              the two branches of a node;
            - `node` : number of the node in scipy's format;
            - `inside`, `outside` : clusters on either side of the contrast, as text;
            - `n_inside`, `n_outside` : numbers of samples on either side;
            - `feature`, `name` : index and name of the feature;
            - `selected` : whether the tree is built on the feature;
            - `mean_inside`, `mean_outside` : mean of the feature on either side;
            - `effect_size` : difference of the means in standard deviations within the two sides;
            - `p_value`, `q_value` : of a rank test; q-values are computed within each contrast.

        Notes
        -----
        A feature that contributed to a cluster differs from it by construction. The selected
        features are therefore tested against clusters from trees built without them: ten trees,
        each on nine tenths of the selected features. In each, the branch that shares most samples
        with the cluster takes its place. Features that were not selected are tested against the
        clusters themselves. q-values are those of Benjamini and Hochberg [1]_.

        References
        ----------
        .. [1] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a
           practical and powerful approach to multiple testing. Journal of the Royal Statistical
           Society B 57(1), 289-300. https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
        """
        data = self.data_of_fit(X)
        alpha = check_number("alpha", alpha, low=0.0, high=1.0, advice="The default is 0.05.")
        return marker_table(
            data,
            tree=self._tree,
            labels=self._labels_of_cut(k),
            support=self._support,
            weights=self._distance_weights(),
            outlying=self._outlier_rows,
            names=getattr(self, "feature_names_in_", None),
            linkage=self.linkage,
            metric=self.metric,
            alpha=alpha,
        )

    def transform(self, X: Any) -> Any:
        """Return the selected features of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples with the features of the fit.

        Returns
        -------
        X_selected : array-like of shape (n_samples, n_features_selected_)
            The columns given by `get_support()`, in memory even if X is out-of-core.
        """
        check_is_fitted(self)
        # None for arrays and tables, whose type `set_output` of scikit-learn decides on.
        if (data := as_stored_matrix(X)) is None:
            return super().transform(check_numeric_columns(unwrap_anndata(X)))
        check_n_features(self, data.shape[1])
        return data.columns(np.flatnonzero(self._support))

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Validate that X may be the data of the fit, and return it as the tree was built on it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data that were passed to `fit`.

        Returns
        -------
        data : DataMatrix
            The data; winsorised if the fit was robust.

        Raises
        ------
        ValueError
            If the number of samples or features, or their names, differ from those of the fit.
        """
        check_is_fitted(self)
        data = check_samples(self, X, reset=False)
        # Values are not compared: the data of the fit are not stored.
        if data.shape[0] != self.n_leaves_:
            raise ValueError(
                f"X must be the data of the fit, with {self.n_leaves_} samples, got "
                f"{data.shape[0]}. Pass the data that were passed to fit."
            )
        return data

    def _labels_of_cut(self, k: int | None) -> Labels:
        """Return the labels of the cut into k clusters, or those of the fit for None."""
        if k is not None:
            return self.cut(k)
        if not hasattr(self, "labels_"):
            raise ParameterError(
                "markers needs clusters, but {n_clusters} was None in the fit. Give {k}.",
                n_clusters=Parameter("n_clusters"),
                k=Parameter("k"),
            )
        labels: Labels = self.labels_
        return labels

    def _distance_weights(self) -> Float | None:
        """Return the weights of the selected features in the distances; None if all are equal."""
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
    """Base class of estimators that cut the tree into `n_clusters` clusters, if that is given."""

    n_clusters: int | None

    def _check_n_clusters(self, n_samples: int) -> int | None:
        """Return the number of clusters, or None for the tree only."""
        # None can be given in Python only, so that the command line leaves this advice out.
        advice = Sentence("{none}", none=PythonOnly("Give None to make the tree only."))
        limits: Any = {"low": 1, "high": n_samples, "advice": advice}
        return check_integer_or_keyword("n_clusters", self.n_clusters, None, **limits)

    def _store_cut(self, n_clusters: int | None) -> None:
        """Set `labels_` to the cut into `n_clusters`, or delete those of an earlier fit."""
        if n_clusters is not None:
            self.labels_ = self.cut(n_clusters)
        else:
            delete_attributes(self, "labels_")

    def fit_predict(self, X: Any, y: Any = None) -> Labels:
        """Fit the estimator and return the cluster of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in `fit`.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            `labels_`. Requires `n_clusters`.
        """
        # Refused before the fit, which may take long.
        if self.n_clusters is None:
            raise ParameterError(
                "fit_predict needs {n_clusters}, got None. {advice}",
                n_clusters=Parameter("n_clusters"),
                advice="Set it, or call fit and then cut(k).",
            )
        return self.fit(X, y).labels_


def store_n_passes(estimator: Any, n_passes: int | None) -> None:
    """Set `n_passes_` of an estimator; None deletes it, since data in memory need no passes."""
    if n_passes is None:
        delete_attributes(estimator, "n_passes_")
    else:
        estimator.n_passes_ = n_passes


def check_linkage_and_metric(linkage: Any, metric: Any) -> tuple[Linkage, Metric]:
    """Return a linkage and a metric, after checking that the linkage is defined for the metric."""
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


def candidate_feature_counts(wanted: Any, *, n_features: int, n_constant: int) -> tuple[int, ...]:
    """Return the candidate numbers of features.

    Parameters
    ----------
    wanted : int, sequence of int or "auto"
        Value of the parameter `n_features_to_select`.
    n_features : int
        Number of features of X.
    n_constant : int
        Number of these that are constant, which are never selected.

    Returns
    -------
    targets : tuple of int
        Strictly increasing.
    """
    # Constant features are never selected, so that they do not count.
    n_varying = n_features - n_constant
    if n_varying == 0:
        raise all_constant_error(n_features)
    if isinstance(wanted, str) and wanted == "auto":
        return _default_feature_counts(n_varying)
    advice = "Lower it, or relax the filter on the features."
    if isinstance(wanted, Number):
        limits: Any = {"low": 1, "high": n_features, "advice": advice}
        return (check_integer("n_features_to_select", wanted, **limits),)
    return check_increasing_integers(
        "n_features_to_select", wanted, low=1, high=n_features, advice=advice
    )


def all_constant_error(n_features: int) -> ValueError:
    """Return the error of data in which no feature varies."""
    return ValueError(
        f"X must have a feature that varies, but all {n_features} of its features are constant. "
        "Check that samples are in rows and features in columns."
    )


def _default_feature_counts(p: int) -> tuple[int, ...]:
    """Return the candidate numbers of features for p features that vary."""
    if p >= _FEW_FEATURES:
        return tuple(q for q in _PAPER_CANDIDATES if q < p)
    # Half of the features at most: with nearly all of them there would be no selection.
    half = max(2, (p + 1) // 2)
    return tuple(q for q in _SMALL_CANDIDATES if q <= min(half, p)) or (p,)


def derive_seed(random_state: Any) -> int:
    """Return the seed from which the random streams of all tasks of a fit are spawned."""
    # Of a RandomState instance, one number is drawn: a second fit with it differs, as usual in
    # scikit-learn.
    return int(check_seed(random_state).randint(np.iinfo(np.int32).max))
