"""Multi-rank sparse hierarchical clustering, the method of the paper."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.centre_data import centre
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.parallel import n_threads, one_blas_thread
from mrshc.core.robust.missing_values import completed
from mrshc.core.robust.outliers import RobustData, attached, detect_outliers
from mrshc.core.search import SearchPlan, SearchResult, search
from mrshc.core.selection import RULES, candidate_table
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.tree import Metric
from mrshc.errors import Parameter, ParameterError, Setting
from mrshc.estimators.base import (
    TreeClusterer,
    feature_targets,
    keep_n_passes,
    linkage_and_metric,
    seed_of,
)
from mrshc.estimators.checkpoint import Checkpoint, StepSizes
from mrshc.estimators.feature_refinement import (
    UnsupportedClustersWarning,
    keep_refined,
    no_support,
    refine_settings,
)
from mrshc.estimators.sparse_components import center_of, dense_loadings
from mrshc.utils.progress import CallbackSupportMixin, reported, with_callbacks
from mrshc.validation.estimator_data import check_samples, forget
from mrshc.validation.parameters import (
    MOST_REPETITIONS,
    check_integer,
    check_integer_or,
    check_jobs,
    check_option,
)


class MrSHC(CallbackSupportMixin, TreeClusterer):
    """Multi-rank sparse hierarchical clustering (Zhang and Zamar).

    Picks the features that load on the first sparse principal components of the data, clusters
    the samples on them, and chooses the number of features, the number of components and the
    number of clusters itself where they are not given.

    Parameters
    ----------
    n_features_to_select : int, sequence of int or "auto", default="auto"
        The number of features q, increasing candidates for it, or "auto": the paper's candidates
        10, 20, 40, ..., 500, and for fewer than 100 features 2, 3, ... up to half of them.
    rank : int or "auto", default="auto"
        Number of sparse components, or "auto" to choose it among 1..max_rank (Algorithm 3).
    max_rank : int, default=5
        Largest rank tried.
    n_clusters : int or "auto", default="auto"
        The reference number of clusters K: at most so many clusters are looked for, and feature
        sets that show fewer are set aside. "auto" takes the number that the gap statistic finds.
    linkage : {"single", "complete", "average", "weighted", "ward", "centroid", "median"}
        How the distance between clusters follows from that between samples.
    metric : {"sqeuclidean", "cityblock"}, default="sqeuclidean"
        Distance between samples. Ward's, centroid and median linkage need "sqeuclidean".
    n_references : int, default=50
        Reference samples of each gap statistic, at most.
    stop_early : bool, default=True
        Draw no more reference samples of a node once they could hardly change the verdict on it.
        False draws them all.
    feature_tolerance : int, default=0
        Accept a set whose size differs from the wanted number by this much.
    center : {True, "grand", False}, default=True
        Subtract each feature's mean before the components are sought, one mean of all cells, or
        nothing. The tree does not depend on it.
    n_jobs : int or None, default=None
        Workers, as in joblib. The result is the same for every number and every backend.
    random_state : int, RandomState instance or None, default=None
        Seed of the reference samples.
    verbose : bool, default=False
        Show a progress bar on stderr if that is a terminal.
    checkpoint : path or None, default=None
        File in which finished steps of the search are kept: a fit to the same data, with the same
        parameters and seed, that is started again after an interruption goes on there. It stays
        after the fit. Needs a `random_state` that is a number.
    selection : {"silhouette", "evidence"}, default="silhouette"
        How to choose the rank and the number of features. "silhouette" is the paper's: sets that
        show K clusters by the gap statistic are compared by how well these separate in the
        features that made them. "evidence" takes the tree that says most about the features that
        were not selected, compared with shuffled samples, and cuts it where it says most. For
        data such as gene expression, where the clusters show in many features: there it finds
        known classes much better. Where all the useful features are few it needs `refine`, or is
        worse. It does without gap statistics, and takes less time.
    refine : bool, default=False
        After the search, look for all features that are associated with what the chosen ones show,
        each tested against trees that never saw it, and build the tree on them (at most 200, the
        strongest). Finds nearly all of the features, and tells structure from noise; where the
        clusters rest on few features that are independent of each other it cannot judge. Adds
        some per cent to the cost of the search.
    robust : bool, default=False
        Pull unusual cells to 2.5 standard deviations (by the median absolute deviation) from the
        median of their feature, and set outlying samples apart: they take part in nothing but are
        attached to the tree at the end. For heavy tails, spikes and failed arrays.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters left by multi-layer pruning (Algorithm 2), 0, 1, ... by first appearance.
    n_clusters_ : int
        Number of these clusters.
    n_features_selected_, rank_ : int
        What was chosen.
    components_ : ndarray of shape (rank_, n_features_in_)
        Sparse loadings that select the features.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        The tree in scipy's format; `children_`, `distances_` and `n_leaves_` are its parts as
        scikit-learn names them.
    search_results_ : dict of ndarray
        One entry for each (q, rank) tried: `n_features_target`, `n_features`, `reached`, `rank`,
        `l1_bound`, `n_leaves`, `silhouette` (zero for a single leaf), `screened_out` (fewer than
        K leaves), `best_rank` (this rank was chosen for its q), `removed` (a local minimum that
        Algorithm 3 or 4 removed), `chosen`; with `selection="evidence"` also `evidence`, in
        standard deviations of shuffled samples.
    split_tests_ : dict of ndarray
        One entry for each node of the tree that the gap statistic tested: `node` (scipy's
        number), `n_samples`, `height`, `drop` (by how much splitting the node lowers the log
        dispersion), `expected_drop` (the mean over reference samples without clusters),
        `standard_error`, `supported` (the drop exceeds what is expected by more than the error),
        `split` (it was made: a supported split is not made once K clusters are reached), and
        `reference_drops`, an array for each node.
    supported_ : bool or None
        With `refine`: whether other features support what the search found. If not, `labels_`
        holds one cluster and the tree is that of the search. None if the search chose so few
        features that this cannot be judged: its result is left alone.
    associated_features_ : ndarray of int
        With `refine`: columns of all features that are associated with the structure, at a false
        discovery rate of 0.05; the tree is built on the strongest of them, `get_support()`.
    feature_qvalues_ : ndarray of shape (n_features_in_,)
        With `refine`: the false discovery rate at which each feature passes.
    outlier_samples_ : ndarray of int
        With `robust`: rows of the outlying samples: those whose third nearest neighbour, in all
        features, is unusually far (its log distance 4 standard deviations above the median).
    n_passes_ : int
        If X was read in blocks of features: the number of passes over all of it. On a device, where
        searches share passes, the number depends on threads.
    n_features_in_, feature_names_in_, sample_names_in_
        Of the data, as in scikit-learn.

    Notes
    -----
    Constant features are never selected. Features that are exact copies of each other enter
    together.

    Missing values (NaN) are allowed. Features are sought with each missing cell at the mean of its
    feature; distances between samples are those to be expected, given what the leading components
    of the selected features say of the missing cells.

    Examples
    --------
    >>> from mrshc import MrSHC
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)
    >>> model = MrSHC(n_features_to_select=50, random_state=0).fit(data.X)
    >>> model.n_clusters_, model.rank_
    (3, 1)
    >>> int(model.get_support()[:50].sum())
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
        """Find the features, the tree and the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples in rows, at least 3, and at least 2 features; NaN marks a missing value. Also a
            memory map, an HDF5 or Zarr array, a backed AnnData object, a sparse matrix, a dask
            array, or an array on a device (torch, CuPy): these stay where they are.
        y : ignored
            There for scikit-learn.

        Returns
        -------
        self : MrSHC
        """
        gap = self._gap_settings()
        n_jobs = check_jobs(self.n_jobs)
        threads = n_threads(n_jobs)
        data = check_samples(self, X, n_threads=threads)
        robust = self._robust_data(data, gap.metric)
        usual = robust.usual_samples()
        plan = self._plan(usual, gap)
        memory = None if self.checkpoint is None else self._memory(usual, plan)
        center = center_of(self.center)
        with reported(self, n_steps=plan.n_steps, X=X, verbose=self.verbose) as progress:
            matrix = centre(
                usual,
                center=center,
                drop_constant=True,
                n_threads=threads,
                on_block=progress.watch(usual.shape, usual.dtype.itemsize),
            )
            result = search(matrix, plan, n_jobs=n_jobs, progress=progress, memory=memory)
        if robust.outlying.size:
            result = _with_outliers(result, robust, gap)
        self._keep(result, robust.outlying, n_features=data.shape[1])
        keep_n_passes(self, matrix.n_passes)
        return self

    def _robust_data(self, data: DataMatrix, metric: Metric) -> RobustData:
        """Return the data, with `robust` winsorised, and the outlying samples."""
        if not check_option("robust", self.robust, (False, True)):
            return RobustData(data=data, outlying=np.empty(0, np.intp))
        if not data.in_memory:
            raise ParameterError(
                "{given} needs X in memory, as an array, but it is stored elsewhere. Load it, or "
                "leave {robust} off.",
                given=Setting("robust", True),
                robust=Parameter("robust"),
                value=True,
            )
        with one_blas_thread():
            return detect_outliers(data.values, metric)

    def data_of_fit(self, X: Any) -> DataMatrix:
        """Return the data of the fit as the tree was built on them: with `robust`, winsorised."""
        return self._robust_data(super().data_of_fit(X), self.metric).data

    def _plan(self, data: DataMatrix, gap: GapSettings) -> SearchPlan:
        n, p = data.shape
        limit = min(n, p)
        rank = check_integer_or(
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
            targets=feature_targets(
                self.n_features_to_select, n_features=p, n_constant=data.summary().n_constant
            ),
            # Centring takes one dimension.
            ranks=(rank,) if rank else tuple(range(1, min(max_rank, n - 1, p) + 1)),
            n_clusters=check_integer_or(
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
            entropy=seed_of(self.random_state),
            selection=check_option("selection", self.selection, tuple(RULES)),
            refine=refine_settings(self),
        )

    def _memory(self, data: DataMatrix, plan: SearchPlan) -> Checkpoint:
        advice = "With a checkpoint, the search must go on with the same reference samples."
        check_integer("random_state", self.random_state, low=0, high=None, advice=advice)
        n, p = data.shape
        sizes = StepSizes(
            n_samples=n,
            n_features=p,
            n_leaves=plan.n_cuts(n),
            cut_scores=plan.rule.cut_scores,
        )
        search = f"{data.fingerprint()} {self.center!r} {plan!r}"
        return Checkpoint(self.checkpoint, search=search, sizes=sizes)

    def _gap_settings(self) -> GapSettings:
        linkage, metric = linkage_and_metric(self.linkage, self.metric)
        advice = "A standard error needs two; the default is 50."
        n_references = check_integer(
            "n_references", self.n_references, low=2, high=MOST_REPETITIONS, advice=advice
        )
        return GapSettings(
            linkage=linkage,
            metric=metric,
            n_references=n_references,
            stop_early=check_option("stop_early", self.stop_early, (True, False)),
        )

    def _keep(self, result: SearchResult, outlying: Index, *, n_features: int) -> None:
        support = np.zeros(n_features, dtype=bool)
        support[result.features] = True
        self._keep_tree(result.pruned.tree, support)
        self.labels_ = result.labels
        self.n_clusters_ = result.n_leaves
        self.rank_ = result.chosen.features.rank
        self.components_ = dense_loadings(result.components, n_features)
        self.search_results_ = candidate_table(result.candidates)
        self.split_tests_ = _test_table(result, outlying)
        if self.robust:
            self.outlier_samples_ = outlying
        else:
            forget(self, "outlier_samples_")
        keep_refined(self, result.refined)
        if result.refined is not None and result.refined.supported is False:
            advice = f"Use cut({result.n_clusters}) to cut the tree all the same."
            _warn(no_support(advice))
        elif result.n_leaves < result.n_clusters:
            _warn(self._shortfall(result.n_leaves, result.n_clusters))

    def _shortfall(self, found: int, wanted: int) -> UnsupportedClustersWarning:
        asked = None if self.n_clusters == "auto" else wanted
        finding, labels = RULES[self.selection].shortfall(found, asked)
        advice = f"{labels}: use cut({wanted}) to cut the tree all the same."
        return UnsupportedClustersWarning(finding, advice=advice)


def _warn(warning: UnsupportedClustersWarning) -> None:
    # From the caller of fit, which scikit-learn wraps.
    warnings.warn(warning, stacklevel=5)


def _with_outliers(result: SearchResult, robust: RobustData, gap: GapSettings) -> SearchResult:
    """Return the result with outlying samples attached to its tree."""
    with one_blas_thread():
        columns = robust.data.columns(result.features).astype(np.float64)
        samples = completed(columns, apart=robust.outlying)
        pruned = attached(
            result.pruned,
            samples.distances(gap.metric),
            robust.outlying,
            n_clusters=result.n_leaves,
            linkage=gap.linkage,
        )
    return replace(result, pruned=pruned)


def _test_table(result: SearchResult, outlying: Index) -> dict[str, NDArray[Any]]:
    pruned, made = result.pruned, result.n_leaves - 1
    # With one cluster against two, the gap statistic compares drops of the log dispersion.
    nodes, curves = list(pruned.tests), list(pruned.tests.values())
    drops = [c.reference[:, 0] - c.reference[:, 1] for c in curves]
    references = np.empty(len(drops), dtype=object)  # of different lengths
    for i, drop in enumerate(drops):
        references[i] = drop
    return {
        "node": np.array(nodes, dtype=np.intp),
        "n_samples": np.array(
            [np.setdiff1d(pruned.tree.members(node), outlying).size for node in nodes],
            dtype=np.intp,
        ),
        "height": np.array([pruned.tree.height(node) for node in nodes]),
        "drop": np.array([c.log_dispersion[0] - c.log_dispersion[1] for c in curves]),
        "expected_drop": np.array([drop.mean() for drop in drops]),
        "standard_error": np.array([c.standard_error[1] for c in curves]),
        "supported": np.array([c.n_clusters > 1 for c in curves], dtype=bool),
        "split": np.isin(nodes, pruned.splits[:made]),
        "reference_drops": references,
    }
