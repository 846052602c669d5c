"""Reading of GCT, the table format of GenePattern, in versions 1.2 and 1.3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import (
    MISSING_SPELLINGS,
    RawTable,
    clean_unique_names,
    is_missing,
    parse_number,
)
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.lines import LineReader, Row, iterate_rows, row_length_error
from mrshc.shell.text_cleaning import unguard_formula

_VERSIONS = ("#1.2", "#1.3")
# A count in ASCII digits. \d would also accept digits of other scripts. Numbers of up to 18 digits
# fit into 64 bits.
_COUNT = re.compile(r"[0-9]{1,18}")
# Messages show at most this many characters of a damaged line or cell.
_MAX_SHOWN_CHARACTERS = 40


def _is_gct(file: InputFile) -> bool:
    return file.head_text.startswith(_VERSIONS)


def _read(file: InputFile, options: ReadingOptions) -> RawTable:
    with file.text() as (text, _head):
        return read_gct(text, missing=options.missing_spellings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dimensions:
    """The version of a GCT file and the counts that its second line declares."""

    version: str  # "#1.2" or "#1.3"
    n_rows: int  # number of features, which are in rows
    n_columns: int  # number of samples, which are in columns
    n_row_annotations: int  # number of columns between the names of the features and the values
    n_column_annotations: int  # number of rows between the header and the values

    @property
    def first_value_column(self) -> int:
        """Position of the first column of values, counted from 0."""
        return 1 + self.n_row_annotations

    @property
    def n_cells(self) -> int:
        """Number of cells in each row."""
        return self.first_value_column + self.n_columns


def read_gct(text: TextIO, *, missing: frozenset[str] = MISSING_SPELLINGS) -> RawTable:
    """Return the table in a GCT file of version 1.2 or 1.3; the features are in rows."""
    rows = iterate_rows(LineReader(text), "\t", has_quotes=False)
    dimensions = _read_dimensions(rows)
    header = list(map(unguard_formula, _read_header(rows, dimensions)))
    column_annotations: dict[str, list[Any]] = {}
    for _ in range(dimensions.n_column_annotations):
        row = _check_row(next(rows, None), dimensions.n_cells)
        cells = list(map(unguard_formula, row[1]))
        title = clean_unique_names([*column_annotations, cells[0]], "annotation")[-1]
        column_annotations[title] = cells[dimensions.first_value_column :]
    content = [_check_row(row, dimensions.n_cells) for row in rows]
    if len(content) != dimensions.n_rows:
        raise FlawError(
            f"is a GCT file whose second line gives {dimensions.n_rows} rows, but it has "
            f"{len(content)}. It may be cut off"
        )
    first = dimensions.first_value_column
    return RawTable(
        values=_parse_values(content, first=first, header=header, missing=missing),
        row_names=[unguard_formula(cells[0]) for _, cells in content],
        column_names=header[first:],
        row_annotations={
            title: [unguard_formula(cells[j]) for _, cells in content]
            for j, title in enumerate(clean_unique_names(header[1:first], "annotation"), start=1)
        },
        column_annotations=column_annotations,
        features_in="rows",
        notes=[f"It is a GCT {dimensions.version[1:]} file."],
    )


def _read_dimensions(rows: Iterator[Row]) -> _Dimensions:
    """Return the version and the declared counts, which are in the first two lines.

    Raise FlawError if the second line does not contain the counts.
    """
    version, sizes = next(rows, (1, [""]))[1][0].strip(), next(rows, (2, []))[1]
    counts = [int(cell) for cell in map(str.strip, sizes) if _COUNT.fullmatch(cell)]
    if len(counts) != (2 if version == "#1.2" else 4):
        wanted = "two numbers" if version == "#1.2" else "four numbers"
        raise FlawError(
            f"is a GCT file whose second line must give its size as {wanted} in the digits 0 to 9, "
            f"but is {' '.join(sizes)[:_MAX_SHOWN_CHARACTERS]!r}"
        )
    # Version 1.2 has one column of feature descriptions and no annotations of the samples.
    n_row_annotations, n_column_annotations = (1, 0) if version == "#1.2" else counts[2:]
    return _Dimensions(
        version=version,
        n_rows=counts[0],
        n_columns=counts[1],
        n_row_annotations=n_row_annotations,
        n_column_annotations=n_column_annotations,
    )


def _read_header(rows: Iterator[Row], dimensions: _Dimensions) -> list[str]:
    """Return the titles of the columns, which are in the third line.

    Raise FlawError if the number of titles differs from the declared number of columns.
    """
    _, header = next(rows, (3, []))
    if len(header) != dimensions.n_cells:
        raise FlawError(
            f"is a GCT file whose second line gives {dimensions.n_cells} columns, but its header "
            f"has {len(header)}"
        )
    return header


def _check_row(row: Row | None, n_cells: int) -> Row:
    """Return a row; raise FlawError if it is None (the file has ended) or has the wrong length."""
    if row is None:
        raise FlawError(
            "is a GCT file with fewer rows than its second line gives. It may be cut off"
        )
    if len(row[1]) != n_cells:
        raise row_length_error(row, n_cells)
    return row


def _parse_values(
    content: list[Row], *, first: int, header: list[str], missing: frozenset[str]
) -> NDArray[np.float64]:
    """Return the numbers in all rows; raise FlawError if a cell is neither a number nor missing."""
    values = np.empty((len(content), len(header) - first))
    for row, (line, cells) in zip(values, content, strict=True):
        for j, cell in enumerate(cells[first:]):
            number = np.nan if is_missing(cell, missing) else parse_number(cell, ".")
            if number is None:
                raise FlawError(
                    f"holds the text {cell[:_MAX_SHOWN_CHARACTERS]!r} where a number should be: "
                    f"line {line}, row {cells[0]!r}, column {header[first + j]!r}. Correct that "
                    "cell"
                )
            row[j] = number
    return values


GCT = TableFormat(
    name="a GCT file",
    labels=("GCT",),
    suffixes=(".gct",),
    recognise=_is_gct,
    read_stream=_read,
)
