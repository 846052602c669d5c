"""The one interface to the data: a matrix of samples and features, wherever it is stored.

Algorithms ask for statistics of the columns, for some columns, or for a function of every block of
columns (a pass over the data). An array in memory is one implementation; memory maps, HDF5, Zarr,
sparse matrices, Dask arrays and arrays on a device are others.
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
from mrshc.core.data.statistics import Summary, column_variances, combine, summarise_block

T = TypeVar("T")

# When sparse components that were found on some columns are certified for all columns: they need
# not be, where all columns take part; all at once, where a pass is expensive; each as it is found,
# where a pass is cheap.
Certification = Literal["not needed", "deferred", "immediate"]


class UnreadableError(OSError):
    """A part of the data could not be read; the message says which and why."""


class DataMatrix(ABC):
    """A matrix with samples in rows and features in columns; NaN marks a missing cell.

    Attributes
    ----------
    shape : tuple of int
        Numbers of samples and features.
    dtype : dtype
        Of the blocks: float32 or float64.
    in_memory : bool
        Whether the whole matrix is an array of this process.
    has_local_blocks : bool
        Whether blocks come into this process as arrays of numpy, so that its threads can share
        the work on them.
    holds_integers : bool
        Whether the stored values are integers, which a conversion to floats may round.
    nbytes : int
        Size in memory as an array.
    chunk_widths : tuple of int or None
        Numbers of columns that are best read together by other processes, which can read them
        from `matrix[:, start:stop]` once the matrix was pickled; None: they cannot.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    in_memory: bool = False
    has_local_blocks: bool = True
    holds_integers: bool = False
    certification: Certification = "deferred"
    _summary: Summary | None = None

    @abstractmethod
    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for blocks of columns, in their order: one pass.

        A block is an (n, b) array of the namespace xp (numpy, or another of the array API), whose
        first column is column `start`. The function may run in another process: it must be
        possible to pickle it, and it returns arrays of numpy.
        """

    @abstractmethod
    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns, (n, m), in the order of the indices."""

    @property
    def nbytes(self) -> int:
        """Size in memory as an array."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def chunk_widths(self) -> tuple[int, ...] | None:
        """Numbers of columns that other processes can read together; None: they cannot."""
        return None

    @property
    def values(self) -> Any:
        """The array, for a matrix in memory; else the matrix itself. Estimators take either."""
        return self

    def summary(self, *, n_threads: int = 1) -> Summary:
        """Return the statistics of all columns, which one pass gives; they are kept."""
        if self._summary is None:
            self._summary = combine(Passes(self, n_threads=n_threads).map(summarise_block))
        return self._summary

    def variances(self) -> Float:
        """Return the variance of the observed cells of each column, zero for a constant one."""
        return np.concatenate(list(self.map_blocks(_variances_of_block)))

    def select_samples(self, rows: Index) -> DataMatrix:
        """Return the matrix of some samples, in increasing order."""
        if rows.size == self.shape[0]:
            return self
        raise ValueError(
            f"Some samples, {rows.size} of {self.shape[0]}, can be taken of data in memory only. "
            "Load X first."
        )

    def fingerprint(self) -> str:
        """Return a hash of the content; the means and sums that a pass gives stand for it."""
        digest = sha256(f"{self.dtype.str} {self.shape}".encode())
        summary = self.summary()
        digest.update(summary.means.data)
        digest.update(summary.row_sums.data)
        return digest.hexdigest()


def _variances_of_block(block: Any, _: int, __: Any) -> Float:
    return column_variances(to_host(block))
