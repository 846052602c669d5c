"""Cases 1 to 3: features and tree for each (q, rank), then the choice by a selection rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import cast

from mrshc.core.array_types import Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.refinement import Refined, RefineSettings, refine
from mrshc.core.parallel import Progress, Steps, one_blas_thread, results_of
from mrshc.core.selection import RULES, RuleSettings, SelectionRule
from mrshc.core.selection.candidates import (
    Candidate,
    Evaluation,
    candidate_table,
    evaluate_pruned,
)
from mrshc.core.sparse_pca.l1_path import ComponentPath, FeatureSet, component_path
from mrshc.core.sparse_pca.next_component import Component
from mrshc.core.sparse_pca.solvers import AlternationLimits
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import PrunedTree, cut_tree

# Finished steps by name, so that a search that was interrupted can go on.
Memory = MutableMapping[str, "FeatureSet | Evaluation"]


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
    selection: str = "silhouette"  # name of a registered rule
    refine: RefineSettings | None = None  # None: the chosen features are left as they are

    @property
    def grid(self) -> list[tuple[int, int]]:
        """Every (q, rank) to try; ranks above q are of no use, q features span no more."""
        return [(q, r) for q in self.targets for r in self.ranks if r <= q or r == self.ranks[0]]

    @property
    def n_steps(self) -> int:
        """Number of steps that the search reports: features, then tree, for each (q, rank)."""
        return 2 * len(self.grid) + (self.refine is not None)

    @property
    def rule(self) -> SelectionRule:
        """The rule that chooses among the candidates."""
        return RULES[self.selection]

    def n_cuts(self, n_samples: int) -> int | None:
        """Return the number of clusters that trees are cut into; None if pruning finds it."""
        return self.rule.n_cuts(n_clusters=self.n_clusters, n_samples=n_samples)

    def settings(self, n_clusters: int | None) -> RuleSettings:
        """Return what evaluations depend on, for a reference number of clusters."""
        return RuleSettings(gap=self.gap, entropy=self.entropy, n_clusters=n_clusters)


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
    candidates, n_clusters = _choose(matrix, plan, sets, evaluations)
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
    found = evaluate_pruned(
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


def _choose(
    matrix: CentredMatrix, plan: SearchPlan, sets: Sets, evaluations: _Evaluations
) -> tuple[list[Candidate], int]:
    """Return the candidates, one of them chosen by the rule, and K."""
    rule, n_clusters = plan.rule, plan.n_clusters

    def evaluate(some: Sets, K: int | None) -> dict[tuple[int, int], Evaluation]:
        settings = plan.settings(K)
        return evaluations.add(some, lambda features: rule.task(matrix, features, settings))

    if n_clusters is None and (cells := rule.reference_cells(plan.grid, plan.ranks)):
        evaluated = evaluate({key: sets[key] for key in cells}, None)
        n_clusters = rule.reference_number_of_clusters(evaluated)
    scored = rule.score_together(matrix, sets, evaluate(sets, n_clusters))
    candidates = [
        rule.candidate(q, features, scored[q, rank], n_clusters)
        for (q, rank), features in sets.items()
    ]
    decision = rule.choose(candidate_table(candidates))
    marked = [
        replace(
            candidate,
            best_rank=bool(decision.best_rank[i]),
            removed=bool(decision.removed[i]),
            chosen=i == decision.chosen,
        )
        for i, candidate in enumerate(candidates)
    ]
    return marked, n_clusters or max(2, marked[decision.chosen].n_leaves)


class _Evaluations:
    """Evaluations by feature set, each made once and in parallel with others."""

    def __init__(self, *, n_jobs: int | None, steps: Steps, memory: Memory) -> None:
        self._n_jobs = n_jobs
        self._steps = steps
        self._memory = memory
        self._counted = set[tuple[int, int]]()

    def add(
        self, sets: Sets, task: Callable[[FeatureSet], Callable[[], Evaluation]]
    ) -> dict[tuple[int, int], Evaluation]:
        """Evaluate the sets that are not known yet, and return the evaluations of all."""
        copies = Counter(_name_of(s) for key, s in sets.items() if key not in self._counted)
        self._counted.update(sets)
        distinct = {name: s for s in sets.values() if (name := _name_of(s)) not in self._memory}
        self._steps.advance(sum(n for name, n in copies.items() if name in self._memory))
        wanted = ({"task": task(features)} for features in distinct.values())
        with closing(results_of(_perform, wanted, n_jobs=self._n_jobs)) as evaluations:
            for name, evaluation in zip(distinct, evaluations, strict=True):
                self._memory[name] = evaluation
                self._steps.advance(copies[name])
        return {key: cast(Evaluation, self._memory[_name_of(s)]) for key, s in sets.items()}


def _perform(task: Callable[[], Evaluation]) -> Evaluation:
    return task()


def _name_of(features: FeatureSet) -> str:
    """Return the name of an evaluation: equal feature sets share theirs."""
    return f"evaluation {sha256(features.indices.tobytes()).hexdigest()}"
