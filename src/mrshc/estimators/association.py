"""Hierarchical clustering on the features that are associated with the clusters."""

from __future__ import annotations

from typing import Any, Self

from mrshc.core import parallel
from mrshc.core.association import MIN_FEATURES, association_search
from mrshc.core.data.matrix import centring
from mrshc.core.parallel import progress_bar
from mrshc.core.trees import cut
from mrshc.estimators.base import (
    HierarchicalClusterer,
    check_clusters,
    check_feature_count,
    check_linkage_and_metric,
    count_varying,
    warn_unsupported,
)
from mrshc.validation import check_n_jobs, check_number, check_samples

NO_SUPPORT = (
    "The clusters are not supported by held-out features: fewer than "
    f"{MIN_FEATURES} features are associated with clusters of trees that were built without them."
)


class AssociationHC(HierarchicalClusterer):
    """Hierarchical clustering on all features that are associated with the clusters.

    Several small feature sets are selected by sparse principal components. Each set is replaced by
    all features that are associated with clusters of trees that were built without them, and for
    the three strongest sets this is repeated until they hardly change. The set with the largest sum
    of squares between clusters is used. The number of features follows from the data: tens if only
    these differ between the clusters, hundreds if thousands do. The guide has the details.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters of the cut. "auto" is the number, from 2 to 10, whose last split exceeds
        the next one by the largest ratio, and 1 if `supported_` is False.
    linkage : str, default="ward"
        "single", "complete", "average", "weighted", "ward", "centroid" or "median".
    metric : {"sqeuclidean", "cityblock", "correlation"}, default="sqeuclidean"
        Distance of samples in the features of the tree. Ward's, centroid and median linkage are not
        defined for "cityblock".
    alpha : float, default=0.05
        False discovery rate at which features are associated.
    max_features : int, default=500
        Largest number of features of the tree. Of more associated features, those with the largest
        sums of squares between clusters are used.
    robust : bool, default=False
        Whether to winsorise values and to attach outlying samples; see :class:`MrSHC`.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The result does not depend on it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, numbered in the order of the leaves of the tree.
    n_clusters_ : int
        Number of clusters in `labels_`.
    supported_ : bool or None
        Whether at least five features are associated with the clusters. None if the start sets have
        fewer features, or there are fewer than seven samples, so that this cannot be decided.
    associated_features_ : ndarray of int
        All associated features.
    feature_qvalues_ : ndarray of shape (n_features_in_,)
        Q-values of the tests of association; 1 where no test was possible.
    n_features_selected_ : int
        Number of features of the tree; `get_support` returns their mask.
    rank_ : int
        Rank of the start set that led to the result.
    components_ : ndarray of shape (rank_, n_features_in_)
        Loadings of the sparse components of this start set.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in scipy's format; also as `children_`, `distances_` and `n_leaves_`.
    search_results_ : dict of ndarray
        One entry for each start set: `n_features_target` and `rank`, `reached`, `l1_bound`, and
        after the refinement `n_features`, `n_associated`, `strength` (sum of squares between the
        clusters), `n_leaves`, `silhouette`, `chosen`.
    outlier_samples_ : ndarray
        Outlying samples; only with `robust=True`.
    n_features_in_ : int
        Number of features of X; `feature_names_in_` and `sample_names_in_` for tables with names.

    See Also
    --------
    MrSHC : The procedure of the paper.

    Examples
    --------
    >>> from mrshc import AssociationHC
    >>> from mrshc.datasets import make_simulation_1
    >>> model = AssociationHC().fit(make_simulation_1(0).X)
    >>> model.n_clusters_, model.supported_
    (3, True)
    """

    def __init__(
        self,
        *,
        n_clusters: Any = "auto",
        linkage: str = "ward",
        metric: str = "sqeuclidean",
        alpha: float = 0.05,
        max_features: int = 500,
        robust: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.alpha = alpha
        self.max_features = max_features
        self.robust = robust
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select the features, build the tree and find the clusters.

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
        with parallel.threads(check_n_jobs(self.n_jobs)), progress_bar("AssociationHC") as progress:
            check_linkage_and_metric(self.linkage, self.metric)
            raw, summary = check_samples(self, X)
            matrix, outlying = self._winsorised(raw)
            usual, summary = self._usual(matrix, summary, outlying, self.robust)
            result = association_search(
                usual,
                centring(summary, True),
                n_varying=count_varying(summary, self.metric),
                n_clusters=check_clusters(self.n_clusters, usual.shape[0]),
                linkage=self.linkage,
                metric=self.metric,
                alpha=check_number("alpha", self.alpha, low=0.0, high=1.0),
                max_features=check_feature_count(
                    "max_features", self.max_features, None, self.metric
                ),
                progress=progress,
            )
            self._store_outliers(outlying)
            features, k = result.refined.features, result.n_clusters
            pruned = self._attach_outliers(cut(result.tree, k), matrix, features, k)
            self._store_tree(pruned.tree, features, matrix.shape[1])
            self._store_labels(matrix, pruned.labels(k), raw)
        self.n_clusters_ = k
        self.supported_ = result.supported
        self.associated_features_ = result.associated
        self.feature_qvalues_ = result.q_values
        self.rank_ = result.chosen.rank
        self.components_ = result.loadings
        self.search_results_ = result.table
        if result.supported is False:
            advice = f"labels_ has all {k} clusters asked for."
            if self.n_clusters == "auto":
                best = f"cut({result.best_cut})"
                advice = f"labels_ holds one cluster. Use {best} to cut the tree all the same."
            warn_unsupported(NO_SUPPORT, advice)
        return self
