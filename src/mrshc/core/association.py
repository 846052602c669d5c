"""Features that are associated with clusters of trees that were built without them.

The clusters of a tree differ by construction in the features from which it was built, so these are
divided into folds, and each fold is tested with a tree of the other folds. A feature set is
replaced by all associated features, again and again, until it hardly changes. The number of
features thereby follows from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv
from scipy.stats import false_discovery_control

from mrshc.core import parallel
from mrshc.core.data.matrix import (
    Centring,
    DataMatrix,
    column_variances,
    namespace,
    to_device,
    to_host,
)
from mrshc.core.kernels import midranks
from mrshc.core.missing_values import complete
from mrshc.core.sparse_components import FeatureSet, component_path, search_grid
from mrshc.core.trees import (
    Tree,
    average_silhouettes,
    cut_tree,
    linkage_matrix,
    min_features,
    pairwise_distances,
)

# Trees are cut into these numbers of clusters, and the tests of all cuts are combined, since the
# true number is unknown. Few data sets have more than seven clusters.
_CUTS = (2, 3, 4, 5, 6, 7)
_N_FOLDS = 10  # the tree of nine tenths of the features is nearly as good as that of all
# Start sets: 20 features are enough for a tree, 60 are about as many as are informative in the
# simulations of the paper, and trees on real data do not improve beyond 500. One component shows
# one contrast; clusters with features of their own need several.
_STARTS, _SHARE_OF_START, _MIN_START, _MAX_START = (20, 60), 0.1, 20, 500
_START_RANKS = (1, 3, 5)
# Of the start sets, this many are continued after the first round; their order may still change.
_N_CONTINUED = 3
_MAX_ROUNDS = 6
# Rounds end when this share of the features of the larger of two successive sets is in both.
_SETTLED_SHARE = 0.95
# With fewer associated features, the clusters are not supported.
MIN_FEATURES = 5
# With fewer samples, p-values are hardly below 5 %, so the absence of associated features says
# nothing.
MIN_SAMPLES = 7
# More clusters are not chosen, since they are difficult to interpret.
MAX_CLUSTERS = 10
# Larger p-values are replaced by this value before they are combined: the Cauchy quantile of a
# p-value near 1 could cancel those of all others.
_LARGEST_COMBINED = 0.999


@dataclass(eq=False)
class Refinement:
    """A feature set that is replaced by the associated features in each round.

    Attributes
    ----------
    start : ndarray
        The features of the start set, in increasing order.
    present : ndarray
        The features of the present set.
    tested : ndarray
        The features of the set whose clusters were tested last.
    associated : ndarray
        The features that are associated with these clusters.
    strength : float
        Sum of squares between the clusters, over the associated features.
    p_values : ndarray of shape (p,)
        P-values of the last round; NaN where they are above alpha and were not computed.
    """

    start: np.ndarray
    present: np.ndarray
    n_rounds: int = 0
    is_finished: bool = False
    tested: np.ndarray = field(default_factory=lambda: np.empty(0, np.intp))
    associated: np.ndarray = field(default_factory=lambda: np.empty(0, np.intp))
    strength: float = 0.0
    p_values: np.ndarray = field(default_factory=lambda: np.empty(0))
    _previous: set[bytes] = field(default_factory=set)

    @property
    def has_enough(self) -> bool:
        return self.associated.size >= MIN_FEATURES

    @property
    def features(self) -> np.ndarray:
        """The features of the result: the start set if too few features are associated."""
        return self.present if self.has_enough else self.start

    @property
    def n_associated(self) -> int:
        return self.associated.size if self.has_enough else 0

    def is_supported(self, n_samples: int) -> bool | None:
        """Return whether enough features are associated; None if this cannot be decided."""
        can_decide = self.start.size >= MIN_FEATURES and n_samples >= MIN_SAMPLES
        return True if self.has_enough else (False if can_decide else None)

    def advance(
        self, p_values: np.ndarray, strengths: np.ndarray, alpha: float, max_features: int
    ) -> None:
        """Replace the set by the associated features with the largest sums of squares.

        Those with the smallest p-values would all show the clusters that are easiest to see.
        """
        self.n_rounds += 1
        self.tested, self.p_values = self.present, p_values
        self.associated = associated_features(p_values, alpha)
        if not self.has_enough:
            self.is_finished, self.strength = True, 0.0
            return
        self.strength = float(strengths[self.associated].sum())
        strongest = np.argsort(-strengths[self.associated], kind="stable")[:max_features]
        following = np.sort(self.associated[strongest])
        n_common = np.intersect1d(self.present, following, assume_unique=True).size
        is_settled = n_common >= _SETTLED_SHARE * max(self.present.size, following.size)
        self._previous.add(self.present.tobytes())
        self.present = following
        self.is_finished = (
            is_settled
            or following.tobytes() in self._previous  # the same rounds would be repeated
            or self.n_rounds == _MAX_ROUNDS
        )


@dataclass(frozen=True, eq=False)
class AssociationResult:
    """The result of the association rule.

    Attributes
    ----------
    chosen : FeatureSet
        The start set that led to the strongest result.
    loadings : ndarray of shape (rank, p)
        Its sparse components.
    refined : Refinement
        What it led to.
    supported : bool or None
        Whether enough features are associated.
    q_values : ndarray of shape (p,)
        Q-values of all features in the last round; 1 if no test was possible.
    tree : Tree
        Tree of the samples on the features of the result.
    n_clusters : int
        Number of clusters: the given one, 1 without support, or that of `best_cut`.
    best_cut : int
        Number of clusters of the cut with the largest drop ratio.
    """

    chosen: FeatureSet
    table: dict[str, np.ndarray]
    loadings: np.ndarray
    refined: Refinement
    supported: bool | None
    q_values: np.ndarray
    tree: Tree
    n_clusters: int
    best_cut: int

    @property
    def associated(self) -> np.ndarray:
        """The associated features; none if there are too few."""
        return self.refined.associated[: self.refined.n_associated]


def association_search(
    matrix: DataMatrix,
    centring: Centring,
    *,
    n_varying: int,
    n_clusters: int | None,
    linkage: str,
    metric: str,
    alpha: float,
    max_features: int,
    progress: parallel.Progress,
) -> AssociationResult:
    """Return the tree on the features that are associated with its clusters.

    Start sets of several sizes are selected by sparse components. The one whose refinement ends
    with the largest sum of squares between clusters is used.
    """
    n, p = matrix.shape
    smallest = min_features(metric)
    share = min(max(round(_SHARE_OF_START * n_varying), _MIN_START), _MAX_START)
    targets = sorted(
        {min(q, n_varying) for q in (*_STARTS, share) if min(q, n_varying) >= smallest}
    )
    ranks = [rank for rank in _START_RANKS if rank <= min(n - 1, p)]
    grid = [(q, r) for q in targets for r in ranks if r <= q or r == ranks[0]]
    path = component_path(matrix, centring, rank=ranks[-1], max_features=targets[-1])
    starts = search_grid(path, grid, tolerance=0, smallest=smallest)
    n_steps = _MAX_ROUNDS + 2
    progress(1, n_steps)
    settings: Any = {"linkage": linkage, "metric": metric, "alpha": alpha, "kept_ranks": {}}
    refined = refine(
        matrix,
        [start.features for start in starts],
        max_features=max_features,
        n_continued=_N_CONTINUED,
        progress=lambda n_rounds: progress(1 + n_rounds, n_steps),
        **settings,
    )
    strengths = np.array([r.strength for r in refined])
    chosen = int(strengths.argmax())
    if strengths[chosen] == 0.0:  # no set is supported; those too small could not have been
        chosen = int(np.array([r.features.size >= MIN_FEATURES for r in refined]).argmax())
    q_values = feature_q_values(
        matrix, refined[chosen], linkage=linkage, metric=metric, kept_ranks=settings["kept_ranks"]
    )
    cuts = _cut_candidates(matrix, refined, linkage, metric, n_clusters)
    leaves = [
        n_clusters or (1 if r.is_supported(n) is False else best)
        for r, (_, best, _) in zip(refined, cuts, strict=True)
    ]
    table = {
        "n_features_target": np.array([q for q, _ in grid]),
        "n_features": np.array([r.features.size for r in refined]),
        "reached": np.array([start.reached for start in starts]),
        "rank": np.array([start.rank for start in starts]),
        "l1_bound": np.array([start.l1_bound for start in starts]),
        "n_leaves": np.array(leaves),
        "silhouette": np.array([s[k - 1] for (_, _, s), k in zip(cuts, leaves, strict=True)]),
        "n_associated": np.array([r.n_associated for r in refined]),
        "strength": strengths,
        "chosen": np.arange(len(grid)) == chosen,
    }
    progress(n_steps, n_steps)
    return AssociationResult(
        chosen=starts[chosen],
        table=table,
        loadings=path.loadings(starts[chosen].l1_bound, starts[chosen].rank),
        refined=refined[chosen],
        supported=refined[chosen].is_supported(n),
        q_values=q_values,
        tree=cuts[chosen][0],
        n_clusters=leaves[chosen],
        best_cut=cuts[chosen][1],
    )


def refine(
    matrix: DataMatrix,
    starts: Sequence[np.ndarray],
    *,
    linkage: str,
    metric: str,
    alpha: float,
    max_features: int,
    kept_ranks: dict[int, Any],
    n_continued: int,
    progress: Callable[[int], None],
) -> list[Refinement]:
    """Refine several feature sets; all are tested in the same passes over the data.

    After the first round, only the `n_continued` sets of the largest strengths are refined further.
    `kept_ranks` keeps the ranks of data on a device.
    """
    refined = [Refinement(start, start) for start in map(np.sort, starts)]
    while active := [r for r in refined if not r.is_finished]:
        # Different starts often lead to the same set, which is tested once.
        sets = {r.present.tobytes(): r.present for r in active}
        options: Any = {
            "linkage": linkage,
            "metric": metric,
            "alpha": alpha,
            "kept_ranks": kept_ranks,
        }
        tests = association_tests(matrix, list(sets.values()), **options)
        results = dict(zip(sets, tests, strict=True))
        for r in active:
            r.advance(*results[r.present.tobytes()], alpha, max_features)
        if active[0].n_rounds == 1:
            for r in sorted(refined, key=lambda r: -r.strength)[n_continued:]:
                r.is_finished = True
        progress(max(r.n_rounds for r in refined))
    return refined


def feature_q_values(
    matrix: DataMatrix,
    refined: Refinement,
    *,
    linkage: str,
    metric: str,
    kept_ranks: dict[int, Any],
) -> np.ndarray:
    """Return the q-values of all features in the last round of a refinement.

    P-values above alpha were not computed in the rounds, so one more pass is made.
    """
    p_values = refined.p_values
    if np.isnan(p_values).any():
        [(p_values, _)] = association_tests(
            matrix,
            [refined.tested],
            linkage=linkage,
            metric=metric,
            alpha=1.0,
            kept_ranks=kept_ranks,
        )
    return q_values_of_tested(p_values)


def q_values_of_tested(p_values: np.ndarray) -> np.ndarray:
    """Return the q-values of Benjamini and Hochberg (1995); p-values of 1 are left out.

    Such a p-value means that no test was possible.
    """
    q_values, is_tested = np.ones(p_values.size), p_values < 1.0
    if is_tested.any():
        q_values[is_tested] = false_discovery_control(p_values[is_tested])
    return q_values


def associated_features(p_values: np.ndarray, alpha: float) -> np.ndarray:
    """Return the features with a q-value of at most alpha; p-values above it may be NaN."""
    candidates = np.flatnonzero((p_values <= alpha) & (p_values < 1.0))
    order = np.argsort(p_values[candidates], kind="stable")
    n_tested = np.count_nonzero(p_values != 1.0)
    small = p_values[candidates][order] * n_tested <= alpha * np.arange(1, order.size + 1)
    n_associated = int(np.flatnonzero(small)[-1]) + 1 if small.any() else 0
    return np.sort(candidates[order[:n_associated]])


def _cut_candidates(
    matrix: DataMatrix,
    refined: list[Refinement],
    linkage: str,
    metric: str,
    n_clusters: int | None,
) -> list[tuple[Tree, int, np.ndarray]]:
    """Return the tree of each refined set, its best number of clusters, and its silhouettes."""
    n = matrix.shape[0]
    k_max = min(max(MAX_CLUSTERS, n_clusters or 0), n)
    sets = {r.features.tobytes(): r.features for r in refined}

    def evaluate(features: np.ndarray) -> tuple[Tree, int, np.ndarray]:
        distances = complete(matrix.columns(features)).distances(metric)
        tree = Tree(linkage_matrix(distances, linkage))
        partitions = cut_tree(tree.linkage_matrix, range(1, min(k_max + 1, n) + 1))
        ratios = drop_ratios(distances, partitions)[: MAX_CLUSTERS - 1]
        best = int(ratios.argmax()) + 2 if ratios.size else 1
        return tree, best, average_silhouettes(distances, partitions[:k_max])

    results = dict(zip(sets, parallel.run(evaluate, sets.values()), strict=True))
    return [results[r.features.tobytes()] for r in refined]


def drop_ratios(distances: np.ndarray, partitions: np.ndarray) -> np.ndarray:
    """Return (W_(k-1) - W_k) / (W_k - W_(k+1)) for k = 2, 3, ...

    W_k is the sum, over clusters, of the distances between all pairs divided by the size: for
    squared Euclidean distances twice the sum of squares within clusters. `partitions` are those
    into 1, 2, ... clusters.
    """
    dispersions = []
    for labels in partitions:
        members = (labels[:, None] == np.arange(labels.max() + 1)).astype(np.float64)
        sums = np.einsum("ik,ik->k", members, distances @ members)
        dispersions.append(float((sums / members.sum(axis=0)).sum()))
    # Splits of identical samples have a drop of zero; the limit keeps the ratios finite.
    tiny = np.finfo(np.float64).tiny
    negligible = np.finfo(np.float64).eps * max(float(distances.sum()), tiny)
    drops = np.maximum(-np.diff(dispersions), negligible)
    return drops[:-1] / drops[1:]


# ---------------------------------------------------------------------------------- The tests


def association_tests(
    matrix: DataMatrix,
    sets: list[np.ndarray],
    *,
    linkage: str,
    metric: str,
    alpha: float,
    kept_ranks: dict[int, Any],
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return p-values and strengths of all features, for the clusters of each feature set.

    A strength is the mean over cuts of the sum of squares between clusters. P-values above `alpha`
    may be NaN, since they are not needed. `kept_ranks` keeps the ranks of data on a device.
    """
    n, p = matrix.shape
    counts = [k for k in _CUTS if k < n]
    if not counts:  # every sample would be a cluster
        return [(np.ones(p), np.zeros(p)) for _ in sets]
    of_sets = [_test_own_features(matrix, s, counts, linkage, metric) for s in sets]
    partitions = np.stack([cuts for cuts, _, _ in of_sets])
    test = partial(block_tests, partitions=partitions, alpha=alpha, kept_ranks=kept_ranks)
    p_values, strengths = map(np.hstack, zip(*matrix.map(test), strict=True))
    for i, (_, *own) in enumerate(of_sets):
        p_values[i, sets[i]], strengths[i, sets[i]] = own
    return list(zip(p_values, strengths, strict=True))


