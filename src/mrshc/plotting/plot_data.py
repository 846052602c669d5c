"""What speaks for a choice, as points with words: curves, tests, widths, loadings. No drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mrshc.core.arrays import Float, Index
from mrshc.plotting.colours import natural_key
from mrshc.plotting.dendrogram_layout import counted

State = Literal["kept", "removed", "screened out"]
Verdict = Literal["made", "not supported", "supported, not made"]
Table = Mapping[str, Any]

_RULE = (
    "How it is chosen: values that dip are removed until what is left only rises or only falls. "
    "Then the candidate just after the largest rise is taken, or the first if there is no rise."
)
_EVIDENCE_RULE = (
    "How it is chosen: first the rank with the highest mean evidence over all numbers of features, "
    "then the number of features with most evidence. Evidence: how much more the tree says of the "
    "features that were not selected than it would if samples were shuffled, in standard "
    "deviations of shuffled samples."
)
_FALLBACK = "No candidate shows as many clusters as were looked for: of those with most clusters, "
_FALLBACK += "the one that separates them best is taken."


_RANK, _NUMBER = "rank (number of sparse components)", "number of features q"
_EVIDENCE = "evidence, in standard deviations"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Candidates side by side, at 0, 1, ... from left to right."""

    heading: str
    x_name: str
    y_name: str
    ticks: tuple[str, ...]  # (m,), what each candidate is
    values: Float  # (m,)
    errors: Float | None  # (m,)
    states: tuple[State, ...]  # (m,)
    notes: tuple[str, ...]  # (m,), written beside the points
    chosen: int  # position


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchStory:
    """Why these parameters: what was chosen, among what, by which rule."""

    verdict: str
    rule: str
    curves: tuple[Curve, ...]  # empty if there was nothing to choose from
    screened_out: str  # what the screen asked for


def search_story(table: Table) -> SearchStory:
    """Return the story that a table of candidates tells.

    Parameters
    ----------
    table : mapping of str to array-like
        `search_results_` of an estimator.

    Examples
    --------
    >>> from mrshc.plotting import search_story
    >>> table = {"n_clusters": [2, 3], "silhouette": [0.4, 0.6], "chosen": [False, True]}
    >>> search_story(table).verdict
    'Chosen: 3 clusters (average silhouette 0.60)'
    """
    columns = {name: np.asarray(column) for name, column in table.items()}
    if "evidence" in columns:
        return _evidence_story(columns)
    if "rank" in columns:
        return _multirank_story(columns)
    if "n_clusters" in columns:
        return _cut_story(columns)
    return _gap_story(columns)


def _multirank_story(table: Table) -> SearchStory:
    chosen = int(np.flatnonzero(table["chosen"])[0])
    q, rank = int(table["n_features_target"][chosen]), int(table["rank"][chosen])
    clusters = counted(int(table["n_leaves"][chosen]), "cluster")
    verdict = (
        f"Chosen: {_wanted(table, chosen)}, rank {rank} "
        f"(average silhouette {table['silhouette'][chosen]:.2f}, {clusters})"
    )
    fell_back = bool(np.all(table["screened_out"]))
    of_q = np.flatnonzero(table["n_features_target"] == q)
    best = _best_of_each_target(table)
    several_ranks = np.unique(table["rank"]).size > 1
    curves = []
    if best.size > 1:
        heading = "Which number of features?" + "\n(each with its best rank)" * several_ranks
        curves.append(
            _silhouettes(table, best, over="n_features_target", chosen=chosen, heading=heading)
        )
    if of_q.size > 1:
        heading = f"Which rank, with q = {counted(q, 'feature')}?"
        curves.append(_silhouettes(table, of_q, over="rank", chosen=chosen, heading=heading))
    return SearchStory(
        verdict=verdict,
        rule=(_FALLBACK if fell_back else _RULE) if curves else "",
        curves=tuple(curves),
        screened_out="fewer clusters than wanted" if fell_back else f"fewer than {clusters}",
    )


