"""Centring of a data matrix, with one class for arrays in memory and one for other storage."""

from __future__ import annotations

from mrshc.core.data.centred_array import centre_array
from mrshc.core.data.centred_blocks import CentredBlocks
from mrshc.core.data.centred_matrix import CentredMatrix
from mrshc.core.data.centring import Center
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import BlockCallback, Passes, ignore_progress

# Data in memory with at least this many columns (and fewer rows) are treated like data in a file:
# sparse components are computed on a small set of columns (the working set), and then checked
# against all columns. With 1,000,000 columns, this took half as long as the use of all columns in
# each iteration.
_MANY_FEATURES = 200_000


def centre(
    data: DataMatrix,
    *,
    center: Center,
    drop_constant: bool,
    n_threads: int = 1,
    on_block: BlockCallback = ignore_progress,
) -> CentredMatrix:
    """Return a centred version of the data, that is, the data minus one offset per column.

    Parameters
    ----------
    data : DataMatrix
        The data before centring.
    center : {"columns", "grand", "none"}
        Offset of a column: the mean of the column, the mean of all non-missing values of the data,
        or zero.
    drop_constant : bool
        If True, the offset of a constant column is its constant value, whatever the value of
        `center`. The non-missing values of the column are then exactly zero after centring. If no
        value of the column is missing, its loading is therefore zero in every sparse component.
    n_threads : int, default=1
        Number of threads that process blocks of columns.
    on_block : callable, default=ignore_progress
        Called after each block of columns with two integers: the index of the pass over the data,
        counted from one, and the number of columns processed so far in this pass.

    Returns
    -------
    CentredMatrix
        The centred data.
    """
    n, p = data.shape
    summary = data.summary(n_threads=n_threads)
    if data.in_memory and not p >= _MANY_FEATURES > n:
        return centre_array(
            data.values, center=center, drop_constant=drop_constant, statistics=summary.columns
        )
    # One pass has already been made, since the summary was computed in a pass over the data.
    passes = Passes(data, n_threads=n_threads, on_block=on_block, n_passes=1)
    return CentredBlocks(data, passes, center=center, drop_constant=drop_constant)
