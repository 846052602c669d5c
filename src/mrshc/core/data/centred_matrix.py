"""Interface to centred data: the data minus one offset per column, with missing values filled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.data_matrix import Certification

T = TypeVar("T")

# The Gram matrix of the remaining columns is recomputed if its trace, obtained by subtraction, is
# less than this fraction of the trace of the full matrix. Cancellation would then leave fewer than
# ten of the sixteen significant digits of double precision.
_MIN_TRACE_RATIO = 1e-6


class CentredMatrix(ABC):
    """A data matrix minus one offset per column, with its missing values filled.

    In the descriptions of the methods, X is the centred matrix, with n rows (samples) and p columns
    (features).

    Attributes
    ----------
    shape : tuple of int
        Number of samples n and number of features p.
    offsets : ndarray of shape (p,)
        Offset of each column, which centring subtracts.
    fill : float
        Value that replaces missing values in the centred matrix: the mean of all non-missing
        centred values.
    n_observed : int
        Total number of non-missing values in the data.
    n_passes : int or None
        Number of passes over all columns so far; None for data in memory, whose passes are not
        counted.
    certification : {"not needed", "deferred", "immediate"}
        When a sparse component that was computed on a subset of the columns is checked against all
        columns: never ("not needed": all columns are used from the start), together with other
        components in one pass ("deferred"), or at once ("immediate").
    """

    shape: tuple[int, int]
    offsets: Float
    fill: float
    n_observed: int
    certification: Certification

    @property
    @abstractmethod
    def n_passes(self) -> int | None:
        """Number of passes over all columns so far; None for data in memory."""

    @abstractmethod
    def columns(self, indices: Index) -> Float:
        """Return the m columns at `indices` before centring, of shape (n, m), in float64.

        Missing values are NaN.
        """

    @abstractmethod
    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Apply a function to the columns at `indices`, before centring, in blocks.

        For each block, yield the positions in `indices` of its columns, and function(columns).
        """

    @property
    @abstractmethod
    def gram(self) -> Float:
        """The Gram matrix XX' of the samples, of shape (n, n)."""

    @abstractmethod
    def _centred_columns(self, indices: Index) -> Float:
        """Return the m centred columns at `indices`, of shape (n, m), in double precision."""

    @abstractmethod
    def _recompute_gram_without(self, indices: Index) -> Float:
        """Return the Gram matrix of all columns except those at `indices`.

        The matrix is summed over the remaining columns, rather than obtained by subtraction.
        """

    def gram_without(self, indices: Index) -> Float:
        """Return the Gram matrix, of shape (n, n), of all columns except those at `indices`."""
        part = self._centred_columns(indices)
        rest = self.gram - part @ part.T
        if np.trace(rest) > _MIN_TRACE_RATIO * np.trace(self.gram):
            return rest
        # If the excluded columns account for nearly all of the sum of squares, rounding errors
        # would dominate the difference.
        return self._recompute_gram_without(indices)
