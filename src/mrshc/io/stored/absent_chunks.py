"""Detection of chunks that are absent from the files of HDF5 and Zarr arrays.

A chunk is absent if it was never written. HDF5 and Zarr then return the fill value of the array for
all values of the chunk. A shard is a file of a Zarr array that contains several chunks.
"""

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

from mrshc.io.stored.hdf5_zarr_safe_access import is_zarr


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkStorage:
    """Number of chunks of an HDF5 or Zarr array, and number and size of those that are present."""

    n_bytes: int  # size in bytes of the chunks that are present, as they are stored
    n_chunks: int  # number of chunks of the array, or of shards if the array is sharded
    n_present: int  # number of these chunks or shards that are present in the file


def absent_chunk_warnings(node: Any, name: str) -> list[str]:
    """Return a list with one message if chunks of the array are absent, else an empty list.

    The list is also empty if the chunks cannot be listed.
    """
    # An array of size zero has no chunks.
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
    """Return the number and size of the chunks of an array; None if chunks cannot be listed."""
    if not is_zarr(node):
        return _hdf5_chunk_storage(node)
    files = _list_zarr_files(node.store_path)
    if files is None:
        return _memory_store_chunk_storage(node)
    # If the array is sharded, each file contains several chunks. The chunks of a shard cannot be
    # listed without reading the file, so shards are counted instead.
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
    # A contiguous dataset counts as one chunk. HDF5 allocates all of its storage at the first
    # write.
    if dataset.chunks is None:
        return ChunkStorage(n_bytes=n_bytes, n_chunks=1, n_present=int(n_bytes > 0))
    grid = (-(-n // step) for n, step in zip(dataset.shape, dataset.chunks, strict=True))
    n_present = int(dataset.id.get_num_chunks())
    return ChunkStorage(n_bytes=n_bytes, n_chunks=math.prod(grid), n_present=n_present)


def _memory_store_chunk_storage(node: Any) -> ChunkStorage | None:
    """Return the number and size of the chunks of a Zarr array in a MemoryStore.

    Return None for any other store.
    """
    # Other stores are excluded because a remote store that cannot list its keys would appear to be
    # empty.
    kind = getattr(sys.modules.get("zarr.storage"), "MemoryStore", ())
    if not isinstance(node.store_path.store, kind):
        return None
    return ChunkStorage(
        n_bytes=int(node.nbytes_stored()),
        n_chunks=int(node.nchunks),
        n_present=int(node.nchunks_initialized),
    )


def _list_zarr_files(store_path: Any) -> list[tuple[str, int]] | None:
    """Return a pair (name, size in bytes) for each file of a Zarr array.

    Names are relative to the folder of the array. Return None if the files cannot be listed.
    """
    store, prefix = store_path.store, store_path.path
    if isinstance(folder := getattr(store, "root", None), Path):
        base = folder / prefix
        return [
            (os.path.relpath(entry.path, base), entry.stat().st_size)
            # The folder may have been removed since the array was opened.
            for entry in (walk_directory(base) if base.is_dir() else ())
            if not entry.is_dir()
        ]
    # The file is tested because stores other than ZIP archives may also have the attribute `path`.
    # A ZIP archive that is still being written has no central directory and cannot be listed.
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
    """Yield an entry for each file and each subfolder of a folder, at all levels."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            # Symbolic links are not followed, since a link to a parent folder would cause infinite
            # recursion.
            if entry.is_dir(follow_symlinks=False):
                yield from walk_directory(entry.path)


def _chunk_coordinates(key: str, grid: Sequence[int]) -> tuple[int, ...] | None:
    """Return the position in the grid of the chunk that a file contains.

    Return None if the file does not contain a chunk of the grid.
    """
    numbers = key.replace(os.sep, "/").replace("/", ".").split(".")
    # File names begin with "c" in version 3 of the Zarr format, and have no prefix in version 2.
    numbers = numbers[1:] if numbers[0] == "c" else numbers
    if len(numbers) != len(grid) or not all(n.isascii() and n.isdigit() for n in numbers):
        return None
    coordinates = tuple(map(int, numbers))
    return coordinates if np.less(coordinates, grid).all() else None
