"""Journal of finished steps: a file of JSON lines that can be read after an interruption.

Each line after the first describes one finished step of a long computation, so an interrupted
computation can continue after the last finished step.
"""

from __future__ import annotations

import json
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mrshc.errors import UserError
from mrshc.shell.atomic_files import atomic_write

# Maximum number of bytes of the first line that are read to check the header. A header is shorter
# than this, but the first line of a file that is not a journal may have any length.
_LONGEST_HEADER = 4096


class JournalMismatchError(UserError):
    """Error raised if a journal belongs to a computation with other data, parameters or version."""


class DamagedJournalError(UserError):
    """Error raised if a journal is damaged, or if a path does not refer to a journal."""


class StepJournal:
    """File of JSON lines to which the finished steps of a computation are appended.

    The first line, the header, identifies the computation. If the process is killed while it
    writes, the last line may be incomplete. When the journal is opened again, an incomplete last
    line is ignored and removed. An interruption cannot damage any other line, so an error is raised
    if another line is damaged.

    Parameters
    ----------
    path : Path
        The file, which is created if it does not exist.
    work : str
        Identifier of the computation, such as a hash of the data and the parameters.

    Attributes
    ----------
    entries : list
        Steps that the file contained when it was opened, as returned by `json.loads`.

    Raises
    ------
    JournalMismatchError
        If the header identifies a different computation.
    DamagedJournalError
        If the file is not a journal, or one of its complete lines is not valid JSON.
    """

    def __init__(self, path: Path, *, work: str) -> None:
        header = json.dumps({"work": work}).encode() + b"\n"
        content = b""
        if _regular_file_size(path):
            _refuse_other_header(path, header)
            content = path.read_bytes()
        # Keep everything up to the last line break. Text after the last line break is an incomplete
        # line.
        complete = content[: content.rfind(b"\n") + 1] or header
        lines = complete.split(b"\n")[1:-1]
        self.entries = [_parse_entry(line, path, number=i) for i, line in enumerate(lines, start=2)]
        self._path = path
        if complete != content:
            # Rewrite the file without the incomplete line; otherwise the next step would be
            # appended to the incomplete line.
            with atomic_write(path) as partial:
                partial.write_bytes(complete)

    def append(self, entry: Any) -> None:
        """Append a step to the file. A step is any object that JSON can represent."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def damaged_line_error(path: Path, number: int) -> DamagedJournalError:
    """Return, without raising it, the error for a line that does not describe a finished step.

    `number` is the number of the line, counted from 1.
    """
    return DamagedJournalError(
        f"{path} is damaged: line {number} holds no finished step. Remove it to begin anew."
    )


def _regular_file_size(path: Path) -> int:
    """Return the size of a regular file in bytes, or 0 if the file does not exist.

    Raise DamagedJournalError if the path is a folder, a pipe or a device. Reading from a pipe could
    block, and reading from a device such as /dev/zero would never end.
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
    """Raise an error if the first line of a file is not the expected header.

    The error is JournalMismatchError if the first line is the header of a different computation.
    Otherwise the error is DamagedJournalError.
    """
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEADER)
    if first == header:
        return
    # Determine whether the first line is the header of another journal or belongs to a file that
    # is not a journal.
    other = _parse_json(first) if first.endswith(b"\n") else None
    if isinstance(other, dict) and isinstance(other.get("work"), str):
        raise JournalMismatchError(f"{path} belongs to other work. Remove it to begin anew.")
    raise DamagedJournalError(
        f"{path} is damaged, or no file of finished steps. Remove it to begin anew, or give "
        "another path."
    )


def _parse_entry(line: bytes, path: Path, *, number: int) -> Any:
    """Return the step that a line describes.

    Raise DamagedJournalError if the line is not valid JSON. The message contains the path and the
    number of the line.
    """
    entry = _parse_json(line)
    if entry is None:
        raise damaged_line_error(path, number)
    return entry


def _parse_json(line: bytes) -> Any:
    """Return the object that a line of JSON represents.

    Return None if the line is not valid JSON, or if the JSON is nested too deeply.
    """
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
