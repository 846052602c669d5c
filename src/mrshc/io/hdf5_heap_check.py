"""Check for damage in the heap, the part of an HDF5 file that contains variable-length text.

The heap consists of collections of objects. If the stored size of an object is wrong, the next
object may begin at the same position. HDF5 (at least up to version 2.0) then never finishes reading
and cannot be interrupted. The check is therefore made before HDF5 opens the file. The format is
described in the HDF5 File Format Specification, section III.E ("Global Heap"). A collection
consists of a header of 16 bytes and objects, and each object begins with a header of 16 bytes.
"""

from __future__ import annotations

import itertools
import mmap
import os
from pathlib import Path
from typing import BinaryIO

from mrshc.io.streams import FlawError

_SIGNATURE = b"GCOL\x01\x00\x00\x00"  # includes the version and three reserved bytes
_HEADER_BYTES = 16  # size of the header of a collection or an object
# Files larger than 1 GiB are not searched. The whole file would have to be searched, since AnnData
# writes text between the values of X at positions that are not known in advance. The search would
# therefore take as long as a pass over all values.
_MAX_SEARCHED_BYTES = 1 << 30
# One object in 32 is recorded as checked. With a larger interval, less memory is needed, but a
# later check may need more steps to reach a recorded object. The interval is not tuned: it does not
# affect the result.
_RECORD_INTERVAL = 32


def refuse_endless_heap_in_file(path: str | os.PathLike[str]) -> None:
    """Raise FlawError if HDF5 would never finish reading a file.

    Files larger than 1 GiB are not checked.
    """
    # Files that are too large to search are skipped. Empty files are skipped too: they cannot be
    # memory-mapped, and HDF5 rejects them.
    if not 0 < Path(path).stat().st_size <= _MAX_SEARCHED_BYTES:
        return
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        refuse_endless_heap(content)


def refuse_endless_heap_in_stream(stream: BinaryIO) -> None:
    """Raise FlawError if HDF5 would never finish reading a stream.

    Only the first 1 GiB is searched. After the search, the stream is positioned at its beginning.
    """
    refuse_endless_heap(stream.read(_MAX_SEARCHED_BYTES))
    stream.seek(0)


def refuse_endless_heap(content: bytes | mmap.mmap) -> None:
    """Raise FlawError if HDF5 would never finish reading a file with this content."""
    checked: dict[int, int] = {}
    start = content.find(_SIGNATURE)
    while start >= 0:
        if _is_endless(content, start, checked):
            raise FlawError(
                "is not a complete HDF5 file: its texts are damaged. Copy or write it again"
            )
        start = content.find(_SIGNATURE, start + 1)


def _is_endless(content: bytes | mmap.mmap, start: int, checked: dict[int, int]) -> bool:
    """Return whether HDF5 would never finish reading a collection.

    This happens if an object has such a size that the next object begins at the same position.

    A file that was manipulated to make this check slow may contain collections that overlap. The
    position of the next object does not depend on the collection. Objects that were checked in one
    collection are therefore not checked again in another.
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
        # The index 0 marks free space, whose size includes the header. The size of any other object
        # does not include the header and is rounded up to a multiple of 8. The sum of header and
        # size is taken modulo 2^64, as in HDF5.
        step = (size if index == 0 else _HEADER_BYTES + -(-size // 8) * 8) % 2**64
        if step == 0:
            return True
        position += step
    checked.update((other, position) for other in visited if other < position)
    return False


def _read_unsigned(content: bytes | mmap.mmap, position: int, n_bytes: int) -> int:
    """Return the unsigned integer in the `n_bytes` bytes at `position`, lowest byte first."""
    return int.from_bytes(content[position : position + n_bytes], "little")
