"""Zarr stores, a folder or a ZIP archive: a single array, or the groups of AnnData."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mrshc.core.data.absent_chunks import absent_chunks
from mrshc.core.data.hdf5_zarr_safe_access import member, refuse_outside
from mrshc.io.anndata_groups import read_annotated
from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import whole_file
from mrshc.io.formats.npy import read_array
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable
from mrshc.io.stored_matrix import Stored
from mrshc.io.unwritten_values import refuse_links, refuse_unwritten

# Files by which a store is recognised, in both versions of the format.
_MARKERS = ("zarr.json", ".zarray", ".zgroup")


def _is_zarr(file: InputFile) -> bool:
    if file.path is None:
        return False
    if file.is_folder:
        return file.path.suffix in ZARR.suffixes or any(map(file.has_entry, _MARKERS))
    if file.members is None:  # a damaged archive is still called one of Zarr by its name
        return file.is_archive and not set(ZARR.suffixes).isdisjoint(file.path.suffixes)
    return not file.members.isdisjoint(_MARKERS)


def _read(path: str, options: ReadingOptions) -> RawTable:
    with whole_file("Zarr store"):
        if Path(path).is_dir():
            refuse_links(path)
        content = _open(path)
        if hasattr(content, "keys"):
            return read_annotated(
                path, content, open_matrix=_open_matrix, in_memory=options.in_memory
            )
        return _read_array(path, content, options)


def _read_array(path: str, array: Any, options: ReadingOptions) -> RawTable:
    X = Stored(path, _open_matrix)
    # Before names are made, of as many samples and features as it declares.
    refuse_unwritten(array, "X", may_be_empty=False)
    notes = absent_chunks(array, "X")
    table = read_array(array, X, in_memory=options.in_memory)
    table.notes += notes
    return table


def _open(path: str) -> Any:
    zarr = ZARR.library("zarr")
    return zarr.open(
        path if Path(path).is_dir() else zarr.storage.ZipStore(path, mode="r"), mode="r"
    )


def _open_matrix(path: str, inside: str) -> Any:
    root = _open(path)
    refuse_outside(root)
    return member(root, inside) if inside else root


ZARR = TableFormat(
    name="a Zarr store",
    listed=(".zarr",),
    suffixes=(".zarr",),
    extra="zarr",
    container="a folder or a .zip",
    recognise=_is_zarr,
    read_path=_read,
    open_matrix=_open_matrix,
)
