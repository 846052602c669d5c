"""Check of the collections in which HDF5 stores texts of variable length, before HDF5 reads them.

Up to version 2.0 at least, the library loops forever if the size of an object in a collection is
damaged in such a way that the next object begins at the same position, and it cannot be
interrupted. The format is described in the HDF5 File Format Specification, section III.E ("Global
Heap"): a header of 16 bytes, then objects, each with a header of 16 bytes.
"""

from __future__ import annotations

import itertools
import mmap
import os
from pathlib import Path
from typing import BinaryIO

from mrshc.io.streams import FlawError

_SIGNATURE = b"GCOL\x01\x00\x00\x00"  # with the version and three reserved bytes
_HEADER_BYTES = 16  # of collections and of objects
# Larger files (above 1 GiB) are not searched: that would take as long as a pass over all values.
# AnnData writes texts between the values of X, at positions that are not known beforehand.
_MAX_SEARCHED_BYTES = 1 << 30
# One object in so many is recorded as checked. Fewer records take less memory; a later check
# reaches the next record after at most this many steps. Not tuned: results do not depend on it.
_RECORD_INTERVAL = 32


def refuse_endless_heap_in_file(path: str | os.PathLike[str]) -> None:
    """Refuse a file that HDF5 would never finish reading."""
    # An empty file cannot be mapped; the library refuses it.
    if not 0 < Path(path).stat().st_size <= _MAX_SEARCHED_BYTES:
        return
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        refuse_endless_heap(content)


def refuse_endless_heap_in_stream(stream: BinaryIO) -> None:
    """Refuse a stream that HDF5 would never finish reading; reset it to its beginning."""
    refuse_endless_heap(stream.read(_MAX_SEARCHED_BYTES))
    stream.seek(0)


def refuse_endless_heap(content: bytes | mmap.mmap) -> None:
    """Refuse the content of a file that HDF5 would never finish reading."""
    checked: dict[int, int] = {}
    start = content.find(_SIGNATURE)
    while start >= 0:
        if _is_endless(content, start, checked):
            raise FlawError(
                "is not a complete HDF5 file: its texts are damaged. Copy or write it again"
            )
        start = content.find(_SIGNATURE, start + 1)


def _is_endless(content: bytes | mmap.mmap, start: int, checked: dict[int, int]) -> bool:
    """Return whether an object of a collection has the size zero.

    The position of the next object does not depend on the collection. Collections that overlap, as
    in a file that was prepared to take long, therefore share the objects that follow.

    Parameters
    ----------
    content : bytes or mmap
        The file.
    start : int
        Position of the collection.
    checked : dict of int to int
        Maps positions of some objects to a later one; all objects between them are known to have a
        positive size. It is updated.
    """
    end = min(start + _read_unsigned(content, start + 8, 8), len(content))
    position = start + _HEADER_BYTES
    visited = []
    for count in itertools.count():
        if position + _HEADER_BYTES > end:
            break
        if position in checked:
            visited.append(position)
            position = checked[position]
            continue
        if count % _RECORD_INTERVAL == 0:
            visited.append(position)
        index = _read_unsigned(content, position, 2)
        size = _read_unsigned(content, position + 8, 8)
        # Index 0 is free space, whose size includes its header; others are padded to 8 bytes. The
        # sum is taken modulo 2^64, as in the library.
        step = (size if index == 0 else _HEADER_BYTES + -(-size // 8) * 8) % 2**64
        if step == 0:
            return True
        position += step
    checked.update((other, position) for other in visited if other < position)
    return False


def _read_unsigned(content: bytes | mmap.mmap, position: int, n_bytes: int) -> int:
    """Return the unsigned integer of some bytes, the lowest one first."""
    return int.from_bytes(content[position : position + n_bytes], "little")
