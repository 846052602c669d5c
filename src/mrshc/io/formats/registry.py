"""Registry of table formats: the class that defines a format, and detection of input formats.

To add a format, define a `TableFormat` in a new module of this package, and register the format in
`__init__.py`. The registry is used to read tables, and to list the formats in the command-line help
and in messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mrshc.io.formats.input_file import InputFile
from mrshc.io.missing_marks import mark_missing_values
from mrshc.io.numeric_annotations import refuse_numeric_annotations
from mrshc.io.raw_table import MISSING_SPELLINGS, RawTable, set_rows_aside
from mrshc.io.streams import FlawError, open_stream
from mrshc.shell.wording import Parameter, Sentence, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Options of `mrshc.io.read_table` that are passed to the function that reads a format.

    A format ignores options that do not apply to it.

    Attributes
    ----------
    annotations : collection of str
        Titles of columns or rows that are annotations even if they contain numbers.
    truth : str or None
        Title of an annotation of the samples.
    separator, decimal : str or None
        Separator of the cells and decimal mark of a text file. If one of them is None, it is
        detected.
    sheet : str or None
        Name or number (counted from 1) of a sheet of a workbook; None for the first sheet.
    na_values : collection of str
        Further texts and numbers that stand for missing values.
    keep_numeric : bool
        Whether columns and rows of numbers are kept among the values even if they look like
        annotations.
    in_memory : bool or None
        Whether the values are read into memory. If None, the values are read unless they can stay
        in the file and would take up more than half of the free memory.
    """

    annotations: Collection[str] = ()
    truth: str | None = None
    separator: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    na_values: Collection[str] = ()
    keep_numeric: bool = False
    in_memory: bool | None = None

    @property
    def annotation_names(self) -> frozenset[str]:
        """The titles in `annotations`, and the title `truth` if it is given."""
        return frozenset({*self.annotations, *([] if self.truth is None else [self.truth])})

    @property
    def missing_spellings(self) -> frozenset[str]:
        """All texts that stand for a missing value, in lower case."""
        return MISSING_SPELLINGS | {value.strip().lower() for value in self.na_values}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """A table format: its names, and the functions that recognise and read it.

    Parameters
    ----------
    name : str
        Description of a file of this format, with an article, for messages, such as "a Parquet
        file".
    recognise : callable, InputFile -> bool
        Function that returns whether an input has this format. Formats that are registered later
        are tried first.
    labels : tuple of str, default=()
        Names of the format in lists of known formats; empty for a format that is recognised but
        cannot be read.
    suffixes : tuple of str, default=()
        Usual suffixes of file names, which are shown to users. Most formats are recognised from the
        content of the file alone.
    read_stream : callable, (InputFile, ReadingOptions) -> RawTable, or None, default=None
        Function that reads a table from a stream. The stream is the decompressed content of a pipe,
        of standard input or of a file.
    read_path : callable, (str, ReadingOptions) -> RawTable, or None, default=None
        Function that reads a table, given the name of a folder or of a file that is not compressed
        as a whole.
    open_matrix : callable, (str, str) -> array, or None, default=None
        Function that opens a matrix without reading its values, given the name of the file and the
        name of the matrix in the file. If a format has this function, the values can stay in the
        file and be read in blocks.
    container : str, default=""
        Description of the containers that `read_path` accepts, such as "a folder or a .zip". It is
        shown in help texts if there is no `read_stream`.
    extra : str or None, default=None
        Name of the extra of mrshc (its group of optional dependencies) that the format needs.
    has_dialects : bool, default=False
        Whether files of this format differ in separator and decimal mark. If False, the options
        `separator` and `decimal` have no effect.
    has_sheets : bool, default=False
        Whether a file of this format may contain several sheets. If False, the option `sheet` has
        no effect.
    advice : str, default=""
        Advice to users for a format that is recognised but cannot be read: a sentence without the
        final period.
    """

    name: str
    recognise: Callable[[InputFile], bool]
    labels: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    read_stream: Callable[[InputFile, ReadingOptions], RawTable] | None = None
    read_path: Callable[[str, ReadingOptions], RawTable] | None = None
    open_matrix: Callable[[str, str], Any] | None = None
    container: str = ""
    extra: str | None = None
    has_dialects: bool = False
    has_sheets: bool = False
    advice: str = ""

    def import_library(self, module: str) -> Any:
        """Return a module of a library that the extra of this format installs.

        Raise FlawError if the library is not installed.
        """
        try:
            # The package is imported before the module, as in `import a.b`. Otherwise, a module
            # that is already loaded would be returned even if the import of its package is blocked.
            import_module(module.partition(".")[0])
            return import_module(module)
        except ImportError:
            raise FlawError(
                f"is {self.name}, which needs the extra {self.extra!r}: pip install "
                f"'mrshc[{self.extra}]'"
            ) from None


