"""A file of finished steps, one on each line, that survives a kill at any moment."""

from __future__ import annotations

import json
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mrshc.errors import UserError
from mrshc.utils.atomic_files import replacing

# Bytes of a first line that are read. Headers are shorter; another file may be of any size.
_LONGEST_HEADER = 4096


class OtherWorkError(UserError):
    """A journal belongs to something else than the work at hand."""


class DamagedError(UserError):
    """A journal cannot be read, or something else is in its place."""


class StepJournal:
    """A growing file of JSON lines. The first says what work the others belong to.

    A process may be killed at any moment: a last line that was cut off does not count. A damaged
    line before it has another cause, and is refused.
    """

    def __init__(self, path: Path, *, work: str) -> None:
        header = json.dumps({"work": work}).encode() + b"\n"
        content = b""
        if _regular_file_size(path):
            _refuse_other_header(path, header)
            content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1] or header
        lines = whole.split(b"\n")[1:-1]
        # What was there already.
        self.entries = [_parse_entry(line, path, number=i) for i, line in enumerate(lines, start=2)]
        self._path = path
        if whole != content:
            with replacing(path) as partial:
                partial.write_bytes(whole)

    def append(self, entry: Any) -> None:
        """Add a line."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def damaged(path: Path, number: int) -> DamagedError:
    """Return an error that names the line that cannot be used."""
    return DamagedError(
        f"{path} is damaged: line {number} holds no finished step. Remove it to begin anew."
    )


def _regular_file_size(path: Path) -> int:
    """Return the size of a regular file, 0 if there is none; refuse everything else.

    A pipe would wait for ever, a device has no end.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0
    if not S_ISREG(status.st_mode):
        raise DamagedError(
            f"{path} is a folder or a device, but finished steps need a file. Name another."
        )
    return status.st_size


def _refuse_other_header(path: Path, header: bytes) -> None:
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
    if first == header:
        return
    found = _parse_json(first) if first.endswith(b"\n") else None
    if isinstance(found, dict) and isinstance(found.get("work"), str):
        raise OtherWorkError(f"{path} belongs to other work. Remove it to begin anew.")
    raise DamagedError(
        f"{path} is damaged, or no file of finished steps. Remove it to begin anew, or name "
        "another."
    )


def _parse_entry(line: bytes, path: Path, *, number: int) -> Any:
    entry = _parse_json(line)
    if entry is None:
        raise damaged(path, number)
    return entry


def _parse_json(line: bytes) -> Any:
    """Return what a line of JSON holds; None if it is not one, or nested without end."""
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
