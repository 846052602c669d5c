"""Atomic writing of files: readers find the old content or the whole new content.

An interruption at any moment leaves the file that was there before unchanged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

# Suffix of files in progress. They are hidden, and carry the number of the process, so that two
# processes that write the same file do not use the same one.
_PARTIAL = ".partial"
_LEFTOVER = re.compile(r"\.(?P<name>.+)\.[0-9]+\.partial")


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `path` when the block ends without error.

    Parameters
    ----------
    path : Path
        The file to write. Its folder is created if necessary.

    Yields
    ------
    partial : Path
        An empty file in the same folder, to which the new content is written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, since only a rename within one file system is atomic.
    partial = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    partial.unlink(missing_ok=True)  # of a killed process, or a link that must not be followed
    partial.touch(exist_ok=False)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def is_partial_file(path: Path, names: Collection[str]) -> bool:
    """Return whether `path` is a partial file of `atomic_write` for a file with one of the names.

    Such files remain when the process that writes them is killed.
    """
    match = _LEFTOVER.fullmatch(path.name)
    return match is not None and match["name"] in names and path.is_file()


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 atomically."""
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")
