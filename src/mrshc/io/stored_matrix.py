"""A matrix that stays in its file, is read in blocks, and can be opened by other processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.data.files import FileMatrix, open_sparse_group
from mrshc.core.data.matrix import DataMatrix, float_dtype
from mrshc.io import memory
from mrshc.io.memory import format_size
from mrshc.io.stored.hdf5_zarr_safe_access import encoding_type
from mrshc.io.stored.sparse_matrix import SPARSE_ENCODINGS, CompressedParts
from mrshc.io.stored.sparse_structure import StructureError
from mrshc.io.streams import FlawError, check_numeric_matrix
from mrshc.shell.wording import Sentence, Setting

R = TypeVar("R")
OpenMatrix = Callable[[str, str], Any]

# With `in_memory=None`, a matrix is read into memory only if it takes up at most this proportion of
# the free memory. The other half is left for the computation, which needs several arrays that are
# smaller than the matrix.
_MAX_MEMORY_SHARE = 0.5


class StoredMatrix(DataMatrix):
    """A matrix in a .npy, .h5ad or .zarr file, with samples in rows, that can be pickled.

    When the matrix is unpickled in another process, the file is opened again by its name.

    Attributes
    ----------
    node : memory map, dataset or group
        The object returned by `open_matrix`.
    shape : tuple of int
        Numbers of samples and features.
    """

    ndim = 2
    is_opened_by_others = True  # other processes can read the file

    def __init__(
        self, path: str, open_matrix: OpenMatrix, *, inside: str = "", transposed: bool = False
    ) -> None:
        self._arguments = path, open_matrix, inside, transposed
        self._transposed = transposed
        # If the file does not exist, `stat` raises an error that names the file. The errors of some
        # libraries do not name it.
        Path(path).stat()
        self.node = open_matrix(path, inside)
        self._parts = find_sparse_parts(self.node)
        n, p = self.node.shape if self._parts is None else self._parts.shape
        self.shape = (int(p), int(n)) if transposed else (int(n), int(p))
        values = self.node if self._parts is None else self._parts.data
        self.dtype = float_dtype(values.dtype, self.shape, path)

    @property
    def T(self) -> StoredMatrix:  # noqa: N802 - as numpy calls it
        """The transpose of the matrix.

        FlawError is raised if the matrix is sparse.
        """
        # Columns of the transpose are rows in the file, but a sparse matrix can be read only by
        # columns.
        if self._parts is not None:
            raise FlawError(
                Sentence(
                    "is sparse with samples in rows: its transpose needs {memory}",
                    memory=Setting("in_memory", True),
                )
            )
        path, open_matrix, inside, transposed = self._arguments
        return StoredMatrix(path, open_matrix, inside=inside, transposed=not transposed)

    def refuse_large_csr(self) -> None:
        """Raise FlawError if the matrix is sparse, stored by rows, and too large to be converted.

        If a sparse matrix is stored by rows, its columns can be read only after the whole matrix
        has been converted in memory.
        """
        if self._parts is None or self._parts.compressed_axis == "columns":
            return
        # The factor is 2 because both versions of the matrix, by rows and by columns, are in memory
        # during the conversion.
        needed = 2 * (self._parts.data.nbytes + self._parts.indices.nbytes)
        if needed > memory.free_memory():
            raise FlawError(
                f"holds a sparse matrix by rows (csr_matrix), which needs {format_size(needed)} of "
                "memory to be read by columns. Write it by columns (csc_matrix)"
            )

    @cached_property
    def _matrix(self) -> DataMatrix:
        """The matrix that is read; it is opened when values are first needed."""
        if self._parts is None:
            return FileMatrix(self.node, transposed=self._transposed)
        return open_sparse_group(self.node)

    def columns(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the columns with the given indices."""
        return self._matrix.columns(index)

    def map(self, function: Callable[[Any, int], R]) -> Iterator[R]:
        """Yield function(block, start) for all blocks of columns."""
        return self._matrix.map(function)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the values in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def chunk_width(self) -> int:  # type: ignore[override]
        """Number of columns that are stored together."""
        return self._matrix.chunk_width

    def __getitem__(self, where: tuple[slice, slice]) -> NDArray[Any]:
        """Return the values in a slice of rows and a slice of columns; Dask calls this method."""
        rows, columns = where
        wanted = np.arange(self.shape[1])[columns]
        return self.columns(wanted)[rows].astype(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the function and the arguments with which another process opens the matrix."""
        path, *others = self._arguments
        # The modification time and the size of the file are arguments of `_reopen`, whose results
        # are cached. A file that has changed is therefore opened again.
        about = Path(path).stat()
        return _reopen, (str(Path(path).absolute()), *others, about.st_mtime_ns, about.st_size)


# A process seldom uses more than a few matrices. The size of the cache is not tuned: it does not
# affect the result.
@lru_cache(maxsize=4)
def _reopen(
    path: str, open_matrix: OpenMatrix, inside: str, transposed: bool, *_: int
) -> StoredMatrix:
    """Return a matrix that was pickled.

    The last four matrices are cached, so a file is not opened repeatedly, unless it has changed.
    """
    return StoredMatrix(path, open_matrix, inside=inside, transposed=transposed)


def find_sparse_parts(node: Any) -> CompressedParts | None:
    """Return the arrays that make up a sparse matrix; None if the matrix is dense."""
    if hasattr(node, "shape"):
        check_numeric_matrix(node)
        return None
    if (kind := encoding_type(node)) not in SPARSE_ENCODINGS:
        raise FlawError(f"holds X as a group of kind {kind!r}, but a matrix was wanted")
    try:
        parts = CompressedParts.from_group(node)
    except StructureError as error:
        raise damaged_sparse_matrix_error(error) from None
    # The letters are numpy's codes for floats, signed integers, unsigned integers and booleans.
    if parts.data.dtype.kind not in "fiub":
        raise FlawError(f"must hold a matrix of numbers, but holds an array of {parts.data.dtype}")
    return parts


def read_sparse_values(parts: CompressedParts) -> NDArray[Any]:
    """Return the values of a sparse matrix in a file as a dense array.

    Raise FlawError if the array does not fit into memory, or if the sparse matrix is damaged.
    """
    dtype = np.dtype(np.float32 if parts.data.dtype == np.float32 else np.float64)
    memory.refuse_larger_than_memory(parts.shape, dtype)
    try:
        matrix = parts.read_part(parts.read_pointers())
    except StructureError as error:
        raise damaged_sparse_matrix_error(error) from None
    # The type is converted before the matrix is made dense. Several entries for the same cell are
    # added up, and their sum might overflow a short integer type.
    return matrix.astype(dtype).toarray()


def damaged_sparse_matrix_error(error: StructureError) -> FlawError:
    """Return the error for a sparse matrix whose arrays do not agree with each other."""
    return FlawError(
        f"holds a sparse matrix X that is damaged: {error}. Check that the file is complete, and "
        "copy or write it again if it is not"
    )


def out_of_core_note(matrix: StoredMatrix, in_memory: bool | None) -> str | None:
    """Return a note if a matrix is to stay in its file; None if it is to be read into memory."""
    if in_memory:
        memory.refuse_larger_than_memory(matrix.shape, matrix.dtype)
    has_room = in_memory is None and matrix.nbytes <= _MAX_MEMORY_SHARE * memory.free_memory()
    if in_memory or has_room:
        return None
    matrix.refuse_large_csr()
    if in_memory is False:
        return f"X is left in its file ({format_size(matrix.nbytes)}) and is read in blocks."
    needed = format_size(matrix.nbytes)
    return f"X does not fit into memory ({needed}): it is read in blocks, pass by pass."
