"""Interface to centred data: the data minus one offset per column, with missing values filled.

The centred matrix X has n rows (samples) and p columns (features).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.data_matrix import Certification
from mrshc.core.data.passes import BlockFunction

T = TypeVar("T")

# To exclude columns, their Gram matrix is subtracted from the Gram matrix of all columns. If the
# trace of the difference is less than this fraction of the trace for all columns, the Gram matrix
# of the remaining columns is recomputed, since cancellation would leave fewer than ten of the
# sixteen significant digits of double precision.
_MIN_TRACE_RATIO = 1e-6


class CentredMatrix(ABC):
    """A data matrix minus one offset per column, with its missing values filled.

    Attributes
    ----------
    shape : tuple of int
        Number of samples n and number of features p.
    offsets : ndarray of shape (p,)
        Offset of each column, which is subtracted from the values of the column.
    fill : float
        Value that replaces missing values in the centred matrix: the mean of all non-missing
        centred values.
    n_observed : int
        Total number of non-missing values in the data.
    n_passes : int or None
        Number of passes over all columns so far. It is None for a `CentredArray`, since its passes
        are not counted.
    is_complete_on_device : bool
        Whether the data are on a device and no value is missing.
    certification : {"not needed", "deferred", "immediate"}
        When sparse components are checked against all columns. "not needed" means never, because
        components are computed on all columns. Otherwise, components are computed on a subset of
        the columns. "deferred" means that many components are checked together in one pass, and
        "immediate" means that each component is checked as soon as it is computed.
    """

    shape: tuple[int, int]
    offsets: Float
    fill: float
    n_observed: int
    is_complete_on_device = False
    certification: Certification

    @property
    @abstractmethod
    def n_passes(self) -> int | None:
        """Number of passes over all columns so far; None if passes are not counted."""

    @abstractmethod
    def columns(self, indices: Index) -> Float:
        """Return the m columns at `indices`, before centring, as a float64 array of shape (n, m).

        Missing values are NaN.
        """

    @abstractmethod
    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Apply a function to the columns at `indices`, before centring, in blocks.

        For each block, yield the positions of its columns in `indices`, and function(block), where
        `block` is the float64 array of these columns, with NaN for missing values.
        """

    @abstractmethod
    def map_all_columns(
        self,
        function: Callable[[Float], T],
        on_device: BlockFunction[list[tuple[int, T]]],
        *,
        n_jobs: int | None,
    ) -> Iterator[tuple[slice | Index, T]]:
        """Apply a function to all columns, before centring, in blocks.

        For each block, yield the indices of its columns, and the result of the function.

        Parameters
        ----------
        function : callable
            Function of a float64 array of some columns, with NaN for missing values.
        on_device : callable
            Function that is used instead for blocks on a device without missing values. It is
            called with a block, the index of its first column and the array namespace, and
            returns pairs of a number of columns and the result for so many columns, in order.
        n_jobs : int or None
            Number of threads for data in memory.
        """

    @property
    @abstractmethod
    def gram(self) -> Float:
        """The Gram matrix XX' of the samples, as an array of shape (n, n)."""

    @abstractmethod
    def release_gram(self) -> None:
        """Release the memory of the Gram matrix, unless it would take a pass to compute it again.

        The matrix is computed again if it is used later.
        """

    @abstractmethod
    def _centred_columns(self, indices: Index) -> Float:
        """Return the m centred columns at `indices` as a float64 array of shape (n, m)."""

    @abstractmethod
    def _recompute_gram_without(self, indices: Index) -> Float:
        """Return the Gram matrix of all columns except those at `indices`.

        The matrix is computed from the remaining columns, rather than by subtraction.
        """

    def gram_without(self, indices: Index) -> Float:
        """Return the Gram matrix, of shape (n, n), of all columns except those at `indices`."""
        part = self._centred_columns(indices)
        rest = self.gram - part @ part.T
        if np.trace(rest) > _MIN_TRACE_RATIO * np.trace(self.gram):
            return rest
        # If the excluded columns account for nearly all of the sum of squares, the difference
        # consists mostly of rounding errors.
        return self._recompute_gram_without(indices)
