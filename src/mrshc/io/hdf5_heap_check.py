"""Check of the heap in which HDF5 stores text of variable length, before HDF5 reads a file.

The heap consists of collections of objects. If the size of an object is damaged so that the next
object begins at the same position, HDF5 (up to version 2.0 at least) never finishes reading and
cannot be interrupted. The format is described in the HDF5 File Format Specification, section III.E
("Global Heap"): a collection is a header of 16 bytes followed by objects, and each object begins
with a header of 16 bytes.
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
# Files larger than 1 GiB are not searched, since a search would take as long as a pass over all
# values. AnnData writes text between the values of X, at positions that are not known in advance.
_MAX_SEARCHED_BYTES = 1 << 30
# One object in 32 is recorded as checked. A larger interval needs less memory, but a later check
# may need more steps, up to this number, to reach a recorded object. The interval is not tuned: it
# does not affect the result.
_RECORD_INTERVAL = 32


def refuse_endless_heap_in_file(path: str | os.PathLike[str]) -> None:
    """Raise FlawError if HDF5 would never finish reading a file."""
    # Empty files, which cannot be memory-mapped and are rejected by HDF5, and files that are too
    # large to search are skipped.
    if not 0 < Path(path).stat().st_size <= _MAX_SEARCHED_BYTES:
        return
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        refuse_endless_heap(content)


def refuse_endless_heap_in_stream(stream: BinaryIO) -> None:
    """Raise FlawError if HDF5 would never finish reading a stream.

    Only the first 1 GiB is searched. Afterwards, the stream is positioned at its beginning.
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
    """Return whether a collection contains an object that is followed by itself.

    The next object would begin at the same position, so HDF5 would read the same object forever.

    A file that was manipulated to make this check slow may contain collections that overlap. The
    position of the next object does not depend on the collection, so objects that were checked in
    one collection need not be checked in another.

    Parameters
    ----------
    content : bytes or mmap
        The content of the file.
    start : int
        Position of the collection.
    checked : dict of int to int
        Maps the positions of some objects to later positions. All objects between the two positions
        are known to have a positive size. The dict is updated.
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
        # does not include the header and is rounded up to a multiple of 8. The sum is taken modulo
        # 2^64, as in HDF5.
        step = (size if index == 0 else _HEADER_BYTES + -(-size // 8) * 8) % 2**64
        if step == 0:
            return True
        position += step
    checked.update((other, position) for other in visited if other < position)
    return False


def _read_unsigned(content: bytes | mmap.mmap, position: int, n_bytes: int) -> int:
    """Return the unsigned integer in `n_bytes` bytes, stored with the lowest byte first."""
    return int.from_bytes(content[position : position + n_bytes], "little")
