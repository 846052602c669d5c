"""The selection rule of Zhang and Zamar (2014): compare candidates by their average silhouette.

A candidate is a pair (q, r) of a number of features and a rank. Algorithm 3 of the paper chooses
the rank for each q, and Algorithm 4 chooses q.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from mrshc.core.array_types import Index
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.inference.refinement import RefinementResult
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

# The default number of clusters K is derived from the trees with the lowest ranks. This constant is
# the number of ranks used. The paper finds that ranks 1 to 3 usually give a reliable K.
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
    """Selection rule that chooses a candidate by the average silhouette, as in the paper [1]_.

    A candidate is a pair (q, r) of a number of features and a rank, with a feature set and a tree
    of the samples that is built on this set. Every tree is pruned to at most K clusters with the
    gap statistic, where K is the reference number of clusters. Candidates whose trees have fewer
    than K clusters are screened out. Among the other candidates, Algorithm 3 of the paper chooses
    the rank for each q, and Algorithm 4 chooses q.

    Notes
    -----
    The score of a candidate is the mean silhouette width [2]_ over all samples, for its partition
    into K clusters. The widths are computed from the distances between samples in the selected
    features.

    Both algorithms use the same procedure. Let :math:`S` be the sequence of scores, in increasing
    order of rank (Algorithm 3) or of q (Algorithm 4). If :math:`S` never rises, the first candidate
    is chosen. If :math:`S` never falls, the candidate just after the largest rise is chosen.
    Otherwise the last local minimum is removed from :math:`S`, and the procedure is repeated. An
    end point counts as a local minimum if its neighbour is not smaller.

    If the user does not give K, the trees with the three lowest ranks are first pruned without a
    limit on the number of clusters. For each q, the largest number of clusters among these trees is
    recorded. K is the second largest of these numbers (the only one if there is a single q), but
    never less than two. The paper defines K for a single q. Here, all q have the same K, so that
    candidates with different q can be compared.

    If no candidate has K clusters, only the candidates with the largest number of clusters are
    compared. Among these candidates, the one with the largest average silhouette is chosen.

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
        "as in the paper, by how compact the clusters are in the selected features (average "
        "silhouette)."
    )
    description = (
        "The rule of the paper: feature sets with K clusters by the gap statistic are compared by "
        "how compact these clusters are in the selected features (average silhouette)."
    )

    def reference_cells(self, grid: Sequence[GridCell], ranks: Sequence[int]) -> list[GridCell]:
        """Return the pairs (q, rank) of the grid whose rank is one of the three lowest ranks."""
        return [key for key in grid if key[1] in ranks[:_N_RANKS_FOR_K]]

    def reference_number_of_clusters(self, evaluations: Mapping[GridCell, Evaluation]) -> int:
        """Return the default number of clusters K.

        K is derived from the numbers of leaves (clusters) of pruned trees. `evaluations` maps pairs
        (q, rank) to the evaluations that contain these trees.
        """
        # The pairs are in increasing order of q, so `groupby` yields all ranks of a q together.
        largest = [
            max(evaluations[key].pruned.n_leaves for key in row)
            for _, row in groupby(evaluations, key=lambda key: key[0])
        ]
        return reference_number_of_clusters(largest)

    def task(
        self, matrix: CentredMatrix, features: FeatureSet, settings: RuleSettings
    ) -> Callable[[], Evaluation]:
        """Return a function that builds a tree on a feature set and prunes this tree.

        The pruned tree has at most K clusters, where K is `settings.n_clusters`. If K is None, the
        number of clusters is not limited.
        """
        return partial(
            evaluate_pruned,
            matrix.columns(features.indices),
            settings=settings.gap,
            entropy=settings.entropy,
            max_leaves=settings.n_clusters,
        )

    def candidate(
        self,
        target: int,
        features: FeatureSet,
        evaluation: Evaluation,
        *,
        n_clusters: int | None,
        refined: RefinementResult | None,
    ) -> Candidate:
        """Return the candidate for a target number of features.

        `features` is the feature set of the candidate, and `evaluation` is the evaluation of the
        tree on this set. The candidate is marked as screened out if its tree has fewer than
        `n_clusters` clusters.
        """
        assert n_clusters is not None  # K is given by the user or derived from some of the trees
        # The trees from which K was derived have been pruned without a limit and may have more than
        # K clusters. Their first K - 1 splits give K clusters.
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
        """Return the decision: the rank for each q by Algorithm 3, and then q by Algorithm 4.

        If all candidates are screened out, the algorithms are not used. Among the candidates with
        the largest number of clusters, the one with the largest average silhouette is chosen.
        """
        silhouettes, targets = table["silhouette"], table["n_features_target"]
        best_rank, removed = (np.zeros(silhouettes.size, dtype=bool) for _ in range(2))

        def choose_among(rows: Index) -> int:
            """Return the row that is chosen from `rows`, and mark the removed rows in `removed`."""
            choice = iterative_choice(silhouettes[rows].tolist())
            removed[rows[list(choice.removed)]] = True
            return int(rows[choice.position])

        survivors = np.flatnonzero(~table["screened_out"])
        if not survivors.size:
            # Sort by decreasing number of leaves, then by decreasing silhouette, then by row.
            order = np.lexsort((np.arange(silhouettes.size), -silhouettes, -table["n_leaves"]))
            return Decision(chosen=int(order[0]), best_rank=best_rank, removed=removed)
        # Algorithm 3 is applied to each q with at least one candidate that is not screened out.
        # Algorithm 4 is then applied to the candidates that Algorithm 3 chose.
        best = [
            choose_among(survivors[targets[survivors] == q]) for q in np.unique(targets[survivors])
        ]
        best_rank[best] = True
        chosen = choose_among(np.array(best, dtype=np.intp))
        return Decision(chosen=chosen, best_rank=best_rank, removed=removed)

    def explain(self, table: CandidateTable) -> SearchStory:
        """Return an explanation of the choice, with up to two curves.

        The first curve shows the average silhouette of each q with the best rank for this q. The
        second curve shows the average silhouette of each rank with the chosen q. A curve that would
        have a single point is omitted.
        """
        chosen = chosen_row(table)
        q = int(table["n_features_target"][chosen])
        rows_of_q = np.flatnonzero(table["n_features_target"] == q)
        best_rows = _best_row_of_each_target(table)
        has_several_ranks = np.unique(table["rank"]).size > 1
        curves = []
        # A curve is omitted if it would have a single point, since there was nothing to choose.
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
        """Return a sentence about the best of the candidates that were not chosen.

        The best candidate is the one with the largest average silhouette among those with
        `n_clusters` clusters. If there is no such candidate, the sentence says so. If the table has
        only one row, or if `n_clusters` is one, return an empty string.
        """
        # A single cluster has no silhouette, so there is nothing to compare.
        if n_clusters == 1:
            return ""
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
    """Return the row with the best rank for each number of features q, in increasing order of q.

    The best rank is the one that Algorithm 3 chose. If all candidates with a given q are screened
    out, the best rank is the one with the largest number of leaves (clusters). Ties are resolved by
    the largest average silhouette.
    """
    targets = table["n_features_target"]
    # `lexsort` expects its keys in increasing order of importance.
    keys = ("silhouette", "n_leaves", "screened_out", "best_rank", "chosen")
    order = np.lexsort([~table[key] if key == "screened_out" else table[key] for key in keys])
    # The rows are sorted from the worst to the best, and later rows replace earlier rows in the
    # dict. The dict therefore contains the best row of each q.
    best = {int(targets[i]): int(i) for i in order}
    return np.array([best[q] for q in sorted(best)], dtype=np.intp)


