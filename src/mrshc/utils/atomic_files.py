"""Files that are either the old ones or whole new ones, whenever the writing is interrupted."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

_PARTIAL = ".partial"
_LEFTOVER = re.compile(r"\.(?P<name>.+)\.[0-9]+\.partial")


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


def is_leftover(path: Path, names: Collection[str]) -> bool:
    """Return whether one of some files was being written by `replacing` when it was killed."""
    match = _LEFTOVER.fullmatch(path.name)
    return match is not None and match["name"] in names and path.is_file()


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
