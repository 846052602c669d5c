"""Further texts and numbers that stand for missing values in a table."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from mrshc.io.raw_table import RawTable, parse_number
from mrshc.io.streams import FlawError
from mrshc.shell.data_matrix import as_data_matrix
from mrshc.shell.wording import Parameter, Sentence, Setting


def mark_missing_values(table: RawTable, na_values: Collection[str]) -> None:
    """Replace numbers and annotations that stand for missing values.

    Texts among numbers are replaced when a file is read, since they are not numbers. Here, numbers
    such as -999 are replaced by NaN, and annotations by None.
    """
    if not na_values:
        return
    numbers = [n for text in na_values if (n := parse_number(text, ".")) is not None]
    if numbers:
        data = as_data_matrix(table.values)
        if not data.in_memory:
            raise FlawError(
                Sentence(
                    "stays in its file, so numbers that stand for missing values cannot be "
                    "replaced. Give {memory}, or leave {na_values} out",
                    memory=Setting("in_memory", True),
                    na_values=Parameter("na_values"),
                )
            )
        values = data.values
        is_marked = np.isin(values, np.array(numbers, dtype=values.dtype))
        # The values are copied, since arrays that were read from a file may be read-only.
        table.values = np.where(is_marked, np.array(np.nan, values.dtype), values)
    for columns in (table.row_annotations, table.column_annotations):
        for title, column in columns.items():
            columns[title] = replace_missing(column, na_values)


def replace_missing(column: Collection[Any], na_values: Collection[str]) -> list[Any]:
    """Return the values of an annotation, with None for those that `na_values` contains.

    Texts are compared without regard to case, and numbers by their value.
    """
    texts = {text.strip().lower() for text in na_values}
    numbers = {n for text in na_values if (n := parse_number(text, ".")) is not None}
    return [
        None
        if str(cell).strip().lower() in texts or parse_number(str(cell), ".") in numbers
        else cell
        for cell in column
    ]
