"""The data matrix, wherever it is stored."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

from mrshc.core.data.dask import DaskMatrix
from mrshc.core.data.device import DeviceMatrix, is_device_array
from mrshc.core.data.files import FileMatrix, SparseMatrix, open_sparse_group
from mrshc.core.data.matrix import DataMatrix


def as_matrix(X: Any) -> DataMatrix | None:
    """Return X as a data matrix; None if it is an array, a list or a table, yet to be checked."""
    if isinstance(X, DataMatrix):
        return X
    if hasattr(X, "isbacked"):  # AnnData; a sparse matrix in a file is a wrapper of its group
        return as_matrix(getattr(X.X, "group", X.X))
    # A copy of a memory map is of this type, too, but in memory.
    is_mapped = isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None
    if is_mapped or _is_a(X, "h5py.Dataset", "zarr.Array"):
        return FileMatrix(X)
    if sparse.issparse(X):
        return SparseMatrix(X)
    if _is_a(X, "h5py.Group", "zarr.Group"):
        return open_sparse_group(X)
    if _is_a(X, "dask.array.Array"):
        return DaskMatrix(X)
    if not isinstance(X, np.ndarray | np.generic | list | tuple) and is_device_array(X):
        return DeviceMatrix(X)
    return None


def _is_a(X: Any, *names: str) -> bool:
    """Return whether X is of one of the named types; their packages are not imported for it."""
    for name in names:
        module, _, attribute = name.rpartition(".")
        if isinstance(X, getattr(sys.modules.get(module), attribute, ())):
            return True
    return False
