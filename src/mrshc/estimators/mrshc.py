"""Multi-rank sparse hierarchical clustering (MrSHC) of Zhang and Zamar."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.centre_data import centre
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import effective_n_threads, limit_blas_to_one_thread
from mrshc.core.robust.missing_values import complete_missing_cells
from mrshc.core.robust.outliers import RobustData, attach_to_nearest_neighbours, detect_outliers
from mrshc.core.search import SearchPlan, SearchResult, search
from mrshc.core.selection import RULES, candidate_table
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.tree import Metric
from mrshc.errors import Parameter, ParameterError, Setting
from mrshc.estimators.base import (
    TreeClusterer,
    candidate_feature_counts,
    check_linkage_and_metric,
    derive_seed,
    store_n_passes,
)
from mrshc.estimators.checkpoint import Checkpoint, StepSizes
from mrshc.estimators.feature_refinement import (
    UnsupportedClustersWarning,
    no_support_warning,
    refinement_settings,
    store_refinement,
)
from mrshc.estimators.sparse_components import check_center, dense_loadings
from mrshc.utils.progress import CallbackSupportMixin, report_progress, with_callbacks
from mrshc.validation.estimator_data import check_samples, delete_attributes
from mrshc.validation.parameters import (
    MAX_REPETITIONS,
    check_integer,
    check_integer_or_keyword,
    check_n_jobs,
    check_option,
)


class MrSHC(CallbackSupportMixin, TreeClusterer):
    r"""Multi-rank sparse hierarchical clustering.

    MrSHC [1]_ clusters the samples of data with many features of which only a few are informative.
    It selects the features with nonzero loadings on the first sparse principal components of the
    data, builds the tree of the samples on the selected features and prunes it with the gap
    statistic. The number of features, the number of components and the number of clusters are
    chosen by the search where they are not given.

    Without arguments, the estimator follows the procedure of the paper. `selection`, `refine` and
    `robust` go beyond it.

    Parameters
    ----------
    n_features_to_select : int, sequence of int or "auto", default="auto"
        Number of features q to select, or increasing candidates among which the selection rule
        chooses. "auto" tries the candidates of the paper, 10, 20, 40, 60, ..., 200, 250, ..., 500,
        that are smaller than the number of features that vary. With fewer than 100 such features,
        it tries 2, 3, ..., 8, 10, 15, 20, 30, 40 up to half of them.
    rank : int or "auto", default="auto"
        Number r of sparse components whose loadings select the features. "auto" tries 1, 2, ...,
        `max_rank` and lets the selection rule choose.
    max_rank : int, default=5
        Largest rank tried if `rank="auto"`. Ranks above q are not tried.
    n_clusters : int or "auto", default="auto"
        Reference number of clusters K: no tree is pruned to more clusters, and feature sets that
        show fewer are not chosen if any shows K. "auto" derives K from the trees of ranks 1 to 3
        that are pruned without a limit; with `selection="evidence"`, it takes the cut with the
        largest evidence.
    linkage : str, default="complete"
        Linkage criterion of the tree: "single", "complete", "average", "weighted", "ward",
        "centroid" or "median", as in :func:`scipy.cluster.hierarchy.linkage`.
    metric : {"sqeuclidean", "cityblock"}, default="sqeuclidean"
        Distance between samples, a sum over the selected features. Ward's, centroid and median
        linkage are defined for "sqeuclidean" only.
    n_references : int, default=50
        Largest number of reference samples of each gap statistic, at least 2.
    stop_early : bool, default=True
        Whether to stop drawing the reference samples of a node when further ones are very unlikely
        to change the decision on it. False always draws `n_references` of them.
    feature_tolerance : int, default=0
        Accept a feature set whose size differs from q by at most this number.
    center : {True, "grand", False}, default=True
        Offset subtracted from the data before the components are computed: the mean of each feature
        (True), one mean of all values ("grand") or none (False). Distances between samples do not
        depend on it.
    n_jobs : int or None, default=None
        Number of workers, as in joblib: None means 1 unless in a :obj:`joblib.parallel_config`
        context, -1 means all processors. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the reference samples. Pass an int for reproducible results.
    verbose : bool, default=False
        Whether to show a progress bar on stderr if that is a terminal.
    checkpoint : str, path-like or None, default=None
        File to which the finished steps of the search are written. After an interruption, a fit
        with the same file, data, parameters and seed continues from them. The file is not removed
        after the fit. Requires an integer `random_state`.
    selection : {"silhouette", "evidence"}, default="silhouette"
        Rule by which the rank and the number of features are chosen.

        - "silhouette" is the rule of the paper: feature sets that show K clusters by the gap
          statistic are compared by the mean silhouette width of these clusters, in the selected
          features.
        - "evidence" chooses the tree whose cuts explain the largest sum of squares in the features
          that were not selected, standardised by its mean and standard deviation over permutations
          of the samples. It computes no gap statistics and takes less time. It is suited to data in
          which many features differ between the clusters, such as gene expression. If only a few
          features are informative, none of them remains outside the selected set, and `refine`
          should be set as well.
    refine : bool, default=False
        Whether to replace the selected features, after the search, by all features that are
        associated with the clusters (at most the 200 with the smallest p-values), and to rebuild
        the tree on them. Each feature is tested against trees built without it, so the tests
        also detect data without structure: see `supported_`. If the clusters depend on a few
        mutually independent features only, the tests have no power. See :func:`refine_features`.
    robust : bool, default=False
        Whether to reduce the influence of outliers. Values are winsorised at 2.5 robust standard
        deviations (from the median absolute deviation) around the median of their feature;
        isolated values beyond 3.5 are treated as missing. Outlying samples are excluded from the
        search and attached to the tree afterwards. Requires X as an array in memory.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered 0, 1, ... in order of first appearance.
    n_clusters_ : int
        Number of clusters in `labels_`. It is smaller than K if the data do not support K clusters,
        in which case `fit` issues an :class:`UnsupportedClustersWarning`.
    n_features_selected_ : int
        Number of features on which the tree is built; `get_support()` is their mask.
    rank_ : int
        Chosen number of components.
    components_ : ndarray of shape (rank_, n_features_in_)
        Sparse loadings of the chosen components, one component in each row.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in the format of :func:`scipy.cluster.hierarchy.linkage`.
    children_ : ndarray of shape (n_samples - 1, 2)
        Nodes joined by each merge, as in :class:`sklearn.cluster.AgglomerativeClustering`.
    distances_ : ndarray of shape (n_samples - 1,)
        Height of each merge.
    n_leaves_ : int
        Number of leaves of the tree, one for each sample.
    search_results_ : dict of ndarray of shape (n_candidates,)
        Table of the candidates of the search, one entry for each pair of q and rank:

        - `n_features_target`, `rank` : the pair itself;
        - `n_features`, `l1_bound` : size of the feature set, and the L1 bound that yields it;
        - `reached` : whether the size is q within `feature_tolerance`;
        - `n_leaves` : number of clusters after pruning, at most K;
        - `silhouette` : mean silhouette width of these clusters, 0 for a single one;
        - `evidence` : with `selection="evidence"` only, in standard deviations over permutations
          of the samples;
        - `screened_out` : whether the set shows fewer than K clusters;
        - `best_rank` : whether this rank was chosen for its q;
        - `removed` : whether it is a local minimum removed by Algorithm 3 or 4;
        - `chosen` : whether it is the chosen candidate.
    split_tests_ : dict of ndarray of shape (n_tests,)
        Gap statistics of the tested nodes of the tree, one entry for each node:

        - `node` : number of the node in scipy's format;
        - `n_samples`, `height` : number of samples of the node, and its height;
        - `drop` : decrease of the log dispersion when the node is split;
        - `expected_drop` : mean decrease over the reference samples, which have no clusters;
        - `standard_error` : standard deviation of the log dispersion of two clusters over the
          reference samples, times :math:`\sqrt{1 + 1/B}` for B = `n_references`;
        - `supported` : whether the drop exceeds the expected one by more than the standard error;
        - `split` : whether the node was split; a supported split is not made once there are K
          clusters;
        - `reference_drops` : array of the decreases in each reference sample.
    supported_ : bool or None
        Only with `refine=True`. Whether features outside the trees support the clusters. If False,
        `labels_` holds a single cluster and the tree is that of the search. If None, the search
        chose too few features (fewer than 5) for a test, and its result is unchanged.
    associated_features_ : ndarray of shape (n_associated,)
        Only with `refine=True`. Indices of all features associated with the clusters at a false
        discovery rate of 0.05. The tree is built on those with the smallest p-values.
    feature_qvalues_ : ndarray of shape (n_features_in_,)
        Only with `refine=True`. Smallest false discovery rate at which each feature is associated.
    outlier_samples_ : ndarray of shape (n_outliers,)
        Only with `robust=True`. Indices of the outlying samples. A sample is outlying if the log
        distance to its third nearest neighbour, in all features, exceeds the median over samples by
        more than 4 robust standard deviations, or if most of its values are outlying.
    n_passes_ : int
        Only if X was read in blocks of features. Number of passes over the data. On a device, where
        concurrent searches share passes, it depends on the scheduling of threads.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only if X is a DataFrame whose column names are strings.
    sample_names_in_ : ndarray of shape (n_samples,)
        Index of X. Defined only if X is a DataFrame.

    See Also
    --------
    SHC : Sparse hierarchical clustering of Witten and Tibshirani, with one component.
    HighVarianceHC : Hierarchical clustering on the features of highest variance.
    refine_features : Features associated with the clusters of any given feature set.
    sparse_components : Sparse principal components.
    mrshc.compare : Several methods on the same data.

    Notes
    -----
    For each candidate number of features q and each rank r, the search runs the following
    algorithms of the paper [1]_.

    1. Algorithm 1, feature selection. Sparse component k maximises

       .. math::

           u^\top X_k v \quad \text{subject to} \quad
           \|u\|_2 \le 1, \; \|v\|_2 \le 1, \; \|v\|_1 \le \lambda,

       where :math:`X_k` is X minus the components before k [2]_. A feature is selected if any of
       the first r components has a nonzero loading on it. The bound :math:`\lambda` for q features
       is found by bisection. The number of features is a step function of :math:`\lambda`, so some
       q cannot be reached; then the closest size is taken.
    2. Algorithm 2, multi-layer pruning. The tree on the selected features is split from the root
       downwards, highest node first, as long as the gap statistic [3]_ of the samples of the node
       prefers two clusters to one and there are fewer than K clusters.
    3. Algorithm 3, choice of r, and Algorithm 4, choice of q. Feature sets with fewer than K
       clusters are discarded. In the mean silhouette widths [4]_ of the others, the last local
       minimum is removed until the sequence is monotone. The first candidate is chosen if it
       decreases, the one after the largest increase if it increases.

    Constant features are never selected. Features that are exact copies of each other are selected
    together.

    Missing values (NaN) are allowed. The components are computed with each missing value replaced
    by the mean of its feature. Distances between samples are expected distances: missing values of
    the selected features are imputed by regularised iterative PCA [5]_, and the variance of the
    imputed values is added.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745
    .. [2] Witten, D. M., Tibshirani, R. and Hastie, T. (2009). A penalized matrix decomposition,
       with applications to sparse principal components and canonical correlation analysis.
       Biostatistics 10(3), 515-534. https://doi.org/10.1093/biostatistics/kxp008
    .. [3] Tibshirani, R., Walther, G. and Hastie, T. (2001). Estimating the number of clusters in a
       data set via the gap statistic. Journal of the Royal Statistical Society B 63(2), 411-423.
       https://doi.org/10.1111/1467-9868.00293
    .. [4] Rousseeuw, P. J. (1987). Silhouettes: a graphical aid to the interpretation and
       validation of cluster analysis. Journal of Computational and Applied Mathematics 20, 53-65.
       https://doi.org/10.1016/0377-0427(87)90125-7
    .. [5] Josse, J. and Husson, F. (2012). Handling missing values in exploratory multivariate data
       analysis methods. Journal de la Société Française de Statistique 153(2), 79-99.

    Examples
    --------
    Three clusters of 20 samples that differ in the first 50 of 500 features:

    >>> from mrshc import MrSHC
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)
    >>> model = MrSHC(n_features_to_select=50, random_state=0).fit(data.X)
    >>> model.n_clusters_, model.rank_
    (3, 1)
    >>> int(model.get_support()[:50].sum())
    50

    The tree can be cut into any number of clusters:

    >>> len(set(model.cut(2)))
    2
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
        stop_early: bool = True,
        feature_tolerance: int = 0,
        center: Any = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        checkpoint: Any = None,
        selection: str = "silhouette",
        refine: bool = False,
        robust: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.rank = rank
        self.max_rank = max_rank
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.n_references = n_references
        self.stop_early = stop_early
        self.feature_tolerance = feature_tolerance
        self.center = center
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.selection = selection
        self.refine = refine
        self.robust = robust

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Select the features, build the tree and find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data with at least 3 samples and 2 features; NaN marks a missing value. X may also be a
            memory map, an HDF5 or Zarr array, a backed AnnData object, a sparse matrix, a Dask
            array or an array on a device (torch, CuPy). Such data are read in blocks of features
            and never loaded as a whole, unless they have no more features than samples.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : MrSHC
            Fitted estimator.
        """
        gap = self._gap_settings()
        n_jobs = check_n_jobs(self.n_jobs)
        threads = effective_n_threads(n_jobs)
        data = check_samples(self, X, n_threads=threads)
        robust = self._robust_data(data, gap.metric)
        # Outlying samples influence neither the features nor the tree of the other samples.
        usual = robust.usual_samples()
        plan = self._search_plan(usual, gap)
        checkpoint = None if self.checkpoint is None else self._open_checkpoint(usual, plan)
        center = check_center(self.center)
        with report_progress(self, n_steps=plan.n_steps, X=X, verbose=self.verbose) as progress:
            matrix = centre(
                usual,
                center=center,
                drop_constant=True,  # such features carry no information about clusters
                n_threads=threads,
                on_block=progress.pass_callback(usual.shape, usual.dtype.itemsize),
            )
            result = search(matrix, plan, n_jobs=n_jobs, progress=progress, memory=checkpoint)
        if robust.outlying_samples.size:
            result = _attach_outliers(result, robust, gap)
        self._store_result(result, robust.outlying_samples, n_features=data.shape[1])
        store_n_passes(self, matrix.n_passes)
        return self

    def _robust_data(self, data: DataMatrix, metric: Metric) -> RobustData:
        """Return the data, winsorised if `robust` is set, and the outlying samples."""
        if not check_option("robust", self.robust, (False, True)):
            return RobustData(data=data, outlying_samples=np.empty(0, np.intp))
        if not data.in_memory:
            raise ParameterError(
                "{given} needs X in memory, as an array, but X is stored in another form, such as "
                "a file or a sparse matrix. Load it, or leave {robust} off.",
                given=Setting("robust", True),
                robust=Parameter("robust"),
                value=True,
            )
        with (
            limit_blas_to_one_thread()
        ):  # sums, and so results, depend on the number of BLAS threads
            return detect_outliers(data.values, metric)

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Return the data on which the tree was built, which `robust` winsorises.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data that were passed to `fit`.

        Returns
        -------
        data : DataMatrix
            Validated data.
        """
        return self._robust_data(super().data_of_fit(X), self.metric).data

    def _search_plan(self, data: DataMatrix, gap: GapSettings) -> SearchPlan:
        """Return the validated settings of the search."""
        n, p = data.shape
        limit = min(n, p)  # rank of a matrix
        rank = check_integer_or_keyword(
            "rank",
            self.rank,
            "auto",
            low=1,
            high=limit,
            advice="There are no more components than samples and features.",
        )
        max_rank = check_integer(
            "max_rank", self.max_rank, low=1, high=None, advice="The default is 5."
        )
        return SearchPlan(
            targets=candidate_feature_counts(
                self.n_features_to_select, n_features=p, n_constant=data.summary().n_constant
            ),
            # Centring removes one dimension: n samples span at most n - 1 components.
            ranks=(rank,) if rank else tuple(range(1, min(max_rank, n - 1, p) + 1)),
            n_clusters=check_integer_or_keyword(
                "n_clusters",
                self.n_clusters,
                "auto",
                low=2,
                high=n,
                advice="Give 'auto' to let the gap statistic find it.",
            ),
            tolerance=check_integer(
                "feature_tolerance",
                self.feature_tolerance,
                low=0,
                high=None,
                advice="The default, 0, asks for exactly the wanted number.",
            ),
            gap=gap,
            entropy=derive_seed(self.random_state),
            selection=check_option("selection", self.selection, tuple(RULES)),
            refine=refinement_settings(self),
        )

    def _open_checkpoint(self, data: DataMatrix, plan: SearchPlan) -> Checkpoint:
        """Return the finished steps of an earlier fit to the same data, if there are any."""
        # Without a fixed seed, steps of two runs would mix different reference samples.
        advice = "A checkpoint needs a fixed seed: a continued search uses the same random numbers."
        check_integer("random_state", self.random_state, low=0, high=None, advice=advice)
        n, p = data.shape
        sizes = StepSizes(
            n_samples=n,
            n_features=p,
            n_leaves=plan.n_cuts(n),
            cut_scores=plan.rule.cut_scores,
        )
        # All that the steps depend on. The number of workers and the backend are left out, since
        # results do not depend on them: an interrupted search may continue with others.
        search = f"{data.fingerprint()} {self.center!r} {plan!r}"
        return Checkpoint(self.checkpoint, search=search, sizes=sizes)

    def _gap_settings(self) -> GapSettings:
        """Return the validated settings of the gap statistic."""
        linkage, metric = check_linkage_and_metric(self.linkage, self.metric)
        # A standard deviation over reference samples needs at least two of them.
        advice = "A standard error needs two; the default is 50."
        n_references = check_integer(
            "n_references", self.n_references, low=2, high=MAX_REPETITIONS, advice=advice
        )
        return GapSettings(
            linkage=linkage,
            metric=metric,
            n_references=n_references,
            stop_early=check_option("stop_early", self.stop_early, (True, False)),
        )

    def _store_result(self, result: SearchResult, outlying: Index, *, n_features: int) -> None:
        """Set the fitted attributes, and warn if there are fewer clusters than K."""
        support = np.zeros(n_features, dtype=bool)
        support[result.features] = True
        self._store_tree(result.pruned.tree, support)
        # Clusters of the pruned tree, which need not be a cut at one height: see `cut`.
        self.labels_ = result.labels
        self.n_clusters_ = result.n_leaves
        self.rank_ = result.chosen.features.rank
        self.components_ = dense_loadings(result.components, n_features)
        self.search_results_ = candidate_table(result.candidates)
        self.split_tests_ = _split_test_table(result, outlying)
        if self.robust:
            self.outlier_samples_ = outlying
        else:
            delete_attributes(self, "outlier_samples_")  # of an earlier fit with `robust`
        store_refinement(self, result.refined)
        if result.refined is not None and result.refined.supported is False:
            advice = f"Use cut({result.n_clusters}) to cut the tree all the same."
            _warn_caller_of_fit(no_support_warning(advice))
        elif result.n_leaves < result.n_clusters:
            _warn_caller_of_fit(self._shortfall_warning(result.n_leaves, result.n_clusters))

    def _shortfall_warning(self, n_found: int, n_wanted: int) -> UnsupportedClustersWarning:
        """Return the warning that fewer clusters than K were found."""
        n_requested = None if self.n_clusters == "auto" else n_wanted
        finding, labels = RULES[self.selection].shortfall_message(n_found, n_requested)
        advice = f"{labels}: use cut({n_wanted}) to cut the tree all the same."
        return UnsupportedClustersWarning(finding, advice=advice)


