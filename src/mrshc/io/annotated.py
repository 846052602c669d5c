"""Tables in AnnData's format, in HDF5 or Zarr: X, obs and var."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats import brief, floats
from mrshc.io.grid import Grid
from mrshc.io.source import FlawError, refuse_other_than_numbers
from mrshc.io.stored import Stored

_SPARSE = ("csr_matrix", "csc_matrix")


def read_h5ad(content: io.BufferedReader) -> Grid:
    """Read an .h5ad file that is not one on a disk: it was compressed, or comes through a pipe."""
    h5py = hdf5()
    try:
        with h5py.File(content, "r") as file:
            return annotated(file)
    except FlawError:
        raise
    except Exception as error:  # of many kinds: the file may hold anything
        raise FlawError(f"is not a whole .h5ad file: {brief(error)}") from None


def hdf5() -> Any:
    """Return what reads HDF5."""
    try:
        import h5py
    except ImportError:
        raise FlawError(
            "is an .h5ad file, which needs the extra 'anndata': pip install 'mrshc[anndata]'"
        ) from None
    return h5py


def annotated(group: Any, *, X: Stored | None = None) -> Grid:
    """Return what a group holds: samples (obs) in rows, features (var) in columns.

    Its matrix is read, unless it is given: then it stays where it is.
    """
    if absent := [name for name in ("X", "obs", "var") if name not in group]:
        raise FlawError(
            "must hold a matrix X and tables obs and var, as AnnData writes them, but has no "
            f"{absent[0]!r}"
        )
    values = _matrix(group["X"]) if X is None else X
    samples, of_samples = _frame(group["obs"])
    features, of_features = _frame(group["var"])
    if values.shape != (len(samples), len(features)):
        raise FlawError(
            f"has a matrix of shape {values.shape} for {len(samples)} samples and "
            f"{len(features)} features"
        )
    return Grid(
        values=values,
        row_names=samples,
        column_names=features,
        row_annotations=of_samples,
        column_annotations=of_features,
        features_in="columns",
    )


def _matrix(node: Any) -> NDArray[Any]:
    kind = node.attrs.get("encoding-type")
    if kind not in _SPARSE:
        array = np.asarray(node[...])
        refuse_other_than_numbers(array)
        return floats(array)
    from scipy import sparse

    parts = (node["data"][...], node["indices"][...], node["indptr"][...])
    make: Callable[..., Any] = sparse.csr_matrix if kind == "csr_matrix" else sparse.csc_matrix
    return floats(make(parts, shape=tuple(node.attrs["shape"])).toarray())


def _frame(group: Any) -> tuple[list[str], dict[str, list[Any]]]:
    """Return the names and the annotations of samples or features."""
    index = group.attrs["_index"]
    columns = {str(name): _column(group[name]) for name in group.attrs["column-order"]}
    names = [str(name) for name in _column(group[index]) or []]
    return names, {name: column for name, column in columns.items() if column is not None}


def _column(node: Any) -> list[Any] | None:
    """Return one annotation; None if it is of a kind that cannot be shown."""
    kind = node.attrs.get("encoding-type", "array")
    if kind == "categorical":
        levels = _column(node["categories"]) or []
        return [levels[code] if code >= 0 else None for code in node["codes"][...]]
    if kind.startswith("nullable"):
        given = _column(node["values"]) or []
        return [None if m else v for v, m in zip(given, node["mask"][...], strict=True)]
    if kind not in ("array", "string-array") or not hasattr(node, "dtype"):
        return None
    values = np.asarray(node[...])
    return [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values.tolist()]
