"""Matrices that are left in their file, opened by its name in any process, and read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.array_file import open_array
from mrshc.core.data.block_reading import BlockReader, aligned_blocks
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.hdf5_zarr_safe_access import encoding_type
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.shape_and_dtype import block_dtype, is_integer_dtype
from mrshc.core.data.sparse_matrix import SPARSE_ENCODINGS, CompressedParts, open_sparse_group
from mrshc.core.data.sparse_structure import StructureError
from mrshc.errors import Sentence, Setting
from mrshc.io import memory
from mrshc.io.memory import format_size
from mrshc.io.streams import FlawError, check_numeric_matrix

R = TypeVar("R")
OpenMatrix = Callable[[str, str], Any]

# Share of the free memory that a matrix may take: the other half is left for the computation,
# which needs several arrays of a part of its size.
_MAX_MEMORY_SHARE = 0.5


class StoredMatrix(DataMatrix):
    """A matrix of a .npy, .h5ad or .zarr file, samples in rows, that can be pickled.

    A process that unpickles it opens the file by its name again.

    Parameters
    ----------
    path : str
        Name of the file.
    open_matrix : callable, (str, str) -> array
        Takes `path` and `inside`; returns a memory map, a dataset, or the group of a sparse
        matrix, as the library of the format represents it. It is pickled by its name.
    inside : str, default=""
        Member of the file that holds the matrix.
    transposed : bool, default=False
        Whether the file has features in rows.

    Attributes
    ----------
    node : memory map, dataset or group
        The result of `open_matrix`.
    shape : tuple of int
        Numbers of samples and features.
    """

    ndim = 2

    def __init__(
        self, path: str, open_matrix: OpenMatrix, *, inside: str = "", transposed: bool = False
    ) -> None:
        self._arguments = path, open_matrix, inside, transposed
        self._transposed = transposed
        # Raises an error that names an absent file; some libraries would not name it.
        Path(path).stat()
        self.node = open_matrix(path, inside)
        self._parts = find_sparse_parts(self.node)
        n, p = self.node.shape if self._parts is None else self._parts.shape
        self.shape = (int(p), int(n)) if transposed else (int(n), int(p))
        values = self.node if self._parts is None else self._parts.data
        self.dtype = block_dtype(values.dtype, path)
        self.holds_integers = is_integer_dtype(values.dtype)

    @property
    def T(self) -> StoredMatrix:  # noqa: N802 - as numpy calls it
        """The matrix with rows and columns exchanged."""
        # Blocks of columns of the transpose would be rows of the file, in another sparse format.
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
        """Refuse a large sparse matrix stored by rows: all of it must be read to find a column."""
        if self._parts is None or self._parts.compressed_axis == "columns":
            return
        # Twice: the matrix by rows and the one by columns are in memory during the conversion.
        needed = 2 * (self._parts.data.nbytes + self._parts.indices.nbytes)
        if needed > memory.free_memory():
            raise FlawError(
                f"holds a sparse matrix by rows (csr_matrix), which needs {format_size(needed)} of "
                "memory to be read by columns. Write it by columns (csc_matrix)"
            )

    @cached_property
    def _reader(self) -> BlockReader:
        """The reader of blocks of columns, which is created when values are first needed."""
        if self._parts is None:
            return open_array(self.node, transposed=self._transposed)
        return open_sparse_group(self.node)

    def map_blocks(self, function: BlockFunction[R]) -> Iterator[R]:
        """Yield function(block, start, numpy) for blocks of columns."""
        return self._reader.map_blocks(function)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns, of shape (n_samples, n_indices)."""
        return self._reader.columns(indices)

    @property
    def chunk_widths(self) -> tuple[int, ...]:
        """Numbers of columns that other processes can read together."""
        blocks = aligned_blocks(*self.shape, self._reader.chunk_width)
        return tuple(block.stop - block.start for block in blocks)

    def __getitem__(self, where: tuple[slice, slice]) -> NDArray[Any]:
        """Return a block of columns, in the way in which Dask requests it."""
        rows, columns = where
        start, stop, _ = columns.indices(self.shape[1])
        return self._reader.read_block(slice(start, stop))[rows]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments by which another process opens the matrix."""
        path, *others = self._arguments
        # Time and size of the file tell `_reopen` whether it has changed since it was opened.
        about = Path(path).stat()
        return _reopen, (str(Path(path).absolute()), *others, about.st_mtime_ns, about.st_size)


# Four: a process works on one matrix, and seldom on a few. Not tuned: results do not depend on it.
@lru_cache(maxsize=4)
def _reopen(
    path: str, open_matrix: OpenMatrix, inside: str, transposed: bool, *_: int
) -> StoredMatrix:
    """Return a matrix that was pickled; a process opens a file once, unless it has changed."""
    return StoredMatrix(path, open_matrix, inside=inside, transposed=transposed)


def find_sparse_parts(node: Any) -> CompressedParts | None:
    """Return the parts of a sparse matrix, None for a dense matrix; refuse other content.

    Parameters
    ----------
    node : dataset, memory map or group
        A matrix in a file, as its library represents it.
    """
    if hasattr(node, "shape"):
        check_numeric_matrix(node)
        return None
    if (kind := encoding_type(node)) not in SPARSE_ENCODINGS:
        raise FlawError(f"holds X as a group of kind {kind!r}, but a matrix was wanted")
    try:
        parts = CompressedParts.from_group(node)
    except StructureError as error:
        raise damaged_sparse_matrix_error(error) from None
    # Kinds of numpy: floats, integers, unsigned integers, booleans.
    if parts.data.dtype.kind not in "fiub":
        raise FlawError(f"must hold a matrix of numbers, but holds an array of {parts.data.dtype}")
    return parts


def damaged_sparse_matrix_error(error: StructureError) -> FlawError:
    """Return the error about a file whose sparse matrix has parts that do not agree."""
    return FlawError(
        f"holds a sparse matrix X that is damaged: {error}. Check that the file is complete, and "
        "copy or write it again if it is not"
    )


def out_of_core_note(matrix: StoredMatrix, in_memory: bool | None) -> str | None:
    """Return a note that a matrix is left in its file; None if it is to be read into memory.

    Parameters
    ----------
    matrix : StoredMatrix
        The matrix. It is refused if it can neither be read into memory nor in blocks.
    in_memory : bool or None
        Whether the matrix is to be read into memory; None: if it takes no more than half of the
        free memory.
    """
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
