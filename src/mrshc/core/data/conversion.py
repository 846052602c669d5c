"""From what users pass as X to a DataMatrix.

Packages that define kinds of arrays are never imported here: who has such an X has imported them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mrshc.core.data.absent_chunks import absent_chunks
from mrshc.core.data.array_file import FileMatrix, MappedMatrix, file_name
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.dask_array import DaskMatrix
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.device_array import DeviceMatrix, is_device_array
from mrshc.core.data.hdf5_zarr_safe_access import member
from mrshc.core.data.read_errors import WHOLE_FILE, reading
from mrshc.core.data.sparse_matrix import SparseMatrix, open_sparse_group


def _is(*types: str) -> Callable[[Any], bool]:
    """Return a test whether X is of one of some types, whose modules are not imported for it."""
    names = [name.rpartition(".") for name in types]

    def test(X: Any) -> bool:
        kinds = [getattr(sys.modules.get(module), name, ()) for module, _, name in names]
        return any(isinstance(X, kind) for kind in kinds)

    return test


_is_file_array = _is("h5py.Dataset", "zarr.Array")
_is_file_group = _is("h5py.Group", "zarr.Group")


def _is_anndata(X: Any) -> bool:
    return hasattr(X, "isbacked")


def _node_of_anndata(X: Any) -> Any:
    """Return where an AnnData object has its matrix: an array or a sparse matrix, or their node."""
    # AnnData covers a sparse X in a file by an object whose attribute is the group.
    return getattr(X.X, "group", X.X)


# What can be left where it is stored: a test, and the matrix that reads it. The first that applies
# is taken.
_STORAGE: tuple[tuple[Callable[[Any], bool], Callable[[Any], DataMatrix | None]], ...] = (
    (lambda X: isinstance(X, DataMatrix), lambda X: X),
    (lambda X: isinstance(X, np.memmap), MappedMatrix),
    (lambda X: isinstance(X, np.ndarray | np.generic | list | tuple), lambda _: None),
    (_is("scipy.sparse.sparray", "scipy.sparse.spmatrix"), SparseMatrix),
    (_is_file_array, FileMatrix),
    (_is_file_group, open_sparse_group),
    (_is("dask.array.Array"), DaskMatrix),
    (_is_anndata, lambda X: stored_matrix(_node_of_anndata(X))),
    (is_device_array, DeviceMatrix),
)


def stored_matrix(X: Any, *, report_absent_chunks: bool = False) -> DataMatrix | None:
    """Return X as a matrix that is read where it is stored; None if X is an array or a table.

    Known are memory maps of numpy, HDF5 and Zarr arrays, sparse groups of AnnData's files, AnnData
    objects, sparse matrices of scipy, dask arrays, and arrays on a device (torch, CuPy, JAX, others
    of the array API).
    """
    if report_absent_chunks:
        warn_of_absent_chunks(X)
    return next((wrap(X) for applies, wrap in _STORAGE if applies(X)), None)


def warn_of_absent_chunks(X: Any) -> None:
    """Warn of each array of HDF5 or Zarr in X of which chunks are absent.

    Absent chunks are read as if they held values. A matrix that was opened before, by
    `stored_matrix`, is not examined.
    """
    node = _node_of_anndata(X) if _is_anndata(X) else X
    arrays = [node] if _is_file_array(node) else []
    if _is_file_group(node):
        arrays = [member(node, part) for part in ("data", "indices", "indptr")]
    for array in arrays:
        name = file_name(array)
        with reading(name, 0, array.shape[-1], WHOLE_FILE):
            messages = absent_chunks(array, name)
        for message in messages:
            warnings.warn(message, UserWarning, stacklevel=2)


def data_matrix(X: Any) -> DataMatrix:
    """Return an array, or anything that `stored_matrix` knows, as a matrix."""
    stored = stored_matrix(X)
    return ArrayMatrix(np.asarray(X)) if stored is None else stored


def table_in_memory(X: Any) -> Any:
    """Return the array of an AnnData object in memory; anything else as it is."""
    return X.X if _is_anndata(X) else X
