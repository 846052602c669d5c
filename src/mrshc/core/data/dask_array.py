"""Data in Dask arrays: functions run as Dask tasks, and only their results are transferred."""

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

# Largest number of times that a cluster repeats a failed computation of a chunk, since file and
# network errors are often temporary. The number has not been tuned; it does not affect the results.
_RETRIES = 3

# Example of a chunk, which is passed to Dask as `meta`. Without `meta`, Dask would call the mapped
# function in order to determine the type of its result.
_EMPTY_ARRAY = np.empty((0, 0))

# Smallest number of tasks in a batch, except the last. Submitting a smaller batch would take longer
# than running its tasks. The number has not been tuned; it does not affect the results.
_MIN_BATCH_SIZE = 8


class DaskMatrix(DataMatrix):
    """Data matrix in a Dask array; each chunk of the array is one block of columns.

    If there is a client of `dask.distributed`, tasks run on its workers, and the tasks of a lost
    worker are run again on other workers. Without a client, Dask's local scheduler runs the tasks.
    This class does not persist the array. If the user has persisted the array, its chunks are used
    directly from the memory of the workers. A block may be read-only.

    Each block contains all samples. If the array has several chunks along the samples, it is
    rechunked in every pass over the data. In this case, it is faster to rechunk and persist the
    array before the fit.

    The constructor raises ValueError if chunk sizes are unknown, or if the array is not a matrix of
    real numbers.

    Parameters
    ----------
    array : dask.array.Array of shape (n, p)
        The data, with known chunk sizes, for n samples and p features.
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
            # Sparse chunks are first checked and converted to dense arrays, since rechunking would
            # use their indices without checking them.
            array = array.map_blocks(
                _to_dense_array, self.dtype, dtype=self.dtype, meta=_EMPTY_ARRAY
            )
            # If a worker is lost, the method "tasks" repeats only the tasks of this worker, whereas
            # the method "p2p" repeats all tasks.
            array = array.rechunk({0: -1, 1: "auto"}, method="tasks")
        # The reference to the array keeps persisted chunks in memory.
        self._array = array
        self._chunk_bounds = np.cumsum([0, *array.chunks[1]])
        self._chunks, self._has_separate_graphs = _separate_graphs(array.to_delayed().ravel())

    def map_blocks(self, function: BlockFunction[T]) -> Iterator[T]:
        """Yield function(block, start, numpy) for each block of columns, in order.

        The function calls are computed by Dask. Each block is a chunk of the array, and `start` is
        the index of its first column. Raise UnreadableError if a chunk cannot be computed.
        """
        return self._map_chunks(function, np.flatnonzero(np.diff(self._chunk_bounds)).tolist())

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return the m columns at `indices` as an array of shape (n, m), for n samples.

        The columns are selected by Dask tasks, so only these columns are transferred. Raise
        UnreadableError if a chunk cannot be computed.
        """
        order = np.argsort(indices, kind="stable")
        sorted_indices = indices[order]
        # Only chunks that contain at least one of the columns are computed.
        chunks = np.unique(np.searchsorted(self._chunk_bounds, sorted_indices, side="right") - 1)
        out = np.empty((self.shape[0], order.size), dtype=self.dtype)
        n_done = 0
        for part in self._map_chunks(_ColumnSelector(sorted_indices), chunks.tolist()):
            out[:, order[n_done : n_done + part.shape[1]]] = part
            n_done += part.shape[1]
        return out

    def _map_chunks(self, function: BlockFunction[T], chunks: Sequence[int]) -> Iterator[T]:
        """Yield the result of a function for each chunk; `chunks` contains indices of chunks.

        If the function raises an error, the same error is raised here. Raise UnreadableError if a
        chunk cannot be computed.
        """
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
        """Yield the result of a task for each chunk, computed in batches by the local scheduler."""
        import dask

        # Two tasks per core keep all cores busy. A larger batch would need more memory for its
        # chunks.
        size = max(_MIN_BATCH_SIZE, 2 * (os.cpu_count() or 1))
        for batch in _split_into_batches(chunks, size):
            calls = self._delayed_calls(task, batch)
            try:
                results = dask.compute(*calls)
            except Exception:
                # The calls are repeated one at a time. If a call fails again, the error states the
                # columns of its chunk.
                results = tuple(map(self._compute_call, batch, calls))
            yield from results

    def _compute_call(self, j: int, call: Any) -> Any:
        """Return the result of a call for chunk j; raise UnreadableError if the call fails."""
        start, stop = self._chunk_bounds[j], self._chunk_bounds[j + 1]
        with translate_read_errors(_NAME, start=start, stop=stop, advice=_ADVICE):
            return call.compute()

    def _run_on_cluster(
        self, client: Any, task: _ChunkTask, *, chunks: Sequence[int]
    ) -> Iterator[Any]:
        """Yield the result of a task for each chunk, computed in batches by a cluster.

        The next batch is submitted before the results of the current batch are collected.
        """
        # If the chunks depend on common tasks, all chunks are submitted in one batch, since several
        # batches would repeat the common tasks.
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
        """Raise UnreadableError if the workers cannot load the task, or if a chunk has failed.

        If no future has failed, no error is raised.

        Parameters
        ----------
        error : Exception
            Error that was raised when the results were collected.
        submitted : distributed.Future
            Future of the `_ChunkTask` that is applied to all chunks.
        batch : sequence of int
            Indices of the chunks in the batch.
        futures : sequence of distributed.Future
            Futures of the results for these chunks.
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
                if isinstance(cause, UnreadableError):  # its message already states the columns
                    raise cause
                start, stop = int(self._chunk_bounds[j]), int(self._chunk_bounds[j + 1])
                raise unreadable_error(
                    _NAME, start=start, stop=stop, advice=_ADVICE, cause=cause
                ) from cause

    def _delayed_calls(self, task: Any, chunks: Sequence[int]) -> list[Any]:
        """Return one delayed call per chunk.

        `task` is a `_ChunkTask` or a Dask future of a `_ChunkTask`. `chunks` contains indices of
        chunks.
        """
        from dask import delayed

        # With pure=True, Dask would hash the whole task for each call.
        call = delayed(_call_task, pure=False)
        bounds = self._chunk_bounds
        return [call(task, self._chunks[j], int(bounds[j]), int(bounds[j + 1])) for j in chunks]


class _ChunkTask:
    """Function that converts a chunk to a dense block and calls `function` with the block.

    If `function` raises an error, the result is a `_FunctionFailure` that contains the error. If
    the chunk has the wrong shape, ValueError is raised.

    Parameters
    ----------
    function : callable
        Function of (block, start, numpy), where `start` is the index of the first column of the
        block.
    n_samples : int
        Number of rows that each chunk must have.
    dtype : dtype
        Type to which chunks are converted.
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
            # The error is returned rather than raised. If it were raised, Dask would retry the
            # task, and the error would be reported as unreadable columns. The traceback is added as
            # text, because the traceback is lost when the error is sent to another process.
            error.add_note(traceback.format_exc())
            return _FunctionFailure(error)


