"""The rule of the paper: compare candidates by their average silhouette (Algorithms 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.selection.candidates import Candidate, CandidateTable, Evaluation, evaluate_pruned
from mrshc.core.selection.explanation import (
    N_FEATURES_AXIS,
    RANK_AXIS,
    CandidateState,
    Curve,
    SearchStory,
    chosen_row,
    describe_choice,
    format_count,
)
from mrshc.core.selection.rule_interface import Decision, GridCell, RuleSettings, SelectionRule
from mrshc.core.sparse_pca.l1_path import FeatureSet

# Number of lowest ranks from which the default K is derived: the paper finds that ranks 1 to 3
# usually give a reliable K.
_N_RANKS_FOR_K = 3

_RULE_TEXT = (
    "How it is chosen: local minima are removed until the remaining values only rise or only fall. "
    "Then the candidate just after the largest rise is taken, or the first if there is no rise."
)
_FALLBACK_TEXT = (
    "No candidate has the wanted number of clusters: of those with most clusters, the one with "
    "the highest average silhouette is taken."
)


class SilhouetteRule(SelectionRule):
    """Choose by the average silhouette, as in the paper.

    Every tree is pruned to at most K clusters with the gap statistic; feature sets with fewer are
    screened out. Among the others Algorithm 3 chooses the rank for each number of features q, and
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

    If no feature set has K clusters, the one with most clusters is taken, and among these the one
    with the largest silhouette.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745
    .. [2] Rousseeuw, P. J. (1987). Silhouettes: a graphical aid to the interpretation and
       validation of cluster analysis. Journal of Computational and Applied Mathematics 20, 53-65.
       https://doi.org/10.1016/0377-0427(87)90125-7
    """

    name = "silhouette"
    summary = (
        "as in the paper, by how well the clusters are separated in the selected features (average "
        "silhouette)."
    )
    description = (
        "The rule of the paper: feature sets with K clusters by the gap statistic are compared by "
        "how well these clusters are separated in the selected features (average silhouette)."
    )

    def reference_cells(self, grid: Sequence[GridCell], ranks: Sequence[int]) -> list[GridCell]:
        """Return the cells of the lowest ranks."""
        return [key for key in grid if key[1] in ranks[:_N_RANKS_FOR_K]]

    def reference_number_of_clusters(self, evaluations: Mapping[GridCell, Evaluation]) -> int:
        """Return the default K from the numbers of leaves of the reference cells."""
        # Cells are ordered by q, so that `groupby` yields the ranks of one q together.
        largest = [
            max(evaluations[key].pruned.n_leaves for key in row)
            for _, row in groupby(evaluations, key=lambda key: key[0])
        ]
        return reference_number_of_clusters(largest)

    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return a function that prunes the tree to at most K clusters."""
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
        """Return a candidate, screened out if it has fewer than K clusters."""
        assert n_clusters is not None  # given by the user or derived from the reference cells
        # Reference cells were pruned without a limit; the first K - 1 splits are those for K.
        n_leaves = min(evaluation.pruned.n_leaves, n_clusters)
        return Candidate(
            target=target,
            features=features,
            pruned=evaluation.pruned,
            n_leaves=n_leaves,
            silhouette=float(evaluation.silhouettes[n_leaves - 1]),
            screened_out=n_leaves < n_clusters,
        )

    def choose(self, table: CandidateTable) -> Decision:
        """Choose the rank for each q by Algorithm 3, then q by Algorithm 4."""
        silhouettes, targets = table["silhouette"], table["n_features_target"]
        best_rank, removed = (np.zeros(silhouettes.size, dtype=bool) for _ in range(2))

        def choose_among(rows: Index) -> int:
            """Return the chosen one of some rows, and mark those that were removed."""
            choice = iterative_choice(silhouettes[rows].tolist())
            removed[rows[list(choice.removed)]] = True
            return int(rows[choice.position])

        survivors = np.flatnonzero(~table["screened_out"])
        if not survivors.size:
            # Most leaves first, then the largest silhouette, then the first row.
            order = np.lexsort((np.arange(silhouettes.size), -silhouettes, -table["n_leaves"]))
            return Decision(chosen=int(order[0]), best_rank=best_rank, removed=removed)
        # Algorithm 3 for each q that has candidates left, then Algorithm 4 on its choices.
        best = [
            choose_among(survivors[targets[survivors] == q]) for q in np.unique(targets[survivors])
        ]
        best_rank[best] = True
        chosen = choose_among(np.array(best, dtype=np.intp))
        return Decision(chosen=chosen, best_rank=best_rank, removed=removed)

    def explain(self, table: CandidateTable) -> SearchStory:
        """Return the silhouettes over q, each with its best rank, and over the ranks at q."""
        chosen = chosen_row(table)
        q = int(table["n_features_target"][chosen])
        rows_of_q = np.flatnonzero(table["n_features_target"] == q)
        best_rows = _best_row_of_each_target(table)
        has_several_ranks = np.unique(table["rank"]).size > 1
        curves = []
        # A curve with a single point would show nothing to choose from.
        if best_rows.size > 1:
            heading = "Which number of features?"
            if has_several_ranks:
                heading += "\n(each with its best rank)"
            curves.append(
                _silhouette_curve(table, best_rows, over="n_features_target", heading=heading)
            )
        if rows_of_q.size > 1:
            heading = f"Which rank, with q = {format_count(q, 'feature')}?"
            curves.append(_silhouette_curve(table, rows_of_q, over="rank", heading=heading))
        is_fallback = bool(np.all(table["screened_out"]))
        clusters = format_count(int(table["n_leaves"][chosen]), "cluster")
        score = f"average silhouette {table['silhouette'][chosen]:.2f}"
        return SearchStory(
            verdict=describe_choice(table, score),
            rule=(_FALLBACK_TEXT if is_fallback else _RULE_TEXT) if curves else "",
            curves=tuple(curves),
            screened_out="fewer clusters than wanted" if is_fallback else f"fewer than {clusters}",
        )

    def runner_up_sentence(self, table: CandidateTable, n_clusters: int) -> str:
        """Return a sentence on the best of the other candidates with as many clusters."""
        others = np.flatnonzero(~table["chosen"] & (table["n_leaves"] == n_clusters))
        if not others.size:
            is_only_candidate = table["chosen"].size == 1
            return "" if is_only_candidate else f"No other candidate has {n_clusters} clusters."
        best = others[table["silhouette"][others].argmax()]
        return (
            f"Of the other candidates with {n_clusters} clusters, "
            f"{table['n_features'][best]:,} features with rank {table['rank'][best]} have the "
            f"highest average silhouette: {table['silhouette'][best]:.2f}."
        )


