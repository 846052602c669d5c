"""Reading of the HDF5 or Zarr groups in which AnnData stores a table.

AnnData stores the matrix X, a data frame obs with the names and annotations of the samples, and a
data frame var with those of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.io.memory import refuse_larger_than_memory
from mrshc.io.raw_table import RawTable, as_floats, rounding_notes
from mrshc.io.stored.absent_chunks import absent_chunk_warnings
from mrshc.io.stored.hdf5_zarr_safe_access import (
    UnsafeContentError,
    encoding_type,
    get_member,
    has_member,
    has_plain_dtype,
    read_attribute,
)
from mrshc.io.stored.shape_and_dtype import is_integer_dtype
from mrshc.io.stored.sparse_matrix import CompressedParts
from mrshc.io.stored_matrix import (
    OpenMatrix,
    StoredMatrix,
    find_sparse_parts,
    out_of_core_note,
    read_sparse_values,
)
from mrshc.io.streams import FlawError
from mrshc.io.unwritten_values import refuse_unwritten_values

# numpy's codes for the types that names of samples or features may have: objects, bytes, Unicode,
# variable-width text, signed and unsigned integers.
_NAME_KINDS = "OSUTiu"


def read_anndata(
    path: str, group: Any, *, open_matrix: OpenMatrix, in_memory: bool | None
) -> RawTable:
    """Return the table that AnnData has stored in a file or a folder.

    The matrix stays on disk if `in_memory` is False, or if `in_memory` is None and the matrix takes
    up more than half of the free memory.
    """
    # If the group has no X, `read_anndata_group` raises a FlawError.
    X = StoredMatrix(path, open_matrix, inside="X") if has_member(group, "X") else None
    note = None if X is None else out_of_core_note(X, in_memory)
    table = read_anndata_group(group, X=None if note is None else X)
    table.notes += [] if note is None else [note]
    return table


def read_anndata_group(group: Any, *, X: StoredMatrix | None = None) -> RawTable:
    """Return the table in a group, with samples (obs) in rows and features (var) in columns.

    Values are read only after the sizes of X, obs and var have been compared, since a damaged or
    manipulated file may declare any size.
    """
    if absent := [name for name in ("X", "obs", "var") if not has_member(group, name)]:
        raise FlawError(
            "must hold a matrix X and tables obs and var, as AnnData writes them, but has no "
            f"{absent[0]!r}"
        )
    node = get_member(group, "X")
    parts = find_sparse_parts(node)
    shape, notes = node.shape if parts is None else parts.shape, _check_stored_values(node, parts)
    obs, var = (_AxisTable(_get_member(group, name), name) for name in ("obs", "var"))
    if shape != (obs.n_entries, var.n_entries):
        raise FlawError(
            f"has a matrix of shape {tuple(shape)} for {obs.n_entries} samples and "
            f"{var.n_entries} features"
        )
    # The annotations are small, so they are read before X. If they are damaged, the error is raised
    # without reading X.
    row_annotations, column_annotations = obs.read_annotations(), var.read_annotations()
    values: NDArray[Any] | StoredMatrix
    if X is None:
        values = _read_matrix(node, parts)
        notes += _matrix_rounding_notes(node, parts, values)
    else:
        values = X
    if skipped := [*obs.skipped_annotations, *var.skipped_annotations]:
        notes.append(f"Annotations of unknown kinds are left out: {', '.join(skipped)}.")
    return RawTable(
        values=values,
        row_names=obs.read_names(),
        column_names=var.read_names(),
        row_annotations=row_annotations,
        column_annotations=column_annotations,
        features_in="columns",
        notes=notes,
    )


def _check_stored_values(node: Any, parts: CompressedParts | None) -> list[str]:
    """Return notes on absent chunks; raise FlawError if the file lacks the values of the matrix."""
    arrays = {"X": node}
    if parts is not None:
        arrays = {"X/data": parts.data, "X/indices": parts.indices, "X/indptr": parts.indptr}
    for name, array in arrays.items():
        # The indices and pointers of a sparse matrix may all be zero, and Zarr does not store
        # chunks of zeros.
        refuse_unwritten_values(array, name, may_be_empty=name in ("X/indices", "X/indptr"))
    return [note for name, array in arrays.items() for note in absent_chunk_warnings(array, name)]


def _read_matrix(node: Any, parts: CompressedParts | None) -> NDArray[Any]:
    """Return the values of a dense or sparse matrix as a dense array.

    Raise FlawError if the array does not fit into memory, or if a sparse matrix is damaged.
    """
    if parts is None:
        refuse_larger_than_memory(node.shape, node.dtype)
        return as_floats(np.asarray(node[...]))
    return read_sparse_values(parts)


def _matrix_rounding_notes(
    node: Any, parts: CompressedParts | None, values: NDArray[Any]
) -> list[str]:
    """Return a list with a note if stored integers may have been rounded, else an empty list."""
    stored = node if parts is None else parts.data
    return rounding_notes(values) if is_integer_dtype(stored.dtype) else []


class _AxisTable:
    """The names and annotations of the samples (obs) or of the features (var).

    Attributes
    ----------
    n_entries : int
        Number of samples or features.
    skipped_annotations : list of str
        Quoted names of the annotations that `read_annotations` left out because their kind is not
        supported.
    """

    def __init__(self, group: Any, name: str) -> None:
        # Before version 0.7, AnnData wrote data frames as arrays of records.
        if hasattr(group, "shape"):
            raise FlawError(
                f"holds {name!r} as an array, but a table was wanted. Write it again "
                "with AnnData 0.7 or later"
            )
        self._group, self._name = group, name
        index = _get_attribute(group, "_index", name)
        if not isinstance(index, str):
            raise _damage_error(
                f"the attribute '_index' of {name} must be a name, but is {index!r}"
            )
        self._names = _get_member(group, index, name)
        self._check_names()
        refuse_unwritten_values(self._names, f"{name}/{index}")
        self.n_entries = int(self._names.shape[0])
        self.skipped_annotations: list[str] = []

    def read_names(self) -> list[str]:
        """Return the names of the samples or features."""
        return [str(name) for name in read_list(self._names)]

    def read_annotations(self) -> dict[str, list[Any]]:
        """Return the annotations by title; annotations of unsupported kinds are left out.

        Raise FlawError if the list of titles or an annotation is damaged.
        """
        annotations = {}
        for title in self._read_column_order():
            where = f"{self._name}/{title}"
            node = _get_member(self._group, title, self._name)
            column = _read_annotation(node, where, size=self.n_entries)
            if column is None:
                self.skipped_annotations.append(repr(where))
            else:
                annotations[title] = column
        return annotations

    def _check_names(self) -> None:
        """Raise FlawError if the names are not a vector of text or whole numbers."""
        names, subject = self._names, f"the names of {self._name} must be"
        if not hasattr(names, "shape"):
            raise _damage_error(f"{subject} text, but are a group")
        if len(names.shape) != 1:
            raise _damage_error(f"{subject} a vector, but have shape {names.shape}")
        if names.dtype.kind not in _NAME_KINDS or not has_plain_dtype(names):
            raise _damage_error(f"{subject} text, but are of type {names.dtype}")

    def _read_column_order(self) -> list[str]:
        """Return the titles of the annotations, in the order of the columns of the data frame.

        Raise FlawError if the attribute that lists the titles is absent, or if a title is not text.
        """
        given = _get_attribute(self._group, "column-order", self._name)
        # The attribute is a list in Zarr and an array in HDF5. If there is only one title, other
        # programs may write it as a string.
        if isinstance(given, str):
            return [given]
        listed = (
            given if isinstance(given, Sequence) else np.ravel(getattr(given, "tolist", list)())
        )
        titles = [_decode_bytes(title) for title in listed]
        if wrong := [title for title in titles if not isinstance(title, str)]:
            raise _damage_error(
                f"the attribute 'column-order' of {self._name} must list names, but "
                f"holds {wrong[0]!r}"
            )
        return [str(title) for title in titles]


def _damage_error(reason: str) -> FlawError:
    return FlawError(f"is damaged: {reason}. Write it again with anndata")


def _get_attribute(group: Any, title: str, name: str) -> Any:
    """Return an attribute of a group; raise FlawError if the group lacks the attribute."""
    if (value := read_attribute(group, title)) is None:
        raise _damage_error(f"{name} has no attribute {title!r}")
    return value


def _get_member(group: Any, name: str, where: str = "") -> Any:
    """Return a member of a group; raise FlawError if the group lacks the member."""
    try:
        return get_member(group, name)
    except UnsafeContentError:  # this ValueError already has a specific message
        raise
    except (KeyError, ValueError):
        raise _damage_error(f"{where or 'it'} has no member {name!r}") from None


def _read_annotation(node: Any, where: str, *, size: int) -> list[Any] | None:
    """Return the values of one annotation, or None if its kind is not supported.

    Raise FlawError if the annotation is damaged or does not have `size` values.
    """
    kind = encoding_type(node)
    if kind == "categorical":
        return _read_categorical(node, where, size=size)
    if kind.startswith("nullable"):
        given, mask = (
            _check_vector(_get_member(node, part, where), f"{where}/{part}", size=size)
            for part in ("values", "mask")
        )
        return [None if m else v for v, m in zip(read_list(given), read_list(mask), strict=True)]
    is_array = kind in ("", "array", "string-array") and hasattr(node, "shape")
    if not is_array or not has_plain_dtype(node):
        return None
    return read_list(_check_vector(node, where, size=size))


def _read_categorical(node: Any, where: str, *, size: int) -> list[Any]:
    """Return the values of a categorical annotation, with None for missing values.

    Raise FlawError if the annotation is damaged or does not have `size` values.
    """
    categories = _check_vector(_get_member(node, "categories", where), f"{where}/categories")
    codes = _check_vector(_get_member(node, "codes", where), f"{where}/codes", size=size)
    # The number of codes equals the number of names, and the names have been checked for unwritten
    # values. The number of categories can be arbitrarily large, so they are checked here.
    refuse_unwritten_values(categories, f"{where}/categories")
    if codes.dtype.kind not in "iu":
        raise _damage_error(f"'{where}/codes' must be whole numbers, but are of type {codes.dtype}")
    levels, values = read_list(categories), read_list(codes)
    # The code -1 marks a missing value. Without this check, codes below -1 would also be read as
    # missing values.
    if wrong := [code for code in values if not -1 <= code < len(levels)]:
        raise _damage_error(
            f"'{where}/codes' must be in -1 to {len(levels) - 1}, but one of them is {wrong[0]}"
        )
    return [levels[code] if code >= 0 else None for code in values]


def _check_vector(node: Any, where: str, *, size: int | None = None) -> Any:
    """Return an array, whose values are not read; raise FlawError if it is not a vector.

    FlawError is also raised if the values are neither numbers nor text, or if `size` is given and
    is not the length of the vector.
    """
    if not hasattr(node, "shape"):
        raise _damage_error(f"{where!r} must be an array, but is a group")
    if len(node.shape) != 1 or size not in (None, node.shape[0]):
        wanted = "be a vector" if size is None else f"have a value for each of {size}"
        raise _damage_error(f"{where!r} must {wanted}, but has shape {tuple(node.shape)}")
    if not has_plain_dtype(node):
        raise _damage_error(f"{where!r} must be numbers or text, but is neither")
    return node


def read_list(node: Any) -> list[Any]:
    """Return the values of an array as a list, with bytes decoded to text."""
    return [_decode_bytes(value) for value in np.asarray(node[...]).tolist()]


def _decode_bytes(value: Any) -> Any:
    """Return bytes as text and any other value unchanged."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
