"""Reading of gene sets from files in GMT format."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mrshc.io.streams import (
    FlawError,
    TableError,
    detect_encoding,
    display_name,
    open_stream,
    peek_head,
    table_error,
)
from mrshc.shell.text_cleaning import clean_text

# Largest number of characters in a line, enough for a set of a million genes. Without a limit, a
# file without line breaks, such as a damaged one, would be read into memory as a single line.
_MAX_LINE_LENGTH = 10_000_000
# Largest number of characters of a name, a description or a gene: that of a cell in Excel, since
# they are written to tables that users may open in spreadsheets.
_MAX_CELL_LENGTH = 32_767
_FORM = (
    "A .gmt file has one set in each line: its name, a description and its genes, with tabs "
    "between them"
)
# Surrogates, by which Python represents bytes that are not valid in the encoding of the text.
_UNDECODABLE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GeneSets(Mapping[str, tuple[str, ...]]):
    """Gene sets, as a mapping from the name of a set to its genes.

    Parameters
    ----------
    genes : dict of str to tuple of str
        The distinct genes of each set, in the order of the file.
    descriptions : dict of str to str
        Description of each set; it may be empty.
    lines : dict of str to int, default={}
        Line of the file that contains each set, counted from 1.
    source : str, default=""
        Name of the file in messages.
    notes : tuple of str, default=()
        Sentences that state how the file was read.

    Examples
    --------
    >>> from mrshc.io import GeneSets
    >>> sets = GeneSets(genes={"growth": ("MYC", "E2F1")}, descriptions={"growth": "made up"})
    >>> sets["growth"]
    ('MYC', 'E2F1')
    """

    genes: dict[str, tuple[str, ...]]
    descriptions: dict[str, str]
    lines: dict[str, int] = field(default_factory=dict)
    source: str = ""
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return self.genes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.genes)

    def __len__(self) -> int:
        return len(self.genes)


def read_gene_sets(path: str | os.PathLike[str]) -> GeneSets:
    r"""Read gene sets from a file in GMT format [1]_.

    Each line contains the name of a set, a description, which may be empty, and the genes of the
    set, with tabs between them. Blank lines and empty cells are skipped. The file may be compressed
    by gzip, bzip2 or xz.

    Parameters
    ----------
    path : str or path
        Name of the file.

    Returns
    -------
    GeneSets
        The sets. A gene that a line repeats counts once, and sets without genes are left out; both
        are stated in the attribute `notes`.

    References
    ----------
    .. [1] Subramanian, A. and others (2005). Gene set enrichment analysis: a knowledge-based
       approach for interpreting genome-wide expression profiles. Proceedings of the National
       Academy of Sciences 102(43), 15545-15550. https://doi.org/10.1073/pnas.0506580102

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mrshc.io import read_gene_sets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sets.gmt"
    ...     _ = file.write_text("growth\tmade up\tMYC\tE2F1\nrest\t\tCDKN1A\n", encoding="utf-8")
    ...     sets = read_gene_sets(file)
    >>> dict(sets)
    {'growth': ('MYC', 'E2F1'), 'rest': ('CDKN1A',)}
    """
    name = display_name(path)
    if Path(path).is_dir():
        raise TableError(f"{name} is a folder, but a .gmt file was wanted. Name the file.")
    try:
        with open_stream(path) as stream:
            return _parse(stream, name)
    except FlawError as flaw:
        raise table_error(name, flaw) from None


def _parse(stream: io.BufferedReader, source: str) -> GeneSets:
    """Return the gene sets in a stream; raise FlawError if the content is not in GMT format."""
    genes, descriptions, lines = dict[str, tuple[str, ...]](), dict[str, str](), dict[str, int]()
    repeating, empty = list[str](), list[str]()  # descriptions of sets, for the notes
    for number, line in _iterate_lines(stream):
        name, description, listed = _split_line(line, number)
        if name in lines:
            raise FlawError(
                f"has the set {shorten(name)} in line {lines[name]} and again in line {number}. "
                "Rename one of the two, or join them"
            )
        lines[name] = number
        distinct = tuple(dict.fromkeys(listed))
        if not distinct:
            empty.append(f"{shorten(name)} in line {number}")
            continue
        if len(distinct) < len(listed):
            repeating.append(f"{shorten(name)} in line {number}")
        genes[name], descriptions[name] = distinct, description
    if not genes:
        flaw = f"has no genes in any set, the first of which is {empty[0]}" if empty else "is empty"
        raise FlawError(f"{flaw}. {_FORM}")
    n_genes = len({gene for members in genes.values() for gene in members})
    notes = [f"{_count(len(genes), 'gene set')} with {_count(n_genes, 'gene')}."]
    if repeating:
        notes.append(f"A gene that a set repeats counts once: {_first_of(repeating)}.")
    if empty:
        notes.append(f"Sets without genes are left out: {_first_of(empty)}.")
    return GeneSets(
        genes=genes, descriptions=descriptions, lines=lines, source=source, notes=tuple(notes)
    )


def _iterate_lines(stream: io.BufferedReader) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is not blank.

    Raise FlawError if a line is not text or is too long.
    """
    head = peek_head(stream)
    encoding = detect_encoding(head)
    if encoding is None:
        raise FlawError(f"is not text: it has null characters. {_FORM}")
    # Undecodable bytes become surrogates, so that the line that contains them can be named.
    with io.TextIOWrapper(stream, encoding, errors="surrogateescape") as text:
        number = 0
        try:
            while line := text.readline(_MAX_LINE_LENGTH + 1):
                number += 1
                _check_line(line, number)
                if line.strip():
                    yield number, line
        except UnicodeError:  # UTF-16 has errors that cannot be represented by surrogates
            raise FlawError(
                f"is not valid text after line {number}. Save it as text in UTF-8"
            ) from None


def _check_line(line: str, number: int) -> None:
    """Raise FlawError if a line is too long or is not valid text."""
    if len(line) > _MAX_LINE_LENGTH:
        raise FlawError(
            f"has more than {_MAX_LINE_LENGTH:,} characters in line {number}, more than any set of "
            "genes needs. Check that the file is not damaged"
        )
    if _UNDECODABLE.search(line):
        raise FlawError(f"is not text in UTF-8 in line {number}. Save it as text in UTF-8")
    if "\0" in line:
        raise FlawError(f"has a null character in line {number}. {_FORM}")


def _split_line(line: str, number: int) -> tuple[str, str, list[str]]:
    """Return the name of a set, its description and its genes; raise FlawError if this fails."""
    if "\t" not in line:
        raise FlawError(
            f"has no tab in line {number}, which is {shorten(clean_text(line))}. {_FORM}"
        )
    # Cells are cleaned as the names of features are, so that equal names remain equal.
    name, description, *genes = (clean_text(cell) for cell in line.split("\t"))
    if not name:
        raise FlawError(f"has no name of a set in line {number}. {_FORM}")
    if (longest := max(map(len, (name, description, *genes)))) > _MAX_CELL_LENGTH:
        raise FlawError(
            f"has a cell of {longest:,} characters in line {number}, where at most "
            f"{_MAX_CELL_LENGTH:,} are read. {_FORM}"
        )
    return name, description, [gene for gene in genes if gene]


def _first_of(places: list[str]) -> str:
    """Return the first of several places, and the number of the others."""
    others = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
    return f"{places[0]}{others}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def shorten(text: str) -> str:
    """Return a text in quotation marks for a message; the end of a long text is cut off."""
    return repr(text if len(text) <= 40 else text[:39] + "\N{HORIZONTAL ELLIPSIS}")
