"""Explanations of the choice that a search made among its candidates. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mrshc.plotting.arguments import check_table
from mrshc.shell.wording import format_count

Table = Mapping[str, Any]
CandidateState = Literal["kept", "removed", "screened out"]

# Titles of the horizontal axis: for a curve over ranks, and for a curve over numbers of features.
RANK_AXIS, N_FEATURES_AXIS = "rank (number of sparse components)", "number of features q"
# Columns with the penalty of the feature weights, and their descriptions.
_PENALTIES = {
    "l1_bound": "L1 bound on the weights",
    "spike_penalty": "spike penalty of the weights",
}


_SILHOUETTE_TEXT = (
    "How it is chosen: local minima are removed until the remaining values only rise or only fall. "
    "Then the candidate just after the largest rise is taken, or the first if there is no rise."
)
_FALLBACK_TEXT = (
    "No candidate has the wanted number of clusters: of those with most clusters, the one with "
    "the highest average silhouette is taken."
)
_ASSOCIATION_TEXT = (
    "Each start set was replaced by the features that are associated with its clusters. The three "
    "strongest sets were replaced again until they hardly changed. Strength: sum of squares "
    "between clusters over the associated features."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Scores of m candidates of a search, to be plotted as a curve.

    Attributes
    ----------
    heading : str
        Title of the plot.
    x_name, y_name : str
        Titles of the axes.
    ticks : tuple of str of length m
        Tick label of each candidate, for example its rank. Candidates are plotted at the horizontal
        positions 0, ..., m - 1.
    values : ndarray of shape (m,)
        Score of each candidate.
    errors : ndarray of shape (m,) or None
        Half the length of the error bar of each candidate; None for no error bars.
    states : tuple of {"kept", "removed", "screened out"} of length m
        State of each candidate. A candidate is "screened out" if it was excluded before the
        comparison, "removed" if it was excluded during the comparison, and "kept" otherwise.
    notes : tuple of str of length m
        Text that is shown next to the point of each candidate; an empty string for no text.
    chosen : int
        Position of the chosen candidate, counted from zero.
    """

    heading: str
    x_name: str
    y_name: str
    ticks: tuple[str, ...]
    values: NDArray[np.float64]
    errors: NDArray[np.float64] | None
    states: tuple[CandidateState, ...]
    notes: tuple[str, ...]
    chosen: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchStory:
    """Explanation of why a search chose a candidate: text and curves.

    Attributes
    ----------
    verdict : str
        Text that describes the chosen candidate.
    rule : str
        Text that describes how a candidate is chosen; an empty string if there are no curves.
    curves : tuple of Curve
        Curves of the scores that were compared; an empty tuple if no scores were compared, for
        example because there was only one candidate.
    screened_out : str
        Text for the legend of the curves. It gives the reason why candidates are screened out, for
        example "fewer than 3 clusters". The text is empty if candidates are never screened out.
    """

    verdict: str
    rule: str
    curves: tuple[Curve, ...]
    screened_out: str


def make_curve(
    values: NDArray[np.float64],
    *,
    heading: str,
    x_name: str,
    y_name: str,
    ticks: Iterable[Any],
    chosen: int,
) -> Curve:
    """Return a curve without error bars or notes, in which all candidates are "kept"."""
    return Curve(
        heading=heading,
        x_name=x_name,
        y_name=y_name,
        ticks=tuple(str(tick) for tick in ticks),
        values=values,
        errors=None,
        states=kept_states(values.size),
        notes=("",) * values.size,
        chosen=chosen,
    )


def kept_states(n: int) -> tuple[CandidateState, ...]:
    """Return the state "kept" for each of n candidates."""
    return tuple("kept" for _ in range(n))


def search_story(table: Table) -> SearchStory:
    """Return an explanation of the choice that a search made among its candidates.

    A candidate is one combination of parameter values that the search compared.

    Parameters
    ----------
    table : mapping of str to array-like
        Table with one row for each candidate, such as `search_results_` of an estimator.

    Returns
    -------
    story : SearchStory
        Text that states the choice and explains how it was made, and curves of the scores that were
        compared. There are no curves if there was only one candidate.

    Examples
    --------
    >>> from mrshc.plotting import search_story
    >>> table = {"n_clusters": [2, 3], "silhouette": [0.4, 0.6], "chosen": [False, True]}
    >>> search_story(table).verdict
    'Chosen: 3 clusters (average silhouette 0.60)'
    """
    check_table("table", table, columns=("chosen",))
    columns = {name: np.asarray(column) for name, column in table.items()}
    # The method that made a table is recognised by the columns.
    if "strength" in columns:
        return _explain_association(columns)
    if "rank" in columns:
        return _explain_silhouettes(columns)
    if "n_clusters" in columns:
        return _explain_cut(columns)
    return _explain_gap(columns)


def chosen_row(table: Table) -> int:
    """Return the row of the chosen candidate in a table of candidates, counted from zero."""
    return int(np.flatnonzero(table["chosen"])[0])


def describe_choice(table: Table, score: str) -> str:
    """Return text that describes the candidate that a search chose."""
    row = chosen_row(table)
    q, n_features = int(table["n_features_target"][row]), int(table["n_features"][row])
    # The number of selected features may differ from q, since Algorithm 1 cannot always find a set
    # of exactly q features.
    wanted = "" if n_features == q else f" ({q} were wanted)"
    clusters = format_count(int(table["n_leaves"][row]), "cluster")
    return (
        f"Chosen: q = {format_count(n_features, 'feature')}{wanted}, "
        f"rank {int(table['rank'][row])} ({score}, {clusters})"
    )


