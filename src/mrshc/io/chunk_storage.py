"""How much of an array its file holds: values that were never written, chunks that are absent."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mrshc.core.data.hdf5_zarr_groups import is_zarr
from mrshc.io.memory import size
from mrshc.io.streams import FlawError

# No more bytes than this come from one: zstd packs 32,768 equal ones into a byte, gzip 1,032.
_MOST_PACKED = 10**5
# Bytes of memory that are no harm, whatever the file holds.
_SMALL = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """What a file holds of an array."""

    n_bytes: int
    n_chunks: int  # that the array has; shards, if it has them
    n_present: int  # that are in the file


def refuse_unwritten(node: Any, name: str, *, may_be_empty: bool = True) -> None:
    """Refuse an array of HDF5 or Zarr that declares more values than its file can hold.

    Values that are not in the file are read as the fill value, of any number, and take no bytes:
    a small file could ask for any amount of memory and of names.

    Parameters
    ----------
    node : dataset of h5py or array of Zarr
    name : str
        What to call it in the sentence.
    may_be_empty : bool, default=True
        Whether a small array may have no bytes at all: Zarr leaves out chunks of zeros.
    """
    n_values = math.prod(node.shape)
    n_bytes = n_values * node.dtype.itemsize
    stored = storage_of(node) if n_values else None
    if stored is None or (n_bytes <= _SMALL and (may_be_empty or stored.n_bytes)):
        return
    declared = f"declares {name} with {' x '.join(f'{s:,}' for s in node.shape)} values"
    if not stored.n_bytes:
        raise FlawError(f"{declared}, but holds none of them. Write it again")
    if n_bytes > _MOST_PACKED * stored.n_bytes:
        raise FlawError(
            f"{declared}, more than the {size(stored.n_bytes)} of them in the file can hold. Check "
            "that it is whole, and write it again if it is not"
        )


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


def refuse_links(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder of Zarr in which there are links: they may lead to any file."""
    for entry in _entries(folder):
        if entry.is_symlink():
            raise FlawError(
                f"holds the link {os.path.relpath(entry.path, folder)!r}, but all of a Zarr store "
                "must be in its folder. Copy it with what its links lead to, such as by cp -rL"
            )


def storage_of(node: Any) -> Storage | None:
    """Return what a file holds of an array; None for a store that cannot be looked into."""
    if not is_zarr(node):
        return _in_hdf5(node)
    files = _files(node.store_path)
    if files is None:
        return None
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


def _files(where: Any) -> list[tuple[str, int]] | None:
    """Return the names and sizes of the files of an array, from its folder on."""
    store, prefix = where.store, where.path
    if isinstance(folder := getattr(store, "root", None), Path):
        base = folder / prefix
        return [
            (os.path.relpath(entry.path, base), entry.stat().st_size)
            for entry in _entries(base)
            if not entry.is_dir()
        ]
    if not hasattr(store, "path"):
        return None
    start = f"{prefix}/" if prefix else ""
    with zipfile.ZipFile(store.path) as archive:
        return [
            (about.filename.removeprefix(start), about.compress_size)
            for about in archive.infolist()
            if about.filename.startswith(start)
        ]


def _entries(folder: str | os.PathLike[str]) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)


def _place(key: str, grid: Sequence[int]) -> tuple[int, ...] | None:
    """Return which chunk a file holds, by its name; None if none, or none of this array."""
    numbers = key.replace(os.sep, "/").replace("/", ".").split(".")
    numbers = numbers[1:] if numbers[0] == "c" else numbers  # as the third version has it
    if len(numbers) != len(grid) or not all(n.isascii() and n.isdigit() for n in numbers):
        return None
    place = tuple(map(int, numbers))
    return place if np.less(place, grid).all() else None
