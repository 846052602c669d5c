"""Sparse matrices, in memory or in a file: a block at a time is made dense, never the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mrshc.core.arrays import Index
from mrshc.core.source import Source
from mrshc.sources.files import file_name
from mrshc.sources.local import Local
from mrshc.sources.reading import WHOLE_FILE, block_dtype, matrix_shape, reading


class SparseSource(Local):
    """A sparse matrix of scipy. What is not in CSC format is converted once, in its own dtype."""

    _advice = "Check it with its method check_format()."

    def __init__(self, matrix: Any, *, name: str = "the sparse matrix") -> None:
        super().__init__(
            name=name,
            shape=matrix_shape(matrix.shape, name),
            dtype=block_dtype(matrix.dtype, name),
        )
        self._matrix = matrix.tocsc()

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns."""
        return self._matrix[:, indices].toarray().astype(self.dtype, copy=False)

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        return self._matrix[:, start:stop].toarray()


class ColumnsSource(Local):
    """A group in AnnData's format csc_matrix, of which a block's columns are read as they lie."""

    def __init__(self, group: Any) -> None:
        name, shape = file_name(group), _shape(group)
        with reading(name, 0, shape[1], WHOLE_FILE):
            self._data, self._rows = group["data"], group["indices"]
            self._ends = np.asarray(group["indptr"][:], dtype=np.int64)
        super().__init__(name=name, shape=shape, dtype=block_dtype(self._data.dtype, name))

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        ends = self._ends[start : stop + 1]
        cells = slice(int(ends[0]), int(ends[-1]))
        parts = (self._data[cells], self._rows[cells], ends - ends[0])
        block = sparse.csc_array(parts, shape=(self.shape[0], stop - start))
        block.check_format()  # rows that are not there would be written to
        return block.toarray()


def group_source(group: Any) -> Source:
    """Return the source of a sparse matrix that AnnData wrote to HDF5 or Zarr.

    Columns are what is asked for. Where a file has compressed rows (csr_matrix), all of it is read
    once and kept as a sparse matrix of columns: no larger than in the file without compression.
    """
    kind = group.attrs.get("encoding-type")
    if kind == "csc_matrix":
        return ColumnsSource(group)
    name = file_name(group)
    if kind == "csr_matrix":
        shape = _shape(group)
        with reading(name, 0, shape[1], WHOLE_FILE):
            parts = tuple(group[part][:] for part in ("data", "indices", "indptr"))
            matrix = sparse.csr_array(parts, shape=shape)
            matrix.check_format()
        return SparseSource(matrix, name=name)
    raise ValueError(
        f"X must be a dataset or a sparse matrix in AnnData's format, but {name} is a group of "
        "others. Pass one of them, such as file['X']."
    )


def _shape(group: Any) -> tuple[int, int]:
    return matrix_shape(tuple(group.attrs.get("shape", ())), file_name(group))
