"""Centred data as the algorithms use them: minus one offset per column, missing cells filled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.data_matrix import Certification

T = TypeVar("T")

# Recompute when cancellation would leave fewer than ten of the sixteen digits of a double.
_MIN_TRACE_RATIO = 1e-6


class CentredMatrix(ABC):
    """A data matrix minus one offset per column, with its missing cells filled.

    Attributes
    ----------
    shape : tuple of int
        Numbers of samples and features.
    offsets : ndarray of shape (n_features,)
        Subtracted from every row.
    fill : float
        Value of missing cells after centring: the mean of the observed cells after centring.
    n_observed : int
        Number of cells that are not missing, in all columns of the data.
    n_passes : int or None
        Passes over all columns so far; None for data in memory, which need no passes.
    certification : {"not needed", "deferred", "immediate"}
        When sparse components that were computed on a working set are certified for all columns.
    """

    shape: tuple[int, int]
    offsets: Float
    fill: float
    n_observed: int
    certification: Certification

    @property
    @abstractmethod
    def n_passes(self) -> int | None:
        """Passes over all columns so far; None for data in memory, which need no passes."""

    @abstractmethod
    def columns(self, indices: Index) -> Float:
        """Return the columns at m indices as given, (n, m), in float64, NaN where missing."""

    @abstractmethod
    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield positions in `indices` and function(columns) for blocks of columns as given."""

    @property
    @abstractmethod
    def gram(self) -> Float:
        """The Gram matrix X X' of the samples, (n, n)."""

    @abstractmethod
    def _centred_columns(self, indices: Index) -> Float:
        """Return the columns at m indices, (n, m), centred, in double precision."""

    @abstractmethod
    def _recompute_gram_without(self, indices: Index) -> Float:
        """Return the Gram matrix of all columns except those at the indices, by summation."""

    def gram_without(self, indices: Index) -> Float:
        """Return the Gram matrix, (n, n), of all columns except those at the indices."""
        part = self._centred_columns(indices)
        rest = self.gram - part @ part.T
        if np.trace(rest) > _MIN_TRACE_RATIO * np.trace(self.gram):
            return rest
        # If the excluded columns have nearly all of the variance, the difference consists of
        # rounding errors.
        return self._recompute_gram_without(indices)
