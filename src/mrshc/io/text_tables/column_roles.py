"""Detection of the roles of columns in a text table: names, annotations or numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mrshc.io.raw_table import are_numbers, is_missing, parse_number
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.dialect import Dialect
from mrshc.io.text_tables.lines import Row, row_length_error

# Text that was probably meant as a number, such as a limit of detection, a percentage or a number
# with thousands separators. Such a cell is reported as a mistake. It does not make its column an
# annotation.
_MALFORMED_NUMBER = re.compile(r"\s*[<>≤≥~]?\s*[+-]?\d[\d.,' ]*([eE][+-]?\d+)?\s*%?\s*")
# Titles of columns that contain names even if the names are numbers.
_NAME_TITLE = re.compile(
    r".*(id|id_ref|gene|probe|probeset|name|sample|symbol|entrez|accession|locus|clone|spot)s?",
    re.IGNORECASE,
)
# Columns of whole numbers with these titles are annotations of features in files from GEO,
# cBioPortal, featureCounts and Cluster 3.0.
_FEATURE_ANNOTATION_TITLE = re.compile(
    r"entrez.*|.*gene_?ids?|chr|chrom|chromosome|start|end|stop|strand|length|pos|position|gweight",
    re.IGNORECASE,
)
# Largest number of distinct values in a column of class labels. A first column with more distinct
# values is assumed to contain names, even if some are repeated, since samples seldom have more than
# a few classes.
_MAX_CLASSES = 10


def detect_header(
    first: Row, inspected: list[Row], dialect: Dialect
) -> tuple[list[str], list[Row], bool]:
    """Return the titles of the columns, the rows with data, and whether there is a header."""
    header = first[1]
    widths = Counter(len(cells) for _, cells in inspected).most_common(1)
    n_columns = widths[0][0] if widths else len(header)
    if n_columns == 1 and len(header) == 1:
        raise FlawError(
            "has a single column. Separate the cells by tabs, commas or semicolons, or name the "
            "separator"
        )
    if len(header) == n_columns and _is_data_row(header, dialect):
        has_names = not are_numbers(header[:1], dialect.decimal, dialect.missing)
        titles = [str(j + 1) for j in range(n_columns - has_names)]
        return [""] * has_names + titles, [first, *inspected], False
    # The language R writes no title above the row names, so the header has one cell fewer than the
    # rows. If rows end with a separator, the header also has one cell fewer, but the last cells of
    # the rows are empty.
    if n_columns == len(header) + 1 and not all(cells[-1] == "" for _, cells in inspected):
        return ["", *header], inspected, True
    return header, inspected, True


def _is_data_row(cells: list[str], dialect: Dialect) -> bool:
    """Return whether the cells of the first row are data rather than titles of columns."""
    positions = [str(j) for j in range(len(cells) + 1)]
    # Consecutive numbers from 1 or from 0 are titles.
    if cells in (positions[1:], positions[:-1]):
        return False
    decimal, missing = dialect.decimal, dialect.missing
    if are_numbers(cells[:1], decimal, missing):
        return are_numbers(cells, decimal, missing)
    # If the first cell is a title or empty, numbers to the right of it are titles too. Examples are
    # doses, times and patient numbers.
    if is_missing(cells[0], missing) or _NAME_TITLE.fullmatch(cells[0].strip()):
        return False
    return are_numbers(cells[1:], decimal, missing) and any(decimal in cell for cell in cells[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLayout:
    """The roles of the columns of a text table.

    Attributes
    ----------
    columns : list of str
        Titles of all columns.
    n_cells : int
        Number of cells in each row: the number of columns, plus one if rows end with a separator.
    has_row_names : bool
        Whether the first column contains the names of the rows.
    annotation_columns, numeric_columns : list of int
        Positions of the annotation columns and of the columns of values, counted from 0.
    annotation_rows : frozenset of str
        Names of rows that are annotations of the columns; empty if the rows have no names.
    separator, decimal : str
        Separator of the cells and decimal mark of the text.
    missing : frozenset of str
        Spellings of missing values, in lower case.
    """

    columns: list[str]
    n_cells: int
    has_row_names: bool
    annotation_columns: list[int]
    numeric_columns: list[int]
    annotation_rows: frozenset[str]
    separator: str
    decimal: str
    missing: frozenset[str]

    def select_numeric_cells(self, cells: list[str]) -> list[str]:
        """Return the cells of a row that are in numeric columns."""
        first, last = self.numeric_columns[0], self.numeric_columns[-1]
        # In most tables, the numeric columns are adjacent, and a slice is faster than a loop.
        if last - first + 1 == len(self.numeric_columns):
            return cells[first : last + 1]
        return [cells[j] for j in self.numeric_columns]


def detect_layout(
    columns: list[str], inspected: list[Row], *, dialect: Dialect, annotations: Collection[str]
) -> ColumnLayout:
    """Return the roles of the columns, detected from the first rows."""
    columns = [title.strip() for title in columns]
    n_cells = len(columns) + _has_final_separators(inspected, len(columns))
    complete = [cells[: len(columns)] for _, cells in inspected if len(cells) == n_cells]
    if not complete:
        raise row_length_error(inspected[0], n_cells)
    # Rows that are annotations may contain text, so they do not count for the kinds of the columns.
    rows_aside = frozenset(annotations) - {*columns}
    of_values = [cells for cells in complete if cells[0].strip() not in rows_aside]
    by_column = list(zip(*(of_values or complete), strict=True))
    kinds = [_detect_kind(cells, dialect) for cells in by_column]
    has_row_names = columns[0] not in annotations and _has_row_names(columns, kinds, by_column[0])
    others = range(1 if has_row_names else 0, len(columns))
    annotation_columns = [
        j
        for j in others
        if kinds[j] == "text"
        or columns[j] in annotations
        or (kinds[j] == "whole" and _FEATURE_ANNOTATION_TITLE.fullmatch(columns[j]))
    ]
    # Files written by spreadsheets may contain empty columns without a title.
    empty = [j for j in others if kinds[j] == "missing" and not columns[j]]
    numeric = sorted(set(others) - {*annotation_columns, *empty})
    if not numeric:
        raise FlawError(
            "holds no column of numbers. If its numbers look unusual, name the decimal mark or the "
            "separator"
        )
    return ColumnLayout(
        columns=columns,
        n_cells=n_cells,
        has_row_names=has_row_names,
        annotation_columns=annotation_columns,
        numeric_columns=numeric,
        annotation_rows=rows_aside if has_row_names else frozenset(),
        separator=dialect.separator,
        decimal=dialect.decimal,
        missing=dialect.missing,
    )


def _has_final_separators(inspected: list[Row], n_columns: int) -> bool:
    """Return whether all rows end with a separator, and thus have an additional empty cell."""
    return all(len(cells) == n_columns + 1 and cells[-1] == "" for _, cells in inspected)


def _detect_kind(cells: Sequence[str], dialect: Dialect) -> str:
    """Return the kind of a column, given some of its cells.

    A column is text if at most half of its non-missing cells are numbers or were probably meant as
    numbers. In any other column, a cell that is not a number is a mistake, which is reported when
    all rows are read.
    """
    given = [cell for cell in cells if not is_missing(cell, dialect.missing)]
    if not given:
        return "missing"
    numbers = [parse_number(cell, dialect.decimal) for cell in given]
    n_meant_as_numbers = sum(
        n is not None or bool(_MALFORMED_NUMBER.fullmatch(cell))
        for n, cell in zip(numbers, given, strict=True)
    )
    if 2 * n_meant_as_numbers <= len(given):
        return "text"
    return "whole" if all(n is not None and n.is_integer() for n in numbers) else "numbers"


def _has_row_names(columns: list[str], kinds: list[str], first: Sequence[str]) -> bool:
    """Return whether the first column contains the names of the rows."""
    if len(columns) < 2:
        return False
    if columns[0] == "" or kinds[0] == "text":
        return True
    # Repeated numbers are values, not names.
    if len(set(first)) < len(first):
        return False
    are_others_fractional = kinds[1:].count("numbers") > len(columns) / 2
    return bool(_NAME_TITLE.fullmatch(columns[0])) or (
        kinds[0] == "whole" and are_others_fractional
    )


def are_class_labels(names: Sequence[str]) -> bool:
    """Return whether names are probably class labels.

    This is assumed if there are at most 10 distinct names, each of which occurs more than twice on
    average.
    """
    n_distinct = len(set(names))
    return n_distinct <= _MAX_CLASSES and 2 * n_distinct < len(names)
