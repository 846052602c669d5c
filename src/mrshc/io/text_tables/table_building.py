"""Construction of a table from the rows of a text or of a spreadsheet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mrshc.io.raw_table import RawTable, clean_unique_names
from mrshc.io.text_tables.column_roles import ColumnLayout, are_class_labels
from mrshc.io.text_tables.row_reading import RowReader


def build_raw_table(values: NDArray[np.float64], body: RowReader, layout: ColumnLayout) -> RawTable:
    """Return a table of values, names and annotations.

    If the names of the rows are class labels, they become an annotation, and a note states this.
    """
    titles = clean_unique_names([layout.columns[j] for j in layout.annotation_columns], "column")
    table = RawTable(
        values=values,
        row_names=body.names if layout.has_row_names else None,
        column_names=[layout.columns[j] for j in layout.numeric_columns],
        row_annotations=dict(zip(titles, body.annotations, strict=True)),
        column_annotations=body.column_annotations,
        annotation_rows=list(body.column_annotations),
        decimal=layout.decimal,
    )
    # Whether the names are class labels can be decided only after all rows have been read: if the
    # rows are sorted by class, the first rows all have the same label.
    if layout.has_row_names and are_class_labels(body.names):
        title = clean_unique_names([*titles, layout.columns[0] or "column 1"], "column")[-1]
        table.row_annotations = {title: body.names, **table.row_annotations}
        table.row_names = None
        table.notes.append(
            f"The first column, {title!r}, has repeated values: it is an annotation."
        )
    return table
