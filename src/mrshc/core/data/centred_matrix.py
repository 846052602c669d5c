"""The data as the algorithms use them: minus one offset per column, missing cells filled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from mrshc.core.array_types import Float, Index
from mrshc.core.data.data_matrix import Certification

T = TypeVar("T")

# Recompute when cancellation would leave fewer than ten of the sixteen digits of a double.
_SHARE_LEFT = 1e-6


class CentredMatrix(ABC):
    """A data matrix minus one offset per column, with its missing cells filled.

    Attributes
    ----------
    shape : tuple of int
        Numbers of samples and features.
    offsets : ndarray of shape (n_features,)
        Subtracted from every row.
    fill : float
        Value of missing cells after the offset is subtracted: the mean of the others.
    n_observed : int
        Cells that are not missing, in all columns of the data.
    n_passes : int or None
        Passes over all columns so far; None for data in memory that need none.
    certification : str
        When sparse components found on some columns are certified for all of them.
    """

    shape: tuple[int, int]
    offsets: Float
    fill: float
    n_observed: int
    certification: Certification

    @property
    @abstractmethod
    def n_passes(self) -> int | None:
        """Passes over all columns so far; None for data in memory that need none."""

    @abstractmethod
    def columns(self, indices: Index) -> Float:
        """Return some columns as given, not centred, in double precision, NaN if missing."""

    @abstractmethod
    def map_columns(
        self, indices: Index, function: Callable[[Float], T]
    ) -> Iterator[tuple[slice | Index, T]]:
        """Yield positions and function(columns) for some columns as given, a block at a time."""

    @property
    @abstractmethod
    def gram(self) -> Float:
        """The inner products of the samples, X X', (n, n)."""

    @abstractmethod
    def _centred_columns(self, indices: Index) -> Float:
        """Return some columns, centred, in double precision."""

    @abstractmethod
    def _gram_of_others(self, indices: Index) -> Float:
        """Return the inner products of the samples in all columns but some, added up anew."""

    def gram_without(self, indices: Index) -> Float:
        """Return the inner products of the samples in all columns but some."""
        part = self._centred_columns(indices)
        rest = self.gram - part @ part.T
        if np.trace(rest) > _SHARE_LEFT * np.trace(self.gram):
            return rest
        # Next to columns of huge variance, the difference would be rounding errors.
        return self._gram_of_others(indices)
