"""Choice of the strongest markers of each cluster. Nothing is drawn here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        Effect size of each marker. It is positive if the mean of the feature is higher in the
        cluster than in the other samples.
    n_all : int
        Number of all markers of the cluster, including markers that are not shown.
    """

    heading: str
    features: tuple[str, ...]
    effects: NDArray[np.float64]
    n_all: int


def marker_panels(table: Any, n_clusters: int, *, top: int) -> list[MarkerPanel]:
    """Return the strongest markers of each cluster.

    Parameters
    ----------
    table : DataFrame
        Table of markers: the return value of the method `markers` of an estimator, or the attribute
        `markers` of a result. Clusters are numbered from 0 in the table of an estimator, and from 1
        in the table of a result.
    n_clusters : int
        Number of clusters, including clusters without markers.
    top : int
        Largest number of markers to return for each cluster.

    Returns
    -------
    panels : list of MarkerPanel
        One panel for each cluster. If there are two clusters, there is only one panel, since a
        marker of one cluster is also a marker of the other cluster, with the opposite sign.

    Examples
    --------
    >>> import pandas as pd
    >>> from mrshc.plotting import marker_panels
    >>> table = pd.DataFrame({"contrast": ["cluster"], "inside": ["1"], "feature": ["gene 7"],
    ...                       "effect_size": [-2.0]})
    >>> [(panel.heading, panel.features) for panel in marker_panels(table, 3, top=5)]
    [('cluster 1', ('gene 7',)), ('cluster 2', ()), ('cluster 3', ())]
    """
    check_table("table", table, columns=("contrast", "inside", "effect_size", "feature"))
    n_clusters, top = check_n_clusters("n_clusters", n_clusters), check_top(top)
    counts_from_zero, names = _counts_from_zero(table), table["feature"]
    effects = table["effect_size"].to_numpy(dtype=np.float64)
    panels = []
    for k in range(1 if n_clusters == 2 else n_clusters):
        label = str(k + 1 - counts_from_zero)
        is_marker = (table["contrast"] == "cluster") & (table["inside"] == label)
        # The effect size is not finite if the feature does not vary within the two groups. Such
        # features are left out.
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


def _counts_from_zero(table: Any) -> bool:
    """Return whether the clusters of a table of markers are numbered from 0.

    A comparison of a cluster with all other samples names all clusters, so each of its rows shows
    whether there is a cluster 0.
    """
    is_cluster = table["contrast"] == "cluster"
    sides = [side for side in ("inside", "outside") if side in table]
    groups = {str(group) for side in sides for group in table.loc[is_cluster, side].unique()}
    return any("0" in group.split(", ") for group in groups)
