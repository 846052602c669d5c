"""The journal of a running study, which stores finished tasks in case of an interruption."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from mrshc.shell import step_journal
from mrshc.shell.folder_lock import create_and_lock_folder, remove_locked_folder
from mrshc.shell.wording import Parameter, Sentence
from mrshc.study.config import StudyError

# A task is identified by a tuple such as (design, draw, method). It contains positions in lists of
# the config and the index of the draw, all counted from 0.
Task = tuple[int, ...]
# A row of the table of results. The keys are the names of the columns.
Row = dict[str, Any]


@contextmanager
def open_journal(folder: Path, *, fingerprint: str) -> Iterator[StudyJournal]:
    """Yield the journal in a folder, which is locked against use by other processes.

    Raise StudyError if another process has locked the folder, or if the journal is damaged or
    belongs to another config or other code.
    """
    with create_and_lock_folder(folder) as is_locked:
        if not is_locked:
            raise StudyError(
                f"Another process is using {folder}. Wait until it has finished, or stop it."
            )
        yield StudyJournal(folder, fingerprint=fingerprint)


class StudyJournal:
    """A folder that contains a file of finished tasks, one on each line, and finished figures.

    Parameters
    ----------
    folder : Path
        Folder of the journal, which is not used for any other files.
    fingerprint : str
        Fingerprint of the study; see :attr:`Study.fingerprint`.

    Attributes
    ----------
    rows : dict of Task to list of Row
        Rows of each finished task.
    seconds : dict of Task to float
        Computing time of each finished task, in seconds.

    Raises
    ------
    StudyError
        If the folder contains tasks of another config or of other code, or if the file is damaged.
    """

    def __init__(self, folder: Path, *, fingerprint: str) -> None:
        self.folder = folder
        self.rows: dict[Task, list[Row]] = {}
        self.seconds: dict[Task, float] = {}
        path = folder / "journal.jsonl"
        try:
            self._file = step_journal.StepJournal(path, work=fingerprint)
            # The number of an entry is its line number. The first line of the file is a header.
            for number, entry in enumerate(self._file.entries, start=2):
                self._remember(_check_entry(entry, path, number=number))
        except step_journal.JournalMismatchError:
            sentence = (
                "{folder} holds the unfinished work of another config or of other code. Remove it "
                "to start again, or give another folder ({out})."
            )
            raise _journal_error(sentence, folder) from None
        except step_journal.DamagedJournalError:
            sentence = (
                "{path} is damaged. Remove {folder} to start again, or give another folder ({out})."
            )
            raise _journal_error(sentence, folder, path=path) from None

    def add(self, task: Task, rows: list[Row], seconds: float) -> None:
        """Store a finished task."""
        # The time is rounded, since differences below a tenth of a millisecond are noise.
        entry = {"task": task, "rows": rows, "seconds": round(seconds, 4)}
        self._remember(entry)
        self._file.append(entry)

    def _remember(self, entry: dict[str, Any]) -> None:
        """Add an entry of the file to `rows` and `seconds`."""
        task = tuple(entry["task"])
        self.rows[task] = entry["rows"]
        self.seconds[task] = entry["seconds"]

    def close(self, *, pictures_to: Path | None) -> None:
        """Move or delete the figures, and remove the folder of the journal.

        Parameters
        ----------
        pictures_to : Path or None
            Folder to which the figures are moved; if None, the figures are deleted.
        """
        if pictures_to is not None:
            for picture in sorted(self.folder.glob("*.png")):
                picture.replace(pictures_to / picture.name)
        remove_locked_folder(self.folder)


def _journal_error(sentence: str, folder: Path, **fields: Any) -> StudyError:
    """Return the error for a journal that cannot be used.

    The message is made from `sentence`, in which {folder}, {out} and the names in `fields` are
    replaced.
    """
    return StudyError(Sentence(sentence, folder=folder, out=Parameter("out"), **fields))


def _check_entry(entry: Any, path: Path, *, number: int) -> dict[str, Any]:
    """Return an entry of the file; raise DamagedJournalError if it is not a valid task."""
    # The columns of the rows are not checked, since they depend on the kind of study.
    fields: dict[str, Any] = entry if isinstance(entry, dict) else {}
    if not (
        _is_list_of(fields.get("task"), int)
        and _is_list_of(fields.get("rows"), dict)
        and not any(isinstance(v, list | dict) for row in fields["rows"] for v in row.values())
        and type(fields.get("seconds")) in (int, float)
        and isfinite(fields["seconds"])
        and fields["seconds"] >= 0
    ):
        raise step_journal.damaged_line_error(path, number)
    return fields


def _is_list_of(values: Any, kind: type) -> bool:
    """Return whether a value is a list whose items are all exactly of the type `kind`."""
    return isinstance(values, list) and all(type(value) is kind for value in values)
