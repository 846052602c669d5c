"""Journal of finished steps: a file of JSON lines that can be read after an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mrshc.errors import UserError
from mrshc.utils.atomic_files import atomic_write

# Number of bytes that are read to compare the header. Headers are shorter; a file that is no
# journal may have a first line of any length.
_LONGEST_HEADER = 4096


class JournalMismatchError(UserError):
    """The journal belongs to other work: other data, parameters or another version."""


class DamagedJournalError(UserError):
    """The journal cannot be read, or the path leads to something else than a file."""


class StepJournal:
    """File of JSON lines to which finished steps are appended.

    The first line, the header, identifies the work to which the steps belong. If the process is
    killed while it writes, the last line is incomplete; it is ignored and removed when the journal
    is opened again. Damage in any other line has another cause and is refused.

    Parameters
    ----------
    path : Path
        The file, which is created if it does not exist.
    work : str
        Identifier of the work, such as a digest of data and parameters.

    Attributes
    ----------
    entries : list
        Steps that the file held when it was opened, as `json.loads` returns them.

    Raises
    ------
    JournalMismatchError
        If the header identifies other work.
    DamagedJournalError
        If the file is no journal, or one of its lines is no JSON.
    """

    def __init__(self, path: Path, *, work: str) -> None:
        header = json.dumps({"work": work}).encode() + b"\n"
        content = b""
        if _regular_file_size(path):
            _refuse_other_header(path, header)
            content = path.read_bytes()
        # Up to the last line break: without one, the last line is incomplete.
        complete = content[: content.rfind(b"\n") + 1] or header
        lines = complete.split(b"\n")[1:-1]
        self.entries = [_parse_entry(line, path, number=i) for i, line in enumerate(lines, start=2)]
        self._path = path
        if complete != content:
            # Otherwise the next step would be appended to the incomplete line.
            with atomic_write(path) as partial:
                partial.write_bytes(complete)

    def append(self, entry: Any) -> None:
        """Append a step, any object that JSON can represent."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def damaged_line_error(path: Path, number: int) -> DamagedJournalError:
    """Return the error of a line that is no finished step; lines are counted from 1."""
    return DamagedJournalError(
        f"{path} is damaged: line {number} holds no finished step. Remove it to begin anew."
    )


def _regular_file_size(path: Path) -> int:
    """Return the size of a regular file, 0 if there is none; refuse everything else.

    Reading a pipe could block, and reading a device such as /dev/zero would not end.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0
    if not S_ISREG(status.st_mode):
        raise DamagedJournalError(
            f"{path} must be a file for finished steps, but is a folder or a device. Give another "
            "path."
        )
    return status.st_size


def _refuse_other_header(path: Path, header: bytes) -> None:
    """Refuse a file that does not start with the header."""
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
    if first == header:
        return
    # The header of a journal, though of another one, or the first line of any other file?
    other = _parse_json(first) if first.endswith(b"\n") else None
    if isinstance(other, dict) and isinstance(other.get("work"), str):
        raise JournalMismatchError(f"{path} belongs to other work. Remove it to begin anew.")
    raise DamagedJournalError(
        f"{path} is damaged, or no file of finished steps. Remove it to begin anew, or give "
        "another path."
    )


def _parse_entry(line: bytes, path: Path, *, number: int) -> Any:
    """Return the step on a line, or raise DamagedJournalError with the number of the line."""
    entry = _parse_json(line)
    if entry is None:
        raise damaged_line_error(path, number)
    return entry


def _parse_json(line: bytes) -> Any:
    """Return the content of a line of JSON; None if it is invalid or nested too deeply."""
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
