"""The collections in which HDF5 keeps texts of variable length, checked before HDF5 reads them.

Up to version 2.0 at least, the library reads a collection without end if the size of one of its
objects is damaged in such a way that the next object begins where this one does; and it cannot be
interrupted meanwhile. The format is described in the HDF5 File Format Specification, section III.E
("Global Heap"): a header of 16 bytes, then objects, each with a header of 16 bytes.
"""

from __future__ import annotations

import itertools
import mmap
import os
from pathlib import Path
from typing import BinaryIO

from mrshc.io.streams import FlawError

_SIGNATURE = b"GCOL\x01\x00\x00\x00"  # with the version and three reserved bytes
_HEADER = 16
# Larger files are not searched: that would take as long as a pass over all values. Texts of
# AnnData's files are near the values of X, at no place that could be told beforehand.
_LARGEST = 1 << 30
# One object in so many is noted as walked: fewer take less memory, and another walk reaches the
# next one after at most so many steps.
_NOTED_EVERY = 32


def refuse_endless_heap_of(path: str | os.PathLike[str]) -> None:
    """Refuse a file that HDF5 would read without end."""
    if not 0 < Path(path).stat().st_size <= _LARGEST:
        return
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as map_,
    ):
        refuse_endless_heap(map_)


def refuse_endless_heap_in(stream: BinaryIO) -> None:
    """Refuse a stream that HDF5 would read without end; it is at its beginning afterwards."""
    refuse_endless_heap(stream.read(_LARGEST))
    stream.seek(0)


def refuse_endless_heap(content: bytes | mmap.mmap) -> None:
    """Refuse the content of a file that HDF5 would read without end."""
    walked: dict[int, int] = {}
    start = content.find(_SIGNATURE)
    while start >= 0:
        if _is_endless(content, start, walked):
            raise FlawError(
                "is not a whole HDF5 file: its texts are damaged. Copy or write it again"
            )
        start = content.find(_SIGNATURE, start + 1)


def _is_endless(content: bytes | mmap.mmap, start: int, walked: dict[int, int]) -> bool:
    """Return whether an object of a collection takes no room.

    Where the next object begins does not depend on the collection, so that collections which
    overlap, as in a file that was prepared to take long, share the objects that follow. `walked`
    maps some objects to one behind them, up to which all are known to take room.
    """
    end = min(start + _number(content, start + 8, 8), len(content))
    at = start + _HEADER
    passed = []
    for count in itertools.count():
        if at + _HEADER > end:
            break
        if at in walked:
            passed.append(at)
            at = walked[at]
            continue
        if count % _NOTED_EVERY == 0:
            passed.append(at)
        index, size = _number(content, at, 2), _number(content, at + 8, 8)
        # Index 0 is free space, whose size counts its header; others are padded to 8 bytes. The
        # sum wraps around, as it does in the library.
        step = (size if index == 0 else _HEADER + -(-size // 8) * 8) % 2**64
        if step == 0:
            return True
        at += step
    walked.update((one, at) for one in passed if one < at)
    return False


def _number(content: bytes | mmap.mmap, at: int, length: int) -> int:
    return int.from_bytes(content[at : at + length], "little")
