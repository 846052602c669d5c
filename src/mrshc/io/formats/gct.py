"""GCT, the table format of GenePattern, versions 1.2 and 1.3."""

from __future__ import annotations

import re
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from mrshc.io.formats.input_file import InputFile
from mrshc.io.formats.registry import ReadingOptions, TableFormat
from mrshc.io.raw_table import RawTable, is_missing, number_of, unique
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.lines import Lines, Row, ragged, rows_of
from mrshc.utils.text_cleaning import unguard_formula

_VERSIONS = ("#1.2", "#1.3")
# A size in ASCII digits, and no larger than an array can be.
_SIZE = re.compile(r"[0-9]{1,18}")
# Characters of a damaged line that are shown in a sentence.
_SHOWN = 40


def _is_gct(file: InputFile) -> bool:
    return file.beginning.startswith(_VERSIONS)


def _read(file: InputFile, _: ReadingOptions) -> RawTable:
    with file.text() as (text, _head):
        return read_gct(text)


def read_gct(text: TextIO) -> RawTable:
    """Read GCT 1.2 or 1.3: features in rows, annotations of both."""
    rows = rows_of(Lines(text), "\t", quoted=False)
    version, sizes = next(rows, (1, [""]))[1][0].strip(), next(rows, (2, []))[1]
    numbers = [int(cell) for cell in map(str.strip, sizes) if _SIZE.fullmatch(cell)]
    if len(numbers) != (2 if version == "#1.2" else 4):
        wanted = "two numbers" if version == "#1.2" else "four numbers"
        raise FlawError(
            f"is a GCT file whose second line must give its size as {wanted} in the digits 0 to 9, "
            f"but is {' '.join(sizes)[:_SHOWN]!r}"
        )
    n_rows, n_columns = numbers[:2]
    n_notes, n_sample_rows = (1, 0) if version == "#1.2" else numbers[2:]
    _, header = next(rows, (3, []))
    width = 1 + n_notes + n_columns
    if len(header) != width:
        raise FlawError(
            f"is a GCT file whose second line asks for {width} columns, but its header has "
            f"{len(header)}"
        )
    column_annotations: dict[str, list[Any]] = {}
    header = list(map(unguard_formula, header))
    for _ in range(n_sample_rows):
        cells = list(map(unguard_formula, _checked_row(next(rows, None), width)[1]))
        title = unique([*column_annotations, cells[0]], "annotation")[-1]
        column_annotations[title] = cells[1 + n_notes :]
    content = [_checked_row(row, width) for row in rows]
    if len(content) != n_rows:
        raise FlawError(
            f"is a GCT file whose second line gives {n_rows} rows, but it has {len(content)}. It "
            "may be cut off"
        )
    return RawTable(
        values=_values(content, first=1 + n_notes, header=header),
        row_names=[unguard_formula(cells[0]) for _, cells in content],
        column_names=header[1 + n_notes :],
        row_annotations={
            title: [unguard_formula(cells[j]) for _, cells in content]
            for j, title in enumerate(unique(header[1 : 1 + n_notes], "annotation"), start=1)
        },
        column_annotations=column_annotations,
        features_in="rows",
        notes=[f"It is a GCT {version[1:]} file."],
    )


def _checked_row(row: Row | None, width: int) -> Row:
    if row is None:
        raise FlawError("is a GCT file that ends before its second line says")
    if len(row[1]) != width:
        raise ragged(row, width)
    return row


def _values(content: list[Row], *, first: int, header: list[str]) -> NDArray[np.float64]:
    values = np.empty((len(content), len(header) - first))
    for row, (line, cells) in zip(values, content, strict=True):
        for j, cell in enumerate(cells[first:]):
            number = np.nan if is_missing(cell) else number_of(cell, ".")
            if number is None:
                raise FlawError(
                    f"holds the text {cell[:40]!r} where a number should be: line {line}, row "
                    f"{cells[0]!r}, column {header[first + j]!r}. Mend that cell"
                )
            row[j] = number
    return values


GCT = TableFormat(
    name="a GCT file",
    listed=("GCT",),
    suffixes=(".gct",),
    recognise=_is_gct,
    read_stream=_read,
)
