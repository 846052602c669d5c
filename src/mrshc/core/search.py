"""The paper's search for the number of features q, the rank r and the number of clusters K.

A tree is built and pruned for each pair (q, r). Algorithms 3 and 4 choose among the trees that have
K clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core import parallel
from mrshc.core.data.matrix import Centring, DataMatrix
from mrshc.core.gap import prune
from mrshc.core.missing_values import complete
from mrshc.core.sparse_components import FeatureSet, component_path, search_grid
from mrshc.core.trees import PrunedTree, Tree, average_silhouettes, linkage_matrix, min_features

# Trees of this many samples are built one after another, and their reference samples at the same
# time: several trees at once would need several matrices of distances each.
_MANY_SAMPLES = 2_000
# The candidates of Zhang and Zamar (2014), whose data have hundreds of features or more.
_PAPER_TARGETS = (10, 20, *range(40, 201, 20), *range(250, 501, 50))
# For fewer than 100 features, most of these would be too large. Small numbers come without gaps,
# because a single feature changes the tree most if there are few.
_FEW_FEATURES, _SMALL_TARGETS = 100, (2, 3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 40)
# K is found from the trees of the three smallest ranks.
_N_RANKS_FOR_K = 3


@dataclass(frozen=True)
class SearchPlan:
    """What is tried, and how trees are built and tested."""

    targets: tuple[int, ...]
    ranks: tuple[int, ...]
    n_clusters: int | None
    tolerance: int
    linkage: str
    metric: str
    n_references: int
    entropy: int

    @property
    def grid(self) -> list[tuple[int, int]]:
        """All pairs (q, r). q features span q dimensions, so larger ranks are not tried."""
        return [(q, r) for q in self.targets for r in self.ranks if r <= q or r == self.ranks[0]]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The chosen candidate, and the table of all.

    Attributes
    ----------
    table : dict of ndarray
        One entry for each pair (q, rank).
    loadings : ndarray of shape (rank, p)
        The sparse components of the chosen candidate.
    pruned : PrunedTree
        Its tree, split into at least `n_leaves` clusters.
    n_clusters : int
        K, at which the candidates were compared.
    n_supported : int
        Number of clusters that the gap statistic supports.
    """

    chosen: FeatureSet
    table: dict[str, np.ndarray]
    loadings: np.ndarray
    pruned: PrunedTree
    n_leaves: int
    n_clusters: int
    n_supported: int


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """A pruned tree, and the mean silhouette width of its first k clusters for k = 1, 2, ..."""

    pruned: PrunedTree
    silhouettes: np.ndarray


