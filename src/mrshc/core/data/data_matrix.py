"""The interface to the data: a matrix of samples and features, whatever its storage.

Algorithms access the data in three ways: they use statistics of the columns, they read selected
columns, or they apply a function to every block of columns (a pass over the data). There is one
implementation for each type of storage: arrays in memory, memory maps, HDF5 and Zarr files, sparse
matrices, Dask arrays, and arrays on a device such as a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index
from mrshc.core.data.host_transfer import to_host
from mrshc.core.data.passes import BlockFunction, Passes
from mrshc.core.data.statistics import (
    MatrixSummary,
    column_variances,
    combine_summaries,
    summarise_block,
)

T = TypeVar("T")

# Certification is the check, against all columns, of a sparse component that was computed on a
# subset of the columns (the working set). It is "not needed" if components are computed on all
# columns, "deferred" to one common pass if a pass over the data is expensive, and "immediate" if a
# pass is cheap.
Certification = Literal["not needed", "deferred", "immediate"]


class UnreadableError(OSError):
    """Error raised if part of the data cannot be read.

    The message names the cause and, if known, the columns.
    """


class DataMatrix(ABC):
    """A matrix with samples in rows and features in columns; missing values are NaN.

    In the descriptions of the methods, n is the number of samples and p the number of features. A
    block is a set of adjacent columns.

    Attributes
    ----------
    shape : tuple of int
        Number of samples n and number of features p.
    dtype : dtype
        Type of the blocks: float32 or float64.
    in_memory : bool
        Whether the whole matrix is a numpy array in the memory of this process.
    has_local_blocks : bool
        Whether blocks are numpy arrays in this process and can be processed by its threads.
    holds_integers : bool
        Whether the stored values are integers, which may be rounded when they are converted to
        floating point.
    certification : {"not needed", "deferred", "immediate"}
        When a sparse component that was computed on a subset of the columns is checked against all
        columns: never ("not needed": all columns are used from the start), together with other
        components in one pass ("deferred"), or at once ("immediate").
    nbytes : int
        Size in bytes that the matrix has, or would have, as an array in memory.
    chunk_widths : tuple of int or None
        Number of columns of each chunk, in order, if another process can unpickle the matrix and
        read chunks with `matrix[:, start:stop]`; otherwise None.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    in_memory: bool = False
    has_local_blocks: bool = True
    holds_integers: bool = False
    certification: Certification = "deferred"
    _summary: MatrixSummary | None = None

    @abstractmethod
    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Make one pass over the data: yield function(block, start, xp) for each block, in order.

        A block is an array of shape (n, b) that contains b adjacent columns. It belongs to the
        namespace xp: numpy, or another namespace that follows the array API standard. The first
        column of the block is column `start` of the matrix. Because the function may run in another
        process, it must support pickling and must return numpy arrays.
        """

    @abstractmethod
    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices`, in this order, as a numpy array of shape (n, m)."""

    @property
    def nbytes(self) -> int:
        """Size in bytes that the matrix has, or would have, as an array in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def chunk_widths(self) -> tuple[int, ...] | None:
        """Number of columns of each chunk; None if other processes cannot read the matrix."""
        return None

    @property
    def values(self) -> Any:
        """The numpy array of a matrix in memory; for other storage, this object.

        Both can be passed to an estimator.
        """
        return self

    def summary(self, *, n_threads: int = 1) -> MatrixSummary:
        """Return statistics of all columns and rows.

        The statistics are computed at the first call, in one pass over the data.
        """
        if self._summary is None:
            summaries = Passes(self, n_threads=n_threads).map(summarise_block)
            self._summary = combine_summaries(summaries)
        return self._summary

    def variances(self) -> Float:
        """Return the variance of the non-missing values of each column, an array of shape (p,)."""
        return np.concatenate(list(self.map_blocks(_block_variances)))

    def select_samples(self, rows: Index) -> DataMatrix:
        """Return the matrix of the samples at `rows`, which must be in increasing order.

        Raise ValueError if the storage does not support the selection of samples.
        """
        # The rows are distinct, so n rows are all samples, and no selection is necessary.
        if rows.size == self.shape[0]:
            return self
        raise ValueError(
            f"Samples can be selected only from data in memory, but {rows.size} of the "
            f"{self.shape[0]} samples of out-of-core data were requested. Load X into memory first."
        )

    def fingerprint(self) -> str:
        """Return a hash of dtype, shape, column means and row sums.

        Means and sums are hashed in place of the values because they are available after the first
        pass over the data, whereas a hash of all values would require another pass.
        """
        digest = sha256(f"{self.dtype.str} {self.shape}".encode())
        summary = self.summary()
        digest.update(summary.means.data)
        digest.update(summary.row_sums.data)
        return digest.hexdigest()


def _block_variances(block: Any, _: int, __: Any) -> Float:
    return column_variances(to_host(block))
