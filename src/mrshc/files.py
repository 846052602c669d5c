"""Files that are either the old ones or whole new ones, whenever the writing is interrupted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mrshc.errors import UserError

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


class OtherWorkError(UserError):
    """A journal belongs to something else than the work at hand."""


class Journal:
    """A growing file of JSON lines. The first says what work the others belong to.

    A process may be killed at any moment: a line that was cut off in the middle does not count.
    """

    def __init__(self, path: Path, *, work: str) -> None:
        header = json.dumps({"work": work})
        first, *lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else [header]
        if first != header:
            raise OtherWorkError(f"{path} belongs to other work. Remove it to begin anew.")
        self.entries: list[Any] = []  # what was there already
        whole = [header]
        for line in lines:
            try:
                self.entries.append(json.loads(line))
            except json.JSONDecodeError:
                break
            whole.append(line)
        write_text(path, "\n".join(whole) + "\n")
        self._path = path

    def append(self, entry: Any) -> None:
        """Add a line."""
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
