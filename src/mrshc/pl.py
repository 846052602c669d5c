"""Plots of clusterings in AnnData objects, in the manner of scanpy: `mrshc.pl.heatmap(adata)`.

The functions draw what :func:`mrshc.tl.cluster` has stored. They take the same options as those of
:mod:`mrshc.plotting`, which draw fitted estimators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrshc.optional_packages import require_packages

# The check comes first, so that its message is shown and not that of the failed import.
require_packages(["matplotlib", "pandas"], purpose="mrshc.pl", extra="plot")

import numpy as np
import pandas as pd

from mrshc import plotting
from mrshc.anndata_tools.pseudobulks import mean_of_groups
from mrshc.anndata_tools.stored_clustering import StoredClustering
from mrshc.shell.data_matrix import as_data_matrix

__all__ = ["dendrogram", "heatmap", "loadings"]


def dendrogram(
    adata: Any,
    key: str = "mrshc",
    *,
    annotations: str | Sequence[str] | pd.DataFrame | pd.Series | None = None,
    **options: Any,
) -> Any:
    """Draw the tree of the clustered samples, or of the clustered groups of cells.

    Parameters
    ----------
    adata : AnnData
        The data, clustered by :func:`mrshc.tl.cluster`.
    key : str, default="mrshc"
        The name `key_added` of the clustering.
    annotations : str, sequence of str, DataFrame, Series or None, default=None
        Columns of `adata.obs` that are drawn as colour bars below the tree. A DataFrame or a Series
        contains other annotations, which are matched by its index to the names of the samples or
        groups.
    **options
        Options of :func:`mrshc.plotting.dendrogram`.

    Returns
    -------
    ax : matplotlib Axes
        The axes with the tree.
    """
    model = StoredClustering(adata, key)
    return plotting.dendrogram(
        model, annotations=_annotations(model, adata, annotations), **options
    )


def heatmap(
    adata: Any,
    key: str = "mrshc",
    *,
    layer: str | None = None,
    annotations: str | Sequence[str] | pd.DataFrame | pd.Series | None = None,
    **options: Any,
) -> Any:
    """Draw a heat map of the selected features, with samples in the order of their tree.

    Parameters
    ----------
    adata : AnnData
        The data, clustered by :func:`mrshc.tl.cluster`.
    key : str, default="mrshc"
        The name `key_added` of the clustering.
    layer : str or None, default=None
        Layer with the values to draw; None for `adata.X`. For groups of cells, their means are
        drawn.
    annotations : str, sequence of str, DataFrame, Series or None, default=None
        Columns of `adata.obs` that are drawn as colour bars above the heat map, or other
        annotations, as in :func:`dendrogram`.
    **options
        Options of :func:`mrshc.plotting.heatmap`.

    Returns
    -------
    figure : matplotlib Figure
        The figure.
    """
    model = StoredClustering(adata, key)
    matrix = adata.X if layer is None else adata.layers[layer]
    selected = np.flatnonzero(model.get_support())
    values = as_data_matrix(getattr(matrix, "group", matrix)).columns(selected)
    groups = model.group_of_cells(adata)
    if groups is None:
        order = adata.obs_names.get_indexer(model.sample_names_in_)
        values = values[order]
    else:
        values = mean_of_groups(values, groups, n_groups=len(model.sample_names_in_))
    table = pd.DataFrame(
        values, index=model.sample_names_in_, columns=model.feature_names_in_[selected]
    )
    return plotting.heatmap(
        model, table, annotations=_annotations(model, adata, annotations), **options
    )


def loadings(adata: Any, key: str = "mrshc", **options: Any) -> Any:
    """Draw the largest loadings of each sparse component.

    Parameters
    ----------
    adata : AnnData
        The data, clustered by :func:`mrshc.tl.cluster`.
    key : str, default="mrshc"
        The name `key_added` of the clustering.
    **options
        Options of :func:`mrshc.plotting.loadings`.

    Returns
    -------
    figure : matplotlib Figure
        The figure.
    """
    model: Any = StoredClustering(adata, key)
    return plotting.loadings(model, **options)


def _annotations(
    model: StoredClustering,
    adata: Any,
    columns: str | Sequence[str] | pd.DataFrame | pd.Series | None,
) -> pd.DataFrame | pd.Series | None:
    """Return the annotations of the clustered samples; None if there are none.

    `columns` are names of columns of `adata.obs`, or annotations, which are returned unchanged.
    """
    if columns is None or isinstance(columns, pd.DataFrame | pd.Series):
        return columns
    return model.annotations(adata, [columns] if isinstance(columns, str) else list(columns))
