"""Sparse hierarchical clustering (SHC) of Witten and Tibshirani."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from mrshc.core import parallel
from mrshc.core.parallel import progress_bar
from mrshc.core.sparse_dissimilarity import (
    DataDissimilarity,
    FeatureWeights,
    L1Path,
    PermutationGap,
    candidate_table,
    default_bounds,
    permutation_gap,
)
from mrshc.core.spike_and_slab import spike_and_slab
from mrshc.core.trees import Tree, linkage_matrix
from mrshc.estimators.base import (
    HierarchicalClusterer,
    candidate_counts,
    check_cut,
    check_linkage_and_metric,
    count_varying,
)
from mrshc.validation import (
    check_integer,
    check_n_jobs,
    check_number,
    check_option,
    check_samples,
    draw_seed,
)

_METRICS = ("sqeuclidean", "cityblock")  # sums over features
# Logarithms of the penalties are used.
_PENALTY_RANGE = (1e-6, 1e300)
_DEFAULT_SLAB = 1.0


class SHC(HierarchicalClusterer):
    """Sparse hierarchical clustering of Witten and Tibshirani [1]_.

    The features are weighted such that the weighted sum of their dissimilarity matrices has the
    largest norm, under a bound on the L1 norm of the weights, or with the penalty of the
    spike-and-slab lasso (SHC-SSL [2]_). The tree is built on the weighted sum.

    Parameters
    ----------
    n_features_to_select : int, sequence of int, "auto" or None, default=None
        Number of features with a weight, or candidates, of which the permutation gap chooses one;
        "auto" as in :class:`MrSHC`. None is "auto" unless `l1_bound` is given.
    l1_bound : float, sequence of float, "auto" or None, default=None
        Bound on the L1 norm, between 1 and the square root of the number of features, or
        candidates; "auto" means ten from 1.1 to 0.7 times that root. Give this or
        `n_features_to_select`.
    penalty : {"l1", "ssl"}, default="l1"
        With "ssl", the number of features follows from `spike_penalty`.
    spike_penalty : float, sequence of float, "auto" or None, default=None
        Penalty of small weights with "ssl", at least `slab_penalty`, or candidates. None and "auto"
        mean 100, up to three times the largest slope of a feature for equal dissimilarities.
    slab_penalty : float, default=1.0
        Penalty of large weights with "ssl".
    n_clusters : int or None, default=None
        Number of clusters of the cut; None for a tree without clusters.
    linkage : str, default="complete"
        "single", "complete", "average", "weighted", "ward", "centroid" or "median".
    metric : {"sqeuclidean", "cityblock"}, default="sqeuclidean"
        Dissimilarity of two samples in a feature. Ward's, centroid and median linkage need the
        first.
    complement_of : array-like of shape (n_samples, n_samples) or None, default=None
        `dissimilarity_` of an earlier fit, to which the new one is orthogonal. Only one candidate
        is allowed then.
    n_permutations : int, default=10
        Number of permutations for the gap, if there are several candidates.
    max_iter : int, default=15
        Largest number of iterations for a candidate.
    tol : float, default=1e-4
        Relative change of the dissimilarity, in L1 norm, at which iterations end.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutations.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters, in the order of the leaves; only if `n_clusters` is given.
    feature_weights_ : ndarray of shape (n_features_in_,)
        Weights, at least 0, of norm 1.
    dissimilarity_ : ndarray of shape (n_samples, n_samples)
        Weighted sum of the dissimilarities, with Frobenius norm 1.
    criterion_ : float
        u'Dw of the guide.
    l1_bound_, spike_penalty_ : float
        The chosen one; which of the two is defined depends on `penalty`.
    n_iter_, converged_ : int, bool
        Iterations of the chosen candidate, and whether they converged.
    search_results_ : dict of ndarray
        One entry for each candidate: `l1_bound` or `spike_penalty`, `n_features`, `criterion`,
        `chosen`; `n_features_target` and `reached`; `gap` and `gap_sd`.
    n_features_selected_ : int
        Number of features with a weight; `get_support` returns their mask.
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree in scipy's format; also as `children_`, `distances_` and `n_leaves_`.

    See Also
    --------
    AssociationHC, MrSHC

    References
    ----------
    .. [1] Witten, D. M. and Tibshirani, R. (2010). A framework for feature selection in clustering.
       Journal of the American Statistical Association 105(490), 713-726.
       https://doi.org/10.1198/jasa.2010.tm09415
    .. [2] Li, X., Korkut, A. and others (2026). RECOMBINE identifies recurrent composite markers of
       cell types and states. Genome Research 36(6), 1221-1237.
       https://doi.org/10.1101/gr.280817.125

    Examples
    --------
    >>> from mrshc import SHC
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(random_state=1, mu=2.0)  # features 0 to 49 are informative
    >>> model = SHC(50, n_clusters=3).fit(data.X)
    >>> int(model.get_support()[:50].sum())
    50
    """

    def __init__(
        self,
        n_features_to_select: Any = None,
        *,
        l1_bound: Any = None,
        penalty: str = "l1",
        spike_penalty: Any = None,
        slab_penalty: float = _DEFAULT_SLAB,
        n_clusters: int | None = None,
        linkage: str = "complete",
        metric: str = "sqeuclidean",
        complement_of: Any = None,
        n_permutations: int = 10,
        max_iter: int = 15,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.l1_bound = l1_bound
        self.penalty = penalty
        self.spike_penalty = spike_penalty
        self.slab_penalty = slab_penalty
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.complement_of = complement_of
        self.n_permutations = n_permutations
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Weight the features, build the tree, and cut it unless `n_clusters` is None.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data, in any of the forms that :meth:`MrSHC.fit` takes. Every two samples must share
            an observed feature; their dissimilarity is scaled up to all features.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        with parallel.threads(check_n_jobs(self.n_jobs)), progress_bar("SHC") as progress:
            check_linkage_and_metric(self.linkage, self.metric, _METRICS)
            matrix, summary = check_samples(self, X)
            n, p = matrix.shape
            n_clusters = check_cut(self.n_clusters, n)
            count_varying(summary, self.metric)
            data = DataDissimilarity(matrix, summary, self.metric, self._earlier(n))
            if summary.has_missing and data.n_shared.min() == 0:
                i, j = np.unravel_index(int(data.n_shared.argmin()), (n, n))
                raise no_common_feature(i, j)
            name, candidates, targets, solve = self._penalty(data, summary)
            if self.complement_of is not None and len(candidates) > 1:
                raise ValueError(
                    "complement_of needs one "
                    f"{'spike_penalty' if self.penalty == 'ssl' else 'n_features_to_select'}, got "
                    f"{len(candidates)} candidates. The permutation gap, which would choose among "
                    "them, is not defined for a complement."
                )
            solutions = solve(data, candidates)
            gap = None
            if len(solutions) > 1:
                gap = self._gap(data, solutions, solve, progress)
            best = 0 if gap is None else gap.best
            solution = solutions[best]
            self.dissimilarity_ = data.of_weights(solution.weights)[0] / np.sqrt(2)
            # What is orthogonal to an earlier solution may be negative; a constant does not matter.
            distances = self.dissimilarity_ - min(0.0, float(self.dissimilarity_.min()))
            np.fill_diagonal(distances, 0.0)
            tree = Tree(linkage_matrix(distances, self.linkage))
            self.feature_weights_ = solution.weights
            self._store_tree(tree, np.flatnonzero(solution.weights > 0), p)
            self._store_labels(matrix, None if n_clusters is None else tree.cut(n_clusters))
        for other in ("l1_bound_", "spike_penalty_"):
            self.__dict__.pop(other, None)  # of an earlier fit with the other penalty
        setattr(self, f"{name}_", solution.penalty)
        self.criterion_, self.n_iter_ = solution.criterion, solution.n_iter
        self.converged_ = solution.converged
        self.search_results_ = candidate_table(name, solutions, targets, gap, best)
        return self

    def _penalty(self, data: DataDissimilarity, summary: Any) -> tuple[str, Any, Any, Any]:
        """Return the name of the penalty, its candidates, numbers of features, and its solver."""
        stopping: dict[str, Any] = {
            "max_iter": check_integer("max_iter", self.max_iter, low=1),
            "tol": check_number("tol", self.tol, low=0.0, high=np.inf),
        }
        low, high = _PENALTY_RANGE
        slab = check_number("slab_penalty", self.slab_penalty, low=low, high=high)
        if check_option("penalty", self.penalty, ("l1", "ssl")) == "ssl":
            self._refuse(("n_features_to_select", "l1_bound"), "penalty is not 'ssl'")
            settings = spike_and_slab(data, slab_penalty=slab, **stopping)
            candidates = settings.path
            if not _is_auto(self.spike_penalty):
                candidates = _numbers("spike_penalty", self.spike_penalty, slab, high)
            return "spike_penalty", candidates, (), settings.solve
        self._refuse(("spike_penalty",), "penalty='ssl'")
        if slab != _DEFAULT_SLAB:
            raise ValueError(
                f"slab_penalty has an effect only if penalty='ssl', got {slab}. Leave it out."
            )
        wanted = self.n_features_to_select
        if self.l1_bound is None:
            targets = candidate_counts("auto" if wanted is None else wanted, summary, self.metric)
            return "l1_bound", targets, targets, partial(_solve_counts, **stopping)
        if wanted is not None:
            raise bound_and_count(self.l1_bound, wanted)
        bounds = candidate_bounds(self.l1_bound, data.n_features)
        return "l1_bound", bounds, (), partial(_solve_bounds, **stopping)

    def _refuse(self, names: Sequence[str], condition: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} has an effect only if {condition}, got {getattr(self, name)!r}. "
                    "Leave it out."
                )

    def _earlier(self, n: int) -> np.ndarray | None:
        """Return `complement_of` as an array, in the order of the samples."""
        earlier = self.complement_of
        if earlier is None:
            return None
        names = getattr(self, "sample_names_in_", None)
        if hasattr(earlier, "loc") and names is not None:
            earlier = earlier.loc[names, names]
        array = np.asarray(earlier, dtype=np.float64)
        is_valid = array.shape == (n, n) and np.isfinite(array).all() and array.any()
        if not is_valid or np.diag(array).any() or not np.allclose(array, array.T):
            raise ValueError(
                "complement_of must be the dissimilarity_ of an earlier fit: symmetric, finite, "
                f"zero on the diagonal, of shape {(n, n)}, got shape {array.shape}."
            )
        return array

    def _gap(
        self, data: DataDissimilarity, solutions: list[FeatureWeights], solve: Any, progress: Any
    ) -> PermutationGap:
        n_permutations = check_integer("n_permutations", self.n_permutations, low=2, high=10**6)
        entropy, penalties = draw_seed(self.random_state), [s.penalty for s in solutions]
        if self.penalty == "l1":  # numbers of features belong to the data
            solve = partial(_solve_bounds, **solve.keywords)
        n_workers = parallel.n_threads()

        def permuted_criteria(permutation: int) -> np.ndarray:
            permuted = data.permuted(entropy, permutation, n_workers)
            return np.array([s.criterion for s in solve(permuted, penalties)])

        criteria = [s.criterion for s in solutions]
        return permutation_gap(criteria, permuted_criteria, n_permutations, progress)

    def _tree_weights(self) -> np.ndarray:
        return self.feature_weights_[self._support]


def _solve_counts(dissimilarity: Any, counts: Any, **stopping: Any) -> list[FeatureWeights]:
    path = L1Path(dissimilarity, **stopping)
    return [path.search(q) for q in counts]


def _solve_bounds(dissimilarity: Any, bounds: Any, **stopping: Any) -> list[FeatureWeights]:
    path = L1Path(dissimilarity, **stopping)
    return [path.solve(bound) for bound in bounds]


def _is_auto(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value == "auto")


def _numbers(name: str, given: Any, low: float, high: float) -> tuple[float, ...]:
    """Return a number, or each of a sequence, as a tuple."""
    values = list(given) if np.iterable(given) and not isinstance(given, str) else [given]
    if not values:
        raise ValueError(f"{name} must hold at least one number, got an empty sequence.")
    return tuple(check_number(name, value, low=low, high=high) for value in values)


def candidate_bounds(l1_bound: Any, p: int) -> tuple[float, ...]:
    """Return the candidates for the L1 bound."""
    largest = float(np.sqrt(p))
    if _is_auto(l1_bound):
        return default_bounds(largest)
    return _numbers("l1_bound", l1_bound, 1.0, largest)


def bound_and_count(l1_bound: Any, q: Any) -> ValueError:
    """Return the error for an L1 bound beside a number of features."""
    return ValueError(
        f"Give n_features_to_select or l1_bound, not both, got {q!r} and {l1_bound!r}. The bound "
        "decides on the number of features."
    )


def no_common_feature(i: Any, j: Any) -> ValueError:
    """Return the error for two samples without a common feature."""
    return ValueError(
        f"Every two samples must share an observed feature, but samples {int(i)} and {int(j)} have "
        "none in common. Drop one of them, or impute the missing values."
    )
