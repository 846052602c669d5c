"""Multi-rank sparse hierarchical clustering (MrSHC) of Zhang and Zamar."""

from __future__ import annotations

from typing import Any, Self

from mrshc.core import parallel
from mrshc.core.data.matrix import centring
from mrshc.core.gap import split_table
from mrshc.core.parallel import progress_bar
from mrshc.core.search import SearchPlan, SearchResult, search
from mrshc.estimators.base import (
    HierarchicalClusterer,
    candidate_counts,
    check_clusters,
    check_linkage_and_metric,
    warn_unsupported,
)
from mrshc.validation import (
    check_integer,
    check_integer_or,
    check_n_jobs,
    check_option,
    check_samples,
    draw_seed,
)

# More references change a standard error by less than a thousandth.
_MAX_REFERENCES = 10**6


class MrSHC(HierarchicalClusterer):
    """Multi-rank sparse hierarchical clustering, the procedure of Zhang and Zamar [1]_.

    Features with non-zero loadings on the first sparse principal components are selected. A tree
    of the samples is built on them and pruned with the gap statistic. A search chooses the number q
    of features, the number r of components and the number K of clusters unless they are given. The
    guide has the mathematics. For real data, :class:`AssociationHC` is recommended.

    Parameters
    ----------
    n_features_to_select : int, sequence of int or "auto", default="auto"
        Number q of features, or increasing candidates. "auto" means the candidates of the paper
        (10, 20, 40, 60, ..., 200, 250, ..., 500) below the number of features that vary, and for
        fewer than 100 of these 2, 3, ..., 8, 10, 15, 20, 30, 40 up to half of them.
    rank : int or "auto", default="auto"
        Number r of components; "auto" tries 1, ..., `max_rank`.
    max_rank : int, default=5
        Largest rank that is tried. Ranks above q or n_samples - 1 are not.
    n_clusters : int or "auto", default="auto"
        Number K of clusters. Feature sets whose pruned trees have fewer are chosen only if no set
        has K. If the data support fewer than a given K, further nodes are split in the order of a
        cut, and `fit` warns. "auto" prunes the trees of ranks 1 to 3 without a limit; K is the
        second largest number of leaves over q, at least 2, and `labels_` may have fewer clusters.
    linkage : str, default="complete"
        "single", "complete", "average", "weighted", "ward", "centroid" or "median", as in
        :func:`scipy.cluster.hierarchy.linkage`.
    metric : {"sqeuclidean", "cityblock", "correlation"}, default="sqeuclidean"
        Distance of samples in the selected features; "correlation" is 1 minus Pearson's. Ward's,
        centroid and median linkage are not defined for "cityblock".
    n_references : int, default=50
        Largest number of reference samples for a gap statistic; fewer are drawn where further ones
        are very unlikely to change the decision.
    feature_tolerance : int, default=0
        Accepted difference between the number of features and q.
    center : {True, "grand", False}, default=True
        What is subtracted before components are computed: the mean of each feature, the mean of all
        values, or nothing.
    robust : bool, default=False
        Whether to winsorise values at 2.5 robust standard deviations, to remove few extreme ones,
        and to attach outlying samples to the tree of the others. X must be in memory.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the reference samples.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, numbered in the order of the leaves of the tree.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_selected_ : int
        Number of selected features; `get_support` returns their mask.
    rank_ : int
        Chosen number of components.
    components_ : ndarray of shape (rank_, n_features_in_)
        Loadings of the components.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in scipy's format; also as `children_`, `distances_` and `n_leaves_`.
    search_results_ : dict of ndarray
        One entry for each candidate (q, r): `n_features_target`, `n_features`, `reached`, `rank`,
        `l1_bound`, `n_leaves`, `silhouette`, `screened_out` (fewer than K clusters), `best_rank`
        (chosen for its q by Algorithm 3), `removed` (a local minimum), `chosen`.
    split_tests_ : dict of ndarray
        One entry for each tested node of the tree: `node`, `n_samples`, `height`, `drop` of the log
        dispersion from one cluster to two, `expected_drop` in the reference samples,
        `standard_error`, `supported`, `split` and `reference_drops`.
    outlier_samples_ : ndarray
        Outlying samples; only with `robust=True`.
    n_features_in_ : int
        Number of features of X; `feature_names_in_` and `sample_names_in_` for tables with names.

    See Also
    --------
    AssociationHC : All features that are associated with clusters built without them.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745

    Examples
    --------
    >>> from mrshc import MrSHC
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(0)
    >>> model = MrSHC(n_features_to_select=50, n_clusters=3, random_state=0).fit(data.X)
    >>> model.n_features_selected_
    50
    """

    def __init__(
        self,
        n_features_to_select: Any = "auto",
        *,
        rank: Any = "auto",
        max_rank: int = 5,
        n_clusters: Any = "auto",
        linkage: str = "complete",
        metric: str = "sqeuclidean",
        n_references: int = 50,
        feature_tolerance: int = 0,
        center: Any = True,
        robust: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.rank = rank
        self.max_rank = max_rank
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.n_references = n_references
        self.feature_tolerance = feature_tolerance
        self.center = center
        self.robust = robust
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select the features, build the tree and find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data: an array, a DataFrame, AnnData, a sparse matrix, a memory map, an h5py or Zarr
            array, a Dask array, or a torch or CuPy array. NaN marks missing values.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        with parallel.threads(check_n_jobs(self.n_jobs)), progress_bar("MrSHC") as progress:
            check_linkage_and_metric(self.linkage, self.metric)
            raw, summary = check_samples(self, X)
            matrix, outlying = self._winsorised(raw)
            usual, summary = self._usual(matrix, summary, outlying, self.robust)
            plan = self._plan(usual.shape, summary)
            center = check_option("center", self.center, (True, "grand", False))
            result = search(usual, centring(summary, center), plan, progress)
            self._store_outliers(outlying)
            self._store(result, matrix, raw)
        return self

    def _plan(self, shape: tuple[int, int], summary: Any) -> SearchPlan:
        n, p = shape
        rank = check_integer_or("rank", self.rank, "auto", low=1, high=min(n, p))
        max_rank = check_integer("max_rank", self.max_rank, low=1)
        limits: Any = {"low": 2, "high": _MAX_REFERENCES}
        return SearchPlan(
            targets=candidate_counts(self.n_features_to_select, summary, self.metric),
            # After centring, n samples span n - 1 dimensions.
            ranks=(rank,) if rank else tuple(range(1, min(max_rank, n - 1, p) + 1)),
            n_clusters=check_clusters(self.n_clusters, n),
            tolerance=check_integer("feature_tolerance", self.feature_tolerance, low=0),
            linkage=self.linkage,
            metric=self.metric,
            n_references=check_integer("n_references", self.n_references, **limits),
            entropy=draw_seed(self.random_state),
        )

    def _store(self, result: SearchResult, matrix: Any, raw: Any) -> None:
        features = result.chosen.features
        pruned = self._attach_outliers(result.pruned, matrix, features, result.n_leaves)
        self._store_tree(pruned.tree, features, matrix.shape[1])
        self._store_labels(matrix, pruned.labels(result.n_leaves), raw)
        self.n_clusters_ = result.n_leaves
        self.rank_ = result.chosen.rank
        self.components_ = result.loadings
        self.search_results_ = result.table
        self.split_tests_ = split_table(pruned, result.n_leaves, self._outliers)
        if result.n_supported < result.n_clusters:
            self._warn(result)

    def _warn(self, result: SearchResult) -> None:
        found, K = result.n_supported, result.n_clusters
        supported = "a single cluster" if found == 1 else f"only {found} clusters"
        finding = f"The gap statistic finds {supported}, not the {K} clusters asked for."
        advice = f"labels_ has all {K}."
        if self.n_clusters == "auto":
            finding = f"The gap statistic finds {supported}, whatever the features."
            advice = f"labels_ holds no more: use cut({K}) to cut the tree all the same."
        warn_unsupported(finding, advice)
