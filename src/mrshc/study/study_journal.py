"""Keeps what is done while a study runs, so that an interrupted one goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from mrshc.errors import Parameter, Sentence
from mrshc.study.config import StudyError
from mrshc.utils import step_journal
from mrshc.utils.folder_lock import locked_folder, remove_locked_folder

Task = tuple[int, ...]
Row = dict[str, Any]


@contextmanager
def open_journal(folder: Path, *, fingerprint: str) -> Iterator[StudyJournal]:
    """Open the journal in a folder, which nobody else may do meanwhile."""
    with locked_folder(folder) as mine:
        if not mine:
            raise StudyError(f"Another process is at work in {folder}. Wait for it, or stop it.")
        yield StudyJournal(folder, fingerprint=fingerprint)


class StudyJournal:
    """A folder of its own: finished tasks, one on each line of a file, and pictures beside it."""

    def __init__(self, folder: Path, *, fingerprint: str) -> None:
        self.folder = folder
        self.rows: dict[Task, list[Row]] = {}
        self.seconds: dict[Task, float] = {}
        path = folder / "journal.jsonl"
        try:
            self._file = step_journal.StepJournal(path, work=fingerprint)
            for number, entry in enumerate(self._file.entries, start=2):
                self._remember(_checked(entry, path, number=number))
        except step_journal.OtherWorkError:
            sentence = (
                "{folder} holds the unfinished work of another config or of other code. Remove it "
                "to begin anew, or give another folder ({out})."
            )
            raise _refused(sentence, folder) from None
        except step_journal.DamagedError:
            sentence = (
                "{path} is damaged. Remove {folder} to begin anew, or give another folder ({out})."
            )
            raise _refused(sentence, folder, path=path) from None

    def add(self, task: Task, rows: list[Row], seconds: float) -> None:
        """Note a finished task."""
        entry = {"task": task, "rows": rows, "seconds": round(seconds, 4)}
        self._remember(entry)
        self._file.append(entry)

    def _remember(self, entry: dict[str, Any]) -> None:
        task = tuple(entry["task"])
        self.rows[task] = entry["rows"]
        self.seconds[task] = entry["seconds"]

    def close(self, *, pictures_to: Path | None) -> None:
        """Remove the folder, the study being complete; its pictures move to their place."""
        if pictures_to is not None:
            for picture in sorted(self.folder.glob("*.png")):
                picture.replace(pictures_to / picture.name)
        remove_locked_folder(self.folder)


def _refused(sentence: str, folder: Path, **fields: Any) -> StudyError:
    return StudyError(Sentence(sentence, folder=folder, out=Parameter("out"), **fields))


def _checked(entry: Any, path: Path, *, number: int) -> dict[str, Any]:
    """Return an entry if it is a finished task; what its rows hold is up to the study."""
    found: dict[str, Any] = entry if isinstance(entry, dict) else {}
    if not (
        _is_list_of(found.get("task"), int)
        and _is_list_of(found.get("rows"), dict)
        and not any(isinstance(v, list | dict) for row in found["rows"] for v in row.values())
        and type(found.get("seconds")) in (int, float)
        and isfinite(found["seconds"])
        and found["seconds"] >= 0
    ):
        raise step_journal.damaged(path, number)
    return found


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)
