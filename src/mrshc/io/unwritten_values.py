"""Checks for values that a file declares but does not contain, and for links in Zarr stores."""

from __future__ import annotations

import math
import os
from typing import Any

from mrshc.io.memory import format_size
from mrshc.io.stored.absent_chunks import chunk_storage, walk_directory
from mrshc.io.streams import FlawError

# No compression method attains this ratio: zstd compresses at most 32,768 equal bytes into one
# byte, and gzip at most 1,032.
_MAX_COMPRESSION_RATIO = 10**5
# Arrays of up to this many bytes (1 MB) are not compared with the size of the file, since they
# cannot exhaust the memory.
_MAX_UNCHECKED_BYTES = 10**6


def refuse_unwritten_values(node: Any, name: str, *, may_be_empty: bool = True) -> None:
    """Raise FlawError if an HDF5 or Zarr array declares more values than its file can contain.

    Values that were never written take up no space in the file and are read as the fill value.
    Without this check, a small file could therefore cause any amount of memory to be allocated, or
    any number of names to be generated. Arrays in stores that cannot list their content are not
    checked.
    """
    n_values = math.prod(node.shape)
    n_bytes = n_values * node.dtype.itemsize
    stored = chunk_storage(node) if n_values else None
    # `stored` is None if there are no values, or if the store cannot list its content.
    if stored is None or (n_bytes <= _MAX_UNCHECKED_BYTES and (may_be_empty or stored.n_bytes)):
        return
    declared = f"declares {name} with {' x '.join(f'{s:,}' for s in node.shape)} values"
    if not stored.n_bytes:
        raise FlawError(f"{declared}, but holds none of them. Write it again")
    if n_bytes > _MAX_COMPRESSION_RATIO * stored.n_bytes:
        raise FlawError(
            f"{declared}, more than the {format_size(stored.n_bytes)} of them in the file can "
            "hold. Check that the file is complete, and write it again if it is not"
        )


def refuse_symbolic_links(folder: str | os.PathLike[str]) -> None:
    """Raise FlawError if a Zarr folder contains symbolic links, which may point to any file."""
    for entry in walk_directory(folder):
        if entry.is_symlink():
            raise FlawError(
                f"holds the link {os.path.relpath(entry.path, folder)!r}, but all of a Zarr store "
                "must be in its folder. Copy it with the targets of its links, such as by cp -rL"
            )