_formats: list[TableFormat] = []


def register(table_format: TableFormat) -> None:
    """Add a format to the registry; formats that are registered later are tried first."""
    _formats.append(table_format)


def unregister(table_format: TableFormat) -> None:
    """Remove a format from the registry; raise ValueError if the format is not registered."""
    _formats.remove(table_format)


def known_formats() -> tuple[TableFormat, ...]:
    """Return all formats that can be read, in the order in which they were registered."""
    return tuple(known for known in _formats if not known.advice)


def recognise_format(file: InputFile) -> TableFormat | None:
    """Return the format of an input; None if the format is not known."""
    # Formats are tried in reverse order of registration. If a general format would also accept the
    # files of a specific format, the specific format is registered later. For this reason, Zarr and
    # Excel are registered after .npz, and GCT after delimited text.
    return next((known for known in reversed(_formats) if _has_format(file, known)), None)


def _has_format(file: InputFile, known: TableFormat) -> bool:
    """Return whether an input has the format `known` and is of a kind that this format handles.

    For a folder, the format must have `read_path`. For a stream, it must have `read_stream` or
    `advice`. For a file, it must have at least one of the three.
    """
    readers = [known.read_path, known.read_stream, known.advice or None]
    if file.is_folder:
        readers = readers[:1]
    elif file.path is None:
        readers = readers[1:]
    return any(reader is not None for reader in readers) and known.recognise(file)


def read_raw_table(path: str | os.PathLike[str], options: ReadingOptions) -> RawTable:
    """Return the table in a file, a folder or standard input, in any known format."""
    file = InputFile.from_path(path)
    known = None if file is None else recognise_format(file)
    if known is not None and known.read_path is not None:
        table = known.read_path(os.fspath(path), options)
    else:
        with open_stream(path) as stream:
            known, table = _read_stream(InputFile.from_stream(stream), options)
    set_rows_aside(table, options.annotation_names - {*table.row_annotations})
    titles = {*table.row_annotations, *table.column_annotations}
    # If a misspelt title were ignored, the column or the row would remain a feature.
    if absent := sorted(set(options.annotations) - titles):
        raise FlawError(f"has no column or row {absent[0]!r} that could be an annotation")
    mark_missing_values(table, options.na_values)
    if not options.keep_numeric:
        refuse_numeric_annotations(table)
    unused = {"separator": known.has_dialects, "decimal": known.has_dialects}
    for name, has_effect in (unused | {"sheet": known.has_sheets}).items():
        if not has_effect and getattr(options, name) is not None:
            template = "{option} has no effect: the table is {kind}."
            table.notes.append(Sentence(template, option=Parameter(name), kind=known.name))
    return table


def _read_stream(file: InputFile, options: ReadingOptions) -> tuple[TableFormat, RawTable]:
    """Return the format of a stream and the table in the stream.

    Raise FlawError if the stream is empty, if its format is not known or cannot be read, or if the
    options require the values to stay in the file.
    """
    if not file.head.strip():
        raise FlawError("is empty")
    refuse_reading_in_blocks(options)
    known = recognise_format(file)
    if known is None:
        raise unknown_format_error()
    if known.read_stream is None:
        raise FlawError(f"is {known.name}. {known.advice}")
    return known, known.read_stream(file, options)


def refuse_reading_in_blocks(options: ReadingOptions) -> None:
    """Raise FlawError if the values are to stay in a file that cannot be read in blocks."""
    if options.in_memory is False:
        raise FlawError(
            Sentence(
                "cannot be read in blocks: only {known}, not compressed as a whole, can. Write it "
                "as one of them, or leave {blocks} out",
                known=list_formats(in_blocks=True),
                blocks=Setting("in_memory", False),
            )
        )


def find_format_in_blocks(path: str | os.PathLike[str]) -> TableFormat | None:
    """Return the format of a file whose matrix can be read in blocks; None for other inputs."""
    file = InputFile.from_path(path)
    known = None if file is None else recognise_format(file)
    return None if known is None or known.open_matrix is None else known


def unknown_format_error() -> FlawError:
    """Return the error for an input whose format is not known."""
    return FlawError(f"is not a table in a known format. Known formats are {list_formats()}")


def list_formats(
    conjunction: str = "and", *, in_blocks: bool = False, streams: bool = False
) -> str:
    """Return the names of the known formats as part of a sentence."""
    chosen = [
        name
        for known in known_formats()
        if not (in_blocks and known.open_matrix is None)
        and not (streams and known.read_stream is None)
        for name in known.labels
    ]
    return _join_names(chosen, conjunction)


def _join_names(names: Sequence[str], conjunction: str) -> str:
    """Return names as part of a sentence, such as "a, b and c"."""
    *most, last = names
    return f"{', '.join(most)} {conjunction} {last}" if most else last
