"""Conversion of the X that a user passes into a `DataMatrix`.

Optional packages that define array types are never imported here: an X of such a type exists only
if its package has been imported already.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mrshc.core.data.absent_chunks import absent_chunk_warnings
from mrshc.core.data.array_file import FileMatrix, MappedMatrix, describe_location
from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.dask_array import DaskMatrix
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.device_array import DeviceMatrix, is_device_array
from mrshc.core.data.hdf5_zarr_safe_access import get_member
from mrshc.core.data.read_errors import CHECK_FILE_ADVICE, translate_read_errors
from mrshc.core.data.sparse_matrix import SparseMatrix, open_sparse_group


def _make_type_test(*type_names: str) -> Callable[[Any], bool]:
    """Return a function that tells whether X is of one of the types, without importing them."""
    names = [name.rpartition(".") for name in type_names]

    def is_instance(X: Any) -> bool:
        # A type whose module is not loaded becomes the empty tuple, which has no instances.
        types = [getattr(sys.modules.get(module), name, ()) for module, _, name in names]
        return any(isinstance(X, kind) for kind in types)

    return is_instance


_is_file_array = _make_type_test("h5py.Dataset", "zarr.Array")
_is_file_group = _make_type_test("h5py.Group", "zarr.Group")


def _is_anndata(X: Any) -> bool:
    # The attribute is specific to AnnData and, unlike its class, needs no import.
    return hasattr(X, "isbacked")


def _anndata_matrix_node(X: Any) -> Any:
    """Return the matrix of an AnnData object: an array, a sparse matrix, or a node of its file."""
    # AnnData wraps a sparse X in a file by an object with the HDF5 group as its attribute.
    return getattr(X.X, "group", X.X)


# Pairs of a type test and the conversion to a matrix that reads X from its storage. The first test
# that holds decides, so that general tests (`is_device_array`) come after specific ones. The result
# None stands for an array or a sequence in memory.
_CONVERSIONS: tuple[tuple[Callable[[Any], bool], Callable[[Any], DataMatrix | None]], ...] = (
    (lambda X: isinstance(X, DataMatrix), lambda X: X),
    (lambda X: isinstance(X, np.memmap), MappedMatrix),
    (lambda X: isinstance(X, np.ndarray | np.generic | list | tuple), lambda _: None),
    (_make_type_test("scipy.sparse.sparray", "scipy.sparse.spmatrix"), SparseMatrix),
    (_is_file_array, FileMatrix),
    (_is_file_group, open_sparse_group),
    (_make_type_test("dask.array.Array"), DaskMatrix),
    (_is_anndata, lambda X: as_stored_matrix(_anndata_matrix_node(X))),
    (is_device_array, DeviceMatrix),
)


def as_stored_matrix(X: Any, *, report_absent_chunks: bool = False) -> DataMatrix | None:
    """Return X as a matrix that is read from its storage; None if X is an array or a table.

    Parameters
    ----------
    X : object
        Recognised are memory maps of numpy, HDF5 and Zarr arrays, sparse groups of AnnData files,
        AnnData objects, sparse matrices of scipy, Dask arrays, and arrays of the array API (torch,
        CuPy, JAX and others).
    report_absent_chunks : bool, default=False
        Whether to warn about chunks of HDF5 and Zarr arrays that their file does not contain.

    Returns
    -------
    DataMatrix or None
    """
    if report_absent_chunks:
        warn_of_absent_chunks(X)
    return next((convert(X) for applies, convert in _CONVERSIONS if applies(X)), None)


def warn_of_absent_chunks(X: Any) -> None:
    """Warn about each HDF5 or Zarr array of X with chunks that its file does not contain.

    Absent chunks are read as if they held the fill value. A matrix that `as_stored_matrix` has
    converted before is not examined.
    """
    node = _anndata_matrix_node(X) if _is_anndata(X) else X
    arrays = [node] if _is_file_array(node) else []
    if _is_file_group(node):
        arrays = [get_member(node, part) for part in ("data", "indices", "indptr")]
    for array in arrays:
        name = describe_location(array)
        with translate_read_errors(name, start=0, stop=array.shape[-1], advice=CHECK_FILE_ADVICE):
            messages = absent_chunk_warnings(array, name)
        for message in messages:
            warnings.warn(message, UserWarning, stacklevel=2)


def as_data_matrix(X: Any) -> DataMatrix:
    """Return X, an array or any type that `as_stored_matrix` recognises, as a matrix."""
    stored = as_stored_matrix(X)
    return ArrayMatrix(np.asarray(X)) if stored is None else stored


def unwrap_anndata(X: Any) -> Any:
    """Return the matrix of an AnnData object in memory; any other X unchanged."""
    return X.X if _is_anndata(X) else X
