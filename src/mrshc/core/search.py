"""Cases 1 to 3: features, tree, pruning and silhouette for each (q, rank), then the choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from typing import Any, Literal, cast, get_args

import numpy as np

from mrshc.core.arrays import Float, Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.refinement import Refined, RefineSettings, refine
from mrshc.core.parallel import Progress, Steps, one_blas_thread, results_of
from mrshc.core.robust.missing_values import completed
from mrshc.core.selection.evidence import JUDGED_CUTS, MOST_CLUSTERS, SUPPORTED, shuffle_scores
from mrshc.core.selection.silhouette import iterative_choice, reference_number_of_clusters
from mrshc.core.sparse_pca.components import Component
from mrshc.core.sparse_pca.l1_path import ComponentPath, FeatureSet, component_path
from mrshc.core.sparse_pca.solvers import AlternationLimits
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import PrunedTree, cut_tree, prune
from mrshc.core.trees.silhouette import average_silhouette
from mrshc.core.trees.tree import agglomerate

# How to choose among candidates: as the paper does, by how well the clusters separate in the
# features that made them, or by what the trees say about the other features.
Selection = Literal["silhouette", "evidence"]
SELECTIONS: tuple[Selection, ...] = get_args(Selection)

# Finished steps by name, so that a search that was interrupted can go on.
Memory = MutableMapping[str, "FeatureSet | Evaluation"]

# The default K is read off the lowest ranks, where the paper finds it reliable.
_RANKS_FOR_K = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """What to try. One q and one rank make Case 1, one q Case 2, several q Case 3."""

    targets: tuple[int, ...]  # numbers of features, increasing
    ranks: tuple[int, ...]  # increasing
    n_clusters: int | None  # reference number of clusters K; None: the default
    tolerance: int  # accepted deviation from a target
    gap: GapSettings
    entropy: int  # of all reference samples
    # The paper's stack stops here. Measured on its simulations, iterating to convergence makes the
    # number of features jump more as the bound moves: q is missed more often, recall falls.
    max_iter: int = 20
    tol: float = 1e-7
    selection: Selection = "silhouette"
    refine: RefineSettings | None = None  # None: the chosen features are left as they are

    @property
    def grid(self) -> list[tuple[int, int]]:
        """Every (q, rank) to try; ranks above q are of no use, q features span no more."""
        return [(q, r) for q in self.targets for r in self.ranks if r <= q or r == self.ranks[0]]

    @property
    def n_steps(self) -> int:
        """Number of steps that the search reports: features, then tree, for each (q, rank)."""
        return 2 * len(self.grid) + (self.refine is not None)

    def n_cuts(self, n_samples: int) -> int | None:
        """Return the number of clusters that trees are cut into; None if pruning finds it."""
        if self.selection == "silhouette":
            return None
        return min(max(MOST_CLUSTERS, self.n_clusters or 0), n_samples)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """One (q, rank): its features, tree and clusters."""

    target: int
    features: FeatureSet
    pruned: PrunedTree
    n_leaves: int  # at most K
    silhouette: float  # of these leaves; zero for a single one
    evidence: float | None  # that the other features have for the tree; None: it was not asked for
    screened_out: bool  # fewer than K leaves
    best_rank: bool = False  # this rank was chosen for its q
    removed: bool = False  # a local minimum that Algorithm 3 or 4 removed
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """All candidates, one of them chosen, and the tree that comes of it."""

    candidates: tuple[Candidate, ...]
    n_clusters: int  # wanted: the reference number of clusters K
    components: tuple[Component, ...]  # behind the chosen features
    refined: Refined | None
    features: Index  # of the tree
    pruned: PrunedTree
    n_leaves: int  # clusters found; fewer than wanted if nothing supports as many

    @property
    def chosen(self) -> Candidate:
        """The chosen candidate."""
        return next(c for c in self.candidates if c.chosen)

    @property
    def labels(self) -> Labels:
        """The cluster of each sample."""
        return self.pruned.labels(self.n_leaves)


def search(
    matrix: CentredMatrix,
    plan: SearchPlan,
    *,
    n_jobs: int | None,
    progress: Progress,
    memory: Memory | None = None,
) -> SearchResult:
    """Try every number of features with every rank, and choose.

    Finished steps go into the memory, and what it holds already is not done again.
    """
    with one_blas_thread():
        return _search(matrix, plan, n_jobs, progress, {} if memory is None else memory)


def _search(
    matrix: CentredMatrix,
    plan: SearchPlan,
    n_jobs: int | None,
    progress: Progress,
    memory: Memory,
) -> SearchResult:
    steps = Steps(total=plan.n_steps, report=progress)
    path = _path(matrix, plan)
    sets = _feature_sets(path, plan, n_jobs, steps, memory)
    evaluations = _Evaluations(n_jobs=n_jobs, steps=steps, memory=memory)
    judged = _by_evidence if plan.selection == "evidence" else _by_silhouette
    candidates, n_clusters = judged(matrix, plan, sets, evaluations)
    chosen = next(c for c in candidates if c.chosen)
    result = SearchResult(
        candidates=tuple(candidates),
        n_clusters=n_clusters,
        components=tuple(path.components(chosen.features.l1_bound, chosen.features.rank)),
        refined=None,
        features=chosen.features.indices,
        pruned=chosen.pruned,
        n_leaves=chosen.n_leaves,
    )
    if plan.refine is not None:
        result = _refined(matrix, plan, plan.refine, result)
        steps.advance(1)
    return result


def _path(matrix: CentredMatrix, plan: SearchPlan) -> ComponentPath:
    return component_path(
        matrix,
        n_components=plan.ranks[-1],
        max_features=plan.targets[-1],
        limits=AlternationLimits(max_iter=plan.max_iter, tol=plan.tol),
    )


def _refined(
    matrix: CentredMatrix, plan: SearchPlan, settings: RefineSettings, result: SearchResult
) -> SearchResult:
    """Build the tree anew on the features that are associated with what the chosen ones show."""
    refined = refine(matrix, result.features, settings)
    if refined.supported is None:
        return replace(result, refined=refined)
    if not refined.supported:
        return replace(result, refined=refined, n_leaves=1)
    columns = matrix.columns(refined.features)
    found = evaluate(
        columns, settings=plan.gap, entropy=plan.entropy, max_leaves=plan.n_clusters
    ).pruned
    if found.n_leaves == 1:
        # Other features support the structure, whatever the gap statistic says of it.
        found = replace(cut_tree(found.tree, 2), tests=found.tests)
    return replace(
        result,
        n_clusters=plan.n_clusters or found.n_leaves,
        refined=refined,
        features=refined.features,
        pruned=found,
        n_leaves=found.n_leaves,
    )


def _feature_sets(
    path: ComponentPath, plan: SearchPlan, n_jobs: int | None, steps: Steps, memory: Memory
) -> dict[tuple[int, int], FeatureSet]:
    names = {(q, rank): f"features {q} {rank}" for q, rank in plan.grid}
    # Neighbours on the grid need the same bounds: workers that begin far apart seldom wait for
    # each other.
    half = (len(plan.grid) + 1) // 2
    apart = sorted(range(len(plan.grid)), key=lambda i: i % half)
    order = [plan.grid[i] for i in apart if names[plan.grid[i]] not in memory]
    steps.advance(len(plan.grid) - len(order))

    if order:
        for key, features in path.search_grid(order, tolerance=plan.tolerance, n_jobs=n_jobs):
            memory[names[key]] = features
            steps.advance(1)
    return {key: cast(FeatureSet, memory[name]) for key, name in names.items()}


Sets = Mapping[tuple[int, int], FeatureSet]


def _by_silhouette(
    matrix: CentredMatrix, plan: SearchPlan, sets: Sets, evaluations: _Evaluations
) -> tuple[list[Candidate], int]:
    """Return the candidates, one of them chosen by Algorithms 3 and 4, and K."""

    def prune_up_to(max_leaves: int | None) -> Callable[[FeatureSet], dict[str, Any]]:
        return lambda features: {
            "X": matrix.columns(features.indices),
            "settings": plan.gap,
            "entropy": plan.entropy,
            "max_leaves": max_leaves,
        }

    if (n_clusters := plan.n_clusters) is None:
        lowest = {key: s for key, s in sets.items() if key[1] in plan.ranks[:_RANKS_FOR_K]}
        evaluations.add(lowest, evaluate, prune_up_to(None))
        leaf_counts = {
            q: max(evaluations[s].pruned.n_leaves for (_, s) in row)
            for q, row in groupby(lowest.items(), key=lambda item: item[0][0])
        }
        n_clusters = reference_number_of_clusters(list(leaf_counts.values()))
    evaluations.add(sets, evaluate, prune_up_to(n_clusters))
    candidates = list[Candidate]()
    for (q, _), features in sets.items():
        found = evaluations[features]
        n_leaves = min(found.pruned.n_leaves, n_clusters)
        candidates.append(_candidate(q, features, found, n_leaves, n_leaves < n_clusters))
    return _judged(candidates), n_clusters


def _by_evidence(
    matrix: CentredMatrix, plan: SearchPlan, sets: Sets, evaluations: _Evaluations
) -> tuple[list[Candidate], int]:
    """Return the candidates, one of them chosen by what it says of other features, and K.

    First the rank that has most evidence on average, then the number of features that has most.
    """
    evaluations.add(
        sets,
        weigh,
        lambda features: {
            "X": matrix.columns(features.indices),
            "others": matrix.gram_without(features.indices),
            "settings": plan.gap,
            "k": plan.n_cuts(matrix.shape[0]),
        },
    )
    candidates = list[Candidate]()
    for (q, _), features in sets.items():
        found = evaluations[features]
        scores = found.evidence
        best = int(scores[: MOST_CLUSTERS - 1].argmax())
        supported = best + 2 if scores[best] >= SUPPORTED else 1
        candidates.append(_candidate(q, features, found, plan.n_clusters or supported, False))
    evidence = np.array([c.evidence for c in candidates])
    ranks = np.array([c.features.rank for c in candidates])
    # Ranks are compared over the numbers of features that all of them were tried with.
    shared = np.array([c.target for c in candidates]) >= ranks.max()
    rank = max(
        np.unique(ranks).tolist(), key=lambda r: float(evidence[shared & (ranks == r)].mean())
    )
    chosen = int(np.where(ranks == rank, evidence, -np.inf).argmax())
    n_clusters = plan.n_clusters or max(2, candidates[chosen].n_leaves)
    return [
        replace(c, best_rank=c.features.rank == rank, chosen=i == chosen)
        for i, c in enumerate(candidates)
    ], n_clusters


def _candidate(
    q: int, features: FeatureSet, found: Evaluation, n_leaves: int, screened_out: bool
) -> Candidate:
    judged = found.evidence[: JUDGED_CUTS - 1]
    return Candidate(
        target=q,
        features=features,
        pruned=found.pruned,
        n_leaves=n_leaves,
        silhouette=float(found.silhouettes[n_leaves - 1]),
        evidence=float(judged.mean()) if judged.size else None,
        screened_out=screened_out,
    )


def _judged(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, one of them chosen by Algorithms 3 and 4."""
    survivors = [i for i, c in enumerate(candidates) if not c.screened_out]
    best_ranks, removed = list[int](), set[int]()

    def choose(among: list[int]) -> int:
        choice = iterative_choice([candidates[i].silhouette for i in among])
        removed.update(among[i] for i in choice.removed)
        return among[choice.position]

    if survivors:
        # Algorithm 3, for each number of features; then Algorithm 4, over these numbers.
        for _, group in groupby(survivors, key=lambda i: candidates[i].target):
            best_ranks.append(choose(list(group)))
        chosen = choose(best_ranks)
    else:
        best = max(candidates, key=lambda c: (c.n_leaves, c.silhouette))
        chosen = candidates.index(best)
    return [
        replace(c, best_rank=i in best_ranks, removed=i in removed, chosen=i == chosen)
        for i, c in enumerate(candidates)
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """The pruned tree of a feature set, and how well its clusters separate."""

    pruned: PrunedTree
    silhouettes: Float  # (n_leaves,), when pruned to 1, 2, ... leaves
    evidence: Float  # that other features have for 2, 3, ... leaves; empty: it was not asked for


def evaluate(
    X: Float, *, settings: GapSettings, entropy: int, max_leaves: int | None
) -> Evaluation:
    """Build, prune and judge the tree of samples on the columns of X."""
    samples = completed(X)
    distances = samples.distances(settings.metric)
    pruned = prune(
        agglomerate(distances, settings.linkage),
        samples.values,
        distances=distances,
        settings=settings,
        entropy=entropy,
        max_leaves=max_leaves,
    )
    return Evaluation(
        pruned=pruned, silhouettes=_silhouettes(distances, pruned), evidence=np.empty(0)
    )


def weigh(X: Float, *, others: Float, settings: GapSettings, k: int) -> Evaluation:
    """Build the tree on the columns of X and see what other features say to its cuts.

    `others` are the inner products of the samples in these; up to k clusters are cut.
    """
    distances = completed(X).distances(settings.metric)
    cuts = cut_tree(agglomerate(distances, settings.linkage), k)
    partitions = [cuts.labels(k) for k in range(2, cuts.n_leaves + 1)]
    return Evaluation(
        pruned=cuts,
        silhouettes=_silhouettes(distances, cuts),
        evidence=shuffle_scores(partitions, others),
    )


def _silhouettes(distances: Float, pruned: PrunedTree) -> Float:
    every = range(1, pruned.n_leaves + 1)
    return np.array([average_silhouette(distances, pruned.labels(k)) for k in every])


class _Evaluations:
    """Evaluations by feature set, each made once and in parallel with others."""

    def __init__(self, *, n_jobs: int | None, steps: Steps, memory: Memory) -> None:
        self._n_jobs = n_jobs
        self._steps = steps
        self._memory = memory
        self._counted = set[tuple[int, int]]()

    def __getitem__(self, features: FeatureSet) -> Evaluation:
        return cast(Evaluation, self._memory[_name_of(features)])

    def add(
        self,
        sets: Sets,
        function: Callable[..., Evaluation],
        arguments: Callable[[FeatureSet], dict[str, Any]],
    ) -> None:
        """Evaluate the sets that are not known yet."""
        copies = Counter(_name_of(s) for key, s in sets.items() if key not in self._counted)
        self._counted.update(sets)
        distinct = {name: s for s in sets.values() if (name := _name_of(s)) not in self._memory}
        self._steps.advance(sum(n for name, n in copies.items() if name in self._memory))
        wanted = (arguments(features) for features in distinct.values())
        with closing(results_of(function, wanted, n_jobs=self._n_jobs)) as evaluations:
            for name, evaluation in zip(distinct, evaluations, strict=True):
                self._memory[name] = evaluation
                self._steps.advance(copies[name])


def _name_of(features: FeatureSet) -> str:
    """Return the name of an evaluation: equal feature sets share theirs."""
    return f"evaluation {sha256(features.indices.tobytes()).hexdigest()}"
