"""Conversion into a `DataMatrix` of the argument X that a user passes to an estimator.

This module never imports the optional packages that define array types, such as h5py: X can be of
such a type only if its package has already been imported.
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
    """Return a function that tests whether its argument is an instance of one of the named types.

    The function does not import the modules that define the types.
    """
    names = [name.rpartition(".") for name in type_names]

    def is_instance(X: Any) -> bool:
        # If the module of a type has not been imported, the type is replaced by the empty tuple,
        # and `isinstance` returns False.
        types = [getattr(sys.modules.get(module), name, ()) for module, _, name in names]
        return any(isinstance(X, kind) for kind in types)

    return is_instance


_is_file_array = _make_type_test("h5py.Dataset", "zarr.Array")
_is_file_group = _make_type_test("h5py.Group", "zarr.Group")


def is_anndata(X: Any) -> bool:
    """Return whether X is an AnnData object."""
    # Of the supported types, only AnnData has this attribute. The test does not require anndata to
    # be imported.
    return hasattr(X, "isbacked")


def _anndata_matrix_node(X: Any) -> Any:
    """Return the matrix `X.X` of an AnnData object X.

    The matrix is an array or a sparse matrix in memory, or an HDF5 or Zarr array or group.
    """
    # If the matrix is a sparse matrix in a file, AnnData returns a wrapper whose attribute `group`
    # is the HDF5 or Zarr group.
    return getattr(X.X, "group", X.X)


# Each entry consists of a test of the type of X, and a function that converts X to a `DataMatrix`.
# The first entry whose test returns True is used, so general tests (`is_device_array`) come after
# specific tests. The function returns None if X is a numpy array or a sequence in memory.
_CONVERSIONS: tuple[tuple[Callable[[Any], bool], Callable[[Any], DataMatrix | None]], ...] = (
    (lambda X: isinstance(X, DataMatrix), lambda X: X),
    (lambda X: isinstance(X, np.memmap), MappedMatrix),
    (lambda X: isinstance(X, np.ndarray | np.generic | list | tuple), lambda _: None),
    (_make_type_test("scipy.sparse.sparray", "scipy.sparse.spmatrix"), SparseMatrix),
    (_is_file_array, FileMatrix),
    (_is_file_group, open_sparse_group),
    (_make_type_test("dask.array.Array"), DaskMatrix),
    (is_anndata, lambda X: as_stored_matrix(_anndata_matrix_node(X))),
    (is_device_array, DeviceMatrix),
)


def as_stored_matrix(X: Any, *, report_absent_chunks: bool = False) -> DataMatrix | None:
    """Return X as a `DataMatrix`; None if X is a numpy array, a list or a table in memory.

    Raise ValueError if X has a supported type but is not a matrix of real numbers, and
    UnreadableError if its file is damaged.

    Parameters
    ----------
    X : object
        A numpy memory map, an HDF5 or Zarr array, a group of an AnnData file that contains a sparse
        matrix, an AnnData object, a scipy sparse matrix, a Dask array, or an array that follows the
        array API standard (torch, CuPy, JAX and others). A `DataMatrix` is returned unchanged.
    report_absent_chunks : bool, default=False
        Whether to issue a warning if the file of an HDF5 or Zarr array does not contain all chunks
        of the array.

    Returns
    -------
    DataMatrix or None
        None is also returned if X is an AnnData object that contains a numpy array, and if the type
        of X is not listed above.
    """
    if report_absent_chunks:
        warn_of_absent_chunks(X)
    return next((convert(X) for applies, convert in _CONVERSIONS if applies(X)), None)


def warn_of_absent_chunks(X: Any) -> None:
    """Issue a warning for each HDF5 or Zarr array of X whose file does not contain all chunks.

    The absent chunks are read as if they contained the fill value. No warning is issued if X is a
    `DataMatrix` or is not stored in an HDF5 or Zarr file. Raise UnreadableError if the chunks
    cannot be listed because of an error.
    """
    node = _anndata_matrix_node(X) if is_anndata(X) else X
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
    """Return X as a `DataMatrix`.

    X is a numpy array, or an object of a type that `as_stored_matrix` supports.
    """
    stored = as_stored_matrix(X)
    return ArrayMatrix(np.asarray(X)) if stored is None else stored