def _explain_silhouettes(table: Table) -> SearchStory:
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
        rule=(_FALLBACK_TEXT if is_fallback else _SILHOUETTE_TEXT) if curves else "",
        curves=tuple(curves),
        screened_out="fewer clusters than wanted" if is_fallback else f"fewer than {clusters}",
    )


def runner_up_sentence(table: Table, n_clusters: int) -> str:
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


def _best_row_of_each_target(table: Table) -> NDArray[np.intp]:
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


def _silhouette_curve(table: Table, rows: NDArray[np.intp], *, over: str, heading: str) -> Curve:
    """Return a curve of the average silhouettes of selected candidates."""
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


def _candidate_state(table: Table, row: int) -> CandidateState:
    """Return the state of a candidate.

    The state is "screened out", "removed" (as a local minimum, by Algorithm 3 or 4) or "kept".
    `row` is the row of the candidate in the table of candidates.
    """
    if table["screened_out"][row]:
        return "screened out"
    return "removed" if table["removed"][row] else "kept"


def _explain_association(table: Table) -> SearchStory:
    """Return an explanation of the choice, with a curve over all start sets.

    The curve shows the strength that was reached from each start set, as a share of the largest
    strength. It is omitted if there was a single start set or if no features are associated.
    """
    chosen = chosen_row(table)
    strengths = np.asarray(table["strength"], dtype=np.float64)
    curves, rule = tuple[Curve, ...](), ""
    if strengths.size > 1 and strengths[chosen] == 0:
        rule = "No start set led to five associated features, so start sets were not compared."
    elif strengths.size > 1:
        rule = _ASSOCIATION_TEXT
        starts = zip(table["n_features_target"], table["rank"], strict=True)
        curves = (
            make_curve(
                strengths / strengths[chosen],
                heading="Which start set?",
                x_name="start set: number of features, rank",
                y_name="strength, share of the largest",
                ticks=[f"{q}, {rank}" for q, rank in starts],
                chosen=chosen,
            ),
        )
    features = format_count(int(table["n_features"][chosen]), "feature")
    clusters = format_count(int(table["n_leaves"][chosen]), "cluster")
    associated = f"{table['n_associated'][chosen]:,} features are associated"
    return SearchStory(
        verdict=f"Chosen: {features} ({associated}, {clusters})",
        rule=rule,
        curves=curves,
        screened_out="",
    )


def _explain_cut(table: Table) -> SearchStory:
    """Return an explanation of the choice of the number of clusters by the silhouette."""
    chosen = int(np.flatnonzero(table["chosen"])[0])
    k = int(table["n_clusters"][chosen])
    clusters = format_count(k, "cluster")
    values = np.asarray(table["silhouette"], dtype=np.float64)
    curve = make_curve(
        values,
        heading="Which number of clusters?",
        x_name="number of clusters",
        y_name="average silhouette",
        ticks=table["n_clusters"],
        chosen=chosen,
    )
    has_alternatives = values.size > 1
    return SearchStory(
        verdict=f"Chosen: {clusters} (average silhouette {values[chosen]:.2f})",
        rule="The number of clusters with the largest average silhouette is chosen."
        * has_alternatives,
        curves=(curve,) * has_alternatives,
        screened_out="",
    )


def _explain_gap(table: Table) -> SearchStory:
    """Return an explanation of the choice of the penalty of feature weights by permutations.

    SHC is the sparse hierarchical clustering of Witten and Tibshirani (2010). The L1 bound limits
    the sum of the feature weights, and the spike penalty reduces small weights. The permutation gap
    compares the criterion that SHC maximises with the values of this criterion in permuted data.
    """
    chosen = int(np.flatnonzero(table["chosen"])[0])
    penalty = next((name for name in _PENALTIES if name in table), None)
    if penalty is None:
        raise ValueError(
            f"table must have a column for its candidates, such as {' or '.join(_PENALTIES)}, got "
            f"the columns {', '.join(table)}. Pass the search_results_ of an estimator."
        )
    value = float(table[penalty][chosen])
    features = format_count(int(table["n_features"][chosen]), "feature")
    verdict = f"Chosen: {features} ({_PENALTIES[penalty]} {value:.3g})"
    # If the user gave one penalty or one number of features, no candidates were compared.
    if "gap" not in table:
        return SearchStory(verdict=verdict, rule="", curves=(), screened_out="")
    # The rows are sorted for the plot. The candidates of the search may have been in another order.
    if penalty == "l1_bound":
        rows = np.lexsort((table[penalty], table["n_features"]))
        choice = "number of features"
        x_name = "number of features with nonzero weight"
        ticks = [str(value) for value in table["n_features"][rows]]
    else:
        # Many penalties lead to the same number of features.
        rows = np.argsort(table[penalty], kind="stable")
        choice = "spike penalty"
        x_name = "spike penalty (number of features with nonzero weight)"
        ticks = [
            f"{value:.3g} ({count})"
            for value, count in zip(table[penalty][rows], table["n_features"][rows], strict=True)
        ]
    curve = Curve(
        heading=f"Which {choice}?",
        x_name=x_name,
        y_name="gap (log criterion: data minus permuted data)",
        ticks=tuple(ticks),
        values=np.asarray(table["gap"], dtype=np.float64)[rows],
        errors=np.asarray(table["gap_sd"], dtype=np.float64)[rows],
        states=kept_states(rows.size),
        notes=("",) * rows.size,
        chosen=int(np.flatnonzero(rows == chosen)[0]),
    )
    rule = (
        f"The {choice} with the largest gap is chosen. Error bars: standard deviation over "
        "permutations."
    )
    return SearchStory(verdict=verdict, rule=rule, curves=(curve,), screened_out="")
