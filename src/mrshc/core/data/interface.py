"""Where X lives: a matrix that is swept in blocks of columns, wherever they are.

After the selection everything is small. Until then the algorithms ask for sweeps: a function is
applied to every block of columns, where the block lies, and what it returns is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.arrays import Index

T = TypeVar("T")

# Blocks have about this many cells: 32 MB in single precision.
_BLOCK_CELLS = 1 << 23


class UnreadableError(OSError):
    """A part of X could not be read; the message says which and why."""


class Source(Protocol):
    """A matrix with samples in rows and features in columns. NaN marks a missing cell."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the blocks: float32 or float64."""
        ...

    @property
    def is_here(self) -> bool:
        """Whether blocks come into this process, as arrays of numpy."""
        ...

    @property
    def on_device(self) -> bool:
        """Whether blocks are in the memory of a device, where a sweep costs little."""
        ...

    def sweep(self, function: Callable[[Any, int, Any], T]) -> Iterator[T]:
        """Yield function(block, start, xp) for blocks of columns, in their order: one pass.

        A block is an (n, b) array of the namespace xp (numpy, or another of the array API), whose
        first column is column `start` of X. The function may run elsewhere: it can be pickled,
        and returns numpy arrays.
        """
        ...

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns, (n, m), in the order of the indices."""
        ...


class ArraySource:
    """A numpy array, in memory or mapped from a file."""

    is_here, on_device = True, False

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.shape: tuple[int, int] = (array.shape[0], array.shape[1])
        self.dtype = array.dtype

    def sweep(self, function: Callable[[Any, int, Any], T]) -> Iterator[T]:
        """Yield function(block, start, numpy) for blocks of columns."""
        for block in sweep_blocks(*self.shape):
            yield function(self._array[:, block], block.start, np)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns."""
        return self._array[:, indices]


def sweep_blocks(n: int, p: int) -> Iterator[slice]:
    """Yield slices of p columns, of a size that is worth a visit."""
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, p, step):
        yield slice(start, min(start + step, p))


def to_host(array: Any) -> NDArray[Any]:
    """Return an array of any namespace as one of numpy's."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "get"):  # CuPy copies to the host in no other way
        array = array.get()
    elif hasattr(array, "cpu"):  # nor torch
        array = array.cpu()
    return np.asarray(array) if isinstance(array, np.ndarray) else np.from_dlpack(array)


def beside(block: Any, array: NDArray[Any], xp: Any) -> Any:
    """Return a numpy array where a block is, in the block's namespace."""
    return array if xp is np else xp.asarray(array, device=block.device)
