"""Reading of the rows of a text table: blocks of regular rows at once, other rows cell by cell."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from mrshc.io.raw_table import is_missing, parse_number
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.column_roles import ColumnLayout
from mrshc.io.text_tables.lines import LineReader, Row, row_length_error

# Characters of a block (4 Mi), which is held as text in addition to the numbers. Not tuned: results
# do not depend on it.
_BLOCK_CHARACTERS = 1 << 22
# Spellings of missing values for pandas, which compares them literally; others are recognised cell
# by cell.
_MISSING_SPELLINGS = [
    *("", "NA", "na", "NaN", "nan", "NAN", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL"),
]
# From this version on, pandas reads every number exactly; before, it must be asked to.
_EXACT_PANDAS_VERSION = (3, 1)
# Characters of a cell that a message shows, so that it remains readable.
_MAX_SHOWN_CHARACTERS = 40


class RowReader:
    """Reader of rows of a known layout, which collects names, annotations and numbers.

    Parameters
    ----------
    layout : ColumnLayout
        The roles of the columns.

    Attributes
    ----------
    names : list of str
        Names of the rows that were read; empty if the layout has none.
    annotations : list of list of str
        The annotations of the rows, a list for each column of annotations.
    """

    def __init__(self, layout: ColumnLayout) -> None:
        self._layout = layout
        self._parts: list[NDArray[np.float64]] = []  # each of shape (some rows, numeric columns)
        self.names: list[str] = []
        self.annotations: list[list[str]] = [[] for _ in layout.annotation_columns]

    def pop_values(self) -> NDArray[np.float64]:
        """Return all numbers, of shape (n_rows, n_numeric_columns), and release the parts.

        The parts are released one by one, so that no more than one copy of the data is held.
        """
        n_rows = sum(map(len, self._parts))
        values = np.empty((n_rows, len(self._layout.numeric_columns)))
        start = 0
        while self._parts:
            part = self._parts.pop(0)
            values[start : start + len(part)] = part
            start += len(part)
        return values

    def read(self, inspected: list[Row], lines: LineReader, rows: Iterator[Row]) -> None:
        """Read all rows.

        Parameters
        ----------
        inspected : list of Row
            The first rows, which were taken from `rows` to detect the layout.
        lines : LineReader
            The remaining lines of the text.
        rows : iterator of Row
            The remaining rows, which are split from `lines`.
        """
        self._read_rows(inspected)
        # Spaces may separate in any number, so their count does not tell regular rows.
        can_read_blocks = self._layout.separator != " "
        while can_read_blocks and (block := lines.read_block(_BLOCK_CHARACTERS)):
            if not (self._is_regular(block) and self._try_to_read_block(block)):
                lines.put_back(block)
                break
        self._read_rows(rows)

    def _is_regular(self, block: list[str]) -> bool:
        """Return whether each line is a row with all its cells, quoted as a whole or not at all."""
        separator, n_separators = self._layout.separator, self._layout.n_cells - 1
        return all(
            line.count(separator) == n_separators
            and _has_content(line, separator)
            and ('"' not in line or _can_be_split_at_separators(line, separator))
            for line in block
        )

    def _try_to_read_block(self, block: list[str]) -> bool:
        """Read regular rows at once; return False, with nothing read, if pandas cannot."""
        import pandas as pd  # late: help texts list the formats, and must not wait for it

        layout = self._layout
        is_exact = tuple(map(int, pd.__version__.split(".")[:2])) >= _EXACT_PANDAS_VERSION
        try:
            frame = pd.read_csv(
                io.BytesIO("".join(block).encode()),
                sep=layout.separator,
                decimal=layout.decimal,
                header=None,
                usecols=layout.numeric_columns,
                dtype=np.float64,
                keep_default_na=False,
                na_values=_MISSING_SPELLINGS,
                low_memory=False,
                **({} if is_exact else {"float_precision": "round_trip"}),
            )
        except ValueError:  # the base class of pandas' own errors too
            return False
        # pandas may join or skip lines; names and numbers would then be of different rows.
        if len(frame) != len(block):
            return False
        self._parts.append(frame.to_numpy())
        self._read_texts(block)
        return True

    def _read_texts(self, block: list[str]) -> None:
        """Read names and annotations of regular rows."""
        layout = self._layout
        # They are usually the first columns: a line is not split further than the last of them.
        last = max([*layout.annotation_columns, 0])
        for line in block:
            cells = line.rstrip("\r\n").split(layout.separator, last + 1)
            if layout.has_row_names:
                self.names.append(_unquote(cells[0]))
            for column, j in zip(self.annotations, layout.annotation_columns, strict=True):
                column.append(_unquote(cells[j]))

    def _read_rows(self, rows: Iterable[Row]) -> None:
        """Read rows cell by cell; name the first cell that cannot be read."""
        layout = self._layout
        values = []
        for row in rows:
            cells = row[1]
            if len(cells) != layout.n_cells:
                raise row_length_error(row, layout.n_cells)
            if layout.has_row_names:
                self.names.append(cells[0].strip())
            for column, j in zip(self.annotations, layout.annotation_columns, strict=True):
                column.append(cells[j].strip())
            values.append(_parse_numeric_cells(row, layout))
        if values:
            self._parts.append(np.array(values))


def _has_content(line: str, separator: str) -> bool:
    """Return whether a cell of a line holds more than spaces: rows of empty cells are skipped."""
    first = line.lstrip(separator + ' "')[:1]
    return first != "" and not first.isspace()


def _can_be_split_at_separators(line: str, separator: str) -> bool:
    """Return whether quotation marks enclose whole cells, without separators or marks inside.

    Other lines have fewer cells than separators, or are read differently by different parsers.
    """
    parts = line.rstrip("\r\n").split('"')
    if len(parts) % 2 == 0:  # a mark is left open
        return False
    first, *between, last = parts[::2]  # outside of the marks
    return (
        not any(separator in inside for inside in parts[1::2])
        and (not first or first.endswith(separator))
        and (not last or last.startswith(separator))
        and all(part.startswith(separator) and part.endswith(separator) for part in between)
    )


def _unquote(cell: str) -> str:
    """Return the text of a cell that is quoted as a whole or not at all."""
    cell = cell.strip()
    return cell[1:-1].strip() if cell.startswith('"') else cell


def _parse_numeric_cells(row: Row, layout: ColumnLayout) -> NDArray[np.float64]:
    """Return the numbers of a row, NaN for missing ones; name the first cell that is not one."""
    cells = layout.select_numeric_cells(row[1])
    # The fast path for rows without missing values. Python reads 1_000 as a number; in a table it
    # is a mistake.
    if layout.decimal == "." and "_" not in "".join(cells):
        with suppress(ValueError):  # a missing value, or a mistake that is reported below
            return np.array(list(map(float, cells)))
    numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        number = np.nan if is_missing(cell) else parse_number(cell, layout.decimal)
        if number is None:
            raise _not_a_number_error(row, layout, layout.numeric_columns[i])
        numbers[i] = number
    return numbers


def _not_a_number_error(row: Row, layout: ColumnLayout, j: int) -> FlawError:
    """Return the error about text in column j, where a number was expected."""
    line, cells = row
    row_name = f", row {cells[0]!r}" if layout.has_row_names else ""
    column = repr(layout.columns[j]) if layout.columns[j] else f"number {j + 1}"
    return FlawError(
        f"holds the text {cells[j].strip()[:_MAX_SHOWN_CHARACTERS]!r} where a number should be: "
        f"line {line}{row_name}, column {column}. Correct that cell, or declare the column an "
        "annotation"
    )
