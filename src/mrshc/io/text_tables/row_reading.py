"""Reading of the rows of a text table: regular rows in blocks, other rows cell by cell."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from mrshc.io.raw_table import add_annotation_row, is_missing, parse_number
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.column_roles import ColumnLayout
from mrshc.io.text_tables.lines import LineReader, Row, row_length_error
from mrshc.shell.wording import Parameter, Sentence

# Number of characters in a block (about 4 million). While a block is read, its text is in memory in
# addition to the numbers. The number is not tuned: it does not affect the result.
_BLOCK_CHARACTERS = 1 << 22
# Spellings of missing values that are passed to pandas, which distinguishes upper and lower case.
# If a block contains another spelling, the rows are read cell by cell.
_MISSING_SPELLINGS = [
    *("", "NA", "na", "NaN", "nan", "NAN", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL"),
]
# From this version on, pandas reads every number exactly by default. In earlier versions, an option
# is needed.
_EXACT_PANDAS_VERSION = (3, 1)
# Messages show at most this many characters of an invalid cell.
_MAX_SHOWN_CHARACTERS = 40


class RowReader:
    """Reader of the rows of a text table, which collects names, annotations and numbers.

    Attributes
    ----------
    names : list of str
        Names of the rows that were read; empty if the rows have no names.
    annotations : list of list of str
        Annotations of the rows that were read, with one list for each annotation column.
    column_annotations : dict of str to list of str
        Cells of the rows that are annotations of the columns, by title.
    """

    def __init__(self, layout: ColumnLayout) -> None:
        self._layout = layout
        self._parts: list[NDArray[np.float64]] = []  # each of shape (n_rows, n_columns)
        self.names: list[str] = []
        self.annotations: list[list[str]] = [[] for _ in layout.annotation_columns]
        self.column_annotations: dict[str, list[str]] = {}

    def pop_values(self) -> NDArray[np.float64]:
        """Return the numbers of all rows as an array, and delete the stored parts.

        The array has shape (n_rows, n_numeric_columns). Each part is deleted as soon as it has been
        copied into the array, to save memory.
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
        """Read all rows, and store their names, annotations and numbers."""
        self.read_rows(inspected)
        # Several spaces may separate two cells, so regular rows cannot be identified by counting
        # separators.
        can_read_blocks = self._layout.separator != " "
        while can_read_blocks and (block := lines.read_block(_BLOCK_CHARACTERS)):
            if not (self._is_regular(block) and self._try_to_read_block(block)):
                lines.put_back(block)
                break
        self.read_rows(rows)

    def _is_regular(self, block: list[str]) -> bool:
        """Return whether each line in a block is a row with the expected number of cells.

        Blank lines are not rows. Each cell must be quoted as a whole or not at all.
        """
        separator, n_separators = self._layout.separator, self._layout.n_cells - 1
        return all(
            line.count(separator) == n_separators
            and _has_content(line, separator)
            and ('"' not in line or _can_be_split_at_separators(line, separator))
            for line in block
        )

    def _try_to_read_block(self, block: list[str]) -> bool:
        """Read a block of regular rows with pandas; return False if this is not possible.

        If False is returned, nothing has been stored.
        """
        import pandas as pd  # imported here so that help texts, which list formats, load fast

        layout = self._layout
        annotation_rows, block = self._split_annotation_rows(block)
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
                na_values=[*_MISSING_SPELLINGS, *layout.missing, *map(str.upper, layout.missing)],
                low_memory=False,
                **({} if is_exact else {"float_precision": "round_trip"}),
            )
        except ValueError:  # parser errors of pandas are also ValueErrors
            return False
        # pandas may join or skip lines. Names and numbers would then belong to different rows.
        if len(frame) != len(block):
            return False
        self._parts.append(frame.to_numpy())
        self._read_texts(block)
        for cells in annotation_rows:
            self._store_annotation_row(cells)
        return True

    def _split_annotation_rows(self, block: list[str]) -> tuple[list[list[str]], list[str]]:
        """Return the cells of the annotation rows in a block, and the other lines of the block."""
        separator, names = self._layout.separator, self._layout.annotation_rows
        if not names:
            return [], block
        is_annotation = [_unquote(line.partition(separator)[0]) in names for line in block]
        lines = [line.rstrip("\r\n") for line in compress(block, is_annotation)]
        rows = [[_unquote(cell) for cell in line.split(separator)] for line in lines]
        return rows, [line for line, aside in zip(block, is_annotation, strict=True) if not aside]

    def _store_annotation_row(self, cells: list[str]) -> None:
        """Store a row that is an annotation of the columns."""
        values = [cell.strip() for cell in self._layout.select_numeric_cells(cells)]
        add_annotation_row(self.column_annotations, cells[0].strip(), values)

    def _read_texts(self, block: list[str]) -> None:
        """Store the names and annotations of regular rows."""
        layout = self._layout
        # Names and annotations are usually in the first columns, so a line is split only up to the
        # last annotation column.
        last = max([*layout.annotation_columns, 0])
        for line in block:
            cells = line.rstrip("\r\n").split(layout.separator, last + 1)
            if layout.has_row_names:
                self.names.append(_unquote(cells[0]))
            for column, j in zip(self.annotations, layout.annotation_columns, strict=True):
                column.append(_unquote(cells[j]))

    def read_rows(self, rows: Iterable[Row]) -> None:
        """Read rows cell by cell; raise FlawError if a row or a cell is not valid."""
        layout = self._layout
        values = []
        for row in rows:
            cells = row[1]
            if len(cells) != layout.n_cells:
                raise row_length_error(row, layout.n_cells)
            if cells[0].strip() in layout.annotation_rows:
                self._store_annotation_row(cells)
                continue
            if layout.has_row_names:
                self.names.append(cells[0].strip())
            for column, j in zip(self.annotations, layout.annotation_columns, strict=True):
                column.append(cells[j].strip())
            values.append(_parse_numeric_cells(row, layout))
        if values:
            self._parts.append(np.array(values))


