"""The strongest markers of each cluster, from a table of markers. Nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.array_types import Float
from mrshc.plotting.arguments import check_n_clusters, check_table, check_top


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MarkerPanel:
    """The strongest markers of one cluster, to be shown in one panel of a plot.

    A marker is a feature that differs between the cluster and all other samples.

    Attributes
    ----------
    heading : str
        Name of the cluster.
    features : tuple of str, of length n_shown
        Names of the markers in decreasing order of the absolute effect size.
    effects : ndarray of shape (n_shown,)
        Effect size of each marker; positive if the mean of the feature is higher in the cluster.
    n_all : int
        Number of all markers of the cluster, including those that are not shown.
    """

    heading: str
    features: tuple[str, ...]
    effects: Float
    n_all: int


def marker_panels(table: Any, n_clusters: int, *, top: int) -> list[MarkerPanel]:
    """Return the strongest markers of each cluster.

    Parameters
    ----------
    table : DataFrame
        Table of markers: the return value of the method `markers` of an estimator, which numbers
        clusters from 0, or the attribute `markers` of a result, which numbers clusters from 1.
    n_clusters : int
        Number of clusters, including those without markers.
    top : int
        Largest number of markers to return for each cluster.

    Returns
    -------
    panels : list of MarkerPanel
        One panel for each cluster. If there are two clusters, there is only one panel, since a
        marker of one cluster is also a marker of the other cluster, with the opposite sign.

    Raises
    ------
    ValueError
        If `table` lacks a column, or if `n_clusters` or `top` is not a positive integer.

    See Also
    --------
    markers : Draw the panels.

    Examples
    --------
    >>> import pandas as pd
    >>> from mrshc.plotting import marker_panels
    >>> table = pd.DataFrame({"contrast": ["cluster"], "inside": ["1"], "feature": ["gene 7"],
    ...                       "effect_size": [-2.0]})
    >>> [(panel.heading, panel.features) for panel in marker_panels(table, 3, top=5)]
    [('cluster 1', ('gene 7',)), ('cluster 2', ()), ('cluster 3', ())]
    """
    check_table("table", table, columns=("contrast", "inside", "effect_size"))
    if "name" not in table:
        check_table("table", table, columns=("feature",))
    n_clusters, top = check_n_clusters("n_clusters", n_clusters), check_top(top)
    # Only the table of an estimator has a column "name"; the column "feature" of that table
    # contains indices.
    counts_from_zero = "name" in table
    names = table["name" if counts_from_zero else "feature"]
    effects = table["effect_size"].to_numpy(dtype=np.float64)
    panels = []
    for k in range(1 if n_clusters == 2 else n_clusters):
        label = str(k + 1 - counts_from_zero)
        is_marker = (table["contrast"] == "cluster") & (table["inside"] == label)
        # An effect size is not finite if the feature does not vary within the groups. Such features
        # are left out.
        rows = np.flatnonzero(is_marker & np.isfinite(effects))
        strongest = rows[np.argsort(-np.abs(effects[rows]), kind="stable")[:top]]
        panels.append(
            MarkerPanel(
                heading="cluster 1 against cluster 2" if n_clusters == 2 else f"cluster {k + 1}",
                features=tuple(str(names.iloc[i]) for i in strongest),
                effects=effects[strongest],
                n_all=int(is_marker.sum()),
            )
        )
    return panels
