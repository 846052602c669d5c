"""Explanations of the choice that a search made among its candidates. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mrshc.core.selection import Curve, SearchStory, find_rule
from mrshc.core.selection.explanation import format_count, kept_states, make_curve
from mrshc.plotting.arguments import check_table

Table = Mapping[str, Any]
# Columns with the penalty of the feature weights, and their descriptions.
_PENALTIES = {
    "l1_bound": "L1 bound on the weights",
    "spike_penalty": "spike penalty of the weights",
}


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

    Raises
    ------
    ValueError
        If `table` is neither a mapping nor a DataFrame, or if it lacks the column "chosen" or the
        column with the parameter of the candidates.

    See Also
    --------
    search_curves : Draw the curves.

    Examples
    --------
    >>> from mrshc.plotting import search_story
    >>> table = {"n_clusters": [2, 3], "silhouette": [0.4, 0.6], "chosen": [False, True]}
    >>> search_story(table).verdict
    'Chosen: 3 clusters (average silhouette 0.60)'
    """
    check_table("table", table, columns=("chosen",))
    columns = {name: np.asarray(column) for name, column in table.items()}
    # A selection rule of MrSHC explains the tables that were made by this rule. Other methods have
    # no selection rule; their tables are recognised by their columns.
    if (rule := find_rule(columns)) is not None:
        return rule.explain(columns)
    if "n_clusters" in columns:
        return _explain_cut(columns)
    return _explain_gap(columns)


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
