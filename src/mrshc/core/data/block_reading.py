"""Base class of matrices that are read from storage one block of columns at a time."""

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
from mrshc.core.data.read_errors import CHECK_FILE_ADVICE, translate_read_errors
from mrshc.core.data.shape_and_dtype import refuse_overflow

T = TypeVar("T")

# Approximate number of values in a block: 32 MB in single precision. A block of this size is large
# enough for efficient sequential reading, and several blocks fit into memory. The number has not
# been tuned.
_BLOCK_CELLS = 1 << 23

# Largest number of values in a block: 128 MB in single precision. Blocks may reach this size if the
# file has wide chunks. A chunk that would lead to larger blocks is read several times. The number
# has not been tuned.
_LARGEST_BLOCK = 4 * _BLOCK_CELLS

# Requested columns that lie within a range of this width are read in one operation, which is faster
# than several small read operations. The width has not been tuned; it does not affect the results.
_COLUMNS_READ_TOGETHER = 256


class BlockReader(DataMatrix):
    """Base class of matrices whose columns are read from storage in blocks.

    A subclass implements `_read_columns`. During a pass over the data, a thread reads the next
    block while the current block is processed. At least two blocks must therefore fit into memory.

    Parameters
    ----------
    name : str
        Name of the data in messages.
    shape : tuple of int
        Number of samples and number of features.
    dtype : dtype
        Type to which blocks are converted.
    chunk : int, default=1
        Number of adjacent columns in each stored chunk.
    """

    _advice = CHECK_FILE_ADVICE

    def __init__(
        self, *, name: str, shape: tuple[int, int], dtype: np.dtype[Any], chunk: int = 1
    ) -> None:
        self._name = name
        self.shape = shape
        self.dtype = dtype
        self.chunk_width = chunk

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, numpy) for each block of columns, in order.

        `start` is the index of the first column of the block.
        """
        blocks = aligned_blocks(*self.shape, self.chunk_width)
        with ThreadPoolExecutor(max_workers=1) as thread:
            pending = [thread.submit(self.read_block, block) for block in blocks[:1]]
            for i, block in enumerate(blocks, start=1):
                values = pending.pop().result()
                # The next block is requested before `function` is called, so reading and computing
                # overlap.
                pending += [
                    thread.submit(self.read_block, upcoming) for upcoming in blocks[i : i + 1]
                ]
                yield function(values, block.start, np)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices` as an array of shape (n, m), for n samples.

        Columns that are close to each other are read in one operation. The errors are those of
        `read_block`.
        """
        order = np.argsort(indices, kind="stable")
        max_width = max(_LARGEST_BLOCK // max(self.shape[0], 1), 1)
        # Columns are read together if they lie in the same range of columns. The width of these
        # ranges is a multiple of the chunk width, so no chunk is read twice, unless the width has
        # to be reduced to `max_width`.
        whole_chunks = self.chunk_width * max(_COLUMNS_READ_TOGETHER // self.chunk_width, 1)
        groups = indices[order] // min(whole_chunks, max_width)
        out = np.empty((self.shape[0], order.size), dtype=self.dtype)
        for positions in np.split(order, np.flatnonzero(np.diff(groups)) + 1):
            if positions.size:
                first, last = int(indices[positions[0]]), int(indices[positions[-1]])
                block = self.read_block(slice(first, last + 1))
                out[:, positions] = block[:, indices[positions] - first]
        return out

    def read_block(self, block: slice) -> NDArray[Any]:
        """Return the columns in a slice, converted to the dtype of the matrix.

        Raise UnreadableError if the columns cannot be read, and OutOfRangeError if a value is too
        large for the dtype.
        """
        with self._translate_errors(block.start, block.stop), refuse_overflow():
            return self._read_columns(block.start, block.stop).astype(self.dtype, copy=False)

    def _translate_errors(self, start: int, stop: int) -> AbstractContextManager[None]:
        return translate_read_errors(self._name, start=start, stop=stop, advice=self._advice)

    @abstractmethod
    def _read_columns(self, start: int, stop: int) -> NDArray[Any]:
        """Return columns start to stop - 1 as a numpy array of any numeric type."""


def aligned_blocks(n: int, p: int, chunk: int) -> Sequence[slice]:
    """Return slices that divide p columns into blocks aligned with the chunks of the file.

    Parameters
    ----------
    n, p : int
        Number of samples and number of features.
    chunk : int
        Number of adjacent columns in each stored chunk. These columns are divided between several
        slices only if they have more than `_LARGEST_BLOCK` values over all n samples.
    """
    n = max(n, 1)
    step = max(_BLOCK_CELLS // n // chunk, 1) * chunk
    part = step if n * step <= _LARGEST_BLOCK else max(_LARGEST_BLOCK // n, 1)
    return [
        slice(start, min(start + part, first + step, p))
        for first in range(0, p, step)
        for start in range(first, min(first + step, p), part)
    ]