def _evidence_story(table: Table) -> SearchStory:
    chosen = int(np.flatnonzero(table["chosen"])[0])
    rank, ranks = int(table["rank"][chosen]), np.unique(table["rank"])
    evidence = np.asarray(table["evidence"], dtype=np.float64)
    k = counted(int(table["n_leaves"][chosen]), "cluster")
    verdict = (
        f"Chosen: {_wanted(table, chosen)}, rank {rank} (evidence {evidence[chosen]:.1f}, {k})"
    )
    of_rank = np.flatnonzero(table["rank"] == rank)
    curves = []
    if ranks.size > 1:
        mean = "Which rank?" + "\n(mean over all numbers of features)" * (of_rank.size > 1)
        curves.append(
            _plain_curve(
                np.array([evidence[table["rank"] == r].mean() for r in ranks]),
                heading=mean,
                x_name=_RANK,
                y_name=_EVIDENCE,
                ticks=ranks,
                chosen=int(np.flatnonzero(ranks == rank)[0]),
            )
        )
    if of_rank.size > 1:
        curves.append(
            _plain_curve(
                evidence[of_rank],
                heading="Which number of features" + f", with rank {rank}" * (ranks.size > 1) + "?",
                x_name=_NUMBER,
                y_name=_EVIDENCE,
                ticks=table["n_features_target"][of_rank],
                chosen=int(np.flatnonzero(of_rank == chosen)[0]),
            )
        )
    rule = _EVIDENCE_RULE * bool(curves)
    return SearchStory(verdict=verdict, rule=rule, curves=tuple(curves), screened_out="")


def _wanted(table: Table, chosen: int) -> str:
    """Say how many features were chosen, and how many were wanted if that is another number."""
    q, got = int(table["n_features_target"][chosen]), int(table["n_features"][chosen])
    return f"q = {counted(got, 'feature')}" + ("" if got == q else f" ({q} were wanted)")


def _plain_curve(
    values: Float, *, heading: str, x_name: str, y_name: str, ticks: Any, chosen: int
) -> Curve:
    """Return a curve of candidates none of which was set aside."""
    return Curve(
        heading=heading,
        x_name=x_name,
        y_name=y_name,
        ticks=tuple(str(tick) for tick in ticks),
        values=values,
        errors=None,
        states=_all_kept(values.size),
        notes=("",) * values.size,
        chosen=chosen,
    )


def _best_of_each_target(table: Table) -> Index:
    """Return the candidate that speaks for each q: Algorithm 3's, or the least bad one."""
    targets = table["n_features_target"]
    worst_first = ("silhouette", "n_leaves", "screened_out", "best_rank", "chosen")
    order = np.lexsort(
        [~table[key] if key == "screened_out" else table[key] for key in worst_first]
    )
    last = {int(targets[i]): int(i) for i in order}
    return np.array([last[q] for q in sorted(last)], dtype=np.intp)


def _silhouettes(table: Table, rows: Index, *, over: str, chosen: int, heading: str) -> Curve:
    by_rank = over == "rank"
    silent = by_rank or np.unique(table["rank"]).size == 1
    return Curve(
        heading=heading,
        x_name=_RANK if by_rank else _NUMBER,
        y_name="average silhouette",
        ticks=tuple(str(value) for value in table[over][rows]),
        values=np.asarray(table["silhouette"][rows], dtype=np.float64),
        errors=None,
        states=tuple(_state(table, i) for i in rows),
        notes=tuple(
            "" if silent or table["screened_out"][i] else f"rank {table['rank'][i]}" for i in rows
        ),
        chosen=int(np.flatnonzero(rows == chosen)[0]),
    )


def _all_kept(n: int) -> tuple[State, ...]:
    return tuple("kept" for _ in range(n))


def _state(table: Table, row: int) -> State:
    if table["screened_out"][row]:
        return "screened out"
    return "removed" if table["removed"][row] else "kept"


