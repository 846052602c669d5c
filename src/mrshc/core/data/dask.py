"""Data in Dask arrays: functions run where the chunks are, only their results are transferred."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from mrshc.core.data.files import explain_read_errors
from mrshc.core.data.matrix import DataMatrix, float_dtype

T = TypeVar("T")
_NAME = "the Dask array"
_ADVICE = "Check the source of its chunks, and that the workers are running and have free memory."


class DaskMatrix(DataMatrix):
    """Data in a Dask array; each chunk is one block of columns."""

    def __init__(self, array: Any) -> None:
        if np.isnan(np.array(array.shape, dtype=float)).any():
            raise ValueError(
                "X must have chunks of known sizes, but they are unknown. Call "
                "X.compute_chunk_sizes() first."
            )
        self.dtype = float_dtype(array.dtype, array.shape, _NAME)
        n, p = array.shape
        self.shape = int(n), int(p)
        if len(array.chunks[0]) > 1:
            array = array.map_blocks(_as_dense, self.dtype, dtype=self.dtype, meta=np.empty((0, 0)))
            array = array.rechunk({0: -1, 1: "auto"})
        self._array = array  # keeps persisted chunks in memory
        self._bounds = np.cumsum([0, *array.chunks[1]]).tolist()

    def columns(self, index: np.ndarray) -> np.ndarray:
        order = np.argsort(index, kind="stable")
        wanted = np.asarray(index)[order]
        out = np.empty((self.shape[0], order.size))
        chunks = np.unique(np.searchsorted(self._bounds, wanted, side="right") - 1)

        def select(block: np.ndarray, start: int) -> np.ndarray:
            first, last = np.searchsorted(wanted, (start, start + block.shape[1]))
            return block[:, wanted[first:last] - start]

        n_done = 0
        for part in self._map_chunks(select, chunks.tolist()):
            out[:, order[n_done : n_done + part.shape[1]]] = part
            n_done += part.shape[1]
        return out

    def map(self, function: Callable[[Any, int], T]) -> Iterator[T]:
        return self._map_chunks(function, np.flatnonzero(np.diff(self._bounds)).tolist())

    def _map_chunks(self, function: Callable[[Any, int], T], chunks: list[int]) -> Iterator[T]:
        """Yield function(chunk, start) for some chunks, computed by Dask in batches.

        The batches limit how many chunks are in memory where Dask runs in this process.
        """
        import dask

        delayed = self._array.to_delayed().ravel()
        call = dask.delayed(_call, pure=False)
        size = max(8, 2 * (os.cpu_count() or 1))
        for first in range(0, len(chunks), size):
            batch = chunks[first : first + size]
            start, stop = self._bounds[batch[0]], self._bounds[batch[-1] + 1]
            tasks = [call(function, delayed[j], self._bounds[j], self.dtype) for j in batch]
            with explain_read_errors(_NAME, start, stop, _ADVICE):
                results = dask.compute(*tasks)
            for result in results:
                if isinstance(result, _Failure):
                    raise result.error
                yield result


class _Failure:
    """An error of the function, as opposed to one of the storage."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _call(function: Callable[[Any, int], Any], chunk: Any, start: int, dtype: np.dtype) -> Any:
    block = _as_dense(chunk, dtype)
    try:
        return function(block, start)
    except Exception as error:
        return _Failure(error)


def _as_dense(chunk: Any, dtype: np.dtype) -> np.ndarray:
    """Return a chunk, which may be sparse or masked, as an array with NaN for masked values."""
    if hasattr(chunk, "toarray"):
        chunk = chunk.toarray()
    if isinstance(chunk, np.ma.MaskedArray):
        return np.ma.filled(chunk.astype(dtype), np.nan)
    return np.asarray(chunk, dtype=float_dtype(chunk.dtype, chunk.shape, "a chunk"))
