"""Detection of the roles of the columns of a text table: names, annotations, numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mrshc.io.raw_table import are_numbers, is_missing, parse_number
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.dialect import Dialect
from mrshc.io.text_tables.lines import Row, row_length_error

# Text that was meant as a number: a limit of detection, a percentage, separated thousands. Cells
# like this are reported as mistakes instead of making their column an annotation.
_MALFORMED_NUMBER = re.compile(r"\s*[<>≤≥~]?\s*[+-]?\d[\d.,' ]*([eE][+-]?\d+)?\s*%?\s*")
# Titles of columns that hold names, even if those are numbers.
_NAME_TITLE = re.compile(
    r".*(id|id_ref|gene|probe|probeset|name|sample|symbol|entrez|accession|locus|clone|spot)s?",
    re.IGNORECASE,
)
# Titles of columns whose whole numbers describe features, as GEO, cBioPortal, featureCounts and
# Cluster 3.0 write them.
_FEATURE_ANNOTATION_TITLE = re.compile(
    r"entrez.*|.*gene_?ids?|chr|chrom|chromosome|start|end|stop|strand|length|pos|position|gweight",
    re.IGNORECASE,
)
# A first column with more different values holds names, even if they are repeated: known classes
# of samples are seldom more than a few.
_MAX_CLASSES = 10


def detect_header(
    first: Row, inspected: list[Row], dialect: Dialect
) -> tuple[list[str], list[Row], bool]:
    """Return the titles of all columns, the rows that hold data, and whether there is a header.

    Parameters
    ----------
    first : Row
        The first row, which may be a header.
    inspected : list of Row
        The rows below it.
    dialect : Dialect
        The separator and the decimal mark.
    """
    header = first[1]
    widths = Counter(len(cells) for _, cells in inspected).most_common(1)
    n_columns = widths[0][0] if widths else len(header)
    if n_columns == 1 and len(header) == 1:
        raise FlawError(
            "has a single column. Separate the cells by tabs, commas or semicolons, or name the "
            "separator"
        )
    if len(header) == n_columns and _is_data_row(header, dialect.decimal):
        has_names = not are_numbers(header[:1], dialect.decimal)
        titles = [str(j + 1) for j in range(n_columns - has_names)]
        return [""] * has_names + titles, [first, *inspected], False
    # R writes no title above the row names. Rows that end with a separator also have one cell more
    # than the header, but an empty one.
    if n_columns == len(header) + 1 and not all(cells[-1] == "" for _, cells in inspected):
        return ["", *header], inspected, True
    return header, inspected, True


def _is_data_row(cells: list[str], decimal: str) -> bool:
    """Return whether the first row holds numbers that are data, not titles of columns."""
    positions = [str(j) for j in range(len(cells) + 1)]
    # Columns that are numbered from 1 or from 0.
    if cells in (positions[1:], positions[:-1]):
        return False
    if are_numbers(cells[:1], decimal):
        return are_numbers(cells, decimal)
    # To the right of a title or an empty cell, numbers are titles too: doses, times, patients.
    if is_missing(cells[0]) or _NAME_TITLE.fullmatch(cells[0].strip()):
        return False
    return are_numbers(cells[1:], decimal) and any(decimal in cell for cell in cells[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLayout:
    """The roles of the columns of a text.

    Attributes
    ----------
    columns : list of str
        Titles of all columns.
    n_cells : int
        Number of cells of each row, which may be one more than there are columns.
    has_row_names : bool
        Whether the first column holds the names of the rows.
    annotation_columns, numeric_columns : list of int
        Positions of the columns that hold annotations and values.
    suspicious_columns : list of str
        Titles of columns of whole numbers among columns of fractions, which may be annotations.
    separator, decimal : str
        The dialect of the text.
    """

    columns: list[str]
    n_cells: int
    has_row_names: bool
    annotation_columns: list[int]
    numeric_columns: list[int]
    suspicious_columns: list[str]
    separator: str
    decimal: str

    def select_numeric_cells(self, cells: list[str]) -> list[str]:
        """Return the cells of a row that should hold numbers."""
        first, last = self.numeric_columns[0], self.numeric_columns[-1]
        # Adjacent columns, as in most tables: a slice is faster than a loop.
        if last - first + 1 == len(self.numeric_columns):
            return cells[first : last + 1]
        return [cells[j] for j in self.numeric_columns]


def detect_layout(
    columns: list[str], inspected: list[Row], *, dialect: Dialect, annotations: Collection[str]
) -> ColumnLayout:
    """Return the roles of the columns, detected from the first rows.

    Parameters
    ----------
    columns : list of str
        Titles of all columns.
    inspected : list of Row
        The first rows that hold data.
    dialect : Dialect
        The separator and the decimal mark.
    annotations : collection of str
        Titles of columns that are annotations even if they hold numbers.
    """
    columns = [title.strip() for title in columns]
    n_cells = len(columns) + _has_final_separators(inspected, len(columns))
    complete = [cells[: len(columns)] for _, cells in inspected if len(cells) == n_cells]
    if not complete:
        raise row_length_error(inspected[0], n_cells)
    by_column = list(zip(*complete, strict=True))
    kinds = [_detect_kind(cells, dialect.decimal) for cells in by_column]
    has_row_names = columns[0] not in annotations and _has_row_names(columns, kinds, by_column[0])
    others = range(1 if has_row_names else 0, len(columns))
    annotation_columns = [
        j
        for j in others
        if kinds[j] == "text"
        or columns[j] in annotations
        or (kinds[j] == "whole" and _FEATURE_ANNOTATION_TITLE.fullmatch(columns[j]))
    ]
    # Spreadsheets leave empty columns without a title behind.
    empty = [j for j in others if kinds[j] == "missing" and not columns[j]]
    numeric = sorted(set(others) - {*annotation_columns, *empty})
    if not numeric:
        raise FlawError(
            "holds no column of numbers. If its numbers look unusual, name the decimal mark or the "
            "separator"
        )
    n_fractional = sum(kinds[j] == "numbers" for j in numeric)
    are_mostly_fractional = n_fractional > len(numeric) / 2
    return ColumnLayout(
        columns=columns,
        n_cells=n_cells,
        has_row_names=has_row_names,
        annotation_columns=annotation_columns,
        numeric_columns=numeric,
        suspicious_columns=[
            columns[j] for j in numeric if kinds[j] == "whole" and are_mostly_fractional
        ],
        separator=dialect.separator,
        decimal=dialect.decimal,
    )


def _has_final_separators(inspected: list[Row], n_columns: int) -> bool:
    """Return whether all rows end with a separator, so that they have one empty cell more."""
    return all(len(cells) == n_columns + 1 and cells[-1] == "" for _, cells in inspected)


def _detect_kind(cells: Sequence[str], decimal: str) -> str:
    """Return the kind of a column from some of its cells.

    A column is text if at most half of its cells are, or were meant as, numbers; a few texts among
    numbers are mistakes, which are reported when all rows are read.

    Returns
    -------
    {"missing", "text", "whole", "numbers"}
    """
    given = [cell for cell in cells if not is_missing(cell)]
    if not given:
        return "missing"
    numbers = [parse_number(cell, decimal) for cell in given]
    n_meant_as_numbers = sum(
        n is not None or bool(_MALFORMED_NUMBER.fullmatch(cell))
        for n, cell in zip(numbers, given, strict=True)
    )
    if 2 * n_meant_as_numbers <= len(given):
        return "text"
    return "whole" if all(n is not None and n.is_integer() for n in numbers) else "numbers"


def _has_row_names(columns: list[str], kinds: list[str], first: Sequence[str]) -> bool:
    """Return whether the first column holds the names of the rows.

    Parameters
    ----------
    columns, kinds : list of str
        Titles and kinds of all columns.
    first : sequence of str
        Cells of the first column.
    """
    if len(columns) < 2:
        return False
    if columns[0] == "" or kinds[0] == "text":
        return True
    # Numbers that are repeated are values.
    if len(set(first)) < len(first):
        return False
    are_others_fractional = kinds[1:].count("numbers") > len(columns) / 2
    return bool(_NAME_TITLE.fullmatch(columns[0])) or (
        kinds[0] == "whole" and are_others_fractional
    )


def are_class_labels(names: Sequence[str]) -> bool:
    """Return whether a column of names holds classes: few different values, repeated often."""
    n_distinct = len(set(names))
    return n_distinct <= _MAX_CLASSES and 2 * n_distinct < len(names)
