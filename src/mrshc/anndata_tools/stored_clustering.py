"""A clustering that `mrshc.tl.cluster` stored in an AnnData object."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.anndata_tools.pseudobulks import group_labels
from mrshc.shell.wording import ParameterError


class StoredClustering:
    """A stored clustering, with the attributes of a fitted estimator that plots use.

    Attributes
    ----------
    linkage_matrix_ : ndarray of shape (n_samples - 1, 4)
        Tree of the clustered samples, or of the clustered groups of cells.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each of them.
    n_clusters_ : int
        Number of clusters.
    n_features_selected_ : int
        Number of features on which the tree is built.
    rank_ : int
        Number of sparse components.
    sample_names_in_ : ndarray of shape (n_samples,)
        Names of the samples or groups.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of all features.
    components_ : ndarray of shape (rank_, n_features)
        Loadings of the sparse components.
    search_results_ : dict of ndarray
        Table of the search.
    """

    def __init__(self, adata: Any, key: str) -> None:
        if not hasattr(adata, "uns"):
            raise ParameterError(
                "adata must be an AnnData object with a clustering by mrshc.tl.cluster, got a "
                "{given}. Plots of fitted estimators are in mrshc.plotting.",
                given=type(adata).__name__,
            )
        if key not in adata.uns or f"{key}_selected" not in adata.var:
            raise ParameterError(
                "adata must contain a clustering called {key!r}, but it has none. Call "
                "mrshc.tl.cluster(adata, key_added={key!r}) first.",
                key=key,
            )
        about = adata.uns[key]
        self.linkage_matrix_: NDArray[np.float64] = np.asarray(about["linkage"])
        self.labels_: NDArray[np.intp] = np.asarray(about["clusters"]) - 1
        self.n_clusters_ = int(about["n_clusters"])
        self.n_features_selected_ = int(about["n_features_selected"])
        self.rank_ = int(about["rank"])
        self.sample_names_in_ = np.asarray(about["samples"])
        self.feature_names_in_ = np.asarray(adata.var_names)
        self.components_: NDArray[np.float64] = np.asarray(adata.varm[f"{key}_loadings"]).T
        self.search_results_ = {name: v.to_numpy() for name, v in about["search"].items()}
        self._support: NDArray[np.bool_] = adata.var[f"{key}_selected"].to_numpy(dtype=bool)
        self._groupby = [str(name) for name in np.atleast_1d(about.get("groupby", []))]
        self._refuse_other_samples(adata)

    def get_support(self) -> NDArray[np.bool_]:
        """Return a mask of the features on which the tree is built."""
        return self._support

    def annotations(self, adata: Any, columns: list[str]) -> pd.DataFrame:
        """Return annotations of the clustered samples, from columns of `adata.obs`.

        For groups of cells, the value is that of all cells of the group; it is missing if they
        differ.
        """
        if unknown := [name for name in columns if name not in adata.obs]:
            raise ParameterError(
                "annotations must name columns of adata.obs, but there is no column {unknown!r}. "
                "The columns are {known}.",
                unknown=unknown[0],
                known=", ".join(map(str, adata.obs.columns)),
            )
        table = adata.obs[columns]
        if self._groupby:
            groups = table.astype(object).groupby(group_labels(adata.obs, self._groupby))
            table = groups.agg(lambda values: values.iloc[0] if values.nunique() == 1 else None)
        return table.loc[self.sample_names_in_]

    def group_of_cells(self, adata: Any) -> NDArray[np.intp] | None:
        """Return the index of the group of each cell, or None if single samples were clustered.

        The index is -1 for cells that belong to no group.
        """
        if not self._groupby:
            return None
        positions: NDArray[np.intp] = pd.Index(self.sample_names_in_).get_indexer(
            group_labels(adata.obs, self._groupby)
        )
        return positions

    def _refuse_other_samples(self, adata: Any) -> None:
        """Raise ParameterError if samples were removed from or added to `adata` since the fit."""
        names = group_labels(adata.obs, self._groupby) if self._groupby else adata.obs_names
        missing = set(self.sample_names_in_) - set(names)
        if missing or (not self._groupby and len(names) != len(self.sample_names_in_)):
            raise ParameterError(
                "The clustering has {n} samples or groups, but adata has {got}, so its tree does "
                "not fit. Cluster adata again.",
                n=len(self.sample_names_in_),
                got=len(set(names)),
            )