def _cut_story(table: Table) -> SearchStory:
    chosen = int(np.flatnonzero(table["chosen"])[0])
    k = int(table["n_clusters"][chosen])
    clusters = counted(k, "cluster")
    values = np.asarray(table["silhouette"], dtype=np.float64)
    curve = _plain_curve(
        values,
        heading="Which number of clusters?",
        x_name="number of clusters",
        y_name="average silhouette",
        ticks=table["n_clusters"],
        chosen=chosen,
    )
    several = values.size > 1
    return SearchStory(
        verdict=f"Chosen: {clusters} (average silhouette {values[chosen]:.2f})",
        rule="The higher the silhouette, the better the clusters are separated." * several,
        curves=(curve,) * several,
        screened_out="",
    )


def _gap_story(table: Table) -> SearchStory:
    chosen = int(np.flatnonzero(table["chosen"])[0])
    bound = float(table["l1_bound"][chosen])
    features = counted(int(table["n_features"][chosen]), "feature")
    verdict = f"Chosen: {features} (bound on the weights {bound:.3g})"
    if "gap" not in table:
        return SearchStory(verdict=verdict, rule="", curves=(), screened_out="")
    rows = np.lexsort((table["l1_bound"], table["n_features"]))
    curve = Curve(
        heading="Which number of features?",
        x_name="number of features with a weight",
        y_name="gap: log criterion, data minus permuted data",
        ticks=tuple(str(value) for value in table["n_features"][rows]),
        values=np.asarray(table["gap"], dtype=np.float64)[rows],
        errors=np.asarray(table["gap_sd"], dtype=np.float64)[rows],
        states=_all_kept(rows.size),
        notes=("",) * rows.size,
        chosen=int(np.flatnonzero(rows == chosen)[0]),
    )
    rule = "How it is chosen: the largest gap. Whiskers: standard deviation over permutations."
    return SearchStory(verdict=verdict, rule=rule, curves=(curve,), screened_out="")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitMark:
    """A node of the tree that was tested, and what came of it."""

    node: int
    verdict: Verdict
    excess: float  # drop in log dispersion beyond the expected one, in standard errors
    label: str


def split_marks(tests: Table) -> list[SplitMark]:
    """Return the tested nodes, the highest first.

    Parameters
    ----------
    tests : mapping of str to array-like
        `split_tests_` of an estimator.

    Examples
    --------
    >>> from mrshc.plotting import split_marks
    >>> tests = {"node": [4], "height": [1.0], "drop": [0.5], "expected_drop": [0.3],
    ...          "standard_error": [0.1], "supported": [True], "split": [True]}
    >>> mark, = split_marks(tests)
    >>> mark.verdict, mark.label
    ('made', '+2.0')
    """
    columns = {name: np.asarray(column) for name, column in tests.items()}
    beyond = np.asarray(columns["drop"] - columns["expected_drop"], dtype=np.float64)
    error = np.asarray(columns["standard_error"], dtype=np.float64)
    # Without spread in the reference samples any difference is infinitely many errors.
    limit = np.where(beyond == 0, 0.0, np.copysign(np.inf, beyond))
    excess = np.divide(beyond, error, out=limit, where=error > 0)
    return [
        SplitMark(
            node=int(columns["node"][i]),
            verdict=_verdict(
                supported=bool(columns["supported"][i]), split=bool(columns["split"][i])
            ),
            excess=float(excess[i]),
            label=_signed(float(excess[i])),
        )
        for i in np.lexsort((columns["node"], columns["height"]))[::-1]
    ]


def _verdict(*, supported: bool, split: bool) -> Verdict:
    if split:
        return "made"
    return "supported, not made" if supported else "not supported"


def _signed(value: float) -> str:
    if np.isinf(value):
        return ("+" if value > 0 else "-") + "\N{INFINITY}"
    return f"{value:+.1f}" if abs(value) < 100 else f"{value:+.0f}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SilhouetteRows:
    """Samples by cluster and from the widest to the narrowest, from top to bottom."""

    order: Index  # (n,), samples
    places: Float  # (n,), their height in the picture; clusters are set apart
    clusters: Index  # (n,), position of their cluster
    names: tuple[str, ...]  # (K,)
    averages: Float  # (K,)
    centres: Float  # (K,), middle of each cluster in the picture


