"""Base classes of the estimators, and checks of the parameters that they have in common."""

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

# Candidate numbers of features for `n_features_to_select="auto"`. They are the candidates of
# Zhang and Zamar (2014), whose data have hundreds of features or more.
_PAPER_CANDIDATES = (10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 250, 300, 350, 400, 450, 500)
# Below this number of features, most candidates above would select nearly all features, so the
# candidates below are used instead.
_FEW_FEATURES = 100
# Candidates for data with few features. They are denser among small numbers, where adding or
# removing one feature changes the tree most. The paper does not consider data with so few features.
_SMALL_CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 40)


class TreeClusterer(SelectorMixin, ClusterMixin, BaseEstimator):
    """Base class of estimators that select features and cluster the samples hierarchically.

    The tree of the samples is built on the selected features.

    Attributes
    ----------
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_ : ndarray of shape (n_samples - 1, 2)
        Numbers of the two nodes joined by each merge, as in
        :class:`sklearn.cluster.AgglomerativeClustering`.
    distances_ : ndarray of shape (n_samples - 1,)
        Height of each merge.
    n_leaves_ : int
        Number of leaves of the tree, which equals the number of samples.
    n_features_selected_ : int
        Number of features on which the tree is built.
    """

    linkage: Any
    metric: Any

    def _store_tree(self, tree: Tree, support: Mask) -> None:
        """Set the fitted attributes that describe a tree built on the features in `support`."""
        self._tree = tree
        self._support = support
        self.linkage_matrix_ = tree.linkage_matrix
        self.children_ = tree.linkage_matrix[:, :2].astype(np.intp)
        # The heights are copied, so changing `distances_` does not change the tree.
        self.distances_ = tree.linkage_matrix[:, 2].copy()
        self.n_leaves_ = tree.n_samples
        self.n_features_selected_ = int(support.sum())

    def cut(self, k: int) -> Labels:
        """Return the clusters that result from undoing the last k - 1 merges of the tree.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to the number of samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each sample. Clusters are numbered 0, 1, ..., k - 1 in order of first
            appearance.

        Raises
        ------
        ParameterError
            If `k` is not an integer from 1 to the number of samples.
        """
        check_is_fitted(self)
        advice = "A tree has no more clusters than samples."
        return self._tree.cut(check_integer("k", k, low=1, high=self.n_leaves_, advice=advice))

    def sample_distances(self, X: Any) -> Float:
        """Return the distances between samples on which the tree is built.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_samples)
            Distances computed from the selected features. If values are missing, these are expected
            distances, which take the uncertainty of the imputed values into account.
        """
        data = self.data_of_fit(X)
        # Only the selected columns are read. They are few, so they fit into memory even if X does
        # not.
        columns = data.columns(np.flatnonzero(self._support)).astype(np.float64)
        with limit_blas_to_one_thread():
            return complete_missing_cells(columns, excluded=self._outlier_rows).distances(
                self.metric
            )

    @property
    def _outlier_rows(self) -> Index:
        """Indices of the outlying samples; empty unless a fit with `robust=True` detected any."""
        return getattr(self, "outlier_samples_", np.empty(0, np.intp))

    def markers(self, X: Any, *, k: int | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Return the features that differ between clusters, and between the branches of each split.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.
        k : int or None, default=None
            Number of clusters into which the tree is cut. If None, the clusters in `labels_` are
            used.
        alpha : float, default=0.05
            Largest q-value (p-value adjusted for the false discovery rate) of the features to list.
            With 1, all features are listed.

        Returns
        -------
        markers : DataFrame
            Table of contrasts and features. A contrast compares two groups of samples, called
            inside and outside. There is one row for each contrast and each feature that is listed
            for it. Within a contrast, the rows are in decreasing order of the absolute effect size.
            The columns are

            - `contrast` : "cluster" if a cluster is compared with all other samples, "split" if the
              two branches of a node are compared;
            - `node` : number, in scipy's format, of the node that is the cluster or that is split;
            - `inside`, `outside` : labels of the clusters in each group, as text;
            - `n_inside`, `n_outside` : number of samples in each group, without outlying samples;
            - `feature`, `name` : index and name of the feature;
            - `selected` : whether the feature is one of those on which the tree is built;
            - `mean_inside`, `mean_outside` : mean of the feature in each group;
            - `effect_size` : difference of the two means, divided by the pooled standard deviation
              within the groups;
            - `p_value`, `q_value` : p-value of a rank test, and the q-value, which is computed from
              the p-values of all features in the same contrast.

        Notes
        -----
        A feature on which the tree is built differs between the clusters by construction, so a test
        of the feature against these clusters would be biased. Therefore the selected features are
        divided into ten folds, and the features in a fold are tested against the tree that is built
        on the other folds. In that tree, the branch whose samples are most similar to those of the
        cluster (by the Jaccard index) replaces the cluster; the p-value is 1 if no branch is
        similar enough. Features that were not selected are tested against the clusters themselves.
        The q-values are those of Benjamini and Hochberg [1]_.

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
            Data with the same features as in `fit`.

        Returns
        -------
        X_selected : array-like of shape (n_samples, n_features_selected_)
            The columns of X selected by `get_support()`, loaded into memory even if X is
            out-of-core.
        """
        check_is_fitted(self)
        # `as_stored_matrix` returns None for arrays and tables. scikit-learn transforms these, so
        # `set_output` determines the type of the result.
        if (data := as_stored_matrix(X)) is None:
            return super().transform(check_numeric_columns(unwrap_anndata(X)))
        check_n_features(self, data.shape[1])
        return data.columns(np.flatnonzero(self._support))

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Return X in the form on which the tree was built, after checking its shape and names.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.

        Returns
        -------
        data : DataMatrix
            The validated data. Subclasses may transform the data, as :class:`MrSHC` does with
            `robust=True`.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        """
        check_is_fitted(self)
        data = check_samples(self, X, reset=False)
        # The values cannot be compared, because the data of the fit are not stored.
        if data.shape[0] != self.n_leaves_:
            raise ValueError(
                f"X must be the data of the fit, with {self.n_leaves_} samples, got "
                f"{data.shape[0]}. Pass the data that were passed to fit."
            )
        return data

    def _labels_of_cut(self, k: int | None) -> Labels:
        """Return the labels of the cut into k clusters, or `labels_` if k is None.

        Raise ParameterError if k is None and `labels_` does not exist.
        """
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
        """Return the weights of the selected features in the distances; None for equal weights."""
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
    """Base class of estimators that build a tree and can cut it into `n_clusters` clusters."""

    n_clusters: int | None

    def _check_n_clusters(self, n_samples: int) -> int | None:
        """Return `n_clusters` after checking its range; None means that the tree is not cut.

        Raise ParameterError if `n_clusters` is neither None nor an integer from 1 to `n_samples`.
        """
        # None can be passed only in Python, so messages of the command line omit this advice.
        advice = Sentence("{none}", none=PythonOnly("Give None to make the tree only."))
        limits: Any = {"low": 1, "high": n_samples, "advice": advice}
        return check_integer_or_keyword("n_clusters", self.n_clusters, None, **limits)

    def _store_cut(self, n_clusters: int | None) -> None:
        """Set `labels_` to the cut into `n_clusters` clusters.

        If `n_clusters` is None, delete the `labels_` of an earlier fit.
        """
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
            Cluster of each sample, as in `labels_`.

        Raises
        ------
        ParameterError
            If `n_clusters` is None.
        """
        # This is checked before the fit, which may take a long time.
        if self.n_clusters is None:
            raise ParameterError(
                "fit_predict needs {n_clusters}, got None. {advice}",
                n_clusters=Parameter("n_clusters"),
                advice="Set it, or call fit and then cut(k).",
            )
        return self.fit(X, y).labels_


def store_n_passes(estimator: Any, n_passes: int | None) -> None:
    """Set `n_passes_`, the number of passes over the data, or delete it if `n_passes` is None.

    `n_passes` is None for data in memory, whose passes are not counted.
    """
    if n_passes is None:
        delete_attributes(estimator, "n_passes_")
    else:
        estimator.n_passes_ = n_passes


def check_linkage_and_metric(linkage: Any, metric: Any) -> tuple[Linkage, Metric]:
    """Return `linkage` and `metric` after checking that both are valid and compatible.

    Raise ParameterError if one of them is unknown, or if the linkage is not defined for the metric.
    """
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
    """Return the candidates for the number of features to select.

    Parameters
    ----------
    wanted : int, sequence of int or "auto"
        Value of the parameter `n_features_to_select`.
    n_features : int
        Number of features of X.
    n_constant : int
        Number of constant features, which are never selected.

    Returns
    -------
    targets : tuple of int
        Candidates, strictly increasing.

    Raises
    ------
    ValueError
        If all features are constant.
    ParameterError
        If `wanted` is invalid.
    """
    # Constant features are never selected, so the candidates of "auto" depend only on the others.
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
    """Return the error to raise if all features of X are constant."""
    return ValueError(
        f"X must have a feature that varies, but all {n_features} of its features are constant. "
        "Check that samples are in rows and features in columns."
    )


def _default_feature_counts(p: int) -> tuple[int, ...]:
    """Return the candidates that "auto" stands for, given p features that are not constant."""
    if p >= _FEW_FEATURES:
        return tuple(q for q in _PAPER_CANDIDATES if q < p)
    # At most half of the features, rounded up, are tried: choosing nearly all features would not be
    # a selection.
    half = max(2, (p + 1) // 2)
    return tuple(q for q in _SMALL_CANDIDATES if q <= min(half, p)) or (p,)


def derive_seed(random_state: Any) -> int:
    """Return the seed from which the random numbers of all tasks of a fit are generated.

    Raise ParameterError if `random_state` is invalid.
    """
    # If `random_state` is a RandomState instance, drawing the seed changes its state. A second
    # fit with the same instance therefore uses another seed, as is usual in scikit-learn.
    return int(check_seed(random_state).randint(np.iinfo(np.int32).max))
