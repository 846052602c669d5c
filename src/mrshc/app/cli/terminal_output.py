"""What commands say: sentences on stdout, progress on stderr, neither where it is not wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class Talk:
    """Says things, unless it was told to be quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console

        self._quiet = quiet
        self._out = Console(highlight=False)
        self._err = Console(stderr=True)

    @property
    def shows_progress(self) -> bool:
        """Whether anyone would see progress."""
        return self._err.is_terminal and not self._quiet

    def say(self, sentence: str) -> None:
        """Print a sentence as it is."""
        if not self._quiet:
            self._out.print(sentence, markup=False, soft_wrap=True)

    def warn(self, sentence: str) -> None:
        """Print a sentence on stderr, also if told to be quiet."""
        self._err.print(f"mrshc: {sentence}", markup=False, highlight=False, soft_wrap=True)

    def show(self, headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
        """Print a table."""
        if self._quiet:
            return
        from rich.markup import escape
        from rich.table import Table

        table = Table(*map(escape, headings))
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self._out.print(table)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show that something is under way."""
        if not self.shows_progress:
            yield
            return
        from rich.markup import escape

        with self._err.status(escape(what)):
            yield
