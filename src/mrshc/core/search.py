"""The search for the number of features q and the rank: Cases 1 to 3 of Zhang and Zamar (2014).

The rank is the number of sparse components from which features are selected. For each pair
(q, rank), which is called a candidate, the search selects a feature set and builds a tree of the
samples on these features. A selection rule then chooses one of the candidates. The reference number
of clusters K is given by the user or determined by the selection rule.

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
from mrshc.core.inference.refinement import (
    RefinementResult,
    complete_p_values,
    refine_feature_set,
    refine_feature_sets,
)
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.core.parallel import (
    MANY_SAMPLES,
    ProgressCallback,
    StepCounter,
    limit_blas_to_one_thread,
    run_in_parallel,
    threads_for_parts,
)
from mrshc.core.selection import RULES, RuleSettings, SelectionRule
from mrshc.core.selection.candidates import (
    Candidate,
    Evaluation,
    candidate_table,
    evaluate_drop_ratios,
)
from mrshc.core.sparse_pca.l1_path import ComponentPath, FeatureSet, component_path
from mrshc.core.sparse_pca.next_component import Component
from mrshc.core.sparse_pca.solvers import AlternationLimits
from mrshc.core.trees.cut_choice import MAX_CLUSTERS, best_cut
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.pruning import PrunedTree, split_further
from mrshc.core.trees.tree import min_features

# Maps names to the feature sets and evaluations that have been computed, so that an interrupted
# search can be resumed.
StepMemory = MutableMapping[str, "FeatureSet | Evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """Settings of a search: the candidates (q, rank) to try, and how one of them is chosen.

    A search with one q and one rank is Case 1 of the paper (Zhang and Zamar 2014). A search with
    one q and several ranks is Case 2, and a search with several values of q is Case 3.

    Attributes
    ----------
    targets : tuple of int
        Target numbers of features q, in increasing order.
    ranks : tuple of int
        Ranks (numbers of sparse components), in increasing order.
    n_clusters : int or None
        Reference number of clusters K. If None, the selection rule determines K.
    tolerance : int
        Largest accepted difference between the number of selected features and q.
    gap : GapSettings
        Linkage and metric of the trees, and settings of the gap statistic.
    entropy : int
        Seed of the random numbers for the gap statistic.
    max_iter : int, default=20
        Largest number of iterations for each sparse component.
    tol : float, default=1e-7
        The iterations for a sparse component end when the L1 norm of the change of its loading
        vector is at most `tol`.
    selection : str, default="silhouette"
        Name of a registered selection rule.
    refine : bool, default=False
        Whether the chosen feature set is refined. If the selection rule refines the feature sets of
        all candidates, the value has no effect.
    """

    targets: tuple[int, ...]
    ranks: tuple[int, ...]
    n_clusters: int | None
    tolerance: int
    gap: GapSettings
    entropy: int
    # 20 is the default of the R package PMA, which the paper uses. If the iterations run to
    # convergence, the number of selected features has larger jumps as a function of the L1 bound.
    # On the simulated data of the paper, the target q is then reached less often, and recall is
    # lower.
    max_iter: int = 20
    # 1e-7 is also the default of the function `sparse_components`.
    tol: float = 1e-7
    selection: str = "silhouette"
    refine: bool = False

    @property
    def grid(self) -> list[tuple[int, int]]:
        """All pairs (q, rank) that the search tries."""
        # Ranks above q are not tried, since q features span at most q dimensions. The smallest rank
        # is tried with every q, because it may be the only rank.
        return [(q, r) for q in self.targets for r in self.ranks if r <= q or r == self.ranks[0]]

    @property
    def n_steps(self) -> int:
        """Number of steps of the search: two for each pair (q, rank), and one for refinement.

        The step for refinement is counted only if feature sets are refined.
        """
        return 2 * len(self.grid) + (self.refine or self.rule.refines_candidates)

    @property
    def rule(self) -> SelectionRule:
        """The selection rule that chooses one candidate."""
        return RULES[self.selection]

    @property
    def refinement(self) -> RefinementSettings:
        """Settings of the refinement of feature sets."""
        return RefinementSettings(linkage=self.gap.linkage, metric=self.gap.metric)

    def n_cuts(self, n_samples: int) -> int | None:
        """Return the largest number of clusters that each tree is cut into.

        Return None if the selection rule prunes the trees instead of cutting them.
        """
        return self.rule.n_cuts(n_clusters=self.n_clusters, n_samples=n_samples)

    def rule_settings(self, n_clusters: int | None) -> RuleSettings:
        """Return the settings for evaluating feature sets.

        `n_clusters` is the reference number of clusters K, or None if K is not yet known.
        """
        return RuleSettings(gap=self.gap, entropy=self.entropy, n_clusters=n_clusters)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """The result of a search: all candidates (q, rank), the chosen one, and the final tree.

    Attributes
    ----------
    candidates : tuple of Candidate
        All candidates, sorted by q and, for the same q, by rank.
    n_clusters : int
        Reference number of clusters K.
    components : tuple of Component
        Sparse components from which the features of the chosen candidate were selected.
    refined : RefinementResult or None
        Result of the refinement; None if the feature set was not refined.
    features : ndarray of shape (n_selected,)
        Indices of the features on which the final tree is built, in increasing order.
    pruned : PrunedTree
        The final tree, and the nodes that are split to obtain clusters.
    n_leaves : int
        Number of clusters. If the user gave K, this number is K. Otherwise it is one if the data do
        not support clusters, and K if they do.
    n_supported : int or None
        Number of clusters that the data support, if the user gave a larger number K; otherwise
        None.
    """

    candidates: tuple[Candidate, ...]
    n_clusters: int
    components: tuple[Component, ...]
    refined: RefinementResult | None
    features: Index
    pruned: PrunedTree
    n_leaves: int
    n_supported: int | None = None

    @property
    def chosen(self) -> Candidate:
        """The candidate that the selection rule chose."""
        return next(c for c in self.candidates if c.chosen)

    @property
    def labels(self) -> Labels:
        """Cluster labels of the samples, as an array of shape (n_samples,)."""
        return self.pruned.labels(self.n_leaves)


def search(
    matrix: CentredMatrix,
    plan: SearchPlan,
    *,
    n_jobs: int | None,
    progress: ProgressCallback,
    memory: StepMemory | None = None,
) -> SearchResult:
    """Evaluate all pairs (q, rank) of a plan, and return the result of the search.

    Parameters
    ----------
    matrix : CentredMatrix
        The data.
    plan : SearchPlan
        The pairs (q, rank) to try, and how one of them is chosen.
    n_jobs : int or None
        Number of parallel workers.
    progress : callable
        Function that is called as ``progress(n_finished, n_steps)`` when steps are finished.
    memory : mutable mapping or None, default=None
        Feature sets and evaluations that were computed before, with their names as keys. They are
        not computed again. Feature sets and evaluations that this search computes are added to the
        mapping. None has the same effect as an empty mapping.

    Returns
    -------
    result : SearchResult
        All candidates, the chosen one, and the final tree.
    """
    with limit_blas_to_one_thread(), threads_for_parts(n_jobs):
        result = _run_search(
            matrix,
            plan,
            n_jobs=n_jobs,
            progress=progress,
            memory={} if memory is None else memory,
        )
    return result if plan.n_clusters is None else _split_into_given_number(result, plan.n_clusters)


def _split_into_given_number(result: SearchResult, n_clusters: int) -> SearchResult:
    """Return the result of a search with exactly the number of clusters that the user gave.

    The splits that the data support are kept, and further nodes are split until there are
    `n_clusters` clusters. The choice among the candidates is finished before, and does not depend
    on the further splits.
    """
    n_supported = result.n_leaves
    # A refinement of the chosen set that reached a decision replaces the decision of the selection
    # rule. A rule that refines all candidates has already taken the refinement into account.
    later = result.refined if result.chosen.refined is None else None
    if later is None or later.supported is None:
        n_supported = result.chosen.n_supported or n_supported
    return replace(
        result,
        pruned=split_further(result.pruned, n_clusters),
        n_leaves=n_clusters,
        n_supported=n_supported if n_supported < n_clusters else None,
    )


def _run_search(
    matrix: CentredMatrix,
    plan: SearchPlan,
    *,
    n_jobs: int | None,
    progress: ProgressCallback,
    memory: StepMemory,
) -> SearchResult:
    """Return the result of a search.

    The parameters are those of `search`. The feature set of the chosen candidate is refined if
    `plan.refine` is True, unless the selection rule has refined the sets of all candidates.
    """
    steps = StepCounter(total=plan.n_steps, report=progress)
    path = component_path(
        matrix,
        n_components=plan.ranks[-1],
        max_features=plan.targets[-1],
        limits=AlternationLimits(max_iter=plan.max_iter, tol=plan.tol),
    )
    if not plan.rule.uses_gram:
        matrix.release_gram()
    sets = _search_feature_sets(path, plan, n_jobs=n_jobs, steps=steps, memory=memory)
    refined = dict[tuple[int, int], RefinementResult]()
    if plan.rule.refines_candidates:
        starts = [features.indices for features in sets.values()]
        results = refine_feature_sets(
            matrix, starts, plan.refinement, n_continued=plan.rule.n_continued, n_jobs=n_jobs
        )
        refined = dict(zip(sets, results, strict=True))
        sets = {key: replace(sets[key], indices=refined[key].features) for key in sets}
        steps.advance(1)
    # Trees of many samples are built one after another, in several threads.
    n_trees = 1 if matrix.shape[0] >= MANY_SAMPLES else n_jobs
    evaluator = _Evaluator(n_jobs=n_trees, steps=steps, memory=memory)
    candidates, n_clusters = _choose_candidate(
        matrix, plan, sets=sets, refined=refined, evaluator=evaluator
    )
    chosen = next(c for c in candidates if c.chosen)
    chosen_refinement = chosen.refined
    if chosen_refinement is not None:
        chosen_refinement = complete_p_values(
            matrix, chosen_refinement, plan.refinement, n_jobs=n_jobs
        )
    result = SearchResult(
        candidates=tuple(candidates),
        n_clusters=n_clusters,
        components=tuple(path.components(chosen.features.l1_bound, chosen.features.rank)),
        refined=chosen_refinement,
        features=chosen.features.indices,
        pruned=chosen.pruned,
        n_leaves=chosen.n_leaves,
    )
    if plan.refine and not plan.rule.refines_candidates:
        result = _refine_result(matrix, plan, result)
        steps.advance(1)
    return result


def _refine_result(matrix: CentredMatrix, plan: SearchPlan, result: SearchResult) -> SearchResult:
    """Return the result of a search after refinement of its feature set.

    If enough features are associated with the clusters, a new tree is built on these features. It
    is cut into the number of clusters that the user gave or, if none was given, into the number
    whose last split exceeds the next split by the largest ratio. If too few features are
    associated, the result has a single cluster. However, if the feature set already had too few
    features before the refinement, the features and the tree do not change.
    """
    refined = refine_feature_set(matrix, result.features, plan.refinement)
    # None means that the feature set was too small before the refinement. In this case, a small
    # number of associated features is not evidence against the clusters.
    if refined.supported is None:
        return replace(result, refined=refined)
    if not refined.supported:
        return replace(result, refined=refined, n_leaves=1)
    evaluation = evaluate_drop_ratios(
        matrix.columns(refined.features),
        settings=plan.gap,
        k=min(max(MAX_CLUSTERS, plan.n_clusters or 0), matrix.shape[0]),
    )
    n_leaves = plan.n_clusters or best_cut(evaluation.scores["drop_ratio"])
    return replace(
        result,
        n_clusters=n_leaves,
        refined=refined,
        features=refined.features,
        pruned=evaluation.pruned,
        n_leaves=n_leaves,
    )


def _search_feature_sets(
    path: ComponentPath,
    plan: SearchPlan,
    *,
    n_jobs: int | None,
    steps: StepCounter,
    memory: StepMemory,
) -> dict[tuple[int, int], FeatureSet]:
    """Return a dict that maps each pair (q, rank) to its feature set.

    Feature sets that are already in `memory` are not computed again. New feature sets are added to
    `memory`.
    """
    names = {(q, rank): f"features {q} {rank}" for q, rank in plan.grid}
    # Neighbouring pairs of the grid need the same L1 bounds, and two workers at the same bound
    # would wait for each other. The order therefore alternates between the first and the second
    # half of the grid.
    half = (len(plan.grid) + 1) // 2
    interleaved = sorted(range(len(plan.grid)), key=lambda i: i % half)
    order = [plan.grid[i] for i in interleaved if names[plan.grid[i]] not in memory]
    steps.advance(len(plan.grid) - len(order))

    if order:
        searched = path.search_grid(
            order,
            tolerance=plan.tolerance,
            n_jobs=n_jobs,
            min_features=min_features(plan.gap.metric),
        )
        # After an error, the traceback would keep the iterator, and its workers would go on.
        with closing(searched) as results:
            for key, features in results:
                memory[names[key]] = features
                steps.advance(1)
    return {key: cast(FeatureSet, memory[name]) for key, name in names.items()}


FeatureSets = Mapping[tuple[int, int], FeatureSet]  # maps each pair (q, rank) to its feature set


def _choose_candidate(
    matrix: CentredMatrix,
    plan: SearchPlan,
    *,
    sets: FeatureSets,
    refined: Mapping[tuple[int, int], RefinementResult],
    evaluator: _Evaluator,
) -> tuple[list[Candidate], int]:
    """Return all candidates and the reference number of clusters K.

    The attribute `chosen` is True for the candidate that the selection rule chooses. `refined` maps
    pairs (q, rank) to the refinements of their feature sets; it is empty if the sets were not
    refined.
    """
    rule, n_clusters = plan.rule, plan.n_clusters

    def evaluate(subset: FeatureSets, K: int | None) -> dict[tuple[int, int], Evaluation]:
        """Return the evaluation of each feature set in `subset`; K is None if K is not known."""
        settings = plan.rule_settings(K)
        return evaluator.evaluate(subset, lambda features: rule.task(matrix, features, settings))

    # While K is unknown, trees are pruned without a limit. The stored evaluations are used again
    # below, since the first K - 1 splits do not depend on the limit.
    if n_clusters is None and (cells := rule.reference_cells(plan.grid, plan.ranks)):
        evaluated = evaluate({key: sets[key] for key in cells}, None)
        n_clusters = rule.reference_number_of_clusters(evaluated)
    scored = rule.score_together(matrix, sets, evaluate(sets, n_clusters))
    candidates = [
        rule.candidate(
            q,
            features,
            scored[q, rank],
            n_clusters=n_clusters,
            refined=refined.get((q, rank)),
        )
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
    # K is at least two, so a single cluster is always reported as fewer than K clusters.
    return marked, n_clusters or max(2, marked[decision.chosen].n_leaves)


class _Evaluator:
    """Evaluates feature sets in parallel. Equal feature sets are evaluated only once.

    Parameters
    ----------
    n_jobs : int or None
        Number of parallel workers.
    steps : StepCounter
        Counter of the finished steps of the search.
    memory : mutable mapping
        Maps the name of each stored evaluation to the evaluation. New evaluations are added to the
        mapping.
    """

    def __init__(self, *, n_jobs: int | None, steps: StepCounter, memory: StepMemory) -> None:
        self._n_jobs = n_jobs
        self._steps = steps
        self._memory = memory
        self._counted_cells = set[tuple[int, int]]()

    def evaluate(
        self, sets: FeatureSets, make_task: Callable[[FeatureSet], Callable[[], Evaluation]]
    ) -> dict[tuple[int, int], Evaluation]:
        """Return the evaluation of each feature set.

        Evaluations that an earlier call or an interrupted fit has stored are not computed again.

        Parameters
        ----------
        sets : mapping of (int, int) to FeatureSet
            Maps each pair (q, rank) to its feature set.
        make_task : callable
            Function that takes a feature set and returns a function that evaluates this set.

        Returns
        -------
        evaluations : dict of (int, int) to Evaluation
            Maps each pair (q, rank) to the evaluation of its feature set.
        """
        # Here, each pair (q, rank) counts as exactly one step. Equal feature sets share an
        # evaluation, and the pairs from which K is derived are passed to this method twice, so the
        # steps cannot be counted by calls or by evaluations.
        new_cells = (cell for cell in sets if cell not in self._counted_cells)
        n_cells = Counter(_evaluation_name(sets[cell]) for cell in new_cells)
        self._counted_cells.update(sets)
        missing = {
            name: features
            for features in sets.values()
            if (name := _evaluation_name(features)) not in self._memory
        }
        # Large sets take longest. If they came last, most workers would wait for the last ones.
        missing = dict(sorted(missing.items(), key=lambda item: -item[1].indices.size))
        self._steps.advance(sum(n for name, n in n_cells.items() if name in self._memory))
        # A generator creates each task shortly before the task runs. Otherwise the columns of all
        # tasks would be in memory at the same time.
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
    """Call a task, which is a function without arguments, and return its result."""
    # The function is defined at module level so that it can be pickled for other processes.
    return task()


def _evaluation_name(features: FeatureSet) -> str:
    """Return the name under which the evaluation of a feature set is stored.

    The name depends only on the selected features, so equal feature sets have the same name.
    """
    return f"evaluation {sha256(features.indices.tobytes()).hexdigest()}"
