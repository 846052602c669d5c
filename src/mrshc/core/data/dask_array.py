"""Dask arrays: functions run where the chunks are, and only their results are transferred."""

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
from mrshc.core.data.read_errors import translate_read_errors, unreadable_error
from mrshc.core.data.shape_and_dtype import block_dtype, check_two_dimensions, is_integer_dtype
from mrshc.core.data.sparse_structure import check_sparse_structure

T = TypeVar("T")

_NAME = "the dask array"
_ADVICE = "Check the source of its chunks, and that the workers are running and have free memory."

# Number of further attempts to compute a chunk, since failures of files and networks are often
# temporary. Not tuned: results do not depend on it.
_RETRIES = 3

# Type of the chunks of an array, for Dask, which would otherwise call the function to find it out.
_EMPTY_ARRAY = np.empty((0, 0))

# Smallest number of tasks in a batch: with fewer, submitting them takes longer than the tasks. Not
# tuned: results do not depend on it.
_MIN_BATCH_SIZE = 8


class DaskMatrix(DataMatrix):
    """A Dask array, whose chunks are the blocks; a block may be read-only.

    With a client of `distributed`, tasks run on its workers, and those of a lost worker are run
    again by others. Without a client, Dask's local scheduler runs them. X is not persisted here; if
    it has been persisted, its chunks are used in the memory of the workers.

    Blocks contain all samples. If X is chunked along the samples, it is rechunked in every pass;
    rechunking and persisting it before the fit is faster.

    Parameters
    ----------
    array : dask.array.Array of shape (n, p)
        The data, with known chunk sizes.
    """

    has_local_blocks = False

    def __init__(self, array: Any) -> None:
        if any(math.isnan(size) for size in array.shape):
            raise ValueError(
                "X must have chunks of known sizes, but they are unknown. Call "
                "X.compute_chunk_sizes() first."
            )
        self.shape = check_two_dimensions(array.shape, _NAME)
        self.dtype = block_dtype(array.dtype, _NAME)
        self.holds_integers = is_integer_dtype(array.dtype)
        if len(array.chunks[0]) > 1:
            # Sparse chunks are checked and made dense first: rechunking would use their indices
            # unchecked.
            array = array.map_blocks(
                _to_dense_array, self.dtype, dtype=self.dtype, meta=_EMPTY_ARRAY
            )
            # With the method "tasks" only the tasks of a lost worker are repeated, with the method
            # "p2p" all of them.
            array = array.rechunk({0: -1, 1: "auto"}, method="tasks")
        # Persisted chunks remain in memory as long as an array refers to them.
        self._array = array
        self._chunk_bounds = np.cumsum([0, *array.chunks[1]])
        self._chunks, self._has_separate_graphs = _separate_graphs(array.to_delayed().ravel())

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(chunk, start, numpy) for all chunks in order, computed where they are."""
        return self._map_chunks(function, np.flatnonzero(np.diff(self._chunk_bounds)).tolist())

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the columns at m indices, (n, m), selected where their chunks are."""
        order = np.argsort(indices, kind="stable")
        sorted_indices = indices[order]
        # Only the chunks with at least one of the columns are computed.
        chunks = np.unique(np.searchsorted(self._chunk_bounds, sorted_indices, side="right") - 1)
        out = np.empty((self.shape[0], order.size), dtype=self.dtype)
        n_done = 0
        for part in self._map_chunks(_ColumnSelector(sorted_indices), chunks.tolist()):
            out[:, order[n_done : n_done + part.shape[1]]] = part
            n_done += part.shape[1]
        return out

    def _map_chunks(self, function: BlockFunction[T], chunks: Sequence[int]) -> Iterator[T]:
        """Yield the results of a function for the chunks at some positions, in order."""
        client, task = _default_client(), _ChunkTask(function, self.shape[0], dtype=self.dtype)
        if client is None:
            results = self._run_locally(task, chunks)
        else:
            results = self._run_on_cluster(client, task, chunks=chunks)
        for result in results:
            if isinstance(result, _FunctionFailure):
                raise result.error
            yield result

    def _run_locally(self, task: _ChunkTask, chunks: Sequence[int]) -> Iterator[Any]:
        """Yield the results of Dask's local scheduler, computed in batches."""
        import dask

        # Two tasks per core keep the cores busy; more would hold more chunks in memory.
        size = max(_MIN_BATCH_SIZE, 2 * (os.cpu_count() or 1))
        for batch in _split_into_batches(chunks, size):
            calls = self._delayed_calls(task, batch)
            try:
                results = dask.compute(*calls)
            except Exception:
                # One by one, to find the chunk that fails, or because a second attempt succeeds.
                results = tuple(map(self._compute_call, batch, calls))
            yield from results

    def _compute_call(self, j: int, call: Any) -> Any:
        """Return the result of a delayed call for chunk j."""
        start, stop = self._chunk_bounds[j], self._chunk_bounds[j + 1]
        with translate_read_errors(_NAME, start=start, stop=stop, advice=_ADVICE):
            return call.compute()

    def _run_on_cluster(
        self, client: Any, task: _ChunkTask, *, chunks: Sequence[int]
    ) -> Iterator[Any]:
        """Yield the results of a cluster, which computes the next batch during this one."""
        # Chunks with common tasks are submitted at once, since each batch would repeat these tasks.
        are_separate = self._has_separate_graphs
        size = sum(client.nthreads().values()) if are_separate else len(chunks)
        batches = _split_into_batches(chunks, max(_MIN_BATCH_SIZE, size))
        submitted = _submit_task(client, task)
        pending = [
            client.compute(self._delayed_calls(submitted, batch), retries=_RETRIES)
            for batch in batches[:1]
        ]
        for i, batch in enumerate(batches, start=1):
            futures = pending.pop()
            pending += [
                client.compute(self._delayed_calls(submitted, upcoming), retries=_RETRIES)
                for upcoming in batches[i : i + 1]
            ]
            try:
                results = client.gather(futures)
            except Exception as error:
                self._check_futures(error, submitted, batch=batch, futures=futures)
                raise
            yield from results

    def _check_futures(
        self, error: Exception, submitted: Any, *, batch: Sequence[int], futures: Sequence[Any]
    ) -> None:
        """Raise an error that names the failed chunk or the task that cannot be loaded.

        Parameters
        ----------
        error : Exception
            Error of the cluster.
        submitted : distributed.Future
            The task.
        batch : sequence of int
            Positions of the chunks of the batch.
        futures : sequence of distributed.Future
            Results for these chunks.
        """
        if submitted.status == "error":
            raise UnreadableError(
                "The workers of the cluster must be able to load the task, but cannot: "
                f"{submitted.exception()}. Install the same packages on the workers as in this "
                "process, including mrshc."
            ) from error
        for j, future in zip(batch, futures, strict=True):
            if future.status not in ("finished", "pending"):
                cause = future.exception() if future.status == "error" else error
                if isinstance(cause, UnreadableError):  # its message names the columns already
                    raise cause
                start, stop = int(self._chunk_bounds[j]), int(self._chunk_bounds[j + 1])
                raise unreadable_error(
                    _NAME, start=start, stop=stop, advice=_ADVICE, cause=cause
                ) from cause

    def _delayed_calls(self, task: Any, chunks: Sequence[int]) -> list[Any]:
        """Return a delayed call of the task, or of the future of a task, for each chunk."""
        from dask import delayed

        # For functions that are declared pure, Dask would hash the whole task for each call.
        call = delayed(_call_task, pure=False)
        bounds = self._chunk_bounds
        return [call(task, self._chunks[j], int(bounds[j]), int(bounds[j + 1])) for j in chunks]


