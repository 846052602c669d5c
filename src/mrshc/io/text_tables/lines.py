"""Lines and rows of a text, with line numbers for messages."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import TextIO

from mrshc.io.streams import FlawError

# The line number of a row, counted from 1, and its cells. If a row extends over several lines, the
# number is that of the last line.
Row = tuple[int, list[str]]


class LineReader:
    """Iterator over the lines of a text, which counts the lines and can return blocks of lines.

    Attributes
    ----------
    line_number : int
        Number of the last line that was returned, counted from 1.
    """

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._returned = deque[str]()
        self.line_number = 0

    def __iter__(self) -> Iterator[str]:
        """Return the iterator itself."""
        return self

    def __next__(self) -> str:
        """Return the next line."""
        line = self._returned.popleft() if self._returned else next(self._text)
        self.line_number += 1
        return line

    def read_block(self, n_characters: int) -> list[str]:
        """Return the next lines, which have about `n_characters` characters in total."""
        lines = self._text.readlines(n_characters)
        self.line_number += len(lines)
        return lines

    def put_back(self, lines: list[str]) -> None:
        """Put back the lines of the last block, so that iteration returns them again."""
        self._returned.extend(lines)
        self.line_number -= len(lines)


def iterate_rows(lines: LineReader, separator: str, *, has_quotes: bool = True) -> Iterator[Row]:
    """Yield the non-blank rows of a text."""
    for line in lines:
        if has_quotes and '"' in line:
            cells = _split_quoted_line(line, lines, separator)
        elif separator == " ":
            cells = line.split()
        else:  # this is three times as fast as the csv module
            cells = line.rstrip("\r\n").split(separator)
        if any(cell and not cell.isspace() for cell in cells):
            yield lines.line_number, cells


def _split_quoted_line(line: str, lines: LineReader, separator: str) -> list[str]:
    """Return the cells of a row; raise FlawError if a quoted cell cannot be read.

    A quoted cell may continue on the next lines, which are then taken from `lines`.
    """
    first = lines.line_number
    try:
        return next(csv.reader(chain([line], lines), delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise FlawError(
            f"cannot be read from line {first} on: {error}. A quotation mark may be left open there"
        ) from None


def row_length_error(row: Row, n_cells: int) -> FlawError:
    """Return the error for a row that does not have the expected number of cells, `n_cells`."""
    line, cells = row
    return FlawError(
        f"has {len(cells)} cells in line {line} where {n_cells} were expected. Correct that line, "
        "or name the separator"
    )
