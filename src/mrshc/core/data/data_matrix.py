"""The interface to the data: a matrix of samples and features in any storage backend.

Algorithms ask for statistics of the columns, for selected columns, or for a function of every block
of columns (a pass over the data). An array in memory is one implementation; memory maps, HDF5,
Zarr, sparse matrices, Dask arrays and arrays on a device are others.
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

# When sparse components that were computed on a working set are certified for all columns:
# "not needed" where all columns take part, "deferred" to one common pass where a pass is
# expensive, "immediate" where a pass is cheap.
Certification = Literal["not needed", "deferred", "immediate"]


class UnreadableError(OSError):
    """Part of the data cannot be read; the message names the columns and the cause."""


class DataMatrix(ABC):
    """A matrix with samples in rows and features in columns; NaN marks a missing cell.

    Attributes
    ----------
    shape : tuple of int
        Numbers of samples and features.
    dtype : dtype
        Type of the blocks: float32 or float64.
    in_memory : bool
        Whether the whole matrix is a numpy array of this process.
    has_local_blocks : bool
        Whether blocks are numpy arrays of this process, so that its threads can share the work
        on them.
    holds_integers : bool
        Whether the stored values are integers, which a conversion to floats may round.
    certification : {"not needed", "deferred", "immediate"}
        When sparse components that were computed on a working set are certified for all columns.
    nbytes : int
        Size of the matrix as an array in memory.
    chunk_widths : tuple of int or None
        Numbers of columns of consecutive chunks that another process can read with
        `matrix[:, start:stop]` after unpickling the matrix; None if it cannot.
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
        """Yield function(block, start, xp) for all blocks of columns in order: one pass.

        A block is an (n, b) array of the namespace xp (numpy, or another one of the array API).
        Its first column is column `start` of the matrix. The function may run in another process:
        it must support pickling and must return numpy arrays.
        """

    @abstractmethod
    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the columns at m indices, (n, m), in the order of the indices."""

    @property
    def nbytes(self) -> int:
        """Size of the matrix as an array in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def chunk_widths(self) -> tuple[int, ...] | None:
        """Numbers of columns of the chunks that another process can read; None if it cannot."""
        return None

    @property
    def values(self) -> Any:
        """The array of a matrix in memory, otherwise the matrix itself; estimators take both."""
        return self

    def summary(self, *, n_threads: int = 1) -> MatrixSummary:
        """Return the statistics of all columns, computed in one pass at the first call."""
        if self._summary is None:
            summaries = Passes(self, n_threads=n_threads).map(summarise_block)
            self._summary = combine_summaries(summaries)
        return self._summary

    def variances(self) -> Float:
        """Return the variance of the observed cells of each column, zero for a constant one."""
        return np.concatenate(list(self.map_blocks(_block_variances)))

    def select_samples(self, rows: Index) -> DataMatrix:
        """Return the matrix of the samples at `rows`, which must be in increasing order."""
        # As many distinct rows as samples are all samples, so nothing has to be selected.
        if rows.size == self.shape[0]:
            return self
        raise ValueError(
            f"Samples can be selected only from data in memory, but {rows.size} of the "
            f"{self.shape[0]} samples of out-of-core data were requested. Load X into memory first."
        )

    def fingerprint(self) -> str:
        """Return a hash of dtype, shape, column means and row sums.

        These stand for the content, since the summary is available after the first pass, whereas a
        hash of every cell would need another one.
        """
        digest = sha256(f"{self.dtype.str} {self.shape}".encode())
        summary = self.summary()
        digest.update(summary.means.data)
        digest.update(summary.row_sums.data)
        return digest.hexdigest()


def _block_variances(block: Any, _: int, __: Any) -> Float:
    return column_variances(to_host(block))
