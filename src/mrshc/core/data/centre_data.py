"""Choice of the centred matrix for given data: an array in memory, or blocks of columns."""

from __future__ import annotations

from mrshc.core.data.centred_array import centre_array
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.centring import Center
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import BlockCallback, Passes, ignore_progress

# From this number of columns on, components of data in memory are computed on working sets and
# certified, as for data in a file, because using all columns in each step takes longer. Measured at
# p = 1,000,000: half the time.
_MANY_FEATURES = 200_000


def centre(
    data: DataMatrix,
    *,
    center: Center,
    drop_constant: bool,
    n_threads: int = 1,
    on_block: BlockCallback = ignore_progress,
) -> CentredMatrix:
    """Return the data minus one offset per column, in the form that the algorithms use.

    Parameters
    ----------
    data : DataMatrix
        The data as given.
    center : {"columns", "grand", "none"}
        Offset of a column: its mean, the mean of all observed cells, or zero.
    drop_constant : bool
        Whether the offset of a constant column is its value for every `center`. Its centred values
        are then exactly zero, and no component can load on it.
    n_threads : int, default=1
        Threads that share the work of a pass over the data.
    on_block : callable, default=ignore_progress
        Called after each block of a pass with the number of the pass and of the columns done.

    Returns
    -------
    CentredMatrix
    """
    n, p = data.shape
    summary = data.summary(n_threads=n_threads)
    if data.in_memory and not p >= _MANY_FEATURES > n:
        return centre_array(
            data.values, center=center, drop_constant=drop_constant, statistics=summary.columns
        )
    # The pass that computed the summary is the first one.
    passes = Passes(data, n_threads=n_threads, on_block=on_block, n_passes=1)
    return CentredBlocks(data, passes, center=center, drop_constant=drop_constant)
