"""Matrices that stay in their file: opened by its name, here or on a worker, and read in blocks."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mrshc.core.arrays import Index
from mrshc.core.data import FileSource, source_of
from mrshc.core.data.block_reading import Local, aligned_blocks
from mrshc.core.data.hdf5_zarr_groups import encoding_of, member, refuse_outside
from mrshc.core.data.read_errors import block_dtype
from mrshc.core.data.sparse_matrix import SPARSE, Compressed
from mrshc.core.data.sparse_structure import StructureError
from mrshc.errors import Sentence, Setting
from mrshc.io.streams import STANDARD_INPUT, FlawError, is_regular, refuse_other_than_numbers

R = TypeVar("R")
Kind = Literal["npy", "h5ad", "zarr"]

# By which a folder or an archive is known to be a Zarr store, in both versions of the format.
_ZARR = ("zarr.json", ".zarray", ".zgroup")
# A matrix that needs more of the free memory leaves too little for the work.
_MOST = 0.5
_UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("bytes", 1))


class Stored:
    """A matrix of a .npy, .h5ad or .zarr file, samples in rows: a `Source` that can be pickled.

    What comes out elsewhere opens the file by its name again.
    """

    ndim = 2
    is_here, on_device = True, False

    def __init__(self, path: str, *, inside: str = "", transposed: bool = False) -> None:
        self._given = path, inside, transposed
        self._transposed = transposed
        self.node = _opened(path, inside)  # as the library of the format has it
        self._parts = matrix_in(self.node)
        n, p = self.node.shape if self._parts is None else self._parts.shape
        self.shape = (int(p), int(n)) if transposed else (int(n), int(p))
        values = self.node if self._parts is None else self._parts.data
        self.dtype = block_dtype(values.dtype, path)

    @property
    def nbytes(self) -> int:
        """What the whole matrix would need in memory."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

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
        path, inside, transposed = self._given
        return Stored(path, inside=inside, transposed=not transposed)

    def refuse_rows(self) -> None:
        """Refuse a sparse matrix by rows that is too large: to find columns, all of it is read."""
        if self._parts is None or self._parts.by == "columns":
            return
        # It is there twice while it is brought into columns.
        needed = 2 * (self._parts.data.nbytes + self._parts.indices.nbytes)
        if needed > free_memory():
            raise FlawError(
                f"holds a sparse matrix by rows (csr_matrix), which needs {size(needed)} of memory "
                "to be read by columns. Write it by columns (csc_matrix)"
            )

    @cached_property
    def _local(self) -> Local:
        if isinstance(self.node, np.memmap):
            found: Any = source_of(self.node.T if self._transposed else self.node)
        elif self._parts is not None:
            found = source_of(self.node)
        else:
            found = FileSource(self.node, transposed=self._transposed)
        return found

    def sweep(self, function: Callable[[Any, int, Any], R]) -> Iterator[R]:
        """Yield function(block, start, numpy) for blocks of columns."""
        return self._local.sweep(function)

    def columns(self, indices: Index) -> NDArray[Any]:
        """Return some columns."""
        return self._local.columns(indices)

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of columns that are best read together, one after the other."""
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
def _again(path: str, inside: str, transposed: bool, *_: int) -> Stored:
    """Return a matrix that was pickled; a process opens a file once, unless it has changed."""
    return Stored(path, inside=inside, transposed=transposed)


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """Return the kind of a file that can be read in blocks; None for others, and for none."""
    if os.fspath(path) == STANDARD_INPUT:
        return None
    try:
        if Path(path).is_dir():
            is_zarr = Path(path).suffix == ".zarr" or any((Path(path) / n).exists() for n in _ZARR)
            return "zarr" if is_zarr else None
        if not is_regular(path):  # what is read from a pipe to find its kind would be lost
            return None
        with Path(path).open("rb") as file:
            head = file.read(8)
    except (OSError, ValueError):  # who reads it will say what is wrong
        return None
    if head.startswith(b"PK\x03\x04"):
        return "zarr" if _is_zarr(path) else None
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    return "h5ad" if head.startswith(b"\x89HDF") else None


def _is_zarr(archive: str | os.PathLike[str]) -> bool:
    try:
        with zipfile.ZipFile(archive) as content:
            return not set(_ZARR).isdisjoint(content.namelist())
    except Exception:  # of many kinds: who reads it will say what is wrong
        return ".zarr" in Path(archive).suffixes


def _opened(path: str, inside: str) -> Any:
    """Return a map, a dataset, or the group of a sparse matrix."""
    kind = kind_of(path)
    if kind == "npy":
        return np.lib.format.open_memmap(path, mode="r")
    if kind == "h5ad":
        import h5py

        return member(h5py.File(path, "r"), inside)
    root = open_zarr(path)
    refuse_outside(root)
    return member(root, inside) if inside else root


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


def open_zarr(path: str | os.PathLike[str]) -> Any:
    """Return the array or the group in a Zarr store, a folder or an archive."""
    try:
        import zarr
    except ImportError:
        raise FlawError(
            "is a Zarr store, which needs the extra 'zarr': pip install 'mrshc[zarr]'"
        ) from None
    is_folder = Path(path).is_dir()
    store = os.fspath(path) if is_folder else zarr.storage.ZipStore(path, mode="r")
    return zarr.open(store, mode="r")


def stays(matrix: Stored, in_memory: bool | None) -> str | None:
    """Say that a matrix stays in its file; None if it is to be read into memory.

    It is read if it is asked for, or if there is room and nothing is asked for.
    """
    if in_memory:
        refuse_larger_than_memory(matrix.shape, matrix.dtype)
    if in_memory or (in_memory is None and matrix.nbytes <= _MOST * free_memory()):
        return None
    matrix.refuse_rows()
    if in_memory is False:
        return f"X stays in its file ({size(matrix.nbytes)}) and is read in blocks."
    return (
        f"X does not fit into memory ({size(matrix.nbytes)}): it is read in blocks, pass by pass."
    )


def refuse_larger_than_memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse to read a matrix that does not fit: the system would end the process."""
    needed, free = math.prod(shape) * dtype.itemsize, free_memory()
    if needed > free:
        raise FlawError(
            f"needs {size(needed)} of memory, of which {size(free)} are free. Leave it in an .h5ad "
            "or .zarr file that is not compressed as a whole, which is read in blocks"
        )


def free_memory() -> float:
    """Return how many bytes of memory are free; infinitely many where nobody knows."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass  # not a Linux
    pages = [name for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES") if name in _SYSTEM]
    return os.sysconf(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else np.inf


_SYSTEM: dict[str, int] = getattr(os, "sysconf_names", {})


def size(n_bytes: float) -> str:
    """Return a number of bytes as people read it."""
    unit, power = next((u, k) for u, k in _UNITS if n_bytes >= k or k == 1)
    amount = n_bytes / power
    return f"{amount:.0f} {unit}" if amount >= 10 or power == 1 else f"{amount:.1f} {unit}"
