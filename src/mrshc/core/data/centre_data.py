"""From data as given to centred data, in memory or in blocks."""

from __future__ import annotations

from mrshc.core.data.centred_array import centred_array
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.centring import Center
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import OnBlock, Passes, ignore_progress

# From this number of columns on, components are found on working sets and certified, as for data
# in a file: using all columns in each step takes longer. Measured at p = 1,000,000: half the time.
_MANY_FEATURES = 200_000


def centre(
    data: DataMatrix,
    *,
    center: Center,
    drop_constant: bool,
    n_threads: int = 1,
    on_block: OnBlock = ignore_progress,
) -> CentredMatrix:
    """Return the data minus one offset for each column, as the algorithms use them.

    With `drop_constant` a constant column is offset by its own value, whatever the centring: its
    residual is exactly zero and no component can load on it.
    """
    n, p = data.shape
    summary = data.summary(n_threads=n_threads)
    if data.in_memory and not p >= _MANY_FEATURES > n:
        return centred_array(
            data.values, center=center, drop_constant=drop_constant, statistics=summary.columns
        )
    passes = Passes(data, n_threads=n_threads, on_block=on_block, n_passes=1)
    return CentredBlocks(data, passes, center=center, drop_constant=drop_constant)
