"""The interface to the data: a matrix of n samples and p features, with any type of storage.

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

# Certification checks a sparse component that was computed on a subset of the columns (the working
# set) against all columns. It is "not needed" if components are computed on all columns. It is
# "deferred" to one pass for many components if passes over the data are slow, and "immediate" if
# passes are fast.
Certification = Literal["not needed", "deferred", "immediate"]


class UnreadableError(OSError):
    """Error raised if part of the data cannot be read.

    The message states the cause and, if known, the columns that cannot be read.
    """


class DataMatrix(ABC):
    """A matrix with samples in rows and features in columns; missing values are NaN.

    A block is a set of adjacent columns.

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
    is_on_device : bool
        Whether blocks are arrays of a package that follows the array API standard, such as torch.
    holds_integers : bool
        Whether the stored values are integers. Integers may be rounded when they are converted to
        floating point.
    certification : {"not needed", "deferred", "immediate"}
        When sparse components are checked against all columns. "not needed" means never, because
        components are computed on all columns. Otherwise, components are computed on a subset of
        the columns. "deferred" means that many components are checked together in one pass, and
        "immediate" means that each component is checked as soon as it is computed.
    nbytes : int
        Size in bytes that the matrix needs as a dense array in memory.
    chunk_widths : tuple of int or None
        Numbers of columns of the chunks, in order. The value is None unless another process can
        unpickle the matrix and read chunks with `matrix[:, start:stop]`.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    in_memory: bool = False
    has_local_blocks: bool = True
    is_on_device: bool = False
    holds_integers: bool = False
    certification: Certification = "deferred"
    _summary: MatrixSummary | None = None

    @abstractmethod
    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Make one pass over the data: yield function(block, start, xp) for each block, in order.

        A block is an array of shape (n, b) that contains b adjacent columns. Its array namespace is
        `xp`: numpy, or another namespace that follows the array API standard. The first column of
        the block is column `start` of the matrix. The function may run in another process, so it
        must support pickling, and all arrays that it returns must be numpy arrays.
        """

    @abstractmethod
    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices`, in the given order, as a numpy array of shape (n, m).

        Raise UnreadableError if the columns cannot be read.
        """

    def columns_on_device(self, indices: Index) -> tuple[Any, Any]:
        """Return the columns at `indices` as an array on the device, and its array namespace.

        Only data for which `is_on_device` is True have this method.
        """
        raise NotImplementedError(f"{type(self).__name__} is not on a device.")

    @property
    def nbytes(self) -> int:
        """Size in bytes that the matrix needs as a dense array in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def chunk_widths(self) -> tuple[int, ...] | None:
        """Numbers of columns of the chunks; None if other processes cannot read the matrix."""
        return None

    @property
    def values(self) -> Any:
        """The numpy array if the matrix is in memory; otherwise this object.

        Both the array and the object can be passed to an estimator.
        """
        return self

    def summary(self, *, n_threads: int = 1) -> MatrixSummary:
        """Return statistics of all columns and rows.

        The statistics are computed at the first call, in one pass over the data. `n_threads` is the
        number of threads that process blocks.
        """
        if self._summary is None:
            summaries = Passes(self, n_threads=n_threads).map(summarise_block)
            self._summary = combine_summaries(summaries)
        return self._summary

    def variances(self) -> Float:
        """Return the variances of the p columns, as an array of shape (p,).

        Missing values are ignored.
        """
        return np.concatenate(list(self.map_blocks(_block_variances)))

    def select_samples(self, rows: Index) -> DataMatrix:
        """Return the matrix of the samples at `rows`, which are distinct and in increasing order.

        Raise ValueError if `rows` does not contain all samples and the storage does not support the
        selection of samples.
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

        Means and sums are hashed instead of the values, because a hash of all values would require
        another pass over the data.
        """
        digest = sha256(f"{self.dtype.str} {self.shape}".encode())
        summary = self.summary()
        digest.update(summary.means.data)
        digest.update(summary.row_sums.data)
        return digest.hexdigest()


def _block_variances(block: Any, _: int, __: Any) -> Float:
    return column_variances(to_host(block))
