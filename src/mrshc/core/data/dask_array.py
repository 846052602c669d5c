"""Dask arrays: the function is sent to where the chunks are, only what it returns comes back."""

from __future__ import annotations

import math
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.array_types import Index
from mrshc.core.data.data_matrix import DataMatrix, UnreadableError
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.read_errors import reading, unreadable
from mrshc.core.data.shape_and_dtype import are_integers, block_dtype, matrix_shape
from mrshc.core.data.sparse_structure import check_sparse

T = TypeVar("T")

_NAME = "the dask array"
_ADVICE = "Check what its chunks are made from, and that the workers live and have memory left."

# A chunk that cannot be had is tried again this often: files and networks have bad moments.
_RETRIES = 3

# What stands for chunks of an array where only their type matters.
_EMPTY = np.empty((0, 0))

# At least this many tasks are sent at a time, or sending would take longer than doing.
_BATCH = 8


class DaskMatrix(DataMatrix):
    """A dask array. Its chunks are the blocks, and a block may be read-only.

    With a client of `distributed`, tasks go to its workers, and what a lost worker had to do is
    done by others. Without one, dask's own scheduler runs them. X is not persisted here; if it is
    already, its chunks are used where they lie.

    Chunks hold all samples. Where X is chunked over samples, it is chunked anew in every pass:
    better rechunk and persist it before.
    """

    has_local_blocks = False

    def __init__(self, array: Any) -> None:
        if any(math.isnan(size) for size in array.shape):
            raise ValueError(
                "X must have chunks of known sizes, but they are unknown. Call "
                "X.compute_chunk_sizes() first."
            )
        self.shape = matrix_shape(array.shape, _NAME)
        self.dtype = block_dtype(array.dtype, _NAME)
        self.holds_integers = are_integers(array.dtype)
        if len(array.chunks[0]) > 1:
            # Chunks are put together as arrays, whose parts cannot point outside of them.
            array = array.map_blocks(_dense, self.dtype, dtype=self.dtype, meta=_EMPTY)
            # By tasks, of which a lost worker's are done again; by exchange, all would be.
            array = array.rechunk({0: -1, 1: "auto"}, method="tasks")
        self._array = array  # chunks that are persisted stay as long as someone has them
        self._ends = np.cumsum([0, *array.chunks[1]])
        self._chunks, self._apart = _taken_apart(array.to_delayed().ravel())

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(chunk, start, numpy) for all chunks, from where they are."""
        return self._run(function, np.flatnonzero(np.diff(self._ends)).tolist())

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns, which are picked where their chunks are."""
        order = np.argsort(indices, kind="stable")
        wanted = indices[order]
        holders = np.unique(np.searchsorted(self._ends, wanted, side="right") - 1)
        out = np.empty((self.shape[0], order.size), dtype=self.dtype)
        done = 0
        for part in self._run(_Picked(wanted), holders.tolist()):
            out[:, order[done : done + part.shape[1]]] = part
            done += part.shape[1]
        return out

    def _run(self, function: BlockFunction[T], chunks: Sequence[int]) -> Iterator[T]:
        client, work = _client(), _Work(function, self.shape[0], self.dtype)
        results = self._here(work, chunks) if client is None else self._there(client, work, chunks)
        for result in results:
            if isinstance(result, _Failure):
                raise result.error
            yield result

    def _here(self, work: _Work, chunks: Sequence[int]) -> Iterator[Any]:
        """Yield results of dask's own scheduler, some chunks at a time."""
        import dask

        for batch in _batches(chunks, max(_BATCH, 2 * (os.cpu_count() or 1))):
            tasks = self._tasks(work, batch)
            try:
                results = dask.compute(*tasks)
            except Exception:  # one by one, to see which it is, or that it passes this time
                results = tuple(map(self._alone, batch, tasks))
            yield from results

    def _alone(self, j: int, task: Any) -> Any:
        with reading(_NAME, self._ends[j], self._ends[j + 1], _ADVICE):
            return task.compute()

    def _there(self, client: Any, work: _Work, chunks: Sequence[int]) -> Iterator[Any]:
        """Yield results of a cluster, which has the next batch while this one is waited for."""
        # What all chunks are made from would be made again for each batch: then all go at once.
        at_once = sum(client.nthreads().values()) if self._apart else len(chunks)
        batches = _batches(chunks, max(_BATCH, at_once))
        sent = _sent(client, work)
        coming = [client.compute(self._tasks(sent, b), retries=_RETRIES) for b in batches[:1]]
        for i, batch in enumerate(batches, start=1):
            futures = coming.pop()
            coming += [
                client.compute(self._tasks(sent, after), retries=_RETRIES)
                for after in batches[i : i + 1]
            ]
            try:
                results = client.gather(futures)
            except Exception as error:
                self._explain(error, sent, batch, futures)
                raise
            yield from results

    def _explain(
        self, error: Exception, sent: Any, batch: Sequence[int], futures: Sequence[Any]
    ) -> None:
        """Raise a sentence about what failed on a cluster."""
        if sent.status == "error":
            raise UnreadableError(
                f"The workers of the cluster cannot load what they should do: {sent.exception()}. "
                "Install the same packages there as here, mrshc among them."
            ) from error
        for j, future in zip(batch, futures, strict=True):
            if future.status not in ("finished", "pending"):
                cause = future.exception() if future.status == "error" else error
                if isinstance(cause, UnreadableError):  # said already
                    raise cause
                columns = int(self._ends[j]), int(self._ends[j + 1])
                raise unreadable(_NAME, *columns, _ADVICE, cause) from cause

    def _tasks(self, work: Any, chunks: Sequence[int]) -> list[Any]:
        from dask import delayed

        call = delayed(_call, pure=False)
        return [
            call(work, self._chunks[j], int(self._ends[j]), int(self._ends[j + 1])) for j in chunks
        ]


