"""Files that are either the old ones or whole new ones, whenever the writing is interrupted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PARTIAL = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; what lies there takes the place of `path` at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}{_PARTIAL}")
    partial.unlink(missing_ok=True)  # of a killed process, or a link that must not be followed
    partial.touch(exist_ok=False)
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Return whether a file was being written by `replacing` when its process was killed."""
    return path.is_file() and path.name.startswith(".") and path.name.endswith(_PARTIAL)


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
