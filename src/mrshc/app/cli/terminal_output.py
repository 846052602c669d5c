"""Output of the commands: sentences and tables on stdout, progress and warnings on stderr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class TerminalOutput:
    """Prints sentences, tables and progress.

    Parameters
    ----------
    quiet : bool, default=False
        Whether to print only warnings.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        # Rich is imported here and not at the top of the file, since the import would delay help
        # texts.
        from rich.console import Console

        self.is_quiet = quiet
        self._out = Console(highlight=False)
        self._err = Console(stderr=True)

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown: only if stderr is a terminal and `quiet` is False."""
        return self._err.is_terminal and not self.is_quiet

    def print_sentence(self, sentence: str) -> None:
        """Print a sentence on stdout, unless `quiet` is True."""
        if not self.is_quiet:
            # Markup is disabled, since names of files and features may contain square brackets. A
            # sentence is printed on one line, since programs may search the output.
            self._out.print(sentence, markup=False, soft_wrap=True)

    def print_phase(self, sentence: str) -> None:
        """Print a sentence on the step that begins, unless the progress of the step is shown."""
        if not self.shows_progress:
            self.print_sentence(sentence)

    def print_warning(self, sentence: str) -> None:
        """Print a warning on stderr, even if `quiet` is True."""
        self._err.print(f"mrshc: {sentence}", markup=False, highlight=False, soft_wrap=True)

    def print_table(self, headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
        """Print a table on stdout, unless `quiet` is True."""
        if self.is_quiet:
            return
        from rich.markup import escape
        from rich.table import Table

        table = Table(*map(escape, headings))
        for row in rows:
            table.add_row(*(escape(str(cell)) for cell in row))
        self._out.print(table)

    @contextmanager
    def show_status(self, activity: str) -> Iterator[None]:
        """Show a spinner with the name of an activity while the context is active.

        Nothing is shown if `shows_progress` is False.
        """
        if not self.shows_progress:
            yield
            return
        from rich.markup import escape

        from mrshc.core.parallel import no_progress

        with self._err.status(escape(activity)), no_progress():
            yield
