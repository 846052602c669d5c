"""Centring of columns: the offset of each, and the value of missing cells after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.host_transfer import to_device_of

Center = Literal["columns", "grand", "none"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Centring:
    """Offsets of the columns, and the value of missing cells after they are subtracted."""

    offsets: Float  # (p,)
    fill: float | None  # None: nothing is missing

    def __call__(self, block: Any, start: int, xp: Any) -> Any:
        """Return a block of columns, centred, in double precision."""
        offsets = to_device_of(block, self.offsets[start : start + block.shape[1]], xp)
        part = xp.astype(block, xp.float64) - offsets
        return part if self.fill is None else xp.where(xp.isnan(part), self.fill, part)


def offsets_and_fill(
    means: Float, counts: Float, constant: Mask, *, center: Center, drop_constant: bool
) -> tuple[Float, float]:
    """Return what is subtracted from each column, and the mean of the observed cells after that."""
    n_observed = counts.sum()
    offsets = {
        "columns": means,
        "grand": np.full(means.size, float(means @ counts) / n_observed),
        "none": np.zeros(means.size),
    }[center]
    if drop_constant:
        offsets = np.where(constant, means, offsets)
    return offsets, float((means - offsets) @ counts / n_observed)
