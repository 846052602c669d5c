"""Passes over the data: counting of passes, use of several threads, and progress reports.

A pass evaluates a function on every block of columns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

# Function that is called with a block of columns, the index of its first column, and its array
# namespace, such as numpy.
BlockFunction = Callable[[Any, int, Any], T]
# Function that is called during a pass with the index of the pass, counted from one, and the number
# of columns processed so far in this pass.
BlockCallback = Callable[[int, int], None]


def ignore_progress(_: int, __: int) -> None:
    """Do nothing. The function is used as a callback if no progress is reported."""


class BlockSource(Protocol):
    """The attributes and methods that a matrix must have for a pass over its columns.

    Attributes
    ----------
    has_local_blocks : bool
        Whether blocks are numpy arrays in this process and can be processed by its threads.
    """

    has_local_blocks: bool

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for each block of columns, in order.

        `start` is the index of the first column of the block, and `xp` is the array namespace of
        the block, such as numpy.
        """
        ...


class Passes:
    """Makes passes over one matrix and counts them.

    Parameters
    ----------
    data : DataMatrix or another BlockSource
        The matrix.
    n_threads : int, default=1
        Number of threads that process blocks. The number has no effect if blocks are in other
        processes or on a device.
    n_passes : int, default=0
        Number of passes that were made before this object was created.
    on_block : callable, default=ignore_progress
        Called after each block with the index of the pass, counted from one, and the number of
        columns processed so far in this pass.

    Attributes
    ----------
    n_passes : int
        Number of passes so far, including earlier passes.
    """

    def __init__(
        self,
        data: BlockSource,
        *,
        n_threads: int = 1,
        n_passes: int = 0,
        on_block: BlockCallback = ignore_progress,
    ) -> None:
        self.n_passes = n_passes
        self._data = data
        self._n_threads = n_threads
        self._on_block = on_block

    def map(self, function: BlockFunction[T]) -> Iterator[T]:
        """Make one pass over the data: yield function(block, start, xp) for each block, in order.

        `start` is the index of the first column of the block, and `xp` is the array namespace of
        the block, such as numpy.
        """
        self.n_passes += 1
        n_done = 0
        # The number of columns of a block is returned with the result, because the block itself may
        # be in another process.
        for width, result in self._map_blocks(partial(_call_with_width, function)):
            n_done += width
            self._on_block(self.n_passes, n_done)
            yield result

    def _map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for each block, in order, using threads if possible."""
        if self._n_threads == 1 or not self._data.has_local_blocks:
            yield from self._data.map_blocks(function)
            return
        pending: deque[Future[T]] = deque()
        with ThreadPoolExecutor(self._n_threads) as pool:
            for arguments in self._data.map_blocks(_return_arguments):
                pending.append(pool.submit(function, *arguments))
                # A result is awaited before another block is read, to limit the number of blocks in
                # memory.
                if len(pending) > self._n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()


def _call_with_width(function: BlockFunction[T], block: Any, start: int, xp: Any) -> tuple[int, T]:
    """Return the number of columns of a block, and function(block, start, xp)."""
    return block.shape[1], function(block, start, xp)


def _return_arguments(block: Any, start: int, xp: Any) -> tuple[Any, int, Any]:
    return block, start, xp
