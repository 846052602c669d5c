"""The search of Cases 1 to 3: feature set and tree for each (q, rank), then the choice by a rule.

References
----------
Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
https://arxiv.org/abs/1409.0745
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import cast

from mrshc.core.array_types import Index, Labels
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.refinement import RefinementResult, RefinementSettings, refine_feature_set
from mrshc.core.parallel import (
    ProgressCallback,
    StepCounter,
    limit_blas_to_one_thread,
    run_in_parallel,
)
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

# Results of finished steps by name, so that an interrupted search can be resumed.
StepMemory = MutableMapping[str, "FeatureSet | Evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """The candidates of a search, and how they are compared.

    One q and one rank are Case 1 of the paper, one q and several ranks Case 2, several q Case 3.

    Attributes
    ----------
    targets : tuple of int
        Numbers of features q, increasing.
    ranks : tuple of int
        Ranks, increasing.
    n_clusters : int or None
        Reference number of clusters K; None for the default of the selection rule.
    tolerance : int
        Accepted deviation from a number of features.
    gap : GapSettings
        Linkage and metric of the trees, and how nodes are tested.
    entropy : int
        Seed of all reference samples.
    max_iter : int, default=20
        Largest number of iterations for a sparse component.
    tol : float, default=1e-7
        L1 norm of the change of v at which the alternation has converged.
    selection : str, default="silhouette"
        Name of a registered selection rule.
    refine : RefinementSettings or None, default=None
        How the chosen feature set is refined; None for no refinement.
    """

    targets: tuple[int, ...]
    ranks: tuple[int, ...]
    n_clusters: int | None
    tolerance: int
    gap: GapSettings
    entropy: int
    # The default of R's PMA, which the paper uses. With iteration to convergence, the number of
    # features has larger jumps as a function of the bound: on the paper's simulations q is missed
    # more often, and recall is lower.
    max_iter: int = 20
    # The default of `sparse_components`.
    tol: float = 1e-7
    selection: str = "silhouette"
    refine: RefinementSettings | None = None

    @property
    def grid(self) -> list[tuple[int, int]]:
        """Every (q, rank) to try."""
        # Ranks above q are not tried, since q features span at most q dimensions. The smallest rank
        # is tried in any case: it may be the only one.
        return [(q, r) for q in self.targets for r in self.ranks if r <= q or r == self.ranks[0]]

    @property
    def n_steps(self) -> int:
        """Number of steps of the search: feature set and tree of each (q, rank), refinement."""
        return 2 * len(self.grid) + (self.refine is not None)

    @property
    def rule(self) -> SelectionRule:
        """The rule that chooses among the candidates."""
        return RULES[self.selection]

    def n_cuts(self, n_samples: int) -> int | None:
        """Return the number of clusters that trees are cut into; None if pruning decides."""
        return self.rule.n_cuts(n_clusters=self.n_clusters, n_samples=n_samples)

    def rule_settings(self, n_clusters: int | None) -> RuleSettings:
        """Return the settings of evaluations for a reference number of clusters."""
        return RuleSettings(gap=self.gap, entropy=self.entropy, n_clusters=n_clusters)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """The candidates of a search, one of them chosen, and the final tree.

    Attributes
    ----------
    candidates : tuple of Candidate
        All candidates, in increasing order of q, then of rank.
    n_clusters : int
        Reference number of clusters K.
    components : tuple of Component
        Sparse components that select the chosen features.
    refined : Refined or None
        Result of the refinement; None if there was none.
    features : ndarray of shape (q,)
        Features on which the final tree is built, increasing.
    pruned : PrunedTree
        The final tree and its splits.
    n_leaves : int
        Number of clusters that were found; fewer than K if so many are not supported.
    """

    candidates: tuple[Candidate, ...]
    n_clusters: int
    components: tuple[Component, ...]
    refined: RefinementResult | None
    features: Index
    pruned: PrunedTree
    n_leaves: int

    @property
    def chosen(self) -> Candidate:
        """The chosen candidate."""
        return next(c for c in self.candidates if c.chosen)

    @property
    def labels(self) -> Labels:
        """The cluster of each sample, (n_samples,)."""
        return self.pruned.labels(self.n_leaves)


def search(
    matrix: CentredMatrix,
    plan: SearchPlan,
    *,
    n_jobs: int | None,
    progress: ProgressCallback,
    memory: StepMemory | None = None,
) -> SearchResult:
    """Evaluate every number of features with every rank, and choose one candidate.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    plan : SearchPlan
        Candidates, and how they are compared.
    n_jobs : int or None
        Number of workers.
    progress : callable
        Called with the numbers of finished and of all steps.
    memory : mutable mapping or None, default=None
        Results of finished steps by name. Steps that it contains are not repeated; the results of
        others are added. None for an empty one.

    Returns
    -------
    result : SearchResult
    """
    with limit_blas_to_one_thread():
        return _run_search(
            matrix,
            plan,
            n_jobs=n_jobs,
            progress=progress,
            memory={} if memory is None else memory,
        )


def _run_search(
    matrix: CentredMatrix,
    plan: SearchPlan,
    *,
    n_jobs: int | None,
    progress: ProgressCallback,
    memory: StepMemory,
) -> SearchResult:
    """Run the three parts of a search: feature sets, choice, refinement."""
    steps = StepCounter(total=plan.n_steps, report=progress)
    path = component_path(
        matrix,
        n_components=plan.ranks[-1],
        max_features=plan.targets[-1],
        limits=AlternationLimits(max_iter=plan.max_iter, tol=plan.tol),
    )
    sets = _search_feature_sets(path, plan, n_jobs=n_jobs, steps=steps, memory=memory)
    evaluator = _Evaluator(n_jobs=n_jobs, steps=steps, memory=memory)
    candidates, n_clusters = _choose_candidate(matrix, plan, sets=sets, evaluator=evaluator)
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
        result = _refine_result(matrix, plan, plan.refine, result)
        steps.advance(1)
    return result


def _refine_result(
    matrix: CentredMatrix, plan: SearchPlan, settings: RefinementSettings, result: SearchResult
) -> SearchResult:
    """Return the result with a new tree on the features associated with the chosen ones."""
    refined = refine_feature_set(matrix, result.features, settings)
    # None: too few features were chosen to test the structure, so the result is kept.
    if refined.supported is None:
        return replace(result, refined=refined)
    if not refined.supported:
        return replace(result, refined=refined, n_leaves=1)
    columns = matrix.columns(refined.features)
    pruned = evaluate_pruned(
        columns, settings=plan.gap, entropy=plan.entropy, max_leaves=plan.n_clusters
    ).pruned
    if pruned.n_leaves == 1:
        # Features that were tested against trees without them support the structure, even where
        # the gap statistic prefers a single cluster.
        pruned = replace(cut_tree(pruned.tree, 2), tests=pruned.tests)
    return replace(
        result,
        n_clusters=plan.n_clusters or pruned.n_leaves,
        refined=refined,
        features=refined.features,
        pruned=pruned,
        n_leaves=pruned.n_leaves,
    )


def _search_feature_sets(
    path: ComponentPath,
    plan: SearchPlan,
    *,
    n_jobs: int | None,
    steps: StepCounter,
    memory: StepMemory,
) -> dict[tuple[int, int], FeatureSet]:
    """Return the feature set of every (q, rank); those in the memory are not computed again."""
    names = {(q, rank): f"features {q} {rank}" for q, rank in plan.grid}
    # Neighbours in the grid need the same L1 bounds. Workers alternate between the first and the
    # second half of the grid, so that they seldom wait for each other.
    half = (len(plan.grid) + 1) // 2
    interleaved = sorted(range(len(plan.grid)), key=lambda i: i % half)
    order = [plan.grid[i] for i in interleaved if names[plan.grid[i]] not in memory]
    steps.advance(len(plan.grid) - len(order))

    if order:
        for key, features in path.search_grid(order, tolerance=plan.tolerance, n_jobs=n_jobs):
            memory[names[key]] = features
            steps.advance(1)
    return {key: cast(FeatureSet, memory[name]) for key, name in names.items()}


FeatureSets = Mapping[tuple[int, int], FeatureSet]  # by (q, rank)


def _choose_candidate(
    matrix: CentredMatrix, plan: SearchPlan, *, sets: FeatureSets, evaluator: _Evaluator
) -> tuple[list[Candidate], int]:
    """Return the candidates, one of them chosen by the rule, and K."""
    rule, n_clusters = plan.rule, plan.n_clusters

    def evaluate(subset: FeatureSets, K: int | None) -> dict[tuple[int, int], Evaluation]:
        """Return the evaluations of some feature sets for a given K."""
        settings = plan.rule_settings(K)
        return evaluator.evaluate(subset, lambda features: rule.task(matrix, features, settings))

    # Reference cells are pruned without a limit, which serves the later evaluation with any K too.
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
    # K is at least two, so that a single cluster is reported as fewer than K.
    return marked, n_clusters or max(2, marked[decision.chosen].n_leaves)


class _Evaluator:
    """Evaluates feature sets in parallel, equal ones once.

    Parameters
    ----------
    n_jobs : int or None
        Number of workers.
    steps : Steps
        Counts finished evaluations.
    memory : mutable mapping
        Evaluations by name.
    """

    def __init__(self, *, n_jobs: int | None, steps: StepCounter, memory: StepMemory) -> None:
        self._n_jobs = n_jobs
        self._steps = steps
        self._memory = memory
        self._counted_cells = set[tuple[int, int]]()

    def evaluate(
        self, sets: FeatureSets, make_task: Callable[[FeatureSet], Callable[[], Evaluation]]
    ) -> dict[tuple[int, int], Evaluation]:
        """Return the evaluations of feature sets; those in the memory are not computed again.

        Parameters
        ----------
        sets : mapping of (int, int) to FeatureSet
            Feature sets by (q, rank).
        make_task : callable
            Returns a function that evaluates a feature set.
        """
        # Each cell of the grid counts as one step, once, although equal sets share an evaluation
        # and reference cells are passed twice.
        new_cells = (cell for cell in sets if cell not in self._counted_cells)
        n_cells = Counter(_evaluation_name(sets[cell]) for cell in new_cells)
        self._counted_cells.update(sets)
        missing = {
            name: features
            for features in sets.values()
            if (name := _evaluation_name(features)) not in self._memory
        }
        self._steps.advance(sum(n for name, n in n_cells.items() if name in self._memory))
        # A generator, so that columns of the data are held for a few tasks at a time.
        arguments = ({"task": make_task(features)} for features in missing.values())
        with closing(run_in_parallel(_call_task, arguments, n_jobs=self._n_jobs)) as evaluations:
            for name, evaluation in zip(missing, evaluations, strict=True):
                self._memory[name] = evaluation
                self._steps.advance(n_cells[name])
        return {
            cell: cast(Evaluation, self._memory[_evaluation_name(features)])
            for cell, features in sets.items()
        }


def _call_task(task: Callable[[], Evaluation]) -> Evaluation:
    """Return the result of a task. At module level, so that it can be sent to other processes."""
    return task()


def _evaluation_name(features: FeatureSet) -> str:
    """Return the name under which an evaluation is stored; equal feature sets share it."""
    return f"evaluation {sha256(features.indices.tobytes()).hexdigest()}"
