"""From what users pass as X to a DataMatrix.

Packages that define kinds of arrays are never imported here: who has such an X has imported them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mrshc.core.data.array_file import FileMatrix, MappedMatrix
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.dask_array import DaskMatrix
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.device_array import DeviceMatrix, is_device_array
from mrshc.core.data.sparse_matrix import SparseMatrix, open_sparse_group


def _is(*types: str) -> Callable[[Any], bool]:
    """Return a test whether X is of one of some types, whose modules are not imported for it."""
    names = [name.rpartition(".") for name in types]

    def test(X: Any) -> bool:
        kinds = [getattr(sys.modules.get(module), name, ()) for module, _, name in names]
        return any(isinstance(X, kind) for kind in kinds)

    return test


def _is_anndata(X: Any) -> bool:
    return hasattr(X, "isbacked")


# What can be left where it is stored: a test, and the matrix that reads it. The first that applies
# is taken.
_STORAGE: tuple[tuple[Callable[[Any], bool], Callable[[Any], DataMatrix | None]], ...] = (
    (lambda X: isinstance(X, DataMatrix), lambda X: X),
    (lambda X: isinstance(X, np.memmap), MappedMatrix),
    (lambda X: isinstance(X, np.ndarray | np.generic | list | tuple), lambda _: None),
    (_is("scipy.sparse.sparray", "scipy.sparse.spmatrix"), SparseMatrix),
    (_is("h5py.Dataset", "zarr.Array"), FileMatrix),
    (_is("h5py.Group", "zarr.Group"), open_sparse_group),
    (_is("dask.array.Array"), DaskMatrix),
    # AnnData covers a sparse X in a file by an object whose attribute is the group.
    (_is_anndata, lambda X: stored_matrix(getattr(X.X, "group", X.X))),
    (is_device_array, DeviceMatrix),
)


def stored_matrix(X: Any) -> DataMatrix | None:
    """Return X as a matrix that is read where it is stored; None if X is an array or a table.

    Known are memory maps of numpy, HDF5 and Zarr arrays, sparse groups of AnnData's files, AnnData
    objects, sparse matrices of scipy, dask arrays, and arrays on a device (torch, CuPy, JAX, others
    of the array API).
    """
    return next((wrap(X) for applies, wrap in _STORAGE if applies(X)), None)


def data_matrix(X: Any) -> DataMatrix:
    """Return an array, or anything that `stored_matrix` knows, as a matrix."""
    stored = stored_matrix(X)
    return ArrayMatrix(np.asarray(X)) if stored is None else stored


def table_in_memory(X: Any) -> Any:
    """Return the array of an AnnData object in memory; anything else as it is."""
    return X.X if _is_anndata(X) else X
