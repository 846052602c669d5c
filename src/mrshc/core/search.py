"""The paper's search for the number of features q, the rank r and the number of clusters K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core import parallel
from mrshc.core.data.matrix import DataMatrix
from mrshc.core.gap import PrunedTree, prune
from mrshc.core.missing_values import complete
from mrshc.core.silhouette_rule import choose, ranks_for_k, reference_k
from mrshc.core.sparse_components import FeatureSet
from mrshc.core.statistics import Centring
from mrshc.core.trees import Tree, average_silhouettes, linkage_matrix, min_features
from mrshc.core.working_set import component_path, search_grid

# Trees of this many samples are built one after another, and their reference samples at the same
# time: several trees at once would need several matrices of distances each.
_MANY_SAMPLES = 2_000


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


def search(
    matrix: DataMatrix, centring: Centring, plan: SearchPlan, progress: parallel.Progress
) -> SearchResult:
    """Evaluate all pairs (q, rank), and return the one that the rule of the paper chooses."""
    path = component_path(matrix, centring, rank=plan.ranks[-1], max_features=plan.targets[-1])
    smallest = min_features(plan.metric)
    sets = dict(
        zip(
            plan.grid,
            search_grid(
                path,
                plan.grid,
                tolerance=plan.tolerance,
                smallest=smallest,
            ),
            strict=True,
        )
    )
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