class _ChunkTask:
    """Function of a chunk that converts and checks it, then calls the function of a block.

    Parameters
    ----------
    function : callable
        Function of a block.
    n_samples : int
        Number of rows that a chunk must have.
    dtype : dtype
        Type that chunks are converted to.
    """

    def __init__(
        self, function: Callable[..., Any], n_samples: int, *, dtype: np.dtype[Any]
    ) -> None:
        self._function, self._n_samples, self._dtype = function, n_samples, dtype

    def __call__(self, chunk: Any, start: int, stop: int) -> Any:
        block = _to_dense_array(chunk, self._dtype)
        if block.shape != (self._n_samples, stop - start):
            raise ValueError(
                f"the chunk has shape {block.shape}, not {(self._n_samples, stop - start)}"
            )
        try:
            return self._function(block, start, np)
        except Exception as error:
            # Returned instead of raised, to distinguish it from errors of the chunk, which are
            # retried and reported as unreadable columns. The traceback would not be transferred.
            error.add_note(traceback.format_exc())
            return _FunctionFailure(error)


class _FunctionFailure:
    """Result of a task whose function has raised an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _ColumnSelector:
    """Function of a block that returns those of the given columns that are in the block.

    Parameters
    ----------
    indices : ndarray of shape (m,)
        Columns of the matrix, in increasing order.
    """

    def __init__(self, indices: Index) -> None:
        self._indices = indices

    def __call__(self, block: Any, start: int, xp: Any) -> NDArray[Any]:
        first, last = np.searchsorted(self._indices, [start, start + block.shape[1]])
        return block[:, self._indices[first:last] - start]


def _to_dense_array(chunk: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a chunk, which may be sparse or masked, as an array of numpy; NaN where masked."""
    if sparse.issparse(chunk):
        check_sparse_structure(chunk)
    if hasattr(chunk, "toarray"):
        chunk = chunk.toarray()
    if not isinstance(chunk, np.ma.MaskedArray):
        chunk = np.asarray(chunk)
    # The type of a chunk may differ from the type that the Dask array declares.
    block_dtype(chunk.dtype, "a chunk")
    if isinstance(chunk, np.ma.MaskedArray):
        return np.ma.filled(chunk.astype(dtype), np.nan)
    return chunk.astype(dtype, copy=False)


