"""Matrices that stay in their file: opened by its name, here or on a worker, and read in blocks."""

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
from mrshc.core.data.hdf5_zarr_safe_access import encoding_of
from mrshc.core.data.passes import BlockFunction
from mrshc.core.data.shape_and_dtype import are_integers, block_dtype
from mrshc.core.data.sparse_matrix import SPARSE, Compressed, open_sparse_group
from mrshc.core.data.sparse_structure import StructureError
from mrshc.errors import Sentence, Setting
from mrshc.io import memory
from mrshc.io.memory import size
from mrshc.io.streams import FlawError, refuse_other_than_numbers

R = TypeVar("R")
OpenMatrix = Callable[[str, str], Any]

# A matrix that needs more of the free memory leaves too little for the work.
_MOST = 0.5


class Stored(DataMatrix):
    """A matrix of a .npy, .h5ad or .zarr file, samples in rows, that can be pickled.

    A process that unpickles it opens the file by its name again.

    Parameters
    ----------
    path : str
        Name of the file.
    open_matrix : callable
        Takes the name and `inside`; returns a memory map, a dataset, or the group of a sparse
        matrix, as the library of the format has it. It is pickled by its name.
    inside : str, default=""
        Member of the file that holds the matrix.
    transposed : bool, default=False
        Whether the file has features in rows.
    """

    ndim = 2

    def __init__(
        self, path: str, open_matrix: OpenMatrix, *, inside: str = "", transposed: bool = False
    ) -> None:
        self._given = path, open_matrix, inside, transposed
        self._transposed = transposed
        Path(path).stat()  # raises an error that names a file which is not there
        self.node = open_matrix(path, inside)
        self._parts = matrix_in(self.node)
        n, p = self.node.shape if self._parts is None else self._parts.shape
        self.shape = (int(p), int(n)) if transposed else (int(n), int(p))
        values = self.node if self._parts is None else self._parts.data
        self.dtype = block_dtype(values.dtype, path)
        self.holds_integers = are_integers(values.dtype)

    @property
    def T(self) -> Stored:  # noqa: N802 - as numpy calls it
        """The matrix with rows and columns exchanged."""
        if self._parts is not None:
            raise FlawError(
                Sentence(
                    "is sparse with samples in rows: the other way round needs {memory}",
                    memory=Setting("in_memory", True),
                )
            )
        path, open_matrix, inside, transposed = self._given
        return Stored(path, open_matrix, inside=inside, transposed=not transposed)

    def refuse_rows(self) -> None:
        """Refuse a sparse matrix by rows that is too large: to find columns, all of it is read."""
        if self._parts is None or self._parts.by == "columns":
            return
        # It is there twice while it is brought into columns.
        needed = 2 * (self._parts.data.nbytes + self._parts.indices.nbytes)
        if needed > memory.free_memory():
            raise FlawError(
                f"holds a sparse matrix by rows (csr_matrix), which needs {size(needed)} of memory "
                "to be read by columns. Write it by columns (csc_matrix)"
            )

    @cached_property
    def _local(self) -> BlockReader:
        if self._parts is None:
            return open_array(self.node, transposed=self._transposed)
        return open_sparse_group(self.node)

    def map_blocks(self, function: BlockFunction[R]) -> Iterator[R]:
        """Yield function(block, start, numpy) for blocks of columns."""
        return self._local.map_blocks(function)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns."""
        return self._local.columns(indices)

    @property
    def chunk_widths(self) -> tuple[int, ...]:
        """Numbers of columns that other processes can read together."""
        blocks = aligned_blocks(*self.shape, self._local._chunk)
        return tuple(block.stop - block.start for block in blocks)

    def __getitem__(self, where: tuple[slice, slice]) -> NDArray[Any]:
        """Return a block of columns, as Dask asks for it."""
        rows, columns = where
        start, stop, _ = columns.indices(self.shape[1])
        return self._local._block(slice(start, stop))[rows]

    def __reduce__(self) -> tuple[Any, ...]:
        path, *how = self._given
        about = Path(path).stat()
        return _again, (str(Path(path).absolute()), *how, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4)
def _again(path: str, open_matrix: OpenMatrix, inside: str, transposed: bool, *_: int) -> Stored:
    """Return a matrix that was pickled; a process opens a file once, unless it has changed."""
    return Stored(path, open_matrix, inside=inside, transposed=transposed)


def matrix_in(node: Any) -> Compressed | None:
    """Return the parts of a sparse matrix, None for a dense one; refuse what is neither."""
    if hasattr(node, "shape"):
        refuse_other_than_numbers(node)
        return None
    if (kind := encoding_of(node)) not in SPARSE:
        raise FlawError(f"holds X as a group of kind {kind!r}, but a matrix was wanted")
    try:
        parts = Compressed.of(node)
    except StructureError as error:
        raise sparse_damage(error) from None
    if parts.data.dtype.kind not in "fiub":
        raise FlawError(f"must hold a matrix of numbers, but holds an array of {parts.data.dtype}")
    return parts


def sparse_damage(error: StructureError) -> FlawError:
    """Return what is wrong with a file whose sparse matrix does not agree with itself."""
    return FlawError(
        f"holds a sparse matrix X that is damaged: {error}. Check that the file is whole, and copy "
        "or write it again if it is not"
    )


def stays(matrix: Stored, in_memory: bool | None) -> str | None:
    """Say that a matrix stays in its file; None if it is to be read into memory.

    It is read if it is asked for, or if there is room and nothing is asked for.
    """
    if in_memory:
        memory.refuse_larger_than_memory(matrix.shape, matrix.dtype)
    if in_memory or (in_memory is None and matrix.nbytes <= _MOST * memory.free_memory()):
        return None
    matrix.refuse_rows()
    if in_memory is False:
        return f"X stays in its file ({size(matrix.nbytes)}) and is read in blocks."
    return (
        f"X does not fit into memory ({size(matrix.nbytes)}): it is read in blocks, pass by pass."
    )
