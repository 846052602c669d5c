"""How many of the chunks of an array its file holds."""

from __future__ import annotations

import math
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mrshc.core.data.hdf5_zarr_safe_access import is_zarr


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What a file holds of an array."""

    n_bytes: int
    n_chunks: int  # that the array has; shards, if it has them
    n_present: int  # that are in the file


def absent_chunks(node: Any, name: str) -> list[str]:
    """Return a sentence if chunks of an array are not in its file, or none."""
    stored = storage_of(node) if math.prod(node.shape) else None
    if stored is None or stored.n_present >= stored.n_chunks:
        return []
    fill = getattr(node, "fill_value", None) if is_zarr(node) else node.fillvalue
    shown = f"{float(fill or 0):g}"
    return [
        f"{stored.n_chunks - stored.n_present:,} of {stored.n_chunks:,} chunks of {name} are "
        f"absent and are read as the fill value {shown}."
    ]


def storage_of(node: Any) -> Storage | None:
    """Return what a file holds of an array; None for a store that cannot be looked into."""
    if not is_zarr(node):
        return _in_hdf5(node)
    files = _files(node.store_path)
    if files is None:
        return _in_memory(node)
    # Shards are what is stored; chunks within them are seen only when they are read.
    grid = [
        -(-n // step)
        for n, step in zip(node.shape, getattr(node, "shards", None) or node.chunks, strict=True)
    ]
    chunks = {place: n for key, n in files if (place := _place(key, grid)) is not None}
    return Storage(n_bytes=sum(chunks.values()), n_chunks=math.prod(grid), n_present=len(chunks))


def _in_hdf5(dataset: Any) -> Storage:
    n_bytes = int(dataset.id.get_storage_size())
    if dataset.chunks is None:
        return Storage(n_bytes=n_bytes, n_chunks=1, n_present=int(n_bytes > 0))
    grid = (-(-n // step) for n, step in zip(dataset.shape, dataset.chunks, strict=True))
    n_present = int(dataset.id.get_num_chunks())
    return Storage(n_bytes=n_bytes, n_chunks=math.prod(grid), n_present=n_present)


def _in_memory(node: Any) -> Storage | None:
    """Return what a store of Zarr in memory holds; None for stores elsewhere.

    Those may be unable to list what they hold, and would seem to hold nothing.
    """
    kind = getattr(sys.modules.get("zarr.storage"), "MemoryStore", ())
    if not isinstance(node.store_path.store, kind):
        return None
    return Storage(
        n_bytes=int(node.nbytes_stored()),
        n_chunks=int(node.nchunks),
        n_present=int(node.nchunks_initialized),
    )


def _files(where: Any) -> list[tuple[str, int]] | None:
    """Return the names and sizes of the files of an array, from its folder on."""
    store, prefix = where.store, where.path
    if isinstance(folder := getattr(store, "root", None), Path):
        base = folder / prefix
        return [
            (os.path.relpath(entry.path, base), entry.stat().st_size)
            for entry in (files_below(base) if base.is_dir() else ())  # it may be gone by now
            if not entry.is_dir()
        ]
    # Other stores have a path too; an archive that is still written cannot be looked into.
    if not zipfile.is_zipfile(getattr(store, "path", "")):
        return None
    start = f"{prefix}/" if prefix else ""
    with zipfile.ZipFile(store.path) as archive:
        return [
            (about.filename.removeprefix(start), about.compress_size)
            for about in archive.infolist()
            if about.filename.startswith(start)
        ]


def files_below(folder: str | os.PathLike[str]) -> Iterator[os.DirEntry[str]]:
    """Yield the files and folders in a folder and in those below it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path)


def _place(key: str, grid: Sequence[int]) -> tuple[int, ...] | None:
    """Return which chunk a file holds, by its name; None if none, or none of this array."""
    numbers = key.replace(os.sep, "/").replace("/", ".").split(".")
    numbers = numbers[1:] if numbers[0] == "c" else numbers  # as the third version has it
    if len(numbers) != len(grid) or not all(n.isascii() and n.isdigit() for n in numbers):
        return None
    place = tuple(map(int, numbers))
    return place if np.less(place, grid).all() else None
