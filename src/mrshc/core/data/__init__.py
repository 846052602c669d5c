"""Data matrices in memory, in files, as sparse matrices, on Dask workers, on devices.

All of them are processed in blocks of columns, see `mrshc.core.data.interface`. The packages that
define the kinds are never imported here: who has such an X has imported them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from mrshc.core.data.array_file import FileSource, MappedSource
from mrshc.core.data.dask_array import ChunkedSource
from mrshc.core.data.device_array import DeviceSource, is_device_array
from mrshc.core.data.interface import Source
from mrshc.core.data.sparse_matrix import SparseSource, group_source

__all__ = ["FileSource", "source_of"]


def source_of(X: Any) -> Source | None:
    """Return how to sweep X where it lives; None for what numpy and scikit-learn take as it is.

    Known are memory maps of numpy, HDF5 and Zarr arrays, sparse groups of AnnData's files, AnnData
    objects, sparse matrices of scipy, dask arrays, and arrays on a device (torch, CuPy, JAX, others
    of the array API). A source is returned as it came.
    """
    if isinstance(X, np.memmap):
        return MappedSource(X)
    if isinstance(X, np.ndarray | np.generic | list | tuple):
        return None
    if hasattr(X, "sweep"):
        return X
    if _is(X, "scipy.sparse", "sparray", "spmatrix"):
        return SparseSource(X)
    if _is(X, "h5py", "Dataset") or _is(X, "zarr", "Array"):
        return FileSource(X)
    if _is(X, "h5py", "Group") or _is(X, "zarr", "Group"):
        return group_source(X)
    if _is(X, "dask.array", "Array"):
        return ChunkedSource(X)
    if hasattr(X, "isbacked"):  # AnnData, whose sparse X in a file is a thin cover of a group
        return source_of(getattr(X.X, "group", X.X))
    if is_device_array(X):
        return DeviceSource(X)
    return None


def _is(X: Any, module: str, *names: str) -> bool:
    """Tell whether X is of a type of a module, which is not imported for that."""
    kinds = [getattr(sys.modules.get(module), name, ()) for name in names]
    return any(isinstance(X, kind) for kind in kinds)
