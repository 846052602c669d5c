"""Centring of columns: the offset of each column, and the value of missing cells after it."""

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
    """Function that centres a block of columns and fills its missing cells."""

    offsets: Float  # (p,), subtracted from the columns
    fill: float | None  # value of missing cells after that; None if no cell is missing

    def __call__(self, block: Any, start: int, xp: Any) -> Any:
        """Return a block whose first column is column `start`, centred, in double precision."""
        offsets = to_device_of(block, self.offsets[start : start + block.shape[1]], xp)
        # Converted before the subtraction: single precision would lose the digits of values that
        # are small compared with their offset.
        part = xp.astype(block, xp.float64) - offsets
        return part if self.fill is None else xp.where(xp.isnan(part), self.fill, part)


def offsets_and_fill(
    summary: ColumnSummary, *, center: Center, drop_constant: bool
) -> tuple[Float, float]:
    """Return the offset of each column and the mean of all observed cells after centring.

    Parameters
    ----------
    summary : ColumnSummary
        Statistics of the columns.
    center : {"columns", "grand", "none"}
        Offset of a column: its mean, the mean of all observed cells, or zero.
    drop_constant : bool
        Whether the offset of a constant column is its value for every `center`.

    Returns
    -------
    offsets : ndarray of shape (p,)
        Offset of each column.
    fill : float
        Value of missing cells after centring. PMA fills them with the mean of the others, too.
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
