"""Groups in which AnnData keeps a table, in HDF5 or Zarr: X, obs and var."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.data.absent_chunks import absent_chunks
from mrshc.core.data.hdf5_zarr_safe_access import (
    OutsideError,
    attribute,
    encoding_of,
    has_member,
    is_plain,
    member,
)
from mrshc.core.data.shape_and_dtype import are_integers
from mrshc.core.data.sparse_matrix import Compressed
from mrshc.core.data.sparse_structure import StructureError
from mrshc.io.memory import refuse_larger_than_memory
from mrshc.io.raw_table import RawTable, floats, rounding_notes
from mrshc.io.stored_matrix import OpenMatrix, Stored, matrix_in, sparse_damage, stays
from mrshc.io.streams import FlawError
from mrshc.io.unwritten_values import refuse_unwritten

# Kinds of arrays that can be names: text, fixed or not, and whole numbers.
_NAME_KINDS = "OSUTiu"


def read_annotated(
    path: str, group: Any, *, open_matrix: OpenMatrix, in_memory: bool | None
) -> RawTable:
    """Read a group of a file; its matrix stays there if that is asked for or needed."""
    # A group without X is refused below.
    X = Stored(path, open_matrix, inside="X") if has_member(group, "X") else None
    note = None if X is None else stays(X, in_memory)
    table = annotated(group, X=None if note is None else X)
    table.notes += [] if note is None else [note]
    return table


def annotated(group: Any, *, X: Stored | None = None) -> RawTable:
    """Return what a group holds: samples (obs) in rows, features (var) in columns.

    Its matrix is read, unless it is given: then it stays where it is. Nothing is read before the
    sizes of all parts agree, since a file may declare any size.
    """
    if absent := [name for name in ("X", "obs", "var") if not has_member(group, name)]:
        raise FlawError(
            "must hold a matrix X and tables obs and var, as AnnData writes them, but has no "
            f"{absent[0]!r}"
        )
    node = member(group, "X")
    parts = matrix_in(node)
    shape, notes = node.shape if parts is None else parts.shape, _refuse_absent(node, parts)
    obs, var = (_Frame(_part(group, name), name) for name in ("obs", "var"))
    if shape != (obs.size, var.size):
        raise FlawError(
            f"has a matrix of shape {tuple(shape)} for {obs.size} samples and {var.size} features"
        )
    of_samples, of_features = obs.columns(), var.columns()
    values: NDArray[Any] | Stored
    if X is None:
        values = _values(node, parts)
        notes += _rounding(node, parts, values)
    else:
        values = X
    if left_out := [*obs.left_out, *var.left_out]:
        notes.append(f"Annotations of unknown kinds are left out: {', '.join(left_out)}.")
    return RawTable(
        values=values,
        row_names=obs.names(),
        column_names=var.names(),
        row_annotations=of_samples,
        column_annotations=of_features,
        features_in="columns",
        notes=notes,
    )


def _refuse_absent(node: Any, parts: Compressed | None) -> list[str]:
    """Refuse a matrix that is not in the file; return sentences on chunks that are not."""
    arrays = {"X": node}
    if parts is not None:
        arrays = {"X/data": parts.data, "X/indices": parts.indices, "X/indptr": parts.indptr}
    for name, array in arrays.items():
        refuse_unwritten(array, name, may_be_empty=name in ("X/indices", "X/indptr"))
    return [note for name, array in arrays.items() for note in absent_chunks(array, name)]


def _values(node: Any, parts: Compressed | None) -> NDArray[Any]:
    """Read a matrix."""
    if parts is None:
        refuse_larger_than_memory(node.shape, node.dtype)
        return floats(np.asarray(node[...]))
    dtype = np.dtype(np.float32 if parts.data.dtype == np.float32 else np.float64)
    refuse_larger_than_memory(parts.shape, dtype)
    try:
        matrix = parts.part(parts.pointers())
    except StructureError as error:
        raise sparse_damage(error) from None
    return matrix.astype(dtype).toarray()


def _rounding(node: Any, parts: Compressed | None, values: NDArray[Any]) -> list[str]:
    """Return a note if integers of a matrix that was read are rounded."""
    stored = node if parts is None else parts.data
    return rounding_notes(values) if are_integers(stored.dtype) else []


class _Frame:
    """A table of samples or of features: names and annotations."""

    def __init__(self, group: Any, name: str) -> None:
        if hasattr(group, "shape"):
            raise FlawError(
                f"holds {name!r} as an array, but a table was wanted. Write it again "
                "with AnnData 0.7 or later"
            )
        self._group, self._name = group, name
        index = _attribute(group, "_index", name)
        if not isinstance(index, str):
            raise _damage(f"the attribute '_index' of {name} must be a name, but is {index!r}")
        self._names = _part(group, index, name)
        self._refuse_other_names()
        refuse_unwritten(self._names, f"{name}/{index}")
        self.size = int(self._names.shape[0])
        self.left_out: list[str] = []

    def names(self) -> list[str]:
        """Read the names."""
        return [str(name) for name in _listed(self._names)]

    def columns(self) -> dict[str, list[Any]]:
        """Read the annotations; those of unknown kinds are left out."""
        found = {}
        for name in self._order():
            where = f"{self._name}/{name}"
            column = _column(_part(self._group, name, self._name), where, size=self.size)
            if column is None:
                self.left_out.append(repr(where))
            else:
                found[name] = column
        return found

    def _refuse_other_names(self) -> None:
        names, what = self._names, f"the names of {self._name} must be"
        if not hasattr(names, "shape"):
            raise _damage(f"{what} text, but are a group")
        if len(names.shape) != 1:
            raise _damage(f"{what} a vector, but have shape {names.shape}")
        if names.dtype.kind not in _NAME_KINDS or not is_plain(names):
            raise _damage(f"{what} text, but are of type {names.dtype}")

    def _order(self) -> list[str]:
        given = _attribute(self._group, "column-order", self._name)
        if isinstance(given, str):
            return [given]
        listed = (
            given if isinstance(given, Sequence) else np.ravel(getattr(given, "tolist", list)())
        )
        names = [_text(name) for name in listed]
        if wrong := [name for name in names if not isinstance(name, str)]:
            raise _damage(
                f"the attribute 'column-order' of {self._name} must list names, but "
                f"holds {wrong[0]!r}"
            )
        return [str(name) for name in names]


def _damage(what: str) -> FlawError:
    return FlawError(f"is damaged: {what}. Write it again with anndata")


def _attribute(group: Any, title: str, name: str) -> Any:
    if (value := attribute(group, title)) is None:
        raise _damage(f"{name} has no attribute {title!r}")
    return value


def _part(group: Any, name: str, where: str = "") -> Any:
    try:
        return member(group, name)
    except OutsideError:
        raise
    except (KeyError, ValueError):
        raise _damage(f"{where or 'it'} has no member {name!r}") from None


def _column(node: Any, where: str, *, size: int) -> list[Any] | None:
    """Return one annotation; None if it is of a kind that cannot be shown."""
    kind = encoding_of(node)
    if kind == "categorical":
        return _categories(node, where, size=size)
    if kind.startswith("nullable"):
        given, mask = (
            _vector(_part(node, part, where), f"{where}/{part}", size=size)
            for part in ("values", "mask")
        )
        return [None if m else v for v, m in zip(_listed(given), _listed(mask), strict=True)]
    is_array = kind in ("", "array", "string-array") and hasattr(node, "shape")
    if not is_array or not is_plain(node):
        return None
    return _listed(_vector(node, where, size=size))


def _categories(node: Any, where: str, *, size: int) -> list[Any]:
    levels = _vector(_part(node, "categories", where), f"{where}/categories")
    codes = _vector(_part(node, "codes", where), f"{where}/codes", size=size)
    refuse_unwritten(levels, f"{where}/categories")
    if codes.dtype.kind not in "iu":
        raise _damage(f"'{where}/codes' must be whole numbers, but are of type {codes.dtype}")
    listed, given = _listed(levels), _listed(codes)
    if wrong := [code for code in given if not -1 <= code < len(listed)]:
        raise _damage(
            f"'{where}/codes' must lie in -1 to {len(listed) - 1}, but one of them is {wrong[0]}"
        )
    return [listed[code] if code >= 0 else None for code in given]


def _vector(node: Any, where: str, *, size: int | None = None) -> Any:
    """Return an array that has a value for each sample or feature; it is not read."""
    if not hasattr(node, "shape"):
        raise _damage(f"{where!r} must be an array, but is a group")
    if len(node.shape) != 1 or size not in (None, node.shape[0]):
        wanted = "be a vector" if size is None else f"have a value for each of {size}"
        raise _damage(f"{where!r} must {wanted}, but has shape {tuple(node.shape)}")
    if not is_plain(node):
        raise _damage(f"{where!r} must be numbers or text, but is neither")
    return node


def _listed(node: Any) -> list[Any]:
    return [_text(value) for value in np.asarray(node[...]).tolist()]


def _text(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
