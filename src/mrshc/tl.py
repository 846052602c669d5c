"""Tools for AnnData objects, in the manner of scanpy: `mrshc.tl.cluster(adata)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mrshc.optional_packages import require_packages

# The check comes first, so that its message is shown and not that of the failed import.
require_packages(["pandas"], purpose="mrshc.tl", extra="anndata")

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.anndata_tools.pseudobulks import Pseudobulks, aggregate_cells, group_name
from mrshc.anndata_tools.scanpy_dendrogram import cluster_linkage, scanpy_dendrogram
from mrshc.estimators import AssociationHC
from mrshc.preprocessing import RawScaleWarning, detect_scale
from mrshc.shell.data_matrix import as_data_matrix
from mrshc.shell.wording import ParameterError, invalid_parameter_error
from mrshc.validation import warn_caller

__all__ = ["cluster"]


def cluster(
    adata: Any,
    *,
    layer: str | None = None,
    groupby: str | Sequence[str] | None = None,
    key_added: str = "mrshc",
    aggregate: str = "mean",
    **params: Any,
) -> AssociationHC:
    """Cluster the observations of an AnnData object, or groups of them, by AssociationHC.

    This is the method that is recommended for real data. The results are written to `adata`, and
    scanpy can plot them: `sc.pl.dendrogram(adata, "mrshc")`, or
    `sc.pl.heatmap(adata, genes, groupby="mrshc", dendrogram=True)`.

    Parameters
    ----------
    adata : AnnData
        The data, with observations in rows; sparse, or backed by a file (`backed="r+"`), if this is
        wanted. Counts should be normalised and transformed to logarithms first.
    layer : str or None, default=None
        Name of the layer with the values; None for `adata.X`.
    groupby : str, sequence of str or None, default=None
        Columns of `adata.obs`. If given, the cells with the same values in these columns are
        aggregated to one profile (pseudobulk), and the profiles are clustered. With single-cell
        data, sample and cell type are suitable columns. All cells of a group receive the cluster of
        its profile; cells with a missing value receive none.
    key_added : str, default="mrshc"
        Name, or first part of the names, under which the results are stored.
    aggregate : {"mean", "sum"}, default="mean"
        How the cells of a group are aggregated.
    **params
        Parameters of :class:`mrshc.AssociationHC`, such as `n_clusters=4` or `robust=True`.

    Returns
    -------
    AssociationHC
        The fitted estimator. Its `labels_` and its method `predict` count clusters from 0, whereas
        `adata.obs` names them "1", "2", ... as the files of the command line do: label 0 is the
        cluster "1".

    Warns
    -----
    RawScaleWarning
        If the values look like counts or raw intensities.

    Notes
    -----
    The following fields are set, for the default of `key_added`:

    - `adata.obs["mrshc"]` : cluster of each observation, a categorical annotation with the
      categories "1", "2", ... (text) in the order of the leaves of the tree, from left to right.
      They are `labels_ + 1` of the estimator.
    - `adata.var["mrshc_selected"]` : whether the tree is built on the feature.
    - `adata.var["mrshc_loading"]` : largest absolute loading of the feature over all components.
    - `adata.var["mrshc_qvalue"]` : q-value of the association of the feature with the clusters.
    - `adata.varm["mrshc_loadings"]` : loadings of the sparse components, one column for each.
    - `adata.uns["mrshc"]` : parameters (`params`), tree of the clustered profiles in scipy's format
      (`linkage`) with the names of its leaves (`samples`), table of the search (`search`), numbers
      of clusters and features, rank, and whether held-out features support the clusters.
    - `adata.uns["dendrogram_mrshc"]` : tree of the clusters in the layout of scanpy, if there are
      at least two clusters. With `groupby`, the tree of the groups is stored in the same way, under
      the name that scanpy uses for these columns.

    Examples
    --------
    >>> import mrshc
    >>> adata = sc.read_h5ad("expression.h5ad")  # doctest: +SKIP
    >>> mrshc.tl.cluster(adata)  # doctest: +SKIP
    >>> sc.pl.dendrogram(adata, "mrshc")  # doctest: +SKIP
    """
    _check_anndata(adata)
    if not isinstance(key_added, str) or not key_added:
        raise invalid_parameter_error("key_added", key_added, allowed="be a text, not empty")
    matrix = _choose_matrix(adata, layer)
    model = AssociationHC(**params)
    bulks = None
    if groupby is not None:
        bulks = aggregate_cells(matrix, adata.obs, groupby, aggregate=aggregate)
    _warn_of_raw_scale(getattr(matrix, "group", matrix) if bulks is None else bulks.values)
    if bulks is None:
        model.fit(adata if layer is None else _with_matrix(adata, matrix))
    else:
        model.fit(bulks.to_table(adata.var_names))
    labels = model.labels_
    # All results are computed before the first one is written, so an error leaves `adata` as it is.
    about = _describe(model, adata.obs_names if bulks is None else bulks.names)
    about["params"] = _storable({**model.get_params(), "layer": layer})
    if groupby is not None:
        about["groupby"] = [groupby] if isinstance(groupby, str) else list(groupby)
        about["params"]["aggregate"] = aggregate
    profiles = _selected_columns(model, matrix, bulks)
    trees = _trees(model, labels, profiles, key=key_added, groupby=groupby, bulks=bulks)
    of_cells = labels if bulks is None else _labels_of_cells(bulks, labels)
    names = _cluster_names(labels)
    adata.obs[key_added] = pd.Categorical.from_codes(of_cells, categories=names)
    adata.var[f"{key_added}_selected"] = model.get_support()
    adata.var[f"{key_added}_loading"] = np.abs(model.components_).max(axis=0)
    adata.var[f"{key_added}_qvalue"] = model.feature_qvalues_
    adata.varm[f"{key_added}_loadings"] = np.ascontiguousarray(model.components_.T)
    adata.uns[key_added] = about
    adata.uns.update(trees)
    return model


def _check_anndata(adata: Any) -> None:
    """Raise TypeError if an object is not an AnnData object."""
    if not hasattr(adata, "isbacked"):
        raise TypeError(
            f"adata must be an AnnData object, got {type(adata).__name__}. For an array or a "
            "table, use mrshc.AssociationHC."
        )


def _warn_of_raw_scale(matrix: Any) -> None:
    """Issue a RawScaleWarning if the values look like counts or raw intensities."""
    names = {"counts": "counts", "intensities": "raw intensities"}
    kind = detect_scale(matrix).kind
    if kind != "other":
        warn_caller(
            RawScaleWarning(
                f"The values look like {names[kind]}. Without logarithms, the largest values "
                "determine the clusters. Normalise them and take logarithms first, for example "
                "with scanpy.pp.normalize_total and scanpy.pp.log1p, or name a layer with "
                "logarithms."
            )
        )


def _choose_matrix(adata: Any, layer: str | None) -> Any:
    """Return the matrix of an AnnData object; raise ParameterError if there is no such layer."""
    if layer is None:
        return adata.X
    if layer not in adata.layers:
        known = ", ".join(map(repr, adata.layers)) or "none"
        raise ParameterError(
            "layer must be None or one of the layers of adata, got {layer!r}. The layers are: "
            "{known}.",
            layer=layer,
            known=known,
        )
    return adata.layers[layer]


def _with_matrix(adata: Any, matrix: Any) -> Any:
    """Return an AnnData object with another matrix and the same names."""
    obs, var = (pd.DataFrame(index=names) for names in (adata.obs_names, adata.var_names))
    return type(adata)(X=matrix, obs=obs, var=var)


def _labels_of_cells(bulks: Pseudobulks, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the cluster of each cell; -1 for cells that belong to no group."""
    return np.where(bulks.group_of_cell >= 0, labels[bulks.group_of_cell], -1)


