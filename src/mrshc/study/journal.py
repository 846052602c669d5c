"""Keeps what is done while a study runs, so that an interrupted one goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Journal:
    """A file of finished tasks, one on each line, after a line that says what they belong to."""

    def __init__(self, path: Path, *, fingerprint: str) -> None:
        self._path = path
        self._header = json.dumps({"fingerprint": fingerprint})
        self.done: dict[tuple[int, ...], list[dict[str, Any]]] = {}
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and lines[0] == self._header:
            self._read(lines[1:])
        else:
            path.write_text(self._header + "\n")

    def _read(self, lines: list[str]) -> None:
        whole = [self._header]
        for line in lines:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:  # cut off in the middle of being written
                break
            self.done[tuple(entry["task"])] = entry["rows"]
            whole.append(line)
        self._path.write_text("\n".join(whole) + "\n")

    def add(self, task: tuple[int, ...], rows: list[dict[str, Any]]) -> None:
        """Note a finished task."""
        self.done[task] = rows
        with self._path.open("a") as file:
            file.write(json.dumps({"task": task, "rows": rows}) + "\n")

    def close(self) -> None:
        """Remove the file: the study is complete."""
        self._path.unlink(missing_ok=True)