def _has_content(line: str, separator: str) -> bool:
    """Return whether at least one cell of a line is not blank."""
    first = line.lstrip(separator + ' "')[:1]
    return first != "" and not first.isspace()


def _can_be_split_at_separators(line: str, separator: str) -> bool:
    """Return whether quotation marks enclose only whole cells, without separators inside them.

    A line with other quotation marks may have fewer cells than its separators suggest, or may be
    split differently by different parsers.
    """
    parts = line.rstrip("\r\n").split('"')
    if len(parts) % 2 == 0:  # a quotation mark is not closed
        return False
    first, *between, last = parts[::2]  # text outside quotation marks
    return (
        not any(separator in inside for inside in parts[1::2])
        and (not first or first.endswith(separator))
        and (not last or last.startswith(separator))
        and all(part.startswith(separator) and part.endswith(separator) for part in between)
    )


def _unquote(cell: str) -> str:
    """Return the text of a cell without the quotation marks around it, if there are any."""
    cell = cell.strip()
    return cell[1:-1].strip() if cell.startswith('"') else cell


def _parse_numeric_cells(row: Row, layout: ColumnLayout) -> NDArray[np.float64]:
    """Return the numbers in a row, with NaN for missing values.

    Raise FlawError if a cell in a numeric column is neither a number nor missing.
    """
    cells = layout.select_numeric_cells(row[1])
    # This is a fast path for rows without missing values. Rows with an underscore are excluded,
    # since Python would accept 1_000 as a number.
    if layout.decimal == "." and "_" not in "".join(cells):
        with suppress(ValueError):  # missing values and mistakes are handled below
            return np.array(list(map(float, cells)))
    numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        is_absent = is_missing(cell, layout.missing)
        number = np.nan if is_absent else parse_number(cell, layout.decimal)
        if number is None:
            raise _not_a_number_error(row, layout, layout.numeric_columns[i])
        numbers[i] = number
    return numbers


def _not_a_number_error(row: Row, layout: ColumnLayout, j: int) -> FlawError:
    """Return the error for text in column `j`, counted from 0, where a number was expected."""
    line, cells = row
    row_name = f", row {cells[0]!r}" if layout.has_row_names else ""
    column = repr(layout.columns[j]) if layout.columns[j] else f"number {j + 1}"
    return FlawError(
        Sentence(
            "holds the text {text!r} where a number should be: line {line}{row_name}, column "
            "{column}. Correct that cell, or name the {kinds} with {annotations} if it is an "
            "annotation of the samples",
            text=cells[j].strip()[:_MAX_SHOWN_CHARACTERS],
            line=line,
            row_name=row_name,
            column=column,
            kinds="row or the column" if layout.has_row_names else "column",
            annotations=Parameter("annotations"),
        )
    )
