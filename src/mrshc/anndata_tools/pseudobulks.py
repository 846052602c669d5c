"""Pseudobulks: one profile for each group of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from mrshc.shell.wording import ParameterError, invalid_parameter_error

# Number of cells that are read at once, so that data in a file need not fit into memory.
_CELLS_IN_BLOCK = 2000
# Ways in which the cells of a group are aggregated.
AGGREGATIONS = ("mean", "sum")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pseudobulks:
    """Profiles of groups of cells.

    Attributes
    ----------
    values : ndarray of shape (n_groups, n_features)
        Mean or sum over the cells of each group.
    names : ndarray of shape (n_groups,)
        Names of the groups.
    group_of_cell : ndarray of shape (n_cells,)
        Index of the group of each cell; -1 for cells that belong to no group.
    """

    values: NDArray[np.float64]
    names: NDArray[np.intp]
    group_of_cell: NDArray[np.intp]

    def to_table(self, feature_names: Any) -> pd.DataFrame:
        """Return the profiles as a table with the names of groups and features."""
        return pd.DataFrame(self.values, index=self.names, columns=feature_names)


def group_name(groupby: str | Sequence[str]) -> str:
    """Return the name of the grouping, as scanpy forms it from the names of several columns."""
    return groupby if isinstance(groupby, str) else "_".join(groupby)


def aggregate_cells(
    matrix: Any, obs: pd.DataFrame, groupby: str | Sequence[str], *, aggregate: str
) -> Pseudobulks:
    """Return the profile of each group of cells."""
    if aggregate not in AGGREGATIONS:
        raise invalid_parameter_error(
            "aggregate", aggregate, allowed=f"be one of {', '.join(AGGREGATIONS)}"
        )
    columns = [groupby] if isinstance(groupby, str) else list(groupby)
    if unknown := [name for name in columns if name not in obs]:
        raise ParameterError(
            "groupby must name columns of adata.obs, but there is no column {unknown!r}. The "
            "columns are {known}.",
            unknown=unknown[0],
            known=", ".join(map(str, obs.columns)),
        )
    group_of_cell, names = pd.factorize(group_labels(obs, columns), sort=True)
    if len(names) < 3:
        raise ParameterError(
            "groupby must give at least 3 groups of cells, got {n} from {columns}. Name a column "
            "with more values, or several columns, such as sample and cell type.",
            n=len(names),
            columns=", ".join(columns),
        )
    combine = mean_of_groups if aggregate == "mean" else _sum_by_group
    values = combine(matrix, group_of_cell, n_groups=len(names))
    return Pseudobulks(
        values=values, names=np.asarray(names, dtype=object), group_of_cell=group_of_cell
    )


def group_labels(obs: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Return the name of the group of each cell; missing for cells that belong to no group.

    The names of groups are the values in the columns, joined as scanpy joins them.
    """
    labels = obs[columns[0]].astype(str)
    for name in columns[1:]:
        labels = labels + "_" + obs[name].astype(str)
    return labels.where(obs[list(columns)].notna().all(axis=1))


def mean_of_groups(
    matrix: Any, group_of_cell: NDArray[np.intp], *, n_groups: int
) -> NDArray[np.float64]:
    """Return the mean of the rows of each group, of shape (n_groups, n_features).

    Rows with the group -1 are left out.
    """
    counts = np.bincount(group_of_cell[group_of_cell >= 0], minlength=n_groups)
    return _sum_by_group(matrix, group_of_cell, n_groups=n_groups) / counts[:, None]


def _sum_by_group(
    matrix: Any, group_of_cell: NDArray[np.intp], *, n_groups: int
) -> NDArray[np.float64]:
    """Return the sum of the rows of each group, of shape (n_groups, n_features).

    Rows with the group -1 are left out.
    """
    n_cells, n_features = matrix.shape
    totals = np.zeros((n_groups, n_features))
    for start in range(0, n_cells, _CELLS_IN_BLOCK):
        groups = group_of_cell[start : start + _CELLS_IN_BLOCK]
        cells = np.flatnonzero(groups >= 0)
        # Multiplying by this matrix adds up the rows of each group.
        indicator = sparse.csr_array(
            (np.ones(cells.size), (groups[cells], cells)), shape=(n_groups, groups.size)
        )
        block = indicator @ matrix[start : start + _CELLS_IN_BLOCK]
        totals += block.toarray() if sparse.issparse(block) else np.asarray(block)
    return totals
