"""What the columns of a text table hold: names, annotations, numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mrshc.io.raw_table import all_numbers, is_missing, number_of
from mrshc.io.streams import FlawError
from mrshc.io.text_tables.dialect import Dialect
from mrshc.io.text_tables.lines import Row, ragged

# Text that was meant as a number: a limit of detection, a percentage, thousands set apart.
_NEARLY_A_NUMBER = re.compile(r"\s*[<>≤≥~]?\s*[+-]?\d[\d.,' ]*([eE][+-]?\d+)?\s*%?\s*")
# Columns of this name hold names even if those are numbers, and whole numbers in columns of those
# names describe features: as GEO, cBioPortal, featureCounts and Cluster 3.0 write them.
_NAMING = re.compile(
    r".*(id|id_ref|gene|probe|probeset|name|sample|symbol|entrez|accession|locus|clone|spot)s?",
    re.IGNORECASE,
)
_DESCRIBING = re.compile(
    r"entrez.*|.*gene_?ids?|chr|chrom|chromosome|start|end|stop|strand|length|pos|position|gweight",
    re.IGNORECASE,
)
# Of the first column: more than this are names.
_MOST_CLASSES = 10


def columns_of(
    first: Row, looked_at: list[Row], dialect: Dialect
) -> tuple[list[str], list[Row], bool]:
    """Return the names of all columns, the rows that hold data, and whether there is a header."""
    header = first[1]
    widths = Counter(len(cells) for _, cells in looked_at).most_common(1)
    n_columns = widths[0][0] if widths else len(header)
    if n_columns == 1 and len(header) == 1:
        raise FlawError(
            "has a single column. Separate the cells by tabs, commas or semicolons, or name the "
            "separator"
        )
    if len(header) == n_columns and _is_data(header, dialect.decimal):
        named = not all_numbers(header[:1], dialect.decimal)
        numbers = [str(j + 1) for j in range(n_columns - named)]
        return [""] * named + numbers, [first, *looked_at], False
    if n_columns == len(header) + 1 and not all(cells[-1] == "" for _, cells in looked_at):
        return ["", *header], looked_at, True  # as R writes it: no name above the names
    return header, looked_at, True


def _is_data(header: list[str], decimal: str) -> bool:
    """Tell whether the first row holds numbers that are not names of columns."""
    counted = [str(j) for j in range(len(header) + 1)]
    if header in (counted[1:], counted[:-1]):  # columns that have been numbered
        return False
    if all_numbers(header[:1], decimal):
        return all_numbers(header, decimal)
    # Below a title or a blank corner, numbers are names too: doses, times, patients.
    if is_missing(header[0]) or _NAMING.fullmatch(header[0].strip()):
        return False
    return all_numbers(header[1:], decimal) and any(decimal in cell for cell in header[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which columns of a text hold what."""

    columns: list[str]
    n_cells: int  # of each row
    naming: bool  # the first column names the rows
    annotating: list[int]
    numeric: list[int]
    odd: list[str]  # columns of whole numbers among others
    separator: str
    decimal: str

    def numbers(self, cells: list[str]) -> list[str]:
        """Return the cells that should hold numbers."""
        first, last = self.numeric[0], self.numeric[-1]
        if last - first + 1 == len(self.numeric):  # as in most tables; it saves a loop
            return cells[first : last + 1]
        return [cells[j] for j in self.numeric]


def layout_of(
    columns: list[str], looked_at: list[Row], *, dialect: Dialect, annotations: Collection[str]
) -> Layout:
    """Find out what the columns hold, from the first rows."""
    decimal = dialect.decimal
    columns = [name.strip() for name in columns]
    longer = [cells for _, cells in looked_at if len(cells) == len(columns) + 1]
    ends = len(longer) == len(looked_at) and all(cells[-1] == "" for cells in longer)
    n_cells = len(columns) + ends  # one more where each row ends with a separator
    whole = [cells[: len(columns)] for _, cells in looked_at if len(cells) == n_cells]
    if not whole:
        raise ragged(looked_at[0], n_cells)
    by_column = list(zip(*whole, strict=True))
    kinds = [_kind(cells, decimal) for cells in by_column]
    named_by_hand = [name in annotations for name in columns]
    naming = not named_by_hand[0] and _names_rows(columns, kinds, by_column[0])
    others = range(1 if naming else 0, len(columns))
    describes = [
        k == "whole" and bool(_DESCRIBING.fullmatch(c)) for k, c in zip(kinds, columns, strict=True)
    ]
    annotating = [j for j in others if kinds[j] == "text" or named_by_hand[j] or describes[j]]
    empty = [j for j in others if kinds[j] == "missing" and not columns[j]]
    numeric = sorted(set(others) - {*annotating, *empty})
    if not numeric:
        raise FlawError(
            "holds no column of numbers. If its numbers look unusual, name the decimal mark or the "
            "separator"
        )
    fractions = sum(kinds[j] == "numbers" for j in numeric)
    odd = [columns[j] for j in numeric if kinds[j] == "whole" and fractions > len(numeric) / 2]
    return Layout(
        odd=odd,
        columns=columns,
        n_cells=n_cells,
        naming=naming,
        annotating=annotating,
        numeric=numeric,
        separator=dialect.separator,
        decimal=decimal,
    )


def _kind(cells: Sequence[str], decimal: str) -> str:
    """Tell what a column holds, from some of its cells: a few texts among numbers are mistakes."""
    given = [cell for cell in cells if not is_missing(cell)]
    if not given:
        return "missing"
    numbers = [number_of(cell, decimal) for cell in given]
    meant = sum(
        n is not None or bool(_NEARLY_A_NUMBER.fullmatch(cell))
        for n, cell in zip(numbers, given, strict=True)
    )
    if 2 * meant <= len(given):
        return "text"
    return "whole" if all(n is not None and n.is_integer() for n in numbers) else "numbers"


def _names_rows(columns: list[str], kinds: list[str], first: Sequence[str]) -> bool:
    """Tell whether the first column names the rows."""
    if len(columns) < 2:
        return False
    if columns[0] == "" or kinds[0] == "text":
        return True
    if len(set(first)) < len(first):
        return False
    beside_fractions = kinds[1:].count("numbers") > len(columns) / 2
    return bool(_NAMING.fullmatch(columns[0])) or (kinds[0] == "whole" and beside_fractions)


def are_classes(names: Sequence[str]) -> bool:
    """Tell whether cells in place of names are classes: few different ones, each of them often."""
    distinct = len(set(names))
    return distinct <= _MOST_CLASSES and 2 * distinct < len(names)
