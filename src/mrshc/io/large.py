"""Files that can be read in blocks: numpy's, AnnData's and Zarr's, at once or as they are asked."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from mrshc.core.data.data_matrix import UnreadableError
from mrshc.core.data.hdf5_zarr_groups import OutsideError, has_member, is_zarr
from mrshc.io.anndata_format import annotated, hdf5
from mrshc.io.chunk_storage import absent_chunks, refuse_links, refuse_unwritten
from mrshc.io.formats import brief, unnamed
from mrshc.io.hdf5_text_heaps import refuse_endless_heap_of
from mrshc.io.matrix_file import Kind, Stored, open_zarr, stays
from mrshc.io.raw_table import Grid
from mrshc.io.streams import FlawError

_NAMES = {"npy": ".npy file of numbers", "h5ad": ".h5ad file", "zarr": "Zarr store"}


def read_large(path: str | os.PathLike[str], kind: Kind, *, in_memory: bool | None) -> Grid:
    """Read a table; its matrix stays in the file if it is too large, or if that is asked for."""
    try:
        with _content(path, kind) as content:
            if hasattr(content, "keys"):
                return _annotated(os.fspath(path), content, in_memory)
            return _plain(os.fspath(path), content, in_memory)
    except (FlawError, UnreadableError, MemoryError):
        raise
    except OutsideError as error:
        raise FlawError(str(error)) from None
    except Exception as error:  # of many kinds: the file may hold anything
        raise FlawError(f"is not a whole {_NAMES[kind]}: {brief(error)}") from None


def _content(path: str | os.PathLike[str], kind: Kind) -> AbstractContextManager[Any]:
    if kind == "npy":
        return nullcontext(np.load(path, mmap_mode="r", allow_pickle=False))
    if kind == "h5ad":
        refuse_endless_heap_of(path)
        return hdf5().File(path, "r")
    if os.path.isdir(path):  # noqa: PTH112 - a path may be anything that can be opened
        refuse_links(path)
    return nullcontext(open_zarr(path))


def _plain(path: str, content: Any, in_memory: bool | None) -> Grid:
    X, notes = Stored(path), list[str]()
    if is_zarr(content):  # before names are made, of as many samples and features as it declares
        refuse_unwritten(content, "X", may_be_empty=False)
        notes = absent_chunks(content, "X")
    if (note := stays(X, in_memory)) is None:
        grid = unnamed(np.array(content))
    else:
        grid = Grid(values=X, row_names=None, column_names=None, notes=[note])
    grid.notes += notes
    return grid


def _annotated(path: str, group: Any, in_memory: bool | None) -> Grid:
    # A group without X is refused below.
    X = Stored(path, inside="X") if has_member(group, "X") else None
    note = None if X is None else stays(X, in_memory)
    grid = annotated(group, X=None if note is None else X)
    grid.notes += [] if note is None else [note]
    return grid
