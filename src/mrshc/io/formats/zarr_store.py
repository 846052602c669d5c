"""Reading of Zarr stores, in a folder or ZIP archive, that contain one array or AnnData groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrshc.io.anndata_groups import read_anndata
from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import convert_library_errors
from mrshc.io.formats.npy import read_array
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable
from mrshc.io.stored.absent_chunks import absent_chunk_warnings
from mrshc.io.stored.hdf5_zarr_safe_access import get_member, refuse_external_storage
from mrshc.io.stored_matrix import StoredMatrix
from mrshc.io.unwritten_values import refuse_symbolic_links, refuse_unwritten_values

# Names of files by which a Zarr store is recognised: zarr.json in version 3 of the format, the
# other two in version 2.
_METADATA_FILES = ("zarr.json", ".zarray", ".zgroup")


def _is_zarr(file: InputFile) -> bool:
    if file.path is None:
        return False
    if file.is_folder:
        return file.path.suffix in ZARR.suffixes or any(map(file.has_entry, _METADATA_FILES))
    # The members of a damaged archive cannot be listed, so the archive is recognised by its name.
    if file.members is None:
        return file.is_archive and not set(ZARR.suffixes).isdisjoint(file.path.suffixes)
    return not file.members.isdisjoint(_METADATA_FILES)


def _read(path: str, options: ReadingOptions) -> RawTable:
    with convert_library_errors("Zarr store"):
        if Path(path).is_dir():
            # Links are checked before the store is opened, since opening the store follows links.
            refuse_symbolic_links(path)
        content = _open_store(path)
        # A group has the method `keys`; an array does not.
        if hasattr(content, "keys"):
            return read_anndata(
                path, content, open_matrix=_open_matrix, in_memory=options.in_memory
            )
        return _read_array(path, content, options)


def _read_array(path: str, array: Any, options: ReadingOptions) -> RawTable:
    X = StoredMatrix(path, _open_matrix)
    # This check is made before names are generated, since one name is generated for each row and
    # each column that the array declares.
    refuse_unwritten_values(array, "X", may_be_empty=False)
    notes = absent_chunk_warnings(array, "X")
    table = read_array(array, X, in_memory=options.in_memory)
    table.notes += notes
    return table


def _open_store(path: str) -> Any:
    """Return the array or the group at the root of a store.

    Raise FlawError if the library zarr is not installed.
    """
    zarr = ZARR.import_library("zarr")
    return zarr.open(
        path if Path(path).is_dir() else zarr.storage.ZipStore(path, mode="r"), mode="r"
    )


def _open_matrix(path: str, inside: str) -> Any:
    root = _open_store(path)
    refuse_external_storage(root)
    return get_member(root, inside) if inside else root


ZARR = TableFormat(
    name="a Zarr store",
    labels=(".zarr",),
    suffixes=(".zarr",),
    extra="zarr",
    container="a folder or a .zip",
    recognise=_is_zarr,
    read_path=_read,
    open_matrix=_open_matrix,
)
