"""Lines and rows of a text, with the numbers that errors name."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import TextIO

from mrshc.io.streams import FlawError

Row = tuple[int, list[str]]  # the number of its line, and its cells


class Lines:
    """The lines of a text, counted; one by one, or many at a time."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._put_back = deque[str]()
        self.number = 0  # of the last line that was given

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._put_back.popleft() if self._put_back else next(self._text)
        self.number += 1
        return line

    def block(self, size: int) -> list[str]:
        """Return the next lines, about so many characters."""
        lines = self._text.readlines(size)
        self.number += len(lines)
        return lines

    def put_back(self, lines: list[str]) -> None:
        """Take lines back, to be given one by one."""
        self._put_back.extend(lines)
        self.number -= len(lines)


def rows_of(lines: Lines, separator: str, *, quoted: bool = True) -> Iterator[Row]:
    """Yield the rows of a text that are not blank."""
    for line in lines:
        if quoted and '"' in line:
            cells = _quoted_cells(line, lines, separator)
        elif separator == " ":
            cells = line.split()
        else:  # three times faster than csv
            cells = line.rstrip("\r\n").split(separator)
        if any(cell and not cell.isspace() for cell in cells):
            yield lines.number, cells


def _quoted_cells(line: str, lines: Lines, separator: str) -> list[str]:
    """Return the cells of a row that begins with a line; a quoted cell may go on in the next."""
    first = lines.number
    try:
        return next(csv.reader(chain([line], lines), delimiter=separator, skipinitialspace=True))
    except csv.Error as error:
        raise FlawError(
            f"cannot be read from line {first} on: {error}. A quotation mark may be left open there"
        ) from None


def ragged(row: Row, n_cells: int) -> FlawError:
    """Return what is wrong with a row that has too many cells or too few."""
    line, cells = row
    return FlawError(
        f"has {len(cells)} cells in line {line} where {n_cells} were expected. Mend that line, or "
        "name the separator"
    )
