"""The paper's rule: candidates are compared by their average silhouette (Algorithms 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.selection.candidates import Candidate, Evaluation, Table, evaluate_pruned
from mrshc.core.selection.explanation import (
    NUMBER_AXIS,
    RANK_AXIS,
    Curve,
    SearchStory,
    State,
    chosen_row,
    counted,
    describe_choice,
)
from mrshc.core.selection.rule_interface import Decision, Key, RuleSettings, SelectionRule
from mrshc.core.sparse_pca.l1_path import FeatureSet

# The default K is read off the lowest ranks, where the paper finds it reliable.
_RANKS_FOR_K = 3

_RULE = (
    "How it is chosen: values that dip are removed until what is left only rises or only falls. "
    "Then the candidate just after the largest rise is taken, or the first if there is no rise."
)
_FALLBACK = (
    "No candidate shows as many clusters as were looked for: of those with most clusters, "
    "the one that separates them best is taken."
)


class SilhouetteRule(SelectionRule):
    """Choose by the average silhouette, as the paper does.

    Every tree is pruned to at most K clusters with the gap statistic; feature sets with fewer are
    set aside. Among the others Algorithm 3 chooses the rank for each number of features q, and
    Algorithm 4 chooses q.

    Notes
    -----
    The score of a feature set is the mean silhouette width [2]_ of the K clusters, in the distance
    on the selected features. Both algorithms repeat, on the scores :math:`S` in increasing order of
    rank (or q): if :math:`S` never rises, take the first candidate; if it never falls, take the one
    just after the largest rise; otherwise remove the last local minimum, end points included.

    If K is not given, it is the largest number of clusters that unlimited pruning finds over ranks
    1 to 3 for at least two numbers of features, and at least two. The paper [1]_ defines K for one
    number of features; candidates with different q must be compared at the same K.

    If no feature set shows K clusters, the one with most clusters is taken, and among these the
    one with the largest silhouette.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745
    .. [2] Rousseeuw, P. J. (1987). Silhouettes: a graphical aid to the interpretation and
       validation of cluster analysis. Journal of Computational and Applied Mathematics 20, 53-65.
       https://doi.org/10.1016/0377-0427(87)90125-7
    """

    name = "silhouette"
    summary = "as the paper does, by how well the clusters separate in the features that make them."
    description = (
        "The rule of the paper: feature sets that show K clusters by the gap statistic are "
        "compared by how well these separate in the features that made them."
    )

    def reference_cells(self, grid: Sequence[Key], ranks: Sequence[int]) -> list[Key]:
        """Return the cells of the lowest ranks."""
        return [key for key in grid if key[1] in ranks[:_RANKS_FOR_K]]

    def reference_number_of_clusters(self, evaluations: Mapping[Key, Evaluation]) -> int:
        """Return the default K."""
        largest = [
            max(evaluations[key].pruned.n_leaves for key in row)
            for _, row in groupby(evaluations, key=lambda key: key[0])
        ]
        return reference_number_of_clusters(largest)

    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return the pruning of the tree to at most K clusters."""
        return partial(
            evaluate_pruned,
            matrix.columns(features.indices),
            settings=settings.gap,
            entropy=settings.entropy,
            max_leaves=settings.n_clusters,
        )

    def candidate(
        self, target: int, features: FeatureSet, evaluation: Evaluation, n_clusters: int | None
    ) -> Candidate:
        """Return a candidate, set aside if it has fewer than K clusters."""
        assert n_clusters is not None  # derived from the reference cells
        n_leaves = min(evaluation.pruned.n_leaves, n_clusters)
        return Candidate(
            target=target,
            features=features,
            pruned=evaluation.pruned,
            n_leaves=n_leaves,
            silhouette=float(evaluation.silhouettes[n_leaves - 1]),
            screened_out=n_leaves < n_clusters,
        )

    def choose(self, table: Table) -> Decision:
        """Choose the rank for each q by Algorithm 3, then q by Algorithm 4."""
        silhouettes, targets = table["silhouette"], table["n_features_target"]
        best_rank, removed = (np.zeros(silhouettes.size, dtype=bool) for _ in range(2))

        def choose_among(rows: Index) -> int:
            choice = iterative_choice(silhouettes[rows].tolist())
            removed[rows[list(choice.removed)]] = True
            return int(rows[choice.position])

        survivors = np.flatnonzero(~table["screened_out"])
        if not survivors.size:
            # The first of those with most leaves and, among them, the largest silhouette.
            order = np.lexsort((np.arange(silhouettes.size), -silhouettes, -table["n_leaves"]))
            return Decision(chosen=int(order[0]), best_rank=best_rank, removed=removed)
        best = [
            choose_among(survivors[targets[survivors] == q]) for q in np.unique(targets[survivors])
        ]
        best_rank[best] = True
        chosen = choose_among(np.array(best, dtype=np.intp))
        return Decision(chosen=chosen, best_rank=best_rank, removed=removed)

    def explain(self, table: Table) -> SearchStory:
        """Return the silhouettes over q, each with its best rank, and over the rank."""
        chosen = chosen_row(table)
        q = int(table["n_features_target"][chosen])
        of_q = np.flatnonzero(table["n_features_target"] == q)
        best = _best_of_each_target(table)
        several_ranks = np.unique(table["rank"]).size > 1
        curves = []
        if best.size > 1:
            heading = "Which number of features?" + "\n(each with its best rank)" * several_ranks
            curves.append(_curve(table, best, over="n_features_target", heading=heading))
        if of_q.size > 1:
            heading = f"Which rank, with q = {counted(q, 'feature')}?"
            curves.append(_curve(table, of_q, over="rank", heading=heading))
        fell_back = bool(np.all(table["screened_out"]))
        clusters = counted(int(table["n_leaves"][chosen]), "cluster")
        score = f"average silhouette {table['silhouette'][chosen]:.2f}"
        return SearchStory(
            verdict=describe_choice(table, score),
            rule=(_FALLBACK if fell_back else _RULE) if curves else "",
            curves=tuple(curves),
            screened_out="fewer clusters than wanted" if fell_back else f"fewer than {clusters}",
        )

    def next_best(self, table: Table, n_clusters: int) -> str:
        """Return a sentence on the best separated of the others with as many clusters."""
        rivals = np.flatnonzero(~table["chosen"] & (table["n_leaves"] == n_clusters))
        if not rivals.size:
            others = table["chosen"].size > 1
            return f"No other candidate shows {n_clusters} clusters." if others else ""
        best = rivals[table["silhouette"][rivals].argmax()]
        return (
            f"Of the other candidates with {n_clusters} clusters the best separated, "
            f"{table['n_features'][best]:,} features with rank {table['rank'][best]}, has "
            f"{table['silhouette'][best]:.2f}."
        )


