"""Arrays that declare more values than their files hold, and links out of Zarr stores."""

from __future__ import annotations

import math
import os
from typing import Any

from mrshc.core.data.absent_chunks import files_below, storage_of
from mrshc.io.memory import size
from mrshc.io.streams import FlawError

# No more bytes than this come from one: zstd packs 32,768 equal ones into a byte, gzip 1,032.
_MOST_PACKED = 10**5
# Bytes of memory that are no harm, whatever the file holds.
_SMALL = 10**6


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


def refuse_links(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder of Zarr in which there are links: they may lead to any file."""
    for entry in files_below(folder):
        if entry.is_symlink():
            raise FlawError(
                f"holds the link {os.path.relpath(entry.path, folder)!r}, but all of a Zarr store "
                "must be in its folder. Copy it with what its links lead to, such as by cp -rL"
            )
