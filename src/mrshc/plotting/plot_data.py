"""What speaks for a choice, as points with words: curves, tests, widths, loadings. No drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mrshc.core.arrays import Float, Index
from mrshc.core.selection import Curve, SearchStory, rule_of
from mrshc.core.selection.explanation import all_kept, plain_curve
from mrshc.plotting.colours import natural_key
from mrshc.plotting.dendrogram_layout import counted

Verdict = Literal["made", "not supported", "supported, not made"]
Table = Mapping[str, Any]


def search_story(table: Table) -> SearchStory:
    """Return why a candidate was chosen, as the rule or the method that chose it explains it.

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
    if (rule := rule_of(columns)) is not None:
        return rule.explain(columns)
    if "n_clusters" in columns:
        return _cut_story(columns)
    return _gap_story(columns)


def _cut_story(table: Table) -> SearchStory:
    chosen = int(np.flatnonzero(table["chosen"])[0])
    k = int(table["n_clusters"][chosen])
    clusters = counted(k, "cluster")
    values = np.asarray(table["silhouette"], dtype=np.float64)
    curve = plain_curve(
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
        states=all_kept(rows.size),
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
