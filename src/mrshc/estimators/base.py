"""What all estimators that build a tree have in common."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mrshc.core import parallel
from mrshc.core.centres import ClusterCentres, cluster_centres
from mrshc.core.data import as_matrix
from mrshc.core.data.matrix import ArrayMatrix, DataMatrix, Summary, summarise
from mrshc.core.linkages import EUCLIDEAN_LINKAGES, LINKAGES, METRICS, SQUARED_METRICS
from mrshc.core.markers import contrasts_of_clusters, marker_statistics
from mrshc.core.missing_values import complete
from mrshc.core.outliers import attach_outliers, detect_outliers, winsorisation_limits
from mrshc.core.search import default_targets
from mrshc.core.trees import PrunedTree, Tree, min_features
from mrshc.estimators.summary import ModelSummary, summarise_model
from mrshc.optional_packages import require_packages
from mrshc.validation import (
    as_table,
    check_data_of_fit,
    check_increasing,
    check_integer,
    check_integer_or,
    check_new_samples,
    check_number,
    check_option,
    check_table,
    check_width,
    column_names,
    in_order_of_fit,
    refuse_incomparable_samples,
    warn_caller,
)

if TYPE_CHECKING:
    import pandas as pd


class UnsupportedClustersWarning(UserWarning):
    """Warning that the data support fewer clusters than expected, or none.

    Attributes
    ----------
    finding : str
        What was found.
    advice : str
        What `labels_` holds, and what to do.
    """

    def __init__(self, finding: str, advice: str = "") -> None:
        super().__init__(finding, advice)
        self.finding, self.advice = finding, advice

    def __str__(self) -> str:
        return f"{self.finding} {self.advice}".rstrip()


class FeatureSelector(SelectorMixin, BaseEstimator):
    """Base of estimators that select features; `_support` is the mask of these features."""

    _support: np.ndarray

    def transform(self, X: Any) -> Any:
        """Return the selected features of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with the features of the fit. Features are matched by name if both have names.

        Returns
        -------
        X_selected : array-like of shape (n_samples, n_features_selected_)
            The selected columns, in memory.
        """
        check_is_fitted(self)
        X = in_order_of_fit(self, X)
        if (matrix := as_matrix(X)) is None:
            return super().transform(check_table(as_table(X)))
        check_width(self, matrix)
        return matrix.columns(np.flatnonzero(self._support))

    def summary(self) -> ModelSummary:
        """Return a short description of the fitted estimator; notebooks show it as a table."""
        check_is_fitted(self)
        return summarise_model(self)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self._support

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class HierarchicalClusterer(ClusterMixin, FeatureSelector):
    """Base of estimators that select or weight features and build a tree of the samples.

    Attributes
    ----------
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_, distances_, n_leaves_
        The tree as in :class:`sklearn.cluster.AgglomerativeClustering`.
    n_features_selected_ : int
        Number of features on which the tree is built.
    """

    n_clusters: Any
    linkage: Any
    metric: Any
    labels_: np.ndarray
    _centres: ClusterCentres | None

    def cut(self, k: int) -> np.ndarray:
        """Return the clusters that result from undoing the last k - 1 merges of the tree.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to the number of samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Clusters 0, ..., k - 1, in the order of the leaves of the tree.
        """
        check_is_fitted(self)
        k = check_integer("k", k, low=1, high=self.n_leaves_)
        return self._tree.number_by_leaves(self._tree.cut(k))

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the cluster of each sample."""
        if self.n_clusters is None:  # refused before a long fit
            raise ValueError(
                "fit_predict needs n_clusters, got None. Set it, or call fit and then cut(k)."
            )
        return self.fit(X, y).labels_

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of new samples: the one whose centre is nearest.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            New samples; NaN marks a missing value. If X and the data of the fit have column names,
            only the features of the tree are needed, in any order; otherwise all features in the
            order of the fit.

        Returns
        -------
        labels : ndarray of shape (n_new_samples,)
            Clusters, numbered as in `labels_`.

        Notes
        -----
        A centre is the mean of the samples of a cluster, their median for city-block distances, and
        the mean of the standardised samples for correlations. Metric, features and weights are
        those of the tree. If values are missing, sums are scaled up to all features.
        """
        return np.argmin(self.cluster_distances(X), axis=1)

    def cluster_distances(self, X: Any) -> np.ndarray:
        """Return the distances of new samples to the centres of the clusters.

        Parameters
        ----------
        X : array-like of shape (n_new_samples, n_features)
            New samples, as in `predict`.

        Returns
        -------
        distances : ndarray of shape (n_new_samples, n_clusters)
            Distances in the metric of the tree.
        """
        check_is_fitted(self)
        if self._centres is None:
            raise ValueError(
                "predict needs clusters, but n_clusters was None in the fit. Set it, and fit again."
            )
        columns = check_new_samples(self, X, self._centres.features)
        refuse_incomparable_samples(self._centres, columns)
        return self._centres.distances(columns)

    def markers(self, X: Any, *, k: int | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Return a table of the features that differ between clusters, or between branches.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.
        k : int or None, default=None
            Number of clusters into which the tree is cut; None means those in `labels_`.
        alpha : float, default=0.05
            Features with a q-value of at most `alpha` are listed; with 1, all are.

        Returns
        -------
        markers : DataFrame
            For each contrast, the features in decreasing order of the absolute effect size.

            - `contrast` : "cluster", a cluster (inside) against all other samples (outside), or
              "split", the two branches of a node;
            - `node` : the node, in scipy's numbering;
            - `inside`, `outside` : labels of the clusters in each group, as text;
            - `n_inside`, `n_outside` : numbers of samples, without outlying ones;
            - `feature`, `selected` : the feature, and whether it is selected;
            - `mean_inside`, `mean_outside`, `effect_size` : the last is the difference of the
              means in pooled standard deviations;
            - `p_value`, `q_value` : of a rank test, over the features of the contrast;
            - `direction` : "up", "down" or "none", of the mean inside.

        Notes
        -----
        The features of the tree differ between its clusters by construction, so each of ten folds
        is tested with a tree of the others, in which the most similar branches replace the groups.
        The p-value is 1 if there is none with a Jaccard index of at least one half. The q-values
        rank features and are no evidence for the clusters; :func:`mrshc.branch_significance` is.
        """
        require_packages(["pandas"], purpose="markers", extra="tables")
        check_is_fitted(self)
        names = self._feature_names or column_names(X)
        matrix = self.data_of_fit(X)
        alpha = check_number("alpha", alpha, low=0.0, high=1.0)
        if k is None and not hasattr(self, "labels_"):
            raise ValueError("markers needs clusters, but n_clusters was None in the fit. Give k.")
        labels = self.labels_ if k is None else self.cut(k)
        return self._marker_table(matrix, labels, names, alpha)

    def _marker_table(
        self, matrix: DataMatrix, labels: np.ndarray, names: list[str] | None, alpha: float
    ) -> pd.DataFrame:
        import pandas as pd

        contrasts = contrasts_of_clusters(self._tree, labels, self._outliers)
        if self._outliers.size:
            matrix = ArrayMatrix(np.delete(matrix.values, self._outliers, axis=0))
        features = np.arange(matrix.shape[1]) if names is None else np.array(names, dtype=object)
        blocks = []
        with parallel.threads(1):
            statistics = marker_statistics(
                matrix,
                np.flatnonzero(self._tree_features()),
                contrasts,
                linkage=self.linkage,
                metric=self.metric,
                weights=self._tree_weights(),
            )
        for contrast, result in zip(contrasts, statistics, strict=True):
            sign = np.sign(np.nan_to_num(result.mean_inside - result.mean_outside)).astype(int)
            table = pd.DataFrame(
                {"contrast": contrast.kind, "node": contrast.node}
                | {"inside": contrast.clusters_inside, "outside": contrast.clusters_outside}
                | {"n_inside": contrast.inside.size, "n_outside": contrast.outside.size}
                | {"feature": features, "selected": self._support}
                | {"mean_inside": result.mean_inside, "mean_outside": result.mean_outside}
                | {"effect_size": result.effect_size, "p_value": result.p_values}
                | {"q_value": result.q_values}
                | {"direction": np.array(["none", "up", "down"], dtype=object)[sign]}
            )
            # Features that do not vary within the groups have no effect size and come last.
            order = np.argsort(-np.abs(np.nan_to_num(result.effect_size)), kind="stable")
            blocks.append(table.iloc[order[result.q_values[order] <= alpha]])
        if blocks:
            return pd.concat(blocks, ignore_index=True)
        columns = "contrast node inside outside n_inside n_outside feature selected mean_inside "
        columns += "mean_outside effect_size p_value q_value direction"
        return pd.DataFrame(columns=columns.split())

    def sample_distances(self, X: Any) -> np.ndarray:
        """Return the pairwise distances of the samples, from which the tree is built.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data that were passed to `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_samples)
            Expected distances if values are missing; `dissimilarity_` of an estimator that has it.
        """
        matrix = self.data_of_fit(X)
        if hasattr(self, "dissimilarity_"):
            return self.dissimilarity_
        columns = matrix.columns(np.flatnonzero(self._support))
        with parallel.threads(1):
            return complete(columns, self._outliers).distances(self.metric)

    def cluster_centres(self, X: Any, *, k: int | None = None) -> ClusterCentres:
        """Return the centres of the clusters, or of the cut into k clusters, for `predict`.

        X are the data that were passed to `fit`; they are needed only if k is given.
        """
        check_is_fitted(self)
        if k is None and self._centres is not None:
            return self._centres
        return self._compute_centres(
            self.data_of_fit(X), self.labels_ if k is None else self.cut(k)
        )

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Return X as the data on which the tree was built; raise ValueError if it cannot be."""
        check_is_fitted(self)
        matrix = check_data_of_fit(self, X)
        return self._winsorised(matrix)[0] if getattr(self, "robust", False) else matrix

    # ---------------------------------------------------------- What the fits of estimators share

    @property
    def _outliers(self) -> np.ndarray:
        return getattr(self, "outlier_samples_", np.empty(0, np.intp))

    def _winsorised(self, matrix: DataMatrix) -> tuple[DataMatrix, np.ndarray]:
        """Return winsorised data and the outlying samples, or the data as they are."""
        if not check_option("robust", self.robust, (False, True)):
            return matrix, np.empty(0, np.intp)
        if not matrix.in_memory:
            raise ValueError(
                "robust=True needs X in memory, as an array, but X is stored in another form, such "
                "as a file or a sparse matrix. Load it, or leave robust off."
            )
        with parallel.threads(1):
            values, outlying = detect_outliers(matrix.values, self.metric)
        return ArrayMatrix(values), outlying

    @staticmethod
    def _usual(
        matrix: DataMatrix, summary: Summary, outlying: np.ndarray, robust: bool
    ) -> tuple[DataMatrix, Summary]:
        """Return the data and the statistics of the samples that are not outlying."""
        if not robust:
            return matrix, summary
        if outlying.size:
            matrix = ArrayMatrix(np.delete(matrix.values, outlying, axis=0))
        return matrix, summarise(matrix)

    def _attach_outliers(
        self, pruned: PrunedTree, matrix: DataMatrix, features: np.ndarray, n_clusters: int
    ) -> PrunedTree:
        """Return the tree with the outlying samples."""
        if not self._outliers.size:
            return pruned
        distances = complete(matrix.columns(features), self._outliers).distances(self.metric)
        return attach_outliers(
            pruned, distances, self._outliers, n_clusters=n_clusters, linkage=self.linkage
        )

    def _store_outliers(self, outlying: np.ndarray) -> None:
        if self.robust:
            self.outlier_samples_ = outlying
        elif hasattr(self, "outlier_samples_"):
            del self.outlier_samples_

    def _store_tree(self, tree: Tree, features: np.ndarray, p: int) -> None:
        self._tree = tree
        self._support = np.zeros(p, dtype=bool)
        self._support[features] = True
        self.linkage_matrix_ = tree.linkage_matrix
        self.children_ = tree.linkage_matrix[:, :2].astype(np.intp)
        self.distances_ = tree.linkage_matrix[:, 2].copy()
        self.n_leaves_ = tree.n_samples
        self.n_features_selected_ = int(self._support.sum())

    def _store_labels(
        self, matrix: DataMatrix, labels: np.ndarray | None, raw: DataMatrix | None = None
    ) -> None:
        """Store clusters and their centres; None if the tree is not cut.

        `raw` are the data of a robust fit before they were winsorised.
        """
        self._centres = None
        if labels is None:
            if hasattr(self, "labels_"):
                del self.labels_
            return
        self.labels_ = self._tree.number_by_leaves(labels)
        self._centres = self._compute_centres(matrix, self.labels_, raw)

    def _compute_centres(
        self, matrix: DataMatrix, labels: np.ndarray, raw: DataMatrix | None = None
    ) -> ClusterCentres:
        features = np.flatnonzero(self._tree_features())
        limits = self._centres.limits if self._centres is not None else None
        if raw is not None and self.robust:
            limits = winsorisation_limits(raw.columns(features), self._outliers)
        return cluster_centres(
            matrix,
            labels,
            features=features,
            metric=self.metric,
            weights=self._tree_weights(),
            excluded=self._outliers,
            limits=limits,
        )

    def _tree_features(self) -> np.ndarray:
        """Return a mask of the features on which the tree is built."""
        return self._support

    def _tree_weights(self) -> np.ndarray | None:
        """Return the weights of these features in the distances; None if all are equal."""
        return None

    def _compared_weights(self) -> np.ndarray | None:
        """Return the weights of squared differences of the selected features; None if equal."""
        return self._tree_weights()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def check_linkage_and_metric(linkage: Any, metric: Any, metrics: Any = METRICS) -> tuple[str, str]:
    """Return linkage and metric if they are compatible."""
    check_option("metric", metric, metrics)
    check_option("linkage", linkage, LINKAGES)
    if linkage in EUCLIDEAN_LINKAGES and metric not in SQUARED_METRICS:
        allowed = " and ".join(f"metric={m!r}" for m in SQUARED_METRICS if m in metrics)
        raise ValueError(
            f"linkage={linkage!r} is defined for {allowed} only, got {metric!r}. Choose another "
            "linkage or another metric."
        )
    return linkage, metric


def check_feature_count(name: str, value: Any, p: int | None, metric: str, advice: str = "") -> int:
    """Return a number of features from which distances can be computed."""
    count = check_integer(name, value, low=1, high=p, advice=advice)
    if count < min_features(metric):
        raise ValueError(
            f"{name} must be at least {min_features(metric)} for metric={metric!r}, got {count}: "
            "with fewer, every correlation is 1 or -1, or does not exist. Raise it, or choose "
            "another metric."
        )
    return count


def count_varying(summary: Summary, metric: str) -> int:
    """Return the number of features that vary; raise ValueError if they are too few."""
    n_varying = int((~summary.constant).sum())
    if n_varying == 0:
        raise ValueError(
            f"X must have a feature that varies, but all {summary.constant.size} of its features "
            "are constant. Check that samples are in rows and features in columns."
        )
    if n_varying < min_features(metric):
        raise ValueError(
            f"X must have at least {min_features(metric)} features that vary for "
            f"metric={metric!r}, got {n_varying}. Choose another metric, or keep more features."
        )
    return n_varying


def candidate_counts(wanted: Any, summary: Summary, metric: str) -> tuple[int, ...]:
    """Return the candidates for the number of features."""
    p, n_varying = summary.constant.size, count_varying(summary, metric)
    advice = "Lower it, or relax the filter on the features."
    if isinstance(wanted, str) and wanted == "auto":
        return default_targets(n_varying, min_features(metric))
    name = "n_features_to_select"
    given = [wanted]
    if not isinstance(wanted, Number):
        given = check_increasing(name, wanted, low=1, high=p, advice=advice)
    return tuple(check_feature_count(name, q, p, metric, advice) for q in given)


def check_clusters(n_clusters: Any, n: int) -> int | None:
    """Return the number of clusters, or None if the method chooses it."""
    advice = "Give 'auto' to let the method choose it."
    return check_integer_or("n_clusters", n_clusters, "auto", low=2, high=n, advice=advice)


def check_cut(n_clusters: Any, n: int) -> int | None:
    """Return the number of clusters of a cut, or None for a tree without clusters."""
    advice = "Give None to make the tree only."
    return check_integer_or("n_clusters", n_clusters, None, low=1, high=n, advice=advice)


def warn_unsupported(finding: str, advice: str) -> None:
    """Warn that the data support fewer clusters than expected."""
    warn_caller(UnsupportedClustersWarning(finding, advice))
