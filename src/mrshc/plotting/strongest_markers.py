"""The strongest markers of each cluster, from the table of markers. No drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mrshc.core.array_types import Float
from mrshc.plotting.arguments import check_n_clusters, check_table, check_top


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
    check_table("table", table, ("contrast", "inside", "effect_size"))
    if "name" not in table:
        check_table("table", table, ("feature",))
    n_clusters, top = check_n_clusters("n_clusters", n_clusters), check_top(top)
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
