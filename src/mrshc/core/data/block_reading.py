"""Matrices that are read into this process a block of columns at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.read_errors import WHOLE_FILE, reading
from mrshc.core.data.shape_and_dtype import in_range

T = TypeVar("T")

# Blocks have about this many cells: 32 MB in single precision.
_BLOCK_CELLS = 1 << 23

# Where the chunks of a file are wide, blocks may grow to this before chunks are read twice.
_LARGEST_BLOCK = 4 * _BLOCK_CELLS

# Columns that are wanted out of this many are read together.
_NEAR = 256


class BlockReader(DataMatrix):
    """A matrix whose subclass says how columns are read.

    One thread reads the next block while the function works on the present one: two are held.
    """

    _advice = WHOLE_FILE

    def __init__(
        self, *, name: str, shape: tuple[int, int], dtype: np.dtype[Any], chunk: int = 1
    ) -> None:
        self._name = name
        self.shape = shape
        self.dtype = dtype
        self._chunk = chunk  # columns that are stored together

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, numpy) for blocks of columns."""
        blocks = aligned_blocks(*self.shape, self._chunk)
        with ThreadPoolExecutor(max_workers=1) as thread:
            coming = [thread.submit(self._block, block) for block in blocks[:1]]
            for i, block in enumerate(blocks, start=1):
                values = coming.pop().result()
                coming += [thread.submit(self._block, after) for after in blocks[i : i + 1]]
                yield function(values, block.start, np)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns. Those that are stored together are read together."""
        order = np.argsort(indices, kind="stable")
        largest = max(_LARGEST_BLOCK // max(self.shape[0], 1), 1)
        near = min(self._chunk * max(_NEAR // self._chunk, 1), largest)
        groups = indices[order] // near
        out = np.empty((self.shape[0], order.size), dtype=self.dtype)
        for places in np.split(order, np.flatnonzero(np.diff(groups)) + 1):
            if places.size:
                first, last = int(indices[places[0]]), int(indices[places[-1]])
                out[:, places] = self._block(slice(first, last + 1))[:, indices[places] - first]
        return out

    def _block(self, block: slice) -> NDArray[Any]:
        with self._reading(block.start, block.stop), in_range():
            return self._read(block.start, block.stop).astype(self.dtype, copy=False)

    def _reading(self, start: int, stop: int) -> AbstractContextManager[None]:
        return reading(self._name, start, stop, self._advice)

    @abstractmethod
    def _read(self, start: int, stop: int) -> NDArray[Any]:
        """Return columns start..stop-1 as an array in memory, of any type of numbers."""


def aligned_blocks(n: int, p: int, chunk: int) -> Sequence[slice]:
    """Return slices of p columns, of a size that is worth a visit, that end where chunks end.

    Only chunks that are too wide to be read in one go, all samples of them, are cut.
    """
    n = max(n, 1)
    step = max(_BLOCK_CELLS // n // chunk, 1) * chunk
    part = step if n * step <= _LARGEST_BLOCK else max(_LARGEST_BLOCK // n, 1)
    return [
        slice(start, min(start + part, first + step, p))
        for first in range(0, p, step)
        for start in range(first, min(first + step, p), part)
    ]
