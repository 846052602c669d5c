"""Annotations of the samples from a second table, which are matched by the sample names."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import TextIO

import pandas as pd

from mrshc.io.formats import unknown_format_error
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
from mrshc.io.text_tables.dialect import Dialect, detect_dialect
from mrshc.io.text_tables.lines import LineReader, iterate_rows, row_length_error
from mrshc.utils.text_cleaning import clean_text

# Largest number of sample names in a message. Five names are enough to recognise the mistake, and
# fit on one line.
_MAX_LISTED_NAMES = 5


def read_sample_annotations(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return a table of annotations of the samples, read from a file of delimited text.

    Returns
    -------
    DataFrame
        The table, with all cells as text. The decimal mark of the file is stored in
        ``attrs["decimal"]``.

    Raises
    ------
    TableError
        If the file cannot be read or is not a table of delimited text.
    """
    try:
        with open_stream(path) as stream:
            if detect_encoding(peek_head(stream)) is None:
                raise unknown_format_error()
            with open_text(stream) as (text, head):
                dialect, header, rows = _read_cells(text, head)
                titles = clean_unique_names(header, "column")
    except FlawError as flaw:
        raise table_error(display_name(path), flaw) from None
    # The cells are cleaned in the same way as sample names, since some of them are compared with
    # sample names.
    cells = [[clean_text(cell) for cell in row] for row in rows]
    annotations = pd.DataFrame(cells, columns=titles, dtype=object)
    annotations.attrs["decimal"] = dialect.decimal
    return annotations


def _read_cells(text: TextIO, head: str) -> tuple[Dialect, list[str], list[list[str]]]:
    """Return the dialect (separator and decimal mark), the header and the rows of a table.

    The string `head` contains the first lines of `text`. Raise FlawError if the table has no rows,
    or if a row and the header differ in their number of cells.
    """
    dialect = detect_dialect(head, separator=None, decimal=None)
    (_, header), *rows = [*iterate_rows(LineReader(text), dialect.separator)] or [(0, [])]
    if rows and all(len(cells) == len(header) + 1 for _, cells in rows):
        header = ["", *header]  # the language R writes no title above the row names
    for row in rows:
        if len(row[1]) != len(header):
            raise row_length_error(row, len(header))
    if not rows:
        raise FlawError("must hold a header and rows below it")
    return dialect, header, [[c.strip() for c in cells] for _, cells in rows]


def join_annotations(table: Table, annotations: pd.DataFrame, *, file_name: str) -> Table:
    """Return a table with additional annotations of the samples from a second table.

    Parameters
    ----------
    table : Table
        The table of samples and features.
    annotations : DataFrame
        The second table, as returned by `read_sample_annotations`. Its rows are matched to the
        samples by the column that contains the most sample names of `table`.
    file_name : str
        Name of the second table in messages.

    Returns
    -------
    Table
        The table with the additional annotations. An existing annotation with the same title is
        replaced.

    Raises
    ------
    TableError
        If a sample occurs in no row of the second table, or in more than one row.
    """
    names = set(table.sample_names)
    key = max(annotations.columns, key=lambda c: len(names & set(annotations[c])))
    _check_one_row_for_each_sample(table, annotations[key], file_name=file_name)
    joined = annotations.set_index(key).loc[list(table.sample_names)]
    combined = table.sample_annotations.copy()
    replaced = [title for title in joined.columns if title in combined]
    for title in joined.columns:
        combined[title] = parse_annotation(joined[title], annotations.attrs["decimal"])
    n_unused = len(annotations) - len(names)
    note = f"Annotations from {file_name}: {', '.join(map(str, joined.columns)) or 'none'}" + (
        f"; {n_unused:,} of its rows are of other samples." if n_unused else "."
    )
    if replaced:
        note += f" They replace the table's own: {', '.join(replaced)}."
    return replace(table, sample_annotations=combined, notes=(*table.notes, note))


def _check_one_row_for_each_sample(table: Table, column: pd.Series[str], *, file_name: str) -> None:
    """Raise TableError if a sample name is absent from a column or occurs more than once."""
    counts = Counter(column)
    absent = [name for name in table.sample_names if not counts[name]]
    if absent:
        listed = ", ".join(absent[:_MAX_LISTED_NAMES])
        listed += ", ..." if len(absent) > _MAX_LISTED_NAMES else ""
        raise TableError(
            f"{file_name} must have a row for each sample, but {len(absent)} of "
            f"{len(table.sample_names)} have none in its column {column.name!r}: {listed}. Add "
            "them, or correct the names."
        )
    repeated = [name for name in table.sample_names if counts[name] > 1]
    if repeated:
        raise TableError(
            f"{file_name} must have one row for each sample, but has {counts[repeated[0]]} for "
            f"{repeated[0]!r}. Drop the others."
        )
