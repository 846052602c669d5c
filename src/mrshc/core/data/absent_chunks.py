"""Numbers of chunks of HDF5 and Zarr arrays that are present in their files."""

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
class ChunkStorage:
    """Size and number of the chunks of an array that its file contains."""

    n_bytes: int
    n_chunks: int  # of the array; shards, if it has them
    n_present: int  # of these, in the file


def absent_chunk_warnings(node: Any, name: str) -> list[str]:
    """Return a warning if the file of an array lacks some of its chunks, else an empty list.

    Parameters
    ----------
    node : h5py.Dataset or zarr.Array
        The array.
    name : str
        Name of the array in the warning.
    """
    # An array without cells has no chunks to look for.
    storage = chunk_storage(node) if math.prod(node.shape) else None
    if storage is None or storage.n_present >= storage.n_chunks:
        return []
    fill = getattr(node, "fill_value", None) if is_zarr(node) else node.fillvalue
    shown = f"{float(fill or 0):g}"
    return [
        f"{storage.n_chunks - storage.n_present:,} of {storage.n_chunks:,} chunks of {name} are "
        f"absent and are read as the fill value {shown}."
    ]


def chunk_storage(node: Any) -> ChunkStorage | None:
    """Return the storage of an array; None if its store cannot list its content."""
    if not is_zarr(node):
        return _hdf5_chunk_storage(node)
    files = _list_zarr_files(node.store_path)
    if files is None:
        return _memory_store_chunk_storage(node)
    # A file holds a shard; the chunks within it are known only after it has been read.
    grid = [
        -(-n // step)
        for n, step in zip(node.shape, getattr(node, "shards", None) or node.chunks, strict=True)
    ]
    sizes = {
        coordinates: n_bytes
        for key, n_bytes in files
        if (coordinates := _chunk_coordinates(key, grid)) is not None
    }
    return ChunkStorage(n_bytes=sum(sizes.values()), n_chunks=math.prod(grid), n_present=len(sizes))


def _hdf5_chunk_storage(dataset: Any) -> ChunkStorage:
    n_bytes = int(dataset.id.get_storage_size())
    # A contiguous dataset is allocated as a whole or, before the first write, not at all.
    if dataset.chunks is None:
        return ChunkStorage(n_bytes=n_bytes, n_chunks=1, n_present=int(n_bytes > 0))
    grid = (-(-n // step) for n, step in zip(dataset.shape, dataset.chunks, strict=True))
    n_present = int(dataset.id.get_num_chunks())
    return ChunkStorage(n_bytes=n_bytes, n_chunks=math.prod(grid), n_present=n_present)


def _memory_store_chunk_storage(node: Any) -> ChunkStorage | None:
    """Return the storage of an array in a Zarr store in memory; None for any other store."""
    # Remote stores may be unable to list their keys, and would appear to be empty.
    kind = getattr(sys.modules.get("zarr.storage"), "MemoryStore", ())
    if not isinstance(node.store_path.store, kind):
        return None
    return ChunkStorage(
        n_bytes=int(node.nbytes_stored()),
        n_chunks=int(node.nchunks),
        n_present=int(node.nchunks_initialized),
    )


def _list_zarr_files(store_path: Any) -> list[tuple[str, int]] | None:
    """Return relative name and size of each file of an array; None if they cannot be listed."""
    store, prefix = store_path.store, store_path.path
    if isinstance(folder := getattr(store, "root", None), Path):
        base = folder / prefix
        return [
            (os.path.relpath(entry.path, base), entry.stat().st_size)
            # The folder may have been removed since the array was opened.
            for entry in (walk_directory(base) if base.is_dir() else ())
            if not entry.is_dir()
        ]
    # Other stores have a path too, and a ZIP archive has no directory while it is being written.
    if not zipfile.is_zipfile(getattr(store, "path", "")):
        return None
    start = f"{prefix}/" if prefix else ""
    with zipfile.ZipFile(store.path) as archive:
        return [
            (info.filename.removeprefix(start), info.compress_size)
            for info in archive.infolist()
            if info.filename.startswith(start)
        ]


def walk_directory(folder: str | os.PathLike[str]) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder and of its subfolders, recursively."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            # A symbolic link to a parent folder would lead to an endless recursion.
            if entry.is_dir(follow_symlinks=False):
                yield from walk_directory(entry.path)


def _chunk_coordinates(key: str, grid: Sequence[int]) -> tuple[int, ...] | None:
    """Return the position in the grid of the chunk in a file; None if the file holds no chunk.

    Parameters
    ----------
    key : str
        Name of the file relative to the folder of its array, such as ``c/0/3`` or ``0.3``.
    grid : sequence of int
        Number of chunks along each axis. Files outside of it remain after an array has been
        resized.
    """
    numbers = key.replace(os.sep, "/").replace("/", ".").split(".")
    # Version 3 of the Zarr format puts "c" before the coordinates, version 2 nothing.
    numbers = numbers[1:] if numbers[0] == "c" else numbers
    if len(numbers) != len(grid) or not all(n.isascii() and n.isdigit() for n in numbers):
        return None
    coordinates = tuple(map(int, numbers))
    return coordinates if np.less(coordinates, grid).all() else None
