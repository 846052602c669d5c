"""The registry of table formats: what a format is, which are known, and which one an input has.

A new format is one module of this package with a `TableFormat`, and one line in `__init__.py` that
registers it. Reading, the command line's help and the sentences that list formats follow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mrshc.errors import Parameter, Sentence, Setting
from mrshc.io.formats.input_file import InputFile
from mrshc.io.raw_table import RawTable
from mrshc.io.streams import FlawError, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How a table is to be read; each format uses the options that concern it."""

    annotations: Collection[str] = ()  # columns that are annotations even if they hold numbers
    truth: str | None = None  # an annotation of the samples
    separator: str | None = None  # None: found out
    decimal: str | None = None
    in_memory: bool | None = None  # None: if there is room

    @property
    def annotating(self) -> frozenset[str]:
        """Names of all columns that are not data."""
        return frozenset({*self.annotations, *([] if self.truth is None else [self.truth])})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """A format of tables: how it is called, recognised and read.

    Parameters
    ----------
    name : str
        What a file of this format is, with an article, as the end of a sentence: "a Parquet file".
    listed : tuple of str
        How lists of known formats call it; empty for a format that is not read.
    suffixes : tuple of str
        Usual endings of names; the content tells the format, not the name.
    recognise : callable, InputFile -> bool
        Whether an input has this format. Formats that are registered later are asked first.
    read_stream : callable, (InputFile, ReadingOptions) -> RawTable; optional
        Reads a stream: a file, compressed or not, a pipe or standard input.
    read_path : callable, (str, ReadingOptions) -> RawTable; optional
        Reads a folder, or a file that is not compressed as a whole, by its name.
    open_matrix : callable, (str, str) -> array; optional
        Opens the matrix of a file, or one of its members, without reading it. A format that has it
        can stay in its file and be read in blocks.
    container : str
        How a format without `read_stream` comes: "a folder or a .zip".
    extra : str or None
        The extra of mrshc that it needs.
    has_dialects : bool
        Whether files differ by separators and decimal marks, so that options for them apply.
    advice : str
        Of a format that is recognised, but not read: a sentence on what to do, without its period.
    """

    name: str
    recognise: Callable[[InputFile], bool]
    listed: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    read_stream: Callable[[InputFile, ReadingOptions], RawTable] | None = None
    read_path: Callable[[str, ReadingOptions], RawTable] | None = None
    open_matrix: Callable[[str, str], Any] | None = None
    container: str = ""
    extra: str | None = None
    has_dialects: bool = False
    advice: str = ""

    def library(self, module: str) -> Any:
        """Import a module that comes with the extra of this format."""
        try:
            import_module(module.partition(".")[0])  # as `import a.b` does, even if a.b is loaded
            return import_module(module)
        except ImportError:
            raise FlawError(
                f"is {self.name}, which needs the extra {self.extra!r}: pip install "
                f"'mrshc[{self.extra}]'"
            ) from None


_formats: list[TableFormat] = []


def register(table_format: TableFormat) -> None:
    """Add a format, which is asked before those that were registered earlier."""
    _formats.append(table_format)


def unregister(table_format: TableFormat) -> None:
    """Remove a format that was registered."""
    _formats.remove(table_format)


def known_formats() -> tuple[TableFormat, ...]:
    """Return all formats that are read, in the order in which they are listed."""
    return tuple(known for known in _formats if not known.advice)


def recognise(file: InputFile) -> TableFormat | None:
    """Return the format of an input; None if it is not known."""
    # A specific format is registered after the general one that its files are also of: Zarr
    # archives and Excel workbooks after .npz, GCT after delimited text.
    return next((known for known in reversed(_formats) if _has_format(file, known)), None)


def _has_format(file: InputFile, known: TableFormat) -> bool:
    readers = [known.read_path, known.read_stream, known.advice or None]
    if file.is_folder:
        readers = readers[:1]
    elif file.path is None:
        readers = readers[1:]
    return any(reader is not None for reader in readers) and known.recognise(file)


def read_raw_table(path: str | os.PathLike[str], options: ReadingOptions) -> RawTable:
    """Read a table of any known format; options that do not concern it are noted."""
    file = InputFile.at(path)
    known = None if file is None else recognise(file)
    if known is not None and known.read_path is not None:
        table = known.read_path(os.fspath(path), options)
    else:
        with opened(path) as stream:
            known, table = _read_stream(InputFile.of(stream), options)
    described = {*table.row_annotations, *table.column_annotations}
    if absent := sorted(set(options.annotations) - described):
        raise FlawError(f"has no column {absent[0]!r} that could be an annotation")
    for name in () if known.has_dialects else ("separator", "decimal"):
        if getattr(options, name) is not None:
            said = "{option} has no effect: the table is {kind}."
            table.notes.append(Sentence(said, option=Parameter(name), kind=known.name))
    return table


def _read_stream(file: InputFile, options: ReadingOptions) -> tuple[TableFormat, RawTable]:
    if not file.head.strip():
        raise FlawError("is empty")
    if options.in_memory is False:
        raise FlawError(
            Sentence(
                "cannot stay in its file: only {known}, not compressed as a whole, are read in "
                "blocks. Write it as one of them, or leave {blocks} out",
                known=listing(in_blocks=True),
                blocks=Setting("in_memory", False),
            )
        )
    known = recognise(file)
    if known is None:
        raise unknown_format()
    if known.read_stream is None:
        raise FlawError(f"is {known.name}. {known.advice}")
    return known, known.read_stream(file, options)


def format_in_blocks(path: str | os.PathLike[str]) -> TableFormat | None:
    """Return the format of a file from which a matrix can be read in blocks; None for others."""
    file = InputFile.at(path)
    known = None if file is None else recognise(file)
    return None if known is None or known.open_matrix is None else known


def unknown_format() -> FlawError:
    """Return what is wrong with an input of none of the known formats."""
    return FlawError(f"is not a table of a known kind. Known are {listing()}")


def listing(conjunction: str = "and", *, in_blocks: bool = False, streams: bool = False) -> str:
    """Return a list of the known formats as part of a sentence.

    Parameters
    ----------
    conjunction : str, default="and"
        The word before the last.
    in_blocks : bool, default=False
        Only formats that can stay in their file.
    streams : bool, default=False
        Only formats that are read from streams.
    """
    chosen = [
        name
        for known in known_formats()
        if not (in_blocks and known.open_matrix is None)
        and not (streams and known.read_stream is None)
        for name in known.listed
    ]
    return enumeration(chosen, conjunction)


def enumeration(names: Sequence[str], conjunction: str) -> str:
    """Return names as part of a sentence: "a, b and c"."""
    *most, last = names
    return f"{', '.join(most)} {conjunction} {last}" if most else last
