"""Atomic writing of files: a file has either its old content or its complete new content.

If writing is interrupted, the old content remains unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Suffix of temporary files. The name of a temporary file starts with a dot, which hides the file,
# and contains the process ID, so that two processes that write the same file use different
# temporary files.
_PARTIAL = ".partial"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces the file `path` after the with block.

    If the block raises an error, the temporary file is removed, and the file `path` is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The temporary file is in the same folder, since a rename is atomic only within one file
    # system.
    partial = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    # A file of this name may remain from a process that was killed. The name may also be a symbolic
    # link, which must not be followed.
    partial.unlink(missing_ok=True)
    partial.touch(exist_ok=False)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text to a file in UTF-8, atomically.

    If writing is interrupted, the old content of the file remains unchanged.
    """
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")
