"""Sparse hierarchical clustering of Witten and Tibshirani."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float
from mrshc.core.data.centre_data import centre
from mrshc.core.inference.refinement import Refined, RefineSettings, refine
from mrshc.core.parallel import n_threads, one_blas_thread
from mrshc.core.robust.missing_values import completed
from mrshc.core.sparse_hc.feature_weights import (
    PermutationGap,
    SparseWeights,
    WeightPath,
    permutation_gap,
)
from mrshc.core.sparse_hc.pair_distances import PairDistances
from mrshc.core.trees.tree import agglomerate
from mrshc.errors import Parameter, ParameterError
from mrshc.estimators.base import (
    TreeCutter,
    feature_targets,
    keep_n_passes,
    linkage_and_metric,
    seed_of,
)
from mrshc.estimators.feature_refinement import (
    keep_refined,
    no_support,
    refine_settings,
)
from mrshc.utils.progress import CallbackSupportMixin, reported, with_callbacks
from mrshc.utils.sample_alignment import align_square, sample_names
from mrshc.validation.estimator_data import check_samples
from mrshc.validation.parameters import (
    MOST_REPETITIONS,
    check_dissimilarity,
    check_integer,
    check_jobs,
    check_number,
)

# Where the permutation gap looks for the bound by default: ten values from the first to this share
# of the largest, the root of the number of features.
_SMALLEST_BOUND, _LARGEST_SHARE, _N_BOUNDS = 1.1, 0.7, 10


class SHC(CallbackSupportMixin, TreeCutter):
    """Sparse hierarchical clustering (Witten and Tibshirani 2010).

    Weights the features so that a weighted sum of their distances has the largest norm, under an
    L1 bound that makes most weights zero, and clusters the samples on that sum. The matrix of all
    distances of all pairs in all features is never made.

    Parameters
    ----------
    n_features_to_select : int, sequence of int, "auto" or None, default=None
        Number of features to give a weight, increasing candidates for it, or "auto": the
        candidates of :class:`MrSHC`. Among candidates the permutation gap chooses. None, without
        an `l1_bound`, stands for "auto".
    l1_bound : float, sequence of float, "auto" or None, default=None
        In place of the number of features: the bound on the L1 norm of the weights, between 1 and
        the root of the number of features, candidates for it, or "auto" for ten of them.
    n_clusters : int or None, default=None
        Number of clusters to cut the tree into; None makes the tree only.
    linkage, metric
        As in :class:`MrSHC`.
    complement_of : array-like of shape (n_samples, n_samples) or None, default=None
        `dissimilarity_` of an earlier fit to the same samples: find a dissimilarity that is
        orthogonal to it (complementary sparse clustering). A DataFrame is matched by its index
        and columns to the index of X.
    n_permutations : int, default=10
        Permutations of the permutation gap.
    max_iter : int, default=15
        Largest number of alternations.
    tol : float, default=1e-4
        Stop when the dissimilarity changes by no more than this share, in L1 norm.
    n_jobs : int or None, default=None
        Workers for the permutations, as in joblib. The result is the same for every number.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations.
    verbose : bool, default=False
        Show a progress bar on stderr if that is a terminal.
    refine : bool, default=False
        As in :class:`MrSHC`. The weights stay those that were found; the tree is built on the
        refined features, all of them with the same weight.

    Attributes
    ----------
    feature_weights_ : ndarray of shape (n_features_in_,)
        Weights, zero for features that play no part.
    dissimilarity_ : ndarray of shape (n_samples, n_samples)
        What the tree is built on, unless refined; Frobenius norm one.
    criterion_ : float
        Norm of the weighted distances, each pair counted once.
    l1_bound_ : float
        Bound that was used.
    n_iter_, converged_
        How the alternation ended.
    search_results_ : dict of ndarray
        One entry for each candidate: `l1_bound`, `n_features`, `criterion`, `chosen`; where the
        candidates are numbers of features, `n_features_target` and `reached`; where there was a
        choice, `gap` and `gap_sd`.
    n_passes_ : int
        If X was read in blocks of features: the number of passes, two for each iteration.
    supported_, associated_features_, feature_qvalues_
        With `refine`, as in :class:`MrSHC`.
    labels_, linkage_matrix_, children_, distances_, n_leaves_, n_features_selected_
        As in :class:`HighVarianceHC`.

    Notes
    -----
    Missing values (NaN) are allowed: a pair is compared in the features that both samples have,
    and its distances are scaled up accordingly.

    Examples
    --------
    >>> from mrshc import SHC
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)
    >>> model = SHC(50, n_clusters=3).fit(data.X)
    >>> int(model.get_support()[:50].sum())
    50
    """

    def __init__(
        self,
        n_features_to_select: Any = None,
        *,
        l1_bound: Any = None,
        n_clusters: int | None = None,
        linkage: str = "complete",
        metric: str = "sqeuclidean",
        complement_of: Any = None,
        n_permutations: int = 10,
        max_iter: int = 15,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        refine: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.l1_bound = l1_bound
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.complement_of = complement_of
        self.n_permutations = n_permutations
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.refine = refine

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Weight the features, build the tree and cut it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples in rows; NaN marks a missing value. It may be stored elsewhere, as in
            :class:`MrSHC`.
        y : ignored
            There for scikit-learn.

        Returns
        -------
        self : SHC
        """
        threads = n_threads(check_jobs(self.n_jobs))
        data = check_samples(self, X, n_threads=threads)
        n, p = data.shape
        linkage, metric = linkage_and_metric(self.linkage, self.metric)
        n_clusters = self._wanted_clusters(n)
        with one_blas_thread():
            pairs = PairDistances(data, metric, n_threads=threads)
        _refuse_strangers(pairs)
        bounds, targets = self._candidates(p, data.summary().n_constant)
        self._refuse_choice_of_complement(len(bounds + targets))
        with one_blas_thread():
            path = self._path(pairs)
            solutions = [path.solve(b) for b in bounds] + [path.search(q) for q in targets]
        gap = self._gap(pairs, solutions, X) if len(solutions) > 1 else None
        best = 0 if gap is None else gap.best
        settings = refine_settings(self)
        refined, n_passes = None, pairs.n_passes
        with one_blas_thread():
            dissimilarity = path.dissimilarity(solutions[best])
            if settings is not None:
                matrix = centre(data, center="columns", drop_constant=True, n_threads=threads)
                refined = refine(matrix, solutions[best].indices, settings)
                columns = matrix.columns(refined.features)
                n_passes = pairs.n_passes + (matrix.n_passes or 1) - 1  # one summary for both
        # From here on X is not read any more: a fit that fails leaves what was there.
        self._keep(solutions[best], n_features=p)
        self.dissimilarity_: Float = dissimilarity
        self.search_results_ = _search_table(solutions, targets, gap, best)
        distances = self.dissimilarity_ - min(0.0, float(self.dissimilarity_.min()))
        np.fill_diagonal(distances, 0.0)
        self._keep_tree(agglomerate(distances, linkage), self.feature_weights_ > 0)
        self._keep_cut(n_clusters)
        keep_refined(self, refined)
        if settings is not None and refined is not None:
            self._keep_refined_tree(refined, columns, settings)
        keep_n_passes(self, None if data.in_memory else n_passes)
        return self

    def _keep_refined_tree(
        self, refined: Refined, columns: Float, settings: RefineSettings
    ) -> None:
        """Put the tree on the refined features in the place of the one on the weighted ones."""
        if refined.supported:
            support = np.zeros(self._support.size, dtype=bool)
            support[refined.features] = True
            with one_blas_thread():
                distances = completed(columns).distances(settings.metric)
            self._keep_tree(agglomerate(distances, settings.linkage), support)
            self._keep_cut(self.n_clusters)
        elif refined.supported is False:
            if hasattr(self, "labels_"):
                self.labels_ = self.cut(1)
            warnings.warn(no_support(), stacklevel=4)

    @property
    def _on_weights(self) -> bool:
        """Whether the tree is that of the weighted features, which refinement may have replaced."""
        return not getattr(self, "supported_", False)

    def sample_distances(self, X: Any) -> Float:
        """Return the distances between samples that the tree is built on.

        That is `dissimilarity_`, unless the features were refined.
        """
        self.data_of_fit(X)  # refuses other data
        return self.dissimilarity_ if self._on_weights else super().sample_distances(X)

    def _weights(self) -> Float | None:
        return self.feature_weights_[self._support] if self._on_weights else None

    def _candidates(self, p: int, n_constant: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Return bounds or numbers of features to try; one of the two is empty."""
        wanted = self.n_features_to_select
        if wanted is not None and self.l1_bound is not None:
            raise ParameterError(
                "Give {number} or {bound}, not both, got {value[0]!r} and {value[1]!r}. {advice}",
                number=Parameter("n_features_to_select"),
                bound=Parameter("l1_bound"),
                value=(wanted, self.l1_bound),
                advice="The bound decides on the number of features.",
            )
        targets = feature_targets(
            "auto" if wanted is None else wanted, n_features=p, n_constant=n_constant
        )
        if self.l1_bound is None:
            return (), targets
        largest = float(np.sqrt(p))
        if isinstance(self.l1_bound, str) and self.l1_bound == "auto":
            end = max(_SMALLEST_BOUND, _LARGEST_SHARE * largest)
            return tuple(np.unique(np.linspace(_SMALLEST_BOUND, end, _N_BOUNDS))), ()
        listed = np.iterable(self.l1_bound) and not isinstance(self.l1_bound, str)
        several = list(self.l1_bound) if listed else [self.l1_bound]
        if not several:
            raise ParameterError(
                "{bound} must {allowed}, got an empty sequence.",
                bound=Parameter("l1_bound"),
                value=self.l1_bound,
                allowed="hold at least one number",
            )
        advice = "Above, it has no effect; or give 'auto'."
        return tuple(
            check_number("l1_bound", b, low=1.0, high=largest, advice=advice) for b in several
        ), ()

    def _refuse_choice_of_complement(self, n_candidates: int) -> None:
        if self.complement_of is not None and n_candidates > 1:
            raise ParameterError(
                "{complement} needs one {number} or one {bound}, got {value} candidates. {advice}",
                complement=Parameter("complement_of"),
                number=Parameter("n_features_to_select"),
                bound=Parameter("l1_bound"),
                value=n_candidates,
                advice="The permutation gap, which would choose among them, is not defined for a "
                "complement.",
            )

    def _path(self, pairs: PairDistances) -> WeightPath:
        earlier = self.complement_of
        if earlier is not None:
            earlier = align_square(earlier, sample_names(self), what="complement_of")
            earlier = check_dissimilarity("complement_of", earlier, n_samples=pairs.shape[0])
        path = WeightPath(pairs, orthogonal_to=earlier, **self._stop())
        if path.exhausted:
            raise ValueError(
                "complement_of must leave something of the distances to explain, but they are a "
                "multiple of it. There is no complementary clustering in these features."
            )
        return path

    def _stop(self) -> dict[str, Any]:
        advice = "The default is that of R's sparcl."
        return {
            "max_iter": check_integer("max_iter", self.max_iter, low=1, high=None, advice=advice),
            "tol": check_number("tol", self.tol, low=0.0, high=np.inf, advice=advice),
        }

    def _gap(
        self, pairs: PairDistances, solutions: Sequence[SparseWeights], X: Any
    ) -> PermutationGap:
        n_permutations = check_integer(
            "n_permutations",
            self.n_permutations,
            low=2,
            high=MOST_REPETITIONS,
            advice="A standard deviation needs two; the default is 10.",
        )
        with reported(self, n_steps=n_permutations, X=X, verbose=self.verbose) as progress:
            return permutation_gap(
                pairs,
                solutions,
                n_permutations=n_permutations,
                entropy=seed_of(self.random_state),
                n_jobs=check_jobs(self.n_jobs),
                progress=progress,
                **self._stop(),
            )

    def _keep(self, solution: SparseWeights, *, n_features: int) -> None:
        self.feature_weights_ = np.zeros(n_features)
        self.feature_weights_[solution.indices] = solution.weights
        self.criterion_ = solution.criterion
        self.l1_bound_ = solution.l1_bound
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged


def _refuse_strangers(pairs: PairDistances) -> None:
    if pairs.strangers is not None:
        i, j = pairs.strangers
        raise ValueError(
            f"Every two samples must share an observed feature, but samples {i} and {j} have "
            "none in common. Drop one of them, or impute."
        )


def _search_table(
    solutions: Sequence[SparseWeights],
    targets: tuple[int, ...],
    gap: PermutationGap | None,
    best: int,
) -> dict[str, NDArray[Any]]:
    table = {
        "l1_bound": np.array([s.l1_bound for s in solutions]),
        "n_features": np.array([s.indices.size for s in solutions]),
        "criterion": np.array([s.criterion for s in solutions]),
        "chosen": np.arange(len(solutions)) == best,
    }
    if targets:
        table |= {"n_features_target": np.array(targets)}
        table |= {"reached": table["n_features"] == table["n_features_target"]}
    if gap is not None:
        table |= {"gap": gap.gap, "gap_sd": gap.standard_deviation}
    return table