def _cluster_names(labels: NDArray[np.intp]) -> list[str]:
    """Return the names of the clusters, which are numbered from 1 as in the result files."""
    return [str(k + 1) for k in range(int(labels.max()) + 1)]


def _selected_columns(
    model: AssociationHC, matrix: Any, bulks: Pseudobulks | None
) -> NDArray[np.float64]:
    """Return the values of the clustered profiles in the selected features."""
    selected = np.flatnonzero(model.get_support())
    if bulks is not None:
        return bulks.values[:, selected]
    stored = getattr(matrix, "group", matrix)
    columns: NDArray[np.float64] = as_data_matrix(stored).columns(selected).astype(np.float64)
    return columns


def _trees(
    model: AssociationHC,
    labels: NDArray[np.intp],
    profiles: NDArray[np.float64],
    *,
    key: str,
    groupby: str | Sequence[str] | None,
    bulks: Pseudobulks | None,
) -> dict[str, Any]:
    """Return the trees in the layout of scanpy, by their names in `adata.uns`."""
    trees = {}
    n_clusters = int(labels.max()) + 1
    # The correlations of categories are computed without missing values.
    profiles = np.where(np.isnan(profiles), np.nanmean(profiles, axis=0), profiles)
    if n_clusters > 1:
        means = np.array([profiles[labels == k].mean(axis=0) for k in range(n_clusters)])
        trees[f"dendrogram_{key}"] = scanpy_dendrogram(
            cluster_linkage(model.linkage_matrix_, labels),
            means,
            groupby=key,
            names=_cluster_names(labels),
            linkage=model.linkage,
        )
    if bulks is not None and groupby is not None:
        name = group_name(groupby)
        tree = scanpy_dendrogram(
            model.linkage_matrix_,
            profiles,
            groupby=name,
            names=bulks.names.tolist(),
            linkage=model.linkage,
        )
        # With several columns, scanpy expects their names.
        tree["groupby"] = [groupby] if isinstance(groupby, str) else list(groupby)
        trees[f"dendrogram_{name}"] = tree
    return trees


def _describe(model: AssociationHC, names: Any) -> dict[str, Any]:
    """Return the description of a fit that is stored in `adata.uns`.

    `names` are the names of the clustered profiles.
    """
    supported = getattr(model, "supported_", None)
    return {
        "linkage": model.linkage_matrix_,
        "samples": np.array([str(name) for name in names]),
        "clusters": model.labels_ + 1,
        "search": pd.DataFrame(model.search_results_),
        "n_clusters": int(model.n_clusters_),
        "n_features_selected": int(model.n_features_selected_),
        "rank": int(model.rank_),
        "supported": "not tested" if supported is None else bool(supported),
    }


def _storable(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters in types that .h5ad files can store."""
    stored = {}
    for name, value in parameters.items():
        if isinstance(value, bool | int | float | str):
            stored[name] = value
        elif value is not None:
            stored[name] = str(value)
    return stored
