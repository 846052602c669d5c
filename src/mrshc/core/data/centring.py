"""Centring of columns: the offset of each column, and the value that replaces missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.core.array_types import Float
from mrshc.core.data.host_transfer import to_device_of
from mrshc.core.data.statistics import ColumnSummary

Center = Literal["columns", "grand", "none"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Centring:
    """Function that centres a block of columns and fills its missing values."""

    offsets: Float  # (p,), offsets of all p columns of the data
    fill: float | None  # replaces missing values after centring; None if no value is missing

    def __call__(self, block: Any, start: int, xp: Any) -> Any:
        """Return a centred block of columns in double precision, with missing values filled.

        `start` is the index of the first column of the block in the data, and `xp` is the array
        namespace of the block, such as numpy.
        """
        offsets = to_device_of(block, self.offsets[start : start + block.shape[1]], xp)
        # The block is converted to double precision before the subtraction. In single precision,
        # centred values that are small compared with the offset would lose significant digits.
        part = xp.astype(block, xp.float64) - offsets
        return part if self.fill is None else xp.where(xp.isnan(part), self.fill, part)


def offsets_and_fill(
    summary: ColumnSummary, *, center: Center, drop_constant: bool
) -> tuple[Float, float]:
    """Return the offset of each column, and the mean of all non-missing values after centring.

    Parameters
    ----------
    summary : ColumnSummary
        Statistics of the columns.
    center : {"columns", "grand", "none"}
        Offset of a column: the mean of the column, the mean of all non-missing values of the data,
        or zero.
    drop_constant : bool
        If True, the offset of a constant column is its constant value, whatever the value of
        `center`.

    Returns
    -------
    offsets : ndarray of shape (n_features,)
        Offset of each column.
    fill : float
        Value that replaces missing values after centring: the mean of all non-missing centred
        values, as in the R package PMA.
    """
    means, counts, constant = summary
    n_observed = counts.sum()
    offsets = {
        "columns": means,
        "grand": np.full(means.size, float(means @ counts) / n_observed),
        "none": np.zeros(means.size),
    }[center]
    if drop_constant:
        offsets = np.where(constant, means, offsets)
    return offsets, float((means - offsets) @ counts / n_observed)
