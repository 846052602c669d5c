"""Passes over the data: counted, shared by threads, with progress."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

# Called with a block, the index of its first column, and the namespace of its array.
BlockFunction = Callable[[Any, int, Any], T]
# Called during a pass with the number of the pass and the number of columns done.
BlockCallback = Callable[[int, int], None]


def ignore_progress(_: int, __: int) -> None:
    """Report nothing."""


class BlockSource(Protocol):
    """The part of the interface of a matrix that a pass needs.

    Attributes
    ----------
    has_local_blocks : bool
        Whether blocks are numpy arrays of this process, so that its threads can share the work
        on them.
    """

    has_local_blocks: bool

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for all blocks of columns in order."""
        ...


class Passes:
    """Counted passes over one matrix.

    Parameters
    ----------
    data : DataMatrix or another BlockSource
        The matrix.
    n_threads : int, default=1
        Threads that work on blocks of this process. Blocks of other processes or of a device are
        processed there, whatever the number of threads.
    n_passes : int, default=0
        Number of passes that have been made before.
    on_block : callable, default=ignore_progress
        Called after each block with the number of the pass and the number of columns done.

    Attributes
    ----------
    n_passes : int
        Number of passes so far.
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
        """Yield function(block, start, xp) for all blocks of columns in order: one pass."""
        self.n_passes += 1
        n_done = 0
        # Results carry the width of their block, which may be in another process by then.
        for width, result in self._map_blocks(partial(_call_with_width, function)):
            n_done += width
            self._on_block(self.n_passes, n_done)
            yield result

    def _map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for all blocks in order, computed in threads."""
        if self._n_threads == 1 or not self._data.has_local_blocks:
            yield from self._data.map_blocks(function)
            return
        pending: deque[Future[T]] = deque()
        with ThreadPoolExecutor(self._n_threads) as pool:
            for arguments in self._data.map_blocks(_return_arguments):
                pending.append(pool.submit(function, *arguments))
                # One result is awaited for each further block, to hold few blocks in memory.
                if len(pending) > self._n_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()


def _call_with_width(function: BlockFunction[T], block: Any, start: int, xp: Any) -> tuple[int, T]:
    """Return the number of columns of a block and the result of the function."""
    return block.shape[1], function(block, start, xp)


def _return_arguments(block: Any, start: int, xp: Any) -> tuple[Any, int, Any]:
    return block, start, xp