class _Work:
    """What is done with a chunk: it is checked, then given to the function."""

    def __init__(self, function: Callable[..., Any], n: int, dtype: np.dtype[Any]) -> None:
        self._function, self._n, self.dtype = function, n, dtype

    def __call__(self, chunk: Any, start: int, stop: int) -> Any:
        block = _dense(chunk, self.dtype)
        if block.shape != (self._n, stop - start):
            raise ValueError(f"the chunk has shape {block.shape}, not {(self._n, stop - start)}")
        try:
            return self._function(block, start, np)
        except Exception as error:  # ours: returned, to be told from those of the chunk
            error.add_note(traceback.format_exc())
            return _Failure(error)


class _Failure:
    """An error of the function, as its result."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Picked:
    """A function that picks those of the wanted columns that are in a block."""

    def __init__(self, wanted: Index) -> None:
        self._wanted = wanted  # in increasing order

    def __call__(self, block: Any, start: int, xp: Any) -> NDArray[Any]:
        first, last = np.searchsorted(self._wanted, [start, start + block.shape[1]])
        return block[:, self._wanted[first:last] - start]


def _dense(chunk: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a chunk as an array of numpy; NaN where it is masked."""
    if sparse.issparse(chunk):
        check_sparse(chunk)
    if hasattr(chunk, "toarray"):
        chunk = chunk.toarray()
    if not isinstance(chunk, np.ma.MaskedArray):
        chunk = np.asarray(chunk)
    block_dtype(chunk.dtype, "a chunk")  # it may be of another type than the dask array says
    if isinstance(chunk, np.ma.MaskedArray):
        return np.ma.filled(chunk.astype(dtype), np.nan)
    return chunk.astype(dtype, copy=False)


def _call(work: _Work, chunk: Any, start: int, stop: int) -> Any:
    return work(chunk, start, stop)


def _client() -> Any | None:
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:  # there is none
        return None


def _sent(client: Any, work: _Work) -> Any:
    """Return the work as a future, pickled once.

    It is a task, not scattered: the scheduler can have it made again if all its holders are lost.
    """
    import cloudpickle
    import dask

    # Other than in a graph by mistake, something large is meant here.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        return client.submit(pickle.loads, cloudpickle.dumps(work), pure=False)


def _batches(chunks: Sequence[int], size: int) -> list[Sequence[int]]:
    return [chunks[i : i + size] for i in range(0, len(chunks), size)]


def _taken_apart(chunks: Sequence[Any]) -> tuple[Sequence[Any], bool]:
    """Return chunks of which each knows its own tasks only, and whether that could be done.

    A chunk of an array knows the tasks of all, which are looked through whenever it is sent. Where
    most are needed by many chunks, the chunks are returned as they are.
    """
    from dask.delayed import Delayed

    graph = chunks[0].dask
    tasks, needs = graph.to_dict(), graph.get_all_dependencies()
    apart, left = [], 2 * len(tasks)  # a file that all are read from counts for each of them
    for chunk in chunks:
        own, open_ends = {}, [chunk.key]
        while open_ends:
            key = open_ends.pop()
            if key in tasks and key not in own:  # others are on a cluster already
                own[key] = tasks[key]
                open_ends += needs[key]
        left -= len(own)
        if left < 0:
            return chunks, False
        apart.append(Delayed(chunk.key, own))
    return apart, True