def silhouette_rows(widths: ArrayLike, labels: ArrayLike) -> SilhouetteRows:
    """Arrange silhouette widths for a picture.

    Examples
    --------
    >>> from mrshc.plotting import silhouette_rows
    >>> silhouette_rows([0.1, 0.5, 0.3], [0, 1, 0]).order
    array([2, 0, 1])
    """
    values, known = np.asarray(widths, dtype=np.float64), np.asarray(labels)
    if values.ndim != 1 or known.shape != values.shape or not values.size:
        raise ValueError(
            "widths and labels must hold one entry for each sample, got the shapes "
            f"{values.shape} and {known.shape}. Give the silhouette widths of the same samples."
        )
    levels = sorted(set(known.tolist()), key=natural_key)
    position = {level: k for k, level in enumerate(levels)}
    clusters = np.array([position[level] for level in known.tolist()], dtype=np.intp)
    order = np.lexsort((-values, clusters))
    gap = max(1.0, 0.02 * values.size)
    places = np.arange(values.size) + gap * clusters[order]
    members = [clusters[order] == k for k in range(len(levels))]
    counted = np.issubdtype(known.dtype, np.integer)
    return SilhouetteRows(
        order=order,
        places=places,
        clusters=clusters[order],
        names=tuple(f"cluster {level + 1}" if counted else str(level) for level in levels),
        averages=np.array([values[order][m].mean() for m in members]),
        centres=np.array([places[m].mean() for m in members]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkerPanel:
    """The strongest markers of one cluster."""

    heading: str
    features: tuple[str, ...]  # the largest effect first
    effects: Float  # positive: higher in the cluster
    n_all: int


def marker_panels(table: Any, n_clusters: int, *, top: int) -> list[MarkerPanel]:
    """Return the strongest markers of each cluster.

    With two clusters what marks one marks the other, so that one panel tells both.

    Parameters
    ----------
    table : DataFrame
        Of `markers` of an estimator, whose clusters are counted from zero, or of a result.
    n_clusters : int
        Number of clusters, also of those that nothing marks.
    top : int
        Markers of a cluster, at most.

    Examples
    --------
    >>> import pandas as pd
    >>> from mrshc.plotting import marker_panels
    >>> table = pd.DataFrame({"contrast": ["cluster"], "inside": ["1"], "feature": ["gene 7"],
    ...                       "effect_size": [-2.0]})
    >>> [(panel.heading, panel.features) for panel in marker_panels(table, 3, top=5)]
    [('cluster 1', ('gene 7',)), ('cluster 2', ()), ('cluster 3', ())]
    """
    counts_from_zero = "name" in table
    names = table["name" if counts_from_zero else "feature"]
    effects = table["effect_size"].to_numpy(dtype=np.float64)
    panels = []
    for k in range(1 if n_clusters == 2 else n_clusters):
        own = (table["contrast"] == "cluster") & (table["inside"] == str(k + 1 - counts_from_zero))
        rows = np.flatnonzero(own & np.isfinite(effects))
        first = rows[np.argsort(-np.abs(effects[rows]), kind="stable")[:top]]
        panels.append(
            MarkerPanel(
                heading="cluster 1 against cluster 2" if n_clusters == 2 else f"cluster {k + 1}",
                features=tuple(str(names.iloc[i]) for i in first),
                effects=effects[first],
                n_all=int(own.sum()),
            )
        )
    return panels


def largest_loadings(component: ArrayLike, top: int) -> Index:
    """Return the features with the largest absolute loadings, largest first; never zero ones.

    Examples
    --------
    >>> from mrshc.plotting import largest_loadings
    >>> largest_loadings([0.1, 0.0, -0.9], top=5)
    array([2, 0])
    """
    size = np.abs(np.asarray(component, dtype=np.float64))
    first: Index = np.argsort(-size, kind="stable")[:top]
    return first[size[first] > 0]


def panels_of(n: int, *, widest: int) -> Sequence[int]:
    """Return rows and columns of a grid that holds n panels."""
    rows = -(-n // widest)
    return rows, -(-n // rows)