def _call_task(task: _ChunkTask, chunk: Any, start: int, stop: int) -> Any:
    return task(chunk, start, stop)


def _default_client() -> Any | None:
    """Return the client of `distributed` that is in use, or None."""
    # A client exists only if the user has imported the package.
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:  # no client has been created
        return None


def _submit_task(client: Any, task: _ChunkTask) -> Any:
    """Return a future of the task, which is pickled once for all chunks."""
    import cloudpickle
    import dask

    # Dask warns of large objects in a graph, which are often there by mistake; the arrays of a task
    # are needed. Submitted instead of scattered, so that the scheduler can restore the task if all
    # workers that hold it are lost.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        return client.submit(pickle.loads, cloudpickle.dumps(task), pure=False)


def _split_into_batches(chunks: Sequence[int], size: int) -> list[Sequence[int]]:
    return [chunks[i : i + size] for i in range(0, len(chunks), size)]


def _separate_graphs(chunks: Sequence[Any]) -> tuple[Sequence[Any], bool]:
    """Give each chunk a graph of its own tasks, if the chunks have few tasks in common.

    A chunk of an array has the graph of the whole array, which Dask processes whenever the chunk is
    submitted.

    Returns
    -------
    chunks : sequence of Delayed
        The chunks with graphs of their own, or unchanged if most tasks are needed by many chunks.
    is_separated : bool
        Whether the chunks have graphs of their own.
    """
    from dask.delayed import Delayed

    graph = chunks[0].dask
    tasks, dependencies = graph.to_dict(), graph.get_all_dependencies()
    # On average, a task may be in two graphs: the task that opens the file that all chunks are read
    # from is in the graph of every chunk.
    separated, n_left = [], 2 * len(tasks)
    for chunk in chunks:
        own_tasks, keys = {}, [chunk.key]
        while keys:
            key = keys.pop()
            if key in tasks and key not in own_tasks:  # persisted chunks have no task
                own_tasks[key] = tasks[key]
                keys += dependencies[key]
        n_left -= len(own_tasks)
        if n_left < 0:
            return chunks, False
        separated.append(Delayed(chunk.key, own_tasks))
    return separated, True
