"""Annotations of the samples from a second table, which are matched by the sample names."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mrshc.io.formats import InputFile, unknown_format_error
from mrshc.io.formats.excel import is_workbook, read_workbook
from mrshc.io.missing_marks import replace_missing
from mrshc.io.raw_table import clean_unique_names, parse_annotation
from mrshc.io.streams import (
    FlawError,
    TableError,
    detect_encoding,
    display_name,
    open_stream,
    open_text,
    peek_head,
    table_error,
)
from mrshc.io.table import Table
from mrshc.io.text_tables.dialect import detect_dialect
from mrshc.io.text_tables.lines import LineReader, Row, iterate_rows, row_length_error
from mrshc.shell.text_cleaning import clean_text
from mrshc.shell.wording import Parameter, Sentence

# Largest number of sample names in a message. Five names are enough to recognise the mistake, and
# fit on one line.
_MAX_LISTED_NAMES = 5


def read_sample_annotations(
    path: str | os.PathLike[str], *, sheet: str | None = None
) -> pd.DataFrame:
    """Return a table of annotations of the samples, read from delimited text or a workbook."""
    try:
        with open_stream(path) as stream:
            content, decimal, notes = _read_rows(stream, sheet)
        header, rows = _split_header(content)
        titles = clean_unique_names(header, "column")
    except FlawError as flaw:
        raise table_error(display_name(path), flaw) from None
    # The cells are cleaned in the same way as sample names, since some of them are compared with
    # sample names.
    cells = [[clean_text(cell) for cell in row] for row in rows]
    annotations = pd.DataFrame(cells, columns=titles, dtype=object)
    annotations.attrs |= {"decimal": decimal, "notes": notes}
    return annotations


def _read_rows(
    stream: io.BufferedReader, sheet: str | None
) -> tuple[list[Row], str, Sequence[str]]:
    """Return all rows of a table of annotations, its decimal mark, and notes on its sheet.

    Raise FlawError if the table is neither text nor a workbook, or has no such sheet.
    """
    file = InputFile.from_stream(stream)
    if is_workbook(file):
        cells = read_workbook(file.content, sheet=sheet, parameter="samples_sheet")
        return cells.rows, ".", cells.notes
    if sheet is not None:
        raise FlawError(
            Sentence(
                "is not an Excel workbook, so it has no sheet {sheet!r}. Leave {option} out, or "
                "name the workbook with {samples}",
                sheet=sheet,
                option=Parameter("samples_sheet"),
                samples=Parameter("samples"),
            )
        )
    if detect_encoding(peek_head(stream)) is None:
        raise unknown_format_error()
    with open_text(stream) as (text, head):
        dialect = detect_dialect(head, separator=None, decimal=None)
        return list(iterate_rows(LineReader(text), dialect.separator)), dialect.decimal, ()


def _split_header(content: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the other rows of a table.

    Raise FlawError if the table has no rows, or if a row and the header differ in their number of
    cells.
    """
    (_, header), *rows = content or [(0, [])]
    if rows and all(len(cells) == len(header) + 1 for _, cells in rows):
        header = ["", *header]  # the language R writes no title above the row names
    for row in rows:
        if len(row[1]) != len(header):
            raise row_length_error(row, len(header))
    if not rows:
        raise FlawError("must hold a header and rows below it")
    return header, [[c.strip() for c in cells] for _, cells in rows]


def join_annotations(
    table: Table, annotations: pd.DataFrame, *, file_name: str, na_values: Collection[str] = ()
) -> Table:
    """Return a table with additional annotations of the samples from a second table."""
    names = set(table.sample_names)
    key = max(annotations.columns, key=lambda c: len(names & set(annotations[c])))
    absent = _find_absent_samples(table, annotations[key], file_name=file_name)
    # Rows of samples that do not occur in the second table are filled with NaN.
    joined = _select_rows(annotations.set_index(key), table.sample_names)
    combined = table.sample_annotations.copy()
    is_absent = np.isin(table.sample_names, absent)
    replaced = [title for title in joined.columns if title in combined]
    for title in joined.columns:
        column: Any = replace_missing(joined[title], na_values)
        if title in replaced:
            own = combined[title].astype(object)
            column = np.where(is_absent, own.where(own.notna(), None), column)
        combined[title] = parse_annotation(column, annotations.attrs["decimal"])
    n_unused = len(annotations) - (len(names) - len(absent))
    note = f"Annotations from {file_name}: {', '.join(map(str, joined.columns)) or 'none'}" + (
        f"; {n_unused:,} of its rows are of other samples." if n_unused else "."
    )
    if replaced:
        exception = ", except for samples without a row" if absent else ""
        note += f" They replace the table's own{exception}: {', '.join(replaced)}."
    sheet_notes = [
        Sentence("{name}: {note}", name=file_name, note=text) for text in annotations.attrs["notes"]
    ]
    notes = [note, *sheet_notes]
    if absent:
        n_absent = "1 sample has" if len(absent) == 1 else f"{len(absent):,} samples have"
        notes.append(
            f"{n_absent} no row in {file_name} (by its column {key!r}), and so no annotations from "
            f"it: {_list_names(absent)}."
        )
    return replace(table, sample_annotations=combined, notes=(*table.notes, *notes))


def _select_rows(annotations: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Return one row for each name; if there is no row with this name, its cells are None."""
    found = annotations[annotations.index.isin(list(names))]
    rows = found.reindex(list(names)).astype(object)
    return rows.where(rows.notna(), None)


def _list_names(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_MAX_LISTED_NAMES])
    return listed + (", ..." if len(names) > _MAX_LISTED_NAMES else "")


def _find_absent_samples(table: Table, column: pd.Series[str], *, file_name: str) -> list[str]:
    """Return the names of the samples that do not occur in a column.

    Raise TableError if this holds for all samples, or if a sample occurs more than once.
    """
    counts = Counter(column)
    absent = [name for name in table.sample_names if not counts[name]]
    if len(absent) == len(table.sample_names):
        raise TableError(
            f"{file_name} must have rows for the samples, but none of its columns holds a sample "
            f"name such as {absent[0]!r}. Correct the names."
        )
    repeated = [name for name in table.sample_names if counts[name] > 1]
    if repeated:
        raise TableError(
            f"{file_name} must have one row for each sample, but has {counts[repeated[0]]} for "
            f"{repeated[0]!r}. Drop the others."
        )
    return absent