def _silhouette_curve(table: CandidateTable, rows: Index, *, over: str, heading: str) -> Curve:
    """Return a curve of the average silhouettes of selected candidates.

    Parameters
    ----------
    table : mapping of str to ndarray
        Table of candidates.
    rows : ndarray of shape (m,)
        Rows of the candidates to show, one of which is the chosen candidate.
    over : {"rank", "n_features_target"}
        Column of the table that provides the tick labels.
    heading : str
        Title of the plot.
    """
    by_rank = over == "rank"
    # The note next to a point gives its rank. Notes are omitted if the rank is shown on the
    # horizontal axis or if all candidates have the same rank.
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
        chosen=rows.tolist().index(chosen_row(table)),
    )


def _candidate_state(table: CandidateTable, row: int) -> CandidateState:
    """Return the state of a candidate.

    The state is "screened out", "removed" (as a local minimum, by Algorithm 3 or 4) or "kept".
    `row` is the row of the candidate in the table of candidates.
    """
    if table["screened_out"][row]:
        return "screened out"
    return "removed" if table["removed"][row] else "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The candidate that Algorithm 3 or 4 chooses from a sequence of candidates.

    Attributes
    ----------
    position : int
        Position of the chosen candidate in the sequence, counted from zero.
    removed : tuple of int
        Positions of the candidates that were removed as local minima, in the order of removal.
    """

    position: int
    removed: tuple[int, ...]


def iterative_choice(silhouettes: Sequence[float]) -> Choice:
    """Return the candidate that Algorithm 3 (for ranks) or 4 (for numbers of features q) chooses.

    As long as the sequence of silhouettes is not monotone, its last local minimum is removed. End
    points can be local minima too; otherwise a sequence with a single peak would never become
    monotone. If the remaining silhouettes never rise, the first candidate is chosen. If they never
    fall, the candidate just after the largest rise is chosen.

    Parameters
    ----------
    silhouettes : sequence of float
        Average silhouettes of the candidates, in increasing order of rank (or q).
    """
    remaining, removed = list(range(len(silhouettes))), list[int]()
    while True:
        rises = np.diff([silhouettes[i] for i in remaining])
        # This condition is tested first, so that the smallest rank (or q) is chosen if all values
        # are equal. The condition is also true if there is only one candidate.
        if np.all(rises <= 0):
            return Choice(position=remaining[0], removed=tuple(removed))
        if np.all(rises >= 0):
            return Choice(position=remaining[int(np.argmax(rises)) + 1], removed=tuple(removed))
        removed.append(remaining.pop(_last_local_minimum(rises)))


def _last_local_minimum(rises: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Return the position of the last local minimum of a sequence, given its differences.

    `rises` contains the differences between successive values.
    """
    # A value is a local minimum if neither neighbour is smaller. End points have one neighbour.
    falls_into = np.append(True, rises <= 0)
    rises_from = np.append(rises >= 0, True)
    return int(np.flatnonzero(falls_into & rises_from)[-1])


def reference_number_of_clusters(leaf_counts: Sequence[int]) -> int:
    """Return the default reference number of clusters K.

    The same K is used for all numbers of features q. K is the second largest of the given numbers,
    or the only number if there is a single q. If this number is less than two, K is two.

    Parameters
    ----------
    leaf_counts : sequence of int
        For each q, the largest number of leaves (clusters) among its pruned trees.
    """
    largest_first = sorted(leaf_counts, reverse=True)
    second_largest = largest_first[min(1, len(largest_first) - 1)]
    return max(2, second_largest)