def _warn_caller_of_fit(warning: UnsupportedClustersWarning) -> None:
    # Levels up to the caller of `fit`: this function, `_store_result`, `fit`, and the function by
    # which scikit-learn's callbacks wrap `fit`.
    warnings.warn(warning, stacklevel=5)


def _attach_outliers(result: SearchResult, robust: RobustData, gap: GapSettings) -> SearchResult:
    """Return the result with the outlying samples attached to its tree."""
    with limit_blas_to_one_thread():
        columns = robust.data.columns(result.features).astype(np.float64)
        # Outlying samples must not influence the imputed values of the others.
        samples = complete_missing_cells(columns, excluded=robust.outlying_samples)
        pruned = attach_to_nearest_neighbours(
            result.pruned,
            samples.distances(gap.metric),
            robust.outlying_samples,
            n_clusters=result.n_leaves,
            linkage=gap.linkage,
        )
    return replace(result, pruned=pruned)


def _split_test_table(result: SearchResult, outlying: Index) -> dict[str, NDArray[Any]]:
    """Return the attribute `split_tests_`: one entry for each tested node of the tree."""
    pruned, n_splits = result.pruned, result.n_leaves - 1
    # gap(2) - gap(1) is the drop of the log dispersion from one cluster to two, minus its mean over
    # the reference samples. The drops are reported because they can be plotted and compared.
    nodes, curves = list(pruned.tests), list(pruned.tests.values())
    drops = [c.reference[:, 0] - c.reference[:, 1] for c in curves]
    references = np.empty(len(drops), dtype=object)  # early stopping: lengths differ
    for i, drop in enumerate(drops):
        references[i] = drop
    return {
        "node": np.array(nodes, dtype=np.intp),
        # Outlying samples took no part in the tests.
        "n_samples": np.array(
            [np.setdiff1d(pruned.tree.members(node), outlying).size for node in nodes],
            dtype=np.intp,
        ),
        "height": np.array([pruned.tree.height(node) for node in nodes]),
        "drop": np.array([c.log_dispersion[0] - c.log_dispersion[1] for c in curves]),
        "expected_drop": np.array([drop.mean() for drop in drops]),
        "standard_error": np.array([c.standard_error[1] for c in curves]),
        "supported": np.array([c.n_clusters > 1 for c in curves], dtype=bool),
        "split": np.isin(nodes, pruned.splits[:n_splits]),
        "reference_drops": references,
    }
