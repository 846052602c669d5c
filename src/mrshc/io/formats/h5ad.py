"""Reading of .h5ad files, in which AnnData stores a table as HDF5."""

from __future__ import annotations

from typing import Any

from mrshc.io.anndata_groups import read_anndata, read_anndata_group
from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import convert_library_errors
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.hdf5_heap_check import refuse_endless_heap_in_file, refuse_endless_heap_in_stream
from mrshc.io.raw_table import RawTable
from mrshc.io.stored.hdf5_zarr_safe_access import get_member

_DESCRIPTION = ".h5ad file"


def _is_hdf5(file: InputFile) -> bool:
    return file.head.startswith(b"\x89HDF")


def _read_stream(file: InputFile, _: ReadingOptions) -> RawTable:
    content, h5py = file.content, H5AD.import_library("h5py")
    # The file is checked before HDF5 opens it, since HDF5 might never finish reading a damaged file
    # and cannot be interrupted.
    refuse_endless_heap_in_stream(content)
    with convert_library_errors(_DESCRIPTION), h5py.File(content, "r") as group:
        return read_anndata_group(group)


def _read_path(path: str, options: ReadingOptions) -> RawTable:
    with convert_library_errors(_DESCRIPTION):
        refuse_endless_heap_in_file(path)
        with H5AD.import_library("h5py").File(path, "r") as content:
            return read_anndata(
                path, content, open_matrix=_open_matrix, in_memory=options.in_memory
            )


def _open_matrix(path: str, inside: str) -> Any:
    # The file is not closed here, since the dataset can be read only while the file is open.
    return get_member(H5AD.import_library("h5py").File(path, "r"), inside)


H5AD = TableFormat(
    name="an .h5ad file",
    labels=(".h5ad",),
    suffixes=(".h5ad",),
    extra="anndata",
    recognise=_is_hdf5,
    read_stream=_read_stream,
    read_path=_read_path,
    open_matrix=_open_matrix,
)