def _best_row_of_each_target(table: CandidateTable) -> Index:
    """Return the row that represents each q, in increasing order of q.

    It is that of Algorithm 3 or, where all ranks are screened out, the one with most leaves and the
    largest silhouette.
    """
    targets = table["n_features_target"]
    # In increasing order of importance, as `lexsort` takes its keys.
    keys = ("silhouette", "n_leaves", "screened_out", "best_rank", "chosen")
    order = np.lexsort([~table[key] if key == "screened_out" else table[key] for key in keys])
    # Rows come from the worst to the best: of each q, the last one is kept.
    best = {int(targets[i]): int(i) for i in order}
    return np.array([best[q] for q in sorted(best)], dtype=np.intp)


def _silhouette_curve(table: CandidateTable, rows: Index, *, over: str, heading: str) -> Curve:
    """Return the silhouettes of some rows of the table as a curve.

    Parameters
    ----------
    table : mapping of str to ndarray
        Table of candidates.
    rows : ndarray of shape (m,)
        Rows to show.
    over : {"rank", "n_features_target"}
        Column of the tick labels.
    heading : str
        Title of the plot.
    """
    by_rank = over == "rank"
    # Notes give the rank of each point, which is redundant if it is on the axis or always the same.
    has_notes = not by_rank and np.unique(table["rank"]).size > 1
    return Curve(
        heading=heading,
        x_name=RANK_AXIS if by_rank else N_FEATURES_AXIS,
        y_name="average silhouette",
        ticks=tuple(str(value) for value in table[over][rows]),
        values=np.asarray(table["silhouette"][rows], dtype=np.float64),
        errors=None,
        states=tuple(_candidate_state(table, i) for i in rows),
        notes=tuple(
            f"rank {table['rank'][i]}" if has_notes and not table["screened_out"][i] else ""
            for i in rows
        ),
        chosen=int(np.flatnonzero(rows == chosen_row(table))[0]),
    )


def _candidate_state(table: CandidateTable, row: int) -> CandidateState:
    """Return whether a candidate was screened out, removed as a local minimum, or kept."""
    if table["screened_out"][row]:
        return "screened out"
    return "removed" if table["removed"][row] else "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen one of a sequence of candidates, and those that were removed before.

    Attributes
    ----------
    position : int
        Position of the chosen candidate.
    removed : tuple of int
        Positions of the local minima, in the order of their removal.
    """

    position: int
    removed: tuple[int, ...]


def iterative_choice(silhouettes: Sequence[float]) -> Choice:
    """Choose a candidate by its silhouette (Algorithm 3 for ranks, Algorithm 4 for q).

    As long as the silhouettes both rise and fall, their last local minimum is removed: of two
    minima, the one with the smaller rank (or q) is kept. End points count as local minima;
    otherwise a sequence with a single peak would never become monotone. If the remaining
    silhouettes never rise, the first candidate is chosen; if they never fall, the one just after
    the largest rise.

    Parameters
    ----------
    silhouettes : sequence of float
        Average silhouettes in increasing order of rank (or q).
    """
    remaining, removed = list(range(len(silhouettes))), list[int]()
    while True:
        rises = np.diff([silhouettes[i] for i in remaining])
        # First, so that equal values choose the smallest rank; `all` is also true of no rises.
        if np.all(rises <= 0):
            return Choice(position=remaining[0], removed=tuple(removed))
        if np.all(rises >= 0):
            return Choice(position=remaining[int(np.argmax(rises)) + 1], removed=tuple(removed))
        removed.append(remaining.pop(_last_local_minimum(rises)))


def _last_local_minimum(rises: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Return the position of the last local minimum of values with the given differences."""
    # End points have no neighbour on one side, where the condition counts as met.
    falls_into = np.append(True, rises <= 0)
    rises_from = np.append(rises >= 0, True)
    return int(np.flatnonzero(falls_into & rises_from)[-1])


def reference_number_of_clusters(leaf_counts: Sequence[int]) -> int:
    """Return the default K, at least two.

    All candidates are compared at the same K. With several candidate q, it is therefore the largest
    number of leaves that at least two of them reach.

    Parameters
    ----------
    leaf_counts : sequence of int
        Largest number of leaves for each candidate q.
    """
    largest_first = sorted(leaf_counts, reverse=True)
    second_largest = largest_first[min(1, len(largest_first) - 1)]
    return max(2, second_largest)
