"""The rows of a text table: fast where they are regular, cell by cell where they are not."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from mrshc.io.raw_table import is_missing, number_of
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.column_roles import Layout
from mrshc.io.text_tables.lines import Lines, Row, ragged

# Characters that are taken apart at a time: what is held in addition to the numbers.
_BLOCK = 1 << 22
# As pandas looks for them in columns of numbers; other spellings are found cell by cell.
_GAPS = ["", "NA", "na", "NaN", "nan", "NAN", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL"]


class RowReader:
    """Reads rows of known layout, and holds their names, annotations and numbers."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._values: list[NDArray[np.float64]] = []  # (some rows, columns) each
        self.names: list[str] = []
        self.annotations: list[list[str]] = [[] for _ in layout.annotating]

    def take_values(self) -> NDArray[np.float64]:
        """Return all numbers, and let go of the parts they came in: there is room for one copy."""
        values = np.empty((sum(map(len, self._values)), len(self._layout.numeric)))
        start = 0
        while self._values:
            part = self._values.pop(0)
            values[start : start + len(part)] = part
            start += len(part)
        return values

    def read(self, looked_at: list[Row], lines: Lines, rows: Iterator[Row]) -> None:
        """Read all rows; `rows` takes apart what `lines` gives."""
        separator = self._layout.separator
        self._read_cells(looked_at)
        # Blanks may separate in any number, which needs a closer look.
        while separator != " " and (block := lines.block(_BLOCK)):
            if not (self._is_regular(block) and self._read_block(block)):
                lines.put_back(block)
                break
        self._read_cells(rows)

    def _is_regular(self, block: list[str]) -> bool:
        """Tell whether each line is a row with all its cells, quoted as a whole or not at all."""
        separator, wanted = self._layout.separator, self._layout.n_cells - 1
        return all(
            line.count(separator) == wanted
            and _has_content(line, separator)
            and ('"' not in line or _quotes_whole_cells(line, separator))
            for line in block
        )

    def _read_block(self, block: list[str]) -> bool:
        """Read many rows at once; False if a cell needs a closer look."""
        import pandas as pd  # late: the list of formats must not wait for it

        layout = self._layout
        # Before 3.1, pandas does not read every number to the last digit unless asked to.
        is_exact = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
        try:
            frame = pd.read_csv(
                io.BytesIO("".join(block).encode()),
                sep=layout.separator,
                decimal=layout.decimal,
                header=None,
                usecols=layout.numeric,
                dtype=np.float64,
                keep_default_na=False,
                na_values=_GAPS,
                low_memory=False,
                **({} if is_exact else {"float_precision": "round_trip"}),
            )
        except ValueError:  # also what pandas' parser raises
            return False
        if len(frame) != len(block):
            return False
        self._values.append(frame.to_numpy())
        self._read_texts(block)
        return True

    def _read_texts(self, block: list[str]) -> None:
        """Read names and annotations of regular rows; most often they stand at the beginning."""
        layout = self._layout
        last = max([*layout.annotating, 0])
        for line in block:
            cells = line.rstrip("\r\n").split(layout.separator, last + 1)
            if layout.naming:
                self.names.append(_unquoted(cells[0]))
            for column, j in zip(self.annotations, layout.annotating, strict=True):
                column.append(_unquoted(cells[j]))

    def _read_cells(self, rows: Iterable[Row]) -> None:
        """Read rows cell by cell, and name the first that cannot be read."""
        layout = self._layout
        values = []
        for row in rows:
            cells = row[1]
            if len(cells) != layout.n_cells:
                raise ragged(row, layout.n_cells)
            if layout.naming:
                self.names.append(cells[0].strip())
            for column, j in zip(self.annotations, layout.annotating, strict=True):
                column.append(cells[j].strip())
            values.append(_numbers(row, layout))
        if values:
            self._values.append(np.array(values))


def _has_content(line: str, separator: str) -> bool:
    """Tell whether a cell of a line holds more than blanks: rows of empty cells are skipped."""
    first = line.lstrip(separator + ' "')[:1]
    return first != "" and not first.isspace()


def _quotes_whole_cells(line: str, separator: str) -> bool:
    """Tell whether quotation marks enclose whole cells, without separators or marks inside.

    Other lines have fewer cells than separators, or are read differently by different parsers.
    """
    parts = line.rstrip("\r\n").split('"')
    if len(parts) % 2 == 0:  # a mark is left open
        return False
    first, *between, last = parts[::2]  # outside the marks
    return (
        not any(separator in inside for inside in parts[1::2])
        and (not first or first.endswith(separator))
        and (not last or last.startswith(separator))
        and all(part.startswith(separator) and part.endswith(separator) for part in between)
    )


def _unquoted(cell: str) -> str:
    """Return the text of a cell that is quoted as a whole or not at all."""
    cell = cell.strip()
    return cell[1:-1].strip() if cell.startswith('"') else cell


def _numbers(row: Row, layout: Layout) -> NDArray[np.float64]:
    cells = layout.numbers(row[1])
    # Python reads 1_000 as a number; a table that holds it means something else.
    if layout.decimal == "." and "_" not in "".join(cells):
        with suppress(ValueError):  # a gap, or a cell to be named below
            return np.array(list(map(float, cells)))
    numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        number = np.nan if is_missing(cell) else number_of(cell, layout.decimal)
        if number is None:
            raise _text_in_place_of_number(row, layout, layout.numeric[i])
        numbers[i] = number
    return numbers


def _text_in_place_of_number(row: Row, layout: Layout, j: int) -> FlawError:
    line, cells = row
    named = f", row {cells[0]!r}" if layout.naming else ""
    column = repr(layout.columns[j]) if layout.columns[j] else f"number {j + 1}"
    return FlawError(
        f"holds the text {cells[j].strip()[:40]!r} where a number should be: line {line}{named}, "
        f"column {column}. Mend that cell, or say that the column is an annotation"
    )
