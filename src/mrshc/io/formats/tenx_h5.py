"""Reading of the HDF5 files (.h5) that Cell Ranger of 10x Genomics writes.

The file contains a sparse matrix with features in rows and barcodes (cells) in columns. Since
version 3 of Cell Ranger, the matrix is in the group "matrix". Before, it was in a group with the
name of the genome.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mrshc.io.anndata_groups import read_list
from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.library_errors import convert_library_errors
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.hdf5_heap_check import refuse_endless_heap_in_file, refuse_endless_heap_in_stream
from mrshc.io.raw_table import RawTable, rounding_notes
from mrshc.io.stored.hdf5_zarr_safe_access import get_member, has_member, has_plain_dtype
from mrshc.io.stored.shape_and_dtype import is_integer_dtype
from mrshc.io.stored.sparse_matrix import CompressedParts
from mrshc.io.stored.sparse_structure import StructureError, check_shape
from mrshc.io.stored_matrix import damaged_sparse_matrix_error, read_sparse_values
from mrshc.io.streams import FlawError
from mrshc.io.unwritten_values import refuse_unwritten_values

_DESCRIPTION = "10x Genomics HDF5 file"
# Names of the annotations of features, by the names of their arrays.
_FEATURE_ANNOTATIONS = {
    "id": "id",
    "genes": "id",
    "feature_type": "feature_type",
    "genome": "genome",
}


def _is_tenx(file: InputFile) -> bool:
    if not file.head.startswith(b"\x89HDF"):
        return False
    # The members of the file distinguish it from an .h5ad file. If the file cannot be opened, the
    # format .h5ad reports the reason.
    try:
        h5py = TENX_H5.import_library("h5py")
        if file.path is None:
            refuse_endless_heap_in_stream(file.content)
            source = file.content
        else:
            refuse_endless_heap_in_file(file.path)
            source = file.path
        with h5py.File(source, "r") as content:
            return bool(_matrix_groups(content))
    except Exception:
        return False
    finally:
        if file.path is None:
            file.content.seek(0)


def _matrix_groups(content: Any) -> list[str]:
    """Return the names of the groups that contain a matrix."""
    needed = ("barcodes", "data", "indices", "indptr", "shape")
    return [
        name
        for name in content
        if hasattr(group := get_member(content, name), "keys")
        and all(has_member(group, member) for member in needed)
    ]


def _read(file: InputFile, _: ReadingOptions) -> RawTable:
    h5py = TENX_H5.import_library("h5py")
    # The file is checked before HDF5 opens it, as for .h5ad.
    refuse_endless_heap_in_stream(file.content)
    with convert_library_errors(_DESCRIPTION), h5py.File(file.content, "r") as content:
        names = _matrix_groups(content)
        if len(names) != 1:
            raise FlawError(
                f"holds {len(names)} matrices ({', '.join(names)}), but one was wanted. Write one "
                "genome to a file of its own"
            )
        return _read_group(get_member(content, names[0]))


def _read_group(group: Any) -> RawTable:
    """Return the table in a group; raise FlawError if its parts are damaged or do not agree."""
    try:
        shape = check_shape(_read_vector(group, "shape"))
        parts = CompressedParts.from_members(group, shape, "columns")
    except StructureError as error:
        raise damaged_sparse_matrix_error(error) from None
    # The letters are numpy's codes for floats, signed integers, unsigned integers and booleans.
    if parts.data.dtype.kind not in "fiub":
        raise FlawError(f"must hold a matrix of numbers, but holds an array of {parts.data.dtype}")
    for name in ("data", "indices", "indptr"):
        refuse_unwritten_values(getattr(parts, name), name)
    features = get_member(group, "features") if has_member(group, "features") else group
    title = "name" if features is not group else "gene_names"
    names = _read_names(features, title, size=shape[0], kind="features")
    barcodes = _read_names(group, "barcodes", size=shape[1], kind="barcodes")
    annotations: dict[str, list[Any]] = {
        title: _read_names(features, member, size=shape[0], kind="features")
        for member, title in _FEATURE_ANNOTATIONS.items()
        if has_member(features, member)
    }
    values = read_sparse_values(parts)
    return RawTable(
        values=values,
        row_names=names,
        column_names=barcodes,
        row_annotations=annotations,
        features_in="rows",
        notes=[
            *feature_type_notes(annotations.get("feature_type", [])),
            *(rounding_notes(values) if is_integer_dtype(parts.data.dtype) else []),
        ],
    )


def _read_names(group: Any, name: str, *, size: int, kind: str) -> list[str]:
    """Return the names in an array; raise FlawError if there are not `size` of them."""
    names = _read_vector(group, name)
    if len(names) != size:
        raise FlawError(
            f"holds {len(names):,} {kind} in {name!r}, but its matrix has {size:,}. It may be "
            "damaged: write it again"
        )
    return [str(entry) for entry in names]


def _read_vector(group: Any, name: str) -> list[Any]:
    """Return the values of a vector; raise FlawError if it is absent or not a vector."""
    node = get_member(group, name) if has_member(group, name) else None
    if node is None or len(getattr(node, "shape", ())) != 1 or not has_plain_dtype(node):
        raise FlawError(f"must hold a vector {name!r} of numbers or text, but holds none")
    refuse_unwritten_values(node, name)
    return read_list(node)


def feature_type_notes(types: list[str]) -> list[str]:
    """Return a note, in a list, if there are features of several types, such as antibodies."""
    counts = Counter(types)
    if len(counts) < 2:
        return []
    listed = ", ".join(f"{name} ({count:,})" for name, count in counts.items())
    return [f"Features of several types are used together: {listed}."]


TENX_H5 = TableFormat(
    name="a 10x Genomics HDF5 file",
    labels=("10x .h5",),
    suffixes=(".h5",),
    extra="anndata",
    recognise=_is_tenx,
    read_stream=_read,
)
