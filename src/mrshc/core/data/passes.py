"""Passes over the data: counted, shared by threads, with progress."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

# Called with a block, the number of its first column, and the namespace of its array.
BlockFunction = Callable[[Any, int, Any], T]
# Called during a pass with its number and the number of columns done.
OnBlock = Callable[[int, int], None]


def ignore_progress(_: int, __: int) -> None:
    """Report nothing."""


class BlockSource(Protocol):
    """What a pass needs to know of a matrix."""

    has_local_blocks: bool

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for blocks of columns, in their order."""
        ...


class Passes:
    """Passes over one matrix, each counted.

    Parameters
    ----------
    data : DataMatrix, or another source of blocks
        What to pass over.
    n_threads : int
        Threads that work on blocks which come into this process; elsewhere one thread waits.
    n_passes : int
        Passes that were made before.
    on_block : callable
        Called after each block with the number of the pass and of the columns that are done.
    """

    def __init__(
        self,
        data: BlockSource,
        *,
        n_threads: int = 1,
        n_passes: int = 0,
        on_block: OnBlock = ignore_progress,
    ) -> None:
        self.n_passes = n_passes
        self._data = data
        self._n_threads = n_threads
        self._on_block = on_block

    def map(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, xp) for all blocks, in their order."""
        self.n_passes += 1
        done = 0
        for width, result in self._results(partial(_with_width, function)):
            done += width
            self._on_block(self.n_passes, done)
            yield result

    def _results(self, function: BlockFunction[T]) -> Iterator[T]:
        if self._n_threads == 1 or not self._data.has_local_blocks:
            yield from self._data.map_blocks(function)
            return
        waiting: deque[Future[T]] = deque()
        with ThreadPoolExecutor(self._n_threads) as pool:
            for block in self._data.map_blocks(_return_block):
                waiting.append(pool.submit(function, *block))
                if len(waiting) > self._n_threads:  # few blocks are held at a time
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()


def _with_width(function: BlockFunction[T], block: Any, start: int, xp: Any) -> tuple[int, T]:
    return block.shape[1], function(block, start, xp)


def _return_block(block: Any, start: int, xp: Any) -> tuple[Any, int, Any]:
    return block, start, xp