def _best_of_each_target(table: Table) -> Index:
    """Return the row that represents each q: Algorithm 3's choice, or the best one set aside."""
    targets = table["n_features_target"]
    worst_first = ("silhouette", "n_leaves", "screened_out", "best_rank", "chosen")
    order = np.lexsort(
        [~table[key] if key == "screened_out" else table[key] for key in worst_first]
    )
    last = {int(targets[i]): int(i) for i in order}
    return np.array([last[q] for q in sorted(last)], dtype=np.intp)


def _curve(table: Table, rows: Index, *, over: str, heading: str) -> Curve:
    by_rank = over == "rank"
    silent = by_rank or np.unique(table["rank"]).size == 1
    return Curve(
        heading=heading,
        x_name=RANK_AXIS if by_rank else NUMBER_AXIS,
        y_name="average silhouette",
        ticks=tuple(str(value) for value in table[over][rows]),
        values=np.asarray(table["silhouette"][rows], dtype=np.float64),
        errors=None,
        states=tuple(_state(table, i) for i in rows),
        notes=tuple(
            "" if silent or table["screened_out"][i] else f"rank {table['rank'][i]}" for i in rows
        ),
        chosen=int(np.flatnonzero(rows == chosen_row(table))[0]),
    )


def _state(table: Table, row: int) -> State:
    if table["screened_out"][row]:
        return "screened out"
    return "removed" if table["removed"][row] else "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was chosen among candidates, and which had been removed on the way."""

    position: int
    removed: tuple[int, ...]  # positions of the local minima, in the order of their removal


def iterative_choice(silhouettes: Sequence[float]) -> Choice:
    """Choose among candidates that are given in increasing order of rank (or q).

    While the values rise and fall, the last of their local minima is removed: of two candidates
    that separate the clusters equally badly the larger is the less welcome. End points count as
    minima, or a single peak would never become monotone. When what is left falls, the first
    candidate is chosen; when it rises, the one just after the largest rise.
    """
    left, removed = list(range(len(silhouettes))), list[int]()
    while True:
        rises = np.diff([silhouettes[i] for i in left])
        if np.all(rises <= 0):
            return Choice(position=left[0], removed=tuple(removed))
        if np.all(rises >= 0):
            return Choice(position=left[int(np.argmax(rises)) + 1], removed=tuple(removed))
        removed.append(left.pop(_last_local_minimum(rises)))


def _last_local_minimum(rises: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    falls_into = np.append(True, rises <= 0)
    rises_from = np.append(rises >= 0, True)
    return int(np.flatnonzero(falls_into & rises_from)[-1])


def reference_number_of_clusters(leaf_counts: Sequence[int]) -> int:
    """Return the default K, from the largest leaf count that each candidate q reached.

    With several candidates it must be a number that at least two of them reach, since candidates
    are compared at the same K; and never less than two.
    """
    largest_first = sorted(leaf_counts, reverse=True)
    agreed = largest_first[min(1, len(largest_first) - 1)]
    return max(2, agreed)
