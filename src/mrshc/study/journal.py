"""Keeps what is done while a study runs, so that an interrupted one goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mrshc import files
from mrshc.locking import locked_folder, remove_locked_folder
from mrshc.study.config import StudyError

Task = tuple[int, ...]
Row = dict[str, Any]


@contextmanager
def open_journal(folder: Path, *, fingerprint: str) -> Iterator[Journal]:
    """Open the journal in a folder, which nobody else may do meanwhile."""
    with locked_folder(folder) as mine:
        if not mine:
            raise StudyError(f"Another process is at work in {folder}. Wait for it, or stop it.")
        yield Journal(folder, fingerprint=fingerprint)


class Journal:
    """A folder of its own: finished tasks, one on each line of a file, and pictures beside it."""

    def __init__(self, folder: Path, *, fingerprint: str) -> None:
        self.folder = folder
        self.rows: dict[Task, list[Row]] = {}
        self.seconds: dict[Task, float] = {}
        try:
            self._file = files.Journal(folder / "journal.jsonl", work=fingerprint)
        except files.OtherWorkError:
            raise StudyError(
                f"{self.folder} holds the unfinished work of another config or of other code. "
                "Remove it to begin anew, or give another folder (--out)."
            ) from None
        for entry in self._file.entries:
            self._remember(entry)

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
