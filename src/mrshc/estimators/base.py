"""Base classes of the estimators, and functions that several estimators use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mrshc.core.array_types import Float, Index, Labels, Mask
from mrshc.core.data.conversion import as_stored_matrix
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import limit_blas_to_one_thread
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.trees.cluster_centres import ClusterCentres, cluster_centres
from mrshc.core.trees.tree import (
    EUCLIDEAN_LINKAGES,
    LINKAGES,
    METRICS,
    SQUARED_EUCLIDEAN_METRICS,
    Linkage,
    Metric,
    Tree,
    min_features,
)
from mrshc.errors import Parameter, ParameterError, PythonOnly, Sentence, Setting
from mrshc.estimators.marker_table import marker_table
from mrshc.estimators.model_summary import ModelSummary, summarise
from mrshc.validation.anndata_names import as_named_table, check_names_of_stored_data
from mrshc.validation.estimator_data import check_n_features, check_samples, delete_attributes
from mrshc.validation.feature_order import in_order_of_fit, known_feature_names
from mrshc.validation.new_samples import columns_of_new_samples, refuse_incomparable_samples
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
# If there are fewer non-constant features than this, `_SMALL_CANDIDATES` is used. Most of the
# candidates of the paper are 100 or larger, so they would exceed the number of these features.
_FEW_FEATURES = 100
# Candidates for data with few features. Small numbers are listed without gaps, because adding or
# removing one feature changes the tree most if there are few features. The paper does not consider
# data with so few features.
_SMALL_CANDIDATES = (2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 40)


class FeatureSelector(SelectorMixin):
    """Base class of estimators that select features; `_support` is the mask of these features."""

    _support: Mask

    def transform(self, X: Any) -> Any:
        """Return the selected features of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the same features as the data that were passed to `fit`. The samples may be
            different.

        Returns
        -------
        X_selected : array-like of shape (n_samples, n_features_selected_)
            The selected columns of X, in their original order. They are loaded into memory even if
            X is out-of-core.

        Raises
        ------
        ValueError
            If X is invalid or does not have the features of the fit.
        """
        check_is_fitted(self)
        # `as_stored_matrix` returns None for arrays and tables. For these, the method of
        # scikit-learn is called, so `set_output` determines the type of the result.
        if (data := as_stored_matrix(X)) is None:
            return super().transform(check_numeric_columns(as_named_table(X)))
        check_n_features(self, data.shape[1])
        check_names_of_stored_data(self, X)
        return data.columns(np.flatnonzero(self._support))

    def summary(self) -> ModelSummary:
        """Return a short description of the fitted estimator.

        Returns
        -------
        summary : ModelSummary
            Sizes of the data, the clusters, the selected features and other results of the fit. As
            text, it has one line for each of them; notebooks show it as a table.

        Raises
        ------
        NotFittedError
            If `fit` was not called.
        """
        check_is_fitted(self)
        return summarise(self)

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self._support


class TreeClusterer(FeatureSelector, ClusterMixin, BaseEstimator):
    """Base class of estimators that select features and cluster the samples hierarchically.

    The tree of the samples is built on the selected features.

    Attributes
    ----------
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_ : ndarray of shape (n_samples - 1, 2)
        Numbers of the two nodes that each merge joins, as in
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
    _centres: ClusterCentres

    def _store_tree(self, tree: Tree, support: Mask) -> None:
        """Set the fitted attributes that describe a tree built on the features in `support`."""
        self._tree = tree
        self._support = support
        self.linkage_matrix_ = tree.linkage_matrix
        self.children_ = tree.linkage_matrix[:, :2].astype(np.intp)
        # The heights are copied: otherwise a user who changes `distances_` would change the tree.
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
            Cluster of each sample. Clusters are numbered 0, 1, ..., k - 1 in the order of the
            leaves of the tree, from left to right.

        Raises
        ------
        ParameterError
            If `k` is not an integer from 1 to the number of samples.
        """
        check_is_fitted(self)
        advice = "A tree has no more clusters than samples."
        k = check_integer("k", k, low=1, high=self.n_leaves_, advice=advice)
        return self._tree.number_by_leaves(self._tree.cut(k))

    def sample_distances(self, X: Any) -> Float:
        """Return the pairwise distances of the samples, from which the tree is built.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_samples)
            Distances computed from the selected features. If values are missing, they are imputed,
            and the result contains expected distances, which include the variances of the imputed
            values.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        """
        data = self.data_of_fit(X)
        # Only the selected columns are read. There are few of them, so they fit into memory even if
        # X does not.
        columns = data.columns(np.flatnonzero(self._support)).astype(np.float64)
        with limit_blas_to_one_thread():
            return complete_missing_cells(columns, excluded=self._outlier_rows).distances(
                self.metric
            )

    @property
    def _outlier_rows(self) -> Index:
        """Indices of the outlying samples; empty unless a fit with `robust=True` found some."""
        return getattr(self, "outlier_samples_", np.empty(0, np.intp))

    def markers(self, X: Any, *, k: int | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Return a table of the features that differ between clusters, or between branches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`. If X is a DataFrame and the data of the fit had
            column names, features are matched by name, so the columns may be in any order, and
            other columns are ignored.
        k : int or None, default=None
            Number of clusters into which the tree is cut. If None, the clusters in `labels_` are
            used.
        alpha : float, default=0.05
            A feature is listed for a contrast if its q-value (p-value adjusted for the false
            discovery rate) is at most `alpha`. If `alpha` is 1, all features are listed.

        Returns
        -------
        markers : DataFrame
            Table of contrasts and features. A contrast is a comparison of two groups of samples,
            which are called inside and outside. A contrast has one row for each feature that is
            listed for it, in decreasing order of the absolute effect size. The columns are:

            - `contrast` : "cluster" if a cluster (inside) is compared with all other samples
              (outside); "split" if the two branches of a node of the tree are compared;
            - `node` : number of a node of the tree, in scipy's format: the node whose samples are
              the cluster, or the node whose branches are compared;
            - `inside`, `outside` : labels of the clusters in each group, as text;
            - `n_inside`, `n_outside` : number of samples in each group, without outlying samples;
            - `feature` : name of the feature if X or the data of the fit had column names, and its
              index otherwise;
            - `selected` : whether the feature is selected;
            - `mean_inside`, `mean_outside` : mean of the feature in each group;
            - `effect_size` : mean inside minus mean outside, divided by the pooled standard
              deviation within the groups; NaN if this standard deviation is zero;
            - `p_value` : p-value of a rank test for a difference between the groups;
            - `q_value` : q-value, computed from the p-values of all features in the same contrast;
            - `direction` : "up" if the mean is higher inside than outside, "down" if it is lower,
              and "none" if both means are equal.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        ParameterError
            If `alpha` or `k` is invalid, or if `k` is None and the fit did not define `labels_`.

        Notes
        -----
        The clusters differ by construction in the features on which the tree is built, so a test of
        these features with the same clusters would be biased. Therefore the selected features are
        divided into ten folds (or one fold for each feature if there are fewer than ten). The
        features in a fold are tested with a tree that is built on the other folds. Each group of
        the contrast is replaced by the branch of that tree whose samples are most similar to it, by
        the Jaccard index. If the contrast includes all samples, the second group is instead
        replaced by all samples outside the branch that replaces the first group. The p-value is 1
        if no branch has a Jaccard index of at least 0.5, or if the two new groups overlap. Features
        that were not selected are tested with the original groups. The q-values are those of
        Benjamini and Hochberg [1]_. They are scores that rank features, and not evidence for the
        clusters, because the clusters and the selected features were found in the same data. If
        there are no clusters, correlated features have small q-values nevertheless. Use
        :func:`mrshc.branch_significance` to test the clusters.

        References
        ----------
        .. [1] Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a
           practical and powerful approach to multiple testing. Journal of the Royal Statistical
           Society B 57(1), 289-300. https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
        """
        check_is_fitted(self)
        X = in_order_of_fit(self, X)
        data = self.data_of_fit(X)
        alpha = check_number("alpha", alpha, low=0.0, high=1.0, advice="The default is 0.05.")
        return marker_table(
            data,
            tree=self._tree,
            labels=self._labels_of_cut(k),
            support=self._support,
            tree_features=self._tree_features(),
            weights=self._tree_feature_weights(),
            outlying=self._outlier_rows,
            names=known_feature_names(self, X),
            linkage=self.linkage,
            metric=self.metric,
            alpha=alpha,
        )

    def predict(self, X: Any) -> Labels:
        """Return the cluster of new samples: the one whose centre is nearest.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            New samples; NaN marks a missing value. If X is a DataFrame and the data of the fit had
            column names, features are matched by name: only the features on which the tree is built
            are needed, in any order, and other columns are ignored. Otherwise X must have the
            features of the fit in the same order.

        Returns
        -------
        labels : ndarray of shape (n_new_samples,)
            Cluster of each sample, numbered as in `labels_`. If there is only one cluster, it is 0
            for all samples.

        Raises
        ------
        ValueError
            If X is invalid, lacks a feature on which the tree is built or has it twice, or if a
            sample cannot be compared with the clusters: it has no observed value in these features
            or, with `metric="correlation"`, fewer than three different ones.
        ParameterError
            If `n_clusters` was None in the fit.

        See Also
        --------
        cluster_distances : Distances to the centres of the clusters.

        Notes
        -----
        The centre of a cluster is the mean of its samples for squared Euclidean distances, and
        their median in each feature for city-block distances. For correlations, it is the mean of
        the samples after each is centred and scaled to norm 1. The distance of a sample to a centre
        has the metric, the features and the weights of the tree. For :class:`COSA`, whose weights
        differ between samples, it is the city-block distance with the mean weights. A missing
        value is left out of the distances of its sample. In a robust fit, new samples are
        winsorised at the limits of the fit, outlying samples do not influence the centres, and a
        new sample that is outlying is assigned as well.

        The rule is the same for all linkages. A tree is not a set of nearest centres, so `predict`
        may assign some samples of the fit to another cluster than `labels_`.
        """
        return np.argmin(self.cluster_distances(X), axis=1)

    def cluster_distances(self, X: Any) -> Float:
        """Return the distances of new samples to the centres of the clusters.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            New samples, as in `predict`.

        Returns
        -------
        distances : ndarray of shape (n_new_samples, n_clusters)
            Distance of each sample to the centre of each cluster; see `predict`. If values are
            missing, sums over the observed features are scaled up to all features.

        Raises
        ------
        ValueError
            If X is invalid; see `predict`.
        ParameterError
            If `n_clusters` was None in the fit.
        """
        check_is_fitted(self)
        if not hasattr(self, "labels_"):
            raise ParameterError(
                "predict needs clusters, but {n_clusters} was None in the fit. Set it, and fit "
                "again.",
                n_clusters=Parameter("n_clusters"),
            )
        if not hasattr(self, "_centres"):
            raise NotImplementedError(
                f"predict needs the centres of the clusters, but {type(self).__name__} does not "
                "store them. Call _store_centres at the end of its method fit."
            )
        columns = columns_of_new_samples(self, X, self._centres.features)
        refuse_incomparable_samples(self._centres, columns)
        return self._centres.distances(columns)

    def cluster_centres(self, X: Any, *, k: int | None = None) -> ClusterCentres:
        """Return the centres of clusters, by which new samples are assigned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.
        k : int or None, default=None
            Number of clusters into which the tree is cut. If None, the clusters in `labels_` are
            used.

        Returns
        -------
        ClusterCentres
            The centres, in the features on which the tree is built.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        ParameterError
            If `k` is invalid, or if `k` is None and the fit did not define `labels_`.
        """
        check_is_fitted(self)
        # The centres of `labels_` were computed in the fit, so X need not be read again.
        if k is None and hasattr(self, "_centres"):
            return self._centres
        labels = self._labels_of_cut(k)
        return cluster_centres(
            self.data_of_fit(X),
            labels,
            features=np.flatnonzero(self._tree_features()),
            metric=self.metric,
            weights=self._tree_feature_weights(),
            excluded=self._outlier_rows,
        )

    def _store_centres(self, centres: ClusterCentres | None) -> None:
        """Store the centres for `predict`, or delete those of an earlier fit if there are none."""
        if centres is None:
            delete_attributes(self, "_centres")
        else:
            self._centres = centres

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Return X as a `DataMatrix`, after checking that X can be the data of the fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`. The features of a DataFrame are matched by name, as
            in `markers`.

        Returns
        -------
        data : DataMatrix
            The validated data. Subclasses may transform the data as in the fit: :class:`MrSHC`
            winsorises the data if `robust=True`.

        Raises
        ------
        ValueError
            If X is invalid, or if the number of samples or features, or their names, differ from
            those of the fit.
        """
        check_is_fitted(self)
        data = check_samples(self, in_order_of_fit(self, X), reset=False)
        # Only the shape and the names are compared, since the values of the fit are not stored.
        if data.shape[0] != self.n_leaves_:
            raise ValueError(
                f"X must be the data of the fit, with {self.n_leaves_} samples, got "
                f"{data.shape[0]}. Pass the data that were passed to fit."
            )
        return data

    def _labels_of_cut(self, k: int | None) -> Labels:
        """Return the labels of the cut into k clusters, or `labels_` if k is None.

        Raise ParameterError if k is invalid, or if k is None and `labels_` does not exist.
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

    def _tree_features(self) -> Mask:
        """Return a mask of the features on which the tree is built.

        Subclasses whose trees are also built on features that are not selected override this
        method.
        """
        return self._support

    def _tree_feature_weights(self) -> Float | None:
        """Return the weights of the features of `_tree_features`, or None if all are equal.

        Distances with the metric of the estimator are multiplied by these weights.
        """
        return self._distance_weights()

    def _distance_weights(self) -> Float | None:
        """Return the weights of the selected features in the distances, or None if all are equal.

        Subclasses that weight the features override this method.
        """
        return None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


class TreeCutter(TreeClusterer):
    """Base class of estimators that build a tree and cut it if `n_clusters` is not None."""

    n_clusters: int | None

    def _check_n_clusters(self, n_samples: int) -> int | None:
        """Return the parameter `n_clusters` if it is valid; None means that the tree is not cut.

        Raise ParameterError if `n_clusters` is neither None nor an integer from 1 to `n_samples`.
        """
        # None cannot be given on the command line, so messages there omit this advice.
        advice = Sentence("{none}", none=PythonOnly("Give None to make the tree only."))
        limits: Any = {"low": 1, "high": n_samples, "advice": advice}
        return check_integer_or_keyword("n_clusters", self.n_clusters, None, **limits)

    def _store_cut(self, n_clusters: int | None) -> None:
        """Set `labels_` to the labels of the cut into `n_clusters` clusters.

        If `n_clusters` is None, delete `labels_`, which may exist from an earlier fit.
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
            The attribute `labels_`: the cluster of each sample.

        Raises
        ------
        ValueError
            If X is invalid; see `fit`.
        ParameterError
            If `n_clusters` is None, or if a parameter is invalid.
        """
        # `n_clusters` is checked before the fit, since the fit may take a long time.
        if self.n_clusters is None:
            raise ParameterError(
                "fit_predict needs {n_clusters}, got None. {advice}",
                n_clusters=Parameter("n_clusters"),
                advice="Set it, or call fit and then cut(k).",
            )
        return self.fit(X, y).labels_


def centres_of_cut(
    data: DataMatrix,
    tree: Tree,
    n_clusters: int | None,
    *,
    features: Index,
    metric: Metric,
    weights: Float | None = None,
) -> ClusterCentres | None:
    """Return the centres of the clusters into which a tree is cut, for the method `predict`.

    Parameters
    ----------
    data : DataMatrix
        The data of the fit, from which the columns of `features` are read.
    tree : Tree
        The tree.
    n_clusters : int or None
        Number of clusters. If None, the tree is not cut, and None is returned.
    features : ndarray of shape (q,)
        Indices of the features on which the tree is built.
    metric : str
        Metric of the tree.
    weights : ndarray of shape (q,) or None, default=None
        Weights of the features in the distances; None if all weights are equal.
    """
    if n_clusters is None:
        return None
    labels = tree.number_by_leaves(tree.cut(n_clusters))
    return cluster_centres(data, labels, features=features, metric=metric, weights=weights)


def store_n_passes(estimator: Any, n_passes: int | None) -> None:
    """Set the attribute `n_passes_`, the number of passes over the data.

    If `n_passes` is None, delete the attribute instead, which may exist from an earlier fit.
    `n_passes` is None for data in memory, whose passes are not counted.
    """
    if n_passes is None:
        delete_attributes(estimator, "n_passes_")
    else:
        estimator.n_passes_ = n_passes


def check_linkage_and_metric(
    linkage: Any, metric: Any, *, metrics: Sequence[Metric] = METRICS
) -> tuple[Linkage, Metric]:
    """Return `linkage` and `metric` if both are valid and compatible with each other.

    Raise ParameterError if either of them is unknown, or if the linkage is not defined for the
    metric. `metrics` contains the metrics of the estimator.
    """
    check_option("metric", metric, metrics)
    check_option("linkage", linkage, LINKAGES)
    if linkage in EUCLIDEAN_LINKAGES and metric not in SQUARED_EUCLIDEAN_METRICS:
        # The message must not offer a metric that the estimator does not have.
        other, choice = "", "that metric"
        if "correlation" in metrics:
            other = Sentence(" and {metric}", metric=Setting("metric", "correlation"))
            choice = "one of these metrics"
        raise ParameterError(
            "{linkage} is defined for {metric}{other} only, got {value!r}. {advice}",
            linkage=Setting("linkage", linkage),
            metric=Setting("metric", "sqeuclidean"),
            other=other,
            value=metric,
            advice=f"Choose another linkage or {choice}.",
        )
    return linkage, metric


def check_feature_count(
    name: str, value: Any, *, n_features: int | None, metric: Metric, advice: str
) -> int:
    """Return a number of features after checking that distances can be computed from it.

    Raise ParameterError if the value is not an integer from 1 to `n_features` (None for no limit),
    or if it is less than 3 and the metric is "correlation". `advice` is the sentence for a value
    that is invalid whatever the metric.
    """
    count = check_integer(name, value, low=1, high=n_features, advice=advice)
    if count < min_features(metric):
        raise ParameterError(
            "{number} must {allowed} for {metric}, got {value!r}: with fewer, every correlation is "
            "1 or -1, or does not exist. Raise it, or choose another metric.",
            number=Parameter(name),
            allowed=f"be at least {min_features(metric)}",
            metric=Setting("metric", metric),
            value=count,
        )
    return count


def candidate_feature_counts(
    wanted: Any,
    *,
    n_features: int,
    n_constant: int,
    metric: Metric,
    default: Callable[[int], tuple[int, ...] | None] = lambda _: None,
) -> tuple[int, ...]:
    """Return the candidate numbers of features for a value of `n_features_to_select`.

    Parameters
    ----------
    wanted : int, sequence of int or "auto"
        Value of the parameter `n_features_to_select`.
    n_features : int
        Number of features of X.
    n_constant : int
        Number of constant features of X.
    metric : str
        Distance between samples. With "correlation", there are at least 3 features.
    default : callable
        Function that returns the candidates for "auto", given the number of features that are not
        constant, or None for the candidates of the paper. By default, it returns None.

    Returns
    -------
    targets : tuple of int
        Candidate numbers of features, in strictly increasing order.

    Raises
    ------
    ValueError
        If all features are constant.
    ParameterError
        If `wanted` is invalid, or if fewer than 3 features vary and the metric is "correlation".
    """
    # Constant features are never selected, so "auto" depends only on the number of other features.
    n_varying = n_features - n_constant
    if n_varying == 0:
        raise all_constant_error(n_features)
    smallest = min_features(metric)
    if n_varying < smallest:
        raise ParameterError(
            "X must have at least {smallest} features that vary for {metric}, got {n_varying}. "
            "Choose another metric, or keep more features.",
            smallest=smallest,
            metric=Setting("metric", metric),
            n_varying=n_varying,
            value=metric,
        )
    if isinstance(wanted, str) and wanted == "auto":
        # With few features, all candidates may be too small. The smallest possible number is then
        # the only candidate.
        counts = default(n_varying) or _default_feature_counts(n_varying)
        return tuple(q for q in counts if q >= smallest) or (smallest,)
    name, advice = "n_features_to_select", "Lower it, or relax the filter on the features."
    candidates = [wanted]
    if not isinstance(wanted, Number):
        limits: Any = {"low": 1, "high": n_features, "advice": advice}
        candidates = [*check_increasing_integers(name, wanted, **limits)]
    return tuple(
        check_feature_count(name, count, n_features=n_features, metric=metric, advice=advice)
        for count in candidates
    )


def all_constant_error(n_features: int) -> ValueError:
    """Return, without raising it, the error for data in which all features are constant."""
    return ValueError(
        f"X must have a feature that varies, but all {n_features} of its features are constant. "
        "Check that samples are in rows and features in columns."
    )


def no_common_feature_error(i: int, j: int) -> ValueError:
    """Return, without raising it, the error for two samples without a common observed feature."""
    return ValueError(
        f"Every two samples must share an observed feature, but samples {i} and {j} have "
        "none in common. Drop one of them, or impute the missing values."
    )


def _default_feature_counts(p: int) -> tuple[int, ...]:
    """Return the candidates for `n_features_to_select="auto"`, given p non-constant features."""
    if p >= _FEW_FEATURES:
        return tuple(q for q in _PAPER_CANDIDATES if q < p)
    # The candidates do not exceed half the number of features, rounded up, or 2 if this is larger:
    # choosing nearly all features would not be a selection. The last expression applies to p = 1.
    half = max(2, (p + 1) // 2)
    return tuple(q for q in _SMALL_CANDIDATES if q <= min(half, p)) or (p,)


def derive_seed(random_state: Any) -> int:
    """Return the seed for all random numbers of a fit, derived from the parameter `random_state`.

    Raise ParameterError if `random_state` is invalid.
    """
    # If `random_state` is a RandomState instance, drawing the seed changes the state of the
    # instance. A second fit with the same instance therefore uses a different seed, as is usual in
    # scikit-learn.
    return int(check_seed(random_state).randint(np.iinfo(np.int32).max))