class _FunctionFailure:
    """Result of a task whose function raised an error. The attribute `error` contains the error."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _ColumnSelector:
    """Function that returns the columns of a block whose indices in the matrix are in `indices`.

    Parameters
    ----------
    indices : ndarray of shape (m,)
        Indices of columns of the matrix, in increasing order.
    """

    def __init__(self, indices: Index) -> None:
        self._indices = indices

    def __call__(self, block: Any, start: int, xp: Any) -> NDArray[Any]:
        first, last = np.searchsorted(self._indices, [start, start + block.shape[1]])
        return block[:, self._indices[first:last] - start]


def _to_dense_array(chunk: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a chunk, which may be sparse or masked, as a numpy array with NaN for masked values.

    Raise ValueError if the values are not real numbers or a sparse chunk is inconsistent.
    """
    if sparse.issparse(chunk):
        check_sparse_structure(chunk)
    if hasattr(chunk, "toarray"):
        chunk = chunk.toarray()
    if not isinstance(chunk, np.ma.MaskedArray):
        chunk = np.asarray(chunk)
    # The type is checked here because the type of a chunk may differ from the type that the Dask
    # array declares.
    block_dtype(chunk.dtype, "a chunk")
    if isinstance(chunk, np.ma.MaskedArray):
        return np.ma.filled(chunk.astype(dtype), np.nan)
    return chunk.astype(dtype, copy=False)


def _call_task(task: _ChunkTask, chunk: Any, start: int, stop: int) -> Any:
    return task(chunk, start, stop)


def _default_client() -> Any | None:
    """Return the current client of `dask.distributed`; None if there is no client."""
    # A client can exist only if the user has imported the package `distributed`.
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:  # no client has been created
        return None


def _submit_task(client: Any, task: _ChunkTask) -> Any:
    """Return a Dask future of a task, so that the task is pickled once, not for each chunk."""
    import cloudpickle
    import dask

    # Dask warns about large objects in a graph, since they are often included by mistake. The
    # warning is disabled here, because a task needs its large arrays. The task is submitted rather
    # than scattered, so that the scheduler can recreate the task if all workers that store it are
    # lost.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        return client.submit(pickle.loads, cloudpickle.dumps(task), pure=False)


def _split_into_batches(chunks: Sequence[int], size: int) -> list[Sequence[int]]:
    return [chunks[i : i + size] for i in range(0, len(chunks), size)]


def _separate_graphs(chunks: Sequence[Any]) -> tuple[Sequence[Any], bool]:
    """Return the chunks, each with a graph of only the tasks that the chunk needs.

    By default, the graph of a chunk is the graph of the whole array, and Dask processes this large
    graph whenever the chunk is submitted. The graphs are not changed if many tasks are needed by
    several chunks.

    Parameters
    ----------
    chunks : sequence of Delayed
        The chunks of a Dask array, all with the same graph.

    Returns
    -------
    chunks : sequence of Delayed
        The chunks with separate graphs, or the original chunks.
    is_separated : bool
        Whether the returned chunks have separate graphs.
    """
    from dask.delayed import Delayed

    graph = chunks[0].dask
    tasks, dependencies = graph.to_dict(), graph.get_all_dependencies()
    # Separate graphs are used only if each task is in at most two of these graphs on average. The
    # limit is above one because some tasks, such as opening a file, are needed by all chunks.
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