def default_targets(n_varying: int, smallest: int) -> tuple[int, ...]:
    """Return the candidates for q if it is not given, for so many features that vary."""
    if n_varying >= _FEW_FEATURES:
        targets = [q for q in _PAPER_TARGETS if q < n_varying]
    else:  # at most half of the features: nearly all would be no selection
        half = max(2, (n_varying + 1) // 2)
        targets = [q for q in _SMALL_TARGETS if q <= min(half, n_varying)] or [n_varying]
    return tuple(q for q in targets if q >= smallest) or (smallest,)


def search(
    matrix: DataMatrix, centring: Centring, plan: SearchPlan, progress: parallel.Progress
) -> SearchResult:
    """Evaluate all pairs (q, rank), and return the one that the rule of the paper chooses."""
    path = component_path(matrix, centring, rank=plan.ranks[-1], max_features=plan.targets[-1])
    found = search_grid(
        path, plan.grid, tolerance=plan.tolerance, smallest=min_features(plan.metric)
    )
    sets = dict(zip(plan.grid, found, strict=True))
    n_steps = 2 * len(plan.grid)
    progress(len(plan.grid), n_steps)
    known: dict[bytes, _Evaluation] = {}
    K = plan.n_clusters
    if K is None:
        ranks = ranks_for_k(plan.ranks)
        pairs = [pair for pair in plan.grid if pair[1] in ranks]
        _evaluate(matrix, plan, [sets[pair] for pair in pairs], np.inf, known)
        progress(len(plan.grid) + len(pairs), n_steps)
        leaves = {pair: known[_key(sets[pair])].pruned.n_leaves for pair in pairs}
        K = reference_k(plan.targets, leaves)
    _evaluate(matrix, plan, list(sets.values()), K, known)
    progress(n_steps, n_steps)
    evaluations = [known[_key(features)] for features in sets.values()]
    table = _candidate_table(sets, evaluations, K)
    chosen, table["best_rank"], table["removed"] = choose(table)
    table["chosen"] = np.arange(len(sets)) == chosen
    features, pruned = list(sets.values())[chosen], evaluations[chosen].pruned
    n_supported = int(table["n_leaves"][chosen])
    n_leaves = n_supported
    if plan.n_clusters is not None:
        pruned, n_leaves = pruned.split_into(K), K
    return SearchResult(
        chosen=features,
        table=table,
        loadings=path.loadings(features.l1_bound, features.rank),
        pruned=pruned,
        n_leaves=n_leaves,
        n_clusters=K,
        n_supported=n_supported,
    )


def _evaluate(
    matrix: DataMatrix,
    plan: SearchPlan,
    sets: Sequence[FeatureSet],
    max_leaves: float,
    known: dict[bytes, _Evaluation],
) -> None:
    """Add the evaluations of feature sets to those known; equal sets are evaluated once."""
    new = {_key(features): features.features for features in sets if _key(features) not in known}
    # Large sets take longest: threads would wait for them if they came last.
    new = dict(sorted(new.items(), key=lambda item: -item[1].size))

    def evaluate(features: np.ndarray) -> _Evaluation:
        samples = complete(matrix.columns(features))
        distances = samples.distances(plan.metric)
        pruned = prune(
            Tree(linkage_matrix(distances, plan.linkage)),
            samples.values,
            distances,
            linkage=plan.linkage,
            metric=plan.metric,
            n_references=plan.n_references,
            entropy=plan.entropy,
            max_leaves=max_leaves,
        )
        partitions = [pruned.labels(k + 1) for k in range(pruned.n_leaves)]
        return _Evaluation(pruned, average_silhouettes(distances, partitions))

    run: Any = parallel.run if matrix.shape[0] < _MANY_SAMPLES else map
    known.update(zip(new, run(evaluate, new.values()), strict=True))


def _key(features: FeatureSet) -> bytes:
    return features.features.tobytes()


def _candidate_table(
    sets: dict[tuple[int, int], FeatureSet], evaluations: list[_Evaluation], K: int
) -> dict[str, np.ndarray]:
    # Trees from which K was found may have more leaves; their first K - 1 splits are the same.
    n_leaves = np.array([min(e.pruned.n_leaves, K) for e in evaluations])
    return {
        "n_features_target": np.array([q for q, _ in sets]),
        "n_features": np.array([s.features.size for s in sets.values()]),
        "reached": np.array([s.reached for s in sets.values()]),
        "rank": np.array([s.rank for s in sets.values()]),
        "l1_bound": np.array([s.l1_bound for s in sets.values()]),
        "n_leaves": n_leaves,
        "silhouette": np.array(
            [e.silhouettes[n - 1] for e, n in zip(evaluations, n_leaves, strict=True)]
        ),
        "screened_out": n_leaves < K,
    }


def ranks_for_k(ranks: Sequence[int]) -> tuple[int, ...]:
    """Return the ranks whose trees are pruned without a limit while K is unknown."""
    return tuple(ranks[:_N_RANKS_FOR_K])


def reference_k(targets: Sequence[int], leaf_counts: dict[tuple[int, int], int]) -> int:
    """Return the number of clusters at which all candidates are compared.

    For each q, the largest number of leaves among its trees is taken; K is the second largest of
    these numbers, so that at least two q reach it, and never less than 2. The paper defines K for
    a single q.
    """
    largest = sorted(
        max(n for (q, _), n in leaf_counts.items() if q == target) for target in targets
    )
    return max(2, largest[-2 if len(largest) > 1 else -1])


def choose(table: dict[str, np.ndarray]) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the row of the chosen candidate, and masks of the best ranks and of removed rows.

    Candidates with fewer than K clusters are screened out. Algorithm 3 chooses the rank for each q,
    and Algorithm 4 the q. If nothing is left, the candidate with the most clusters is chosen, and
    among these the one with the largest silhouette.
    """
    silhouettes, targets = table["silhouette"], table["n_features_target"]
    best_rank, removed = np.zeros((2, silhouettes.size), dtype=bool)
    rows = np.flatnonzero(~table["screened_out"])
    if not rows.size:
        order = np.lexsort((-silhouettes, -table["n_leaves"]))
        return int(order[0]), best_rank, removed
    best = []
    for q in np.unique(targets[rows]):
        of_q = rows[targets[rows] == q]
        position, dropped = iterative_choice(silhouettes[of_q].tolist())
        removed[of_q[dropped]] = True
        best.append(int(of_q[position]))
    best_rank[best] = True
    position, dropped = iterative_choice(silhouettes[best].tolist())
    removed[np.array(best)[dropped]] = True
    return best[position], best_rank, removed


def iterative_choice(silhouettes: Sequence[float]) -> tuple[int, list[int]]:
    """Return the position that Algorithm 3 (over ranks) or 4 (over q) chooses, and those removed.

    If the silhouettes never rise, the first is chosen; if they never fall, the one after the
    largest rise. Otherwise the last local minimum is removed, and so on. End points count as
    local minima, or a single peak would never become monotone.
    """
    left, removed = list(range(len(silhouettes))), list[int]()
    while True:
        rises = np.diff([silhouettes[i] for i in left])
        if (rises <= 0).all():
            return left[0], removed
        if (rises >= 0).all():
            return left[int(rises.argmax()) + 1], removed
        is_minimum = np.append(True, rises <= 0) & np.append(rises >= 0, True)
        removed.append(left.pop(int(np.flatnonzero(is_minimum)[-1])))