def _test_own_features(
    matrix: DataMatrix, features: np.ndarray, counts: list[int], linkage: str, metric: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cuts of the tree of a feature set, and the tests of the features of the set.

    Each fold is tested with the tree of the other folds.
    """
    X = matrix.columns(features)
    has_missing = bool(np.isnan(X).any())
    distances = complete(X).distances(metric)
    folds = split_into_folds(X)
    if features.size - folds[0].size < min_features(metric):
        folds = []

    def cut_without(fold: np.ndarray) -> np.ndarray:
        """Return the cuts of the tree of the features outside a fold, which may be empty."""
        rest = distances
        if fold.size and (metric == "correlation" or has_missing):
            others = np.delete(np.arange(features.size), fold)
            rest = complete(X[:, others]).distances(metric)
        elif fold.size:  # the distances are sums over features
            rest = pairwise_distances(X[:, fold], metric)
            np.subtract(distances, rest, out=rest)  # in place: they are large for many samples
            np.maximum(rest, 0.0, out=rest)
        return cut_tree(linkage_matrix(rest, linkage), counts)

    cuts, *of_folds = parallel.run(cut_without, [np.empty(0, np.intp), *folds])
    p_values, strengths = np.ones(features.size), np.zeros(features.size)
    if folds:
        is_in_fold = np.zeros((len(folds), features.size), dtype=bool)
        for fold, row in zip(folds, is_in_fold, strict=True):
            row[fold] = True
        tests = block_tests(X, 0, partitions=np.stack(of_folds), needed=is_in_fold)
        p_values, strengths = (part.T[is_in_fold.T] for part in tests)
    return cuts, p_values, strengths


def split_into_folds(X: np.ndarray) -> list[np.ndarray]:
    """Return at most ten folds of the columns of X, dealt out in the order of their variances.

    Each fold then has features of large and of small variance.
    """
    order = np.argsort(-column_variances(X), kind="stable")
    return [order[i::_N_FOLDS] for i in range(min(_N_FOLDS, order.size))]


def block_tests(
    block: Any,
    start: int,
    *,
    partitions: np.ndarray,
    alpha: float = 1.0,
    needed: np.ndarray | None = None,
    kept_ranks: dict[int, Any] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return p-values and strengths (n_trees, b) of a block of features, for the cuts of trees.

    The test is an analysis of variance of the ranks. The variance of the ranks is that without
    ties: if it were reduced for ties, a few samples that differ from many equal ones would appear
    to be significant. The p-values of the cuts are combined by the Cauchy combination test (Liu and
    Xie 2020), which holds whatever the dependence between them.

    Parameters
    ----------
    block : array of shape (n, b)
        Values of the features.
    partitions : ndarray of int of shape (n_trees, n_cuts, n)
        Labels of the samples.
    alpha : float
        Combined p-values above alpha may be NaN.
    needed : ndarray of bool of shape (n_trees, b) or None
        The p-values that are needed, of those up to alpha; others are NaN.
    kept_ranks : dict or None
        Keeps the ranks of blocks on a device, by their first features.
    """
    n_trees, n_cuts, n = partitions.shape
    of_values = _ranks(block, start, kept_ranks)
    parts = analyse_variance(block, partitions.reshape(-1, n), of_values)
    shares, between, within, squares = (part.reshape(n_trees, n_cuts, -1) for part in parts)
    # A mean of Cauchy quantiles is at most the largest of them, so the combination exceeds alpha
    # where all p-values do. Most features need no p-values (2 instead of 12 s for a million).
    # Shares of zero belong to features that cannot be tested, whose p-value of 1 is needed.
    if needed is None:
        needed = np.ones((n_trees, shares.shape[2]), dtype=bool)
    if alpha < 1.0:
        critical = _critical_shares(n, n_cuts, alpha)[between, within]
        needed &= (shares > critical).any(axis=1) | (shares[:, -1] < 1e-9)
    combined = np.full(needed.shape, np.nan)
    trees, columns = np.nonzero(needed)
    used = (
        np.broadcast_to(part, shares.shape)[trees, :, columns] for part in (shares, between, within)
    )
    combined[trees, columns] = cauchy_combination(f_tail(*used))
    return combined, squares.mean(axis=1)


@cache
def _critical_shares(n: int, n_cuts: int, alpha: float) -> np.ndarray:
    """Return shares of explained variance whose p-values are slightly above alpha.

    The table has an entry for each number of degrees of freedom between and within clusters.
    """
    between, within = np.ogrid[: n_cuts + 1, : n + 1]
    b, w = np.maximum(between, 1) / 2, np.maximum(within, 1) / 2
    return 1.0 - betaincinv(w, b, min(alpha * (1 + 1e-6), 1.0))


def analyse_variance(
    block: Any, partitions: np.ndarray, rank: Any = None
) -> tuple[np.ndarray, ...]:
    """Return an analysis of variance of each feature, for several partitions of all samples.

    The features are those of a block (n, b), and `rank` are the ranks of their values or None.

    Returns
    -------
    shares : ndarray of shape (n_partitions, b)
        Share of the variance of the ranks that is between the clusters.
    between, within : ndarray of int of shape (n_partitions, b) or (n_partitions, 1)
        Degrees of freedom.
    squares : ndarray of shape (n_partitions, b)
        Sum of squares of the values between the clusters.
    """
    xp, n = namespace(block), block.shape[0]
    # One row for each cluster of each partition, so that sums over clusters are products.
    sizes = partitions.max(axis=1) + 1
    owners = np.repeat(np.arange(sizes.size), sizes)
    clusters = np.arange(owners.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members = partitions[owners] == clusters[:, None]
    of_partition = owners == np.arange(sizes.size)[:, None]
    groups, sums = (to_device(m.astype(np.float64), block) for m in (members, of_partition))
    values = xp.astype(block, xp.float64)
    rank = _ranks(block, 0, None) if rank is None else rank
    missing = xp.isnan(values)
    if not xp.any(missing):
        observed, n_used = None, float(n)
        total = n * (n * n - 1.0) / 12.0
        counts = xp.sum(groups, axis=1)[:, None]
        values = values - xp.mean(values, axis=0)
        rank = rank - (n + 1) / 2
    else:
        observed = xp.astype(~missing, xp.float64)
        n_used, counts = xp.sum(observed, axis=0), groups @ observed
        total = xp.where(n_used > 1.0, n_used * (n_used * n_used - 1.0) / 12.0, 1.0)
        values = xp.where(missing, 0.0, values)
        values = (values - xp.sum(values, axis=0) / n_used) * observed
        rank = (rank - (n_used + 1) / 2) * observed
    n_clusters = sums @ xp.astype(counts > 0, xp.float64)
    counts = xp.where(counts > 0, counts, 1.0)
    # Sums of squares as if nothing were missing, so that features are comparable.
    squares = sums @ ((groups @ values) ** 2 / counts) * (n / n_used)
    shares = sums @ ((groups @ rank) ** 2 / counts) / total
    between, within = n_clusters - 1, n_used - n_clusters
    results = (to_host(result) for result in (shares, between, within, squares))
    shares, between, within, squares = results
    is_testable = (between > 0) & (within > 0)
    return (
        np.where(is_testable, np.minimum(shares, 1.0), 0.0),
        between.astype(np.intp),
        within.astype(np.intp),
        squares,
    )


def _ranks(block: Any, start: int, kept_ranks: dict[int, Any] | None) -> Any:
    """Return the midranks (n, b) of the samples in each feature, among its observed values."""
    if namespace(block) is np:
        features = np.ascontiguousarray(block.T, dtype=np.float64)
        return midranks(features, np.argsort(features, axis=1)).T
    # Sorting on a device takes longer than a round of tests, so the ranks are kept.
    kept = {} if kept_ranks is None else kept_ranks
    if start not in kept:
        kept[start] = _ranks_on_device(block)
    return namespace(block).astype(kept[start], namespace(block).float64)


def _ranks_on_device(block: Any) -> Any:
    """Return the midranks of a block, with functions of the array API standard.

    The ranks of missing values are larger than those of observed ones.
    """
    xp, b = namespace(block), block.shape[1]
    ranks, ordered = _first_ranks(block)
    tied = xp.nonzero(xp.any(ordered[1:, :] == ordered[:-1, :], axis=0))[0]
    # Equal values are ranked in their order, and in the reversed order; the midrank is the mean.
    backward, _ = _first_ranks(xp.flip(xp.take(block, tied, axis=1), axis=0))
    midranks = (xp.take(ranks, tied, axis=1) + xp.flip(backward, axis=0)) / 2.0
    place = np.arange(b)
    place[to_host(tied)] = b + np.arange(tied.shape[0])
    return xp.take(xp.concat([ranks, midranks], axis=1), to_device(place, block), axis=1)


def _first_ranks(block: Any) -> tuple[Any, Any]:
    """Return the ranks of a block, where equal values are ranked in their order, and its order."""
    xp = namespace(block)
    block = block + 0.0  # no sort distinguishes zeros then
    order = xp.argsort(block, axis=0, stable=True)
    ranks = xp.argsort(xp.astype(order, xp.int32), axis=0) + 1
    return xp.astype(ranks, xp.float32), xp.take_along_axis(block, order, axis=0)


def f_tail(shares: np.ndarray, between: np.ndarray, within: np.ndarray) -> np.ndarray:
    """Return the p-values of analyses of variance, given shares of explained variance."""
    is_testable = (between > 0) & (within > 0)
    b, a = np.maximum(between, 1) / 2, np.maximum(within, 1) / 2
    return np.where(is_testable, betainc(a, b, 1.0 - np.minimum(shares, 1.0)), 1.0)


def cauchy_combination(p_values: np.ndarray) -> np.ndarray:
    """Return one p-value for each row; values of 1, where no test was possible, are left out."""
    with np.errstate(divide="ignore", over="ignore"):  # infinite for p-values near 0
        quantiles = 1.0 / np.tan(np.pi * np.minimum(p_values, _LARGEST_COMBINED))
    is_used = p_values < 1.0
    n_used = is_used.sum(axis=1)
    means = np.where(is_used, quantiles, 0.0).sum(axis=1) / np.maximum(n_used, 1)
    # atan2 avoids the cancellation of 1/2 - arctan(x) / pi for small p-values.
    return np.where(n_used > 0, np.arctan2(1.0, means) / np.pi, 1.0)
