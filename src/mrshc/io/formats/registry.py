"""The registry of table formats: the definition of a format, and the recognition of inputs.

A new format is one module of this package with a `TableFormat`, and one line in `__init__.py` that
registers it. Reading, the help of the command line and the messages that list formats use the
registry.
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
from mrshc.io.streams import FlawError, open_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Options of `mrshc.io.read_table` that concern formats; each format uses those that apply.

    Attributes
    ----------
    annotations : collection of str
        Columns that are annotations even if they hold numbers.
    truth : str or None
        Name of an annotation of the samples.
    separator, decimal : str or None
        Separator of cells and decimal mark of a text; None: they are detected.
    in_memory : bool or None
        Whether the values are read into memory; None: if they take no more than half of the free
        memory.
    """

    annotations: Collection[str] = ()
    truth: str | None = None
    separator: str | None = None
    decimal: str | None = None
    in_memory: bool | None = None

    @property
    def annotation_names(self) -> frozenset[str]:
        """Names of all columns that are not features: the annotations and the truth."""
        return frozenset({*self.annotations, *([] if self.truth is None else [self.truth])})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """A format of tables: its names, how it is recognised and how it is read.

    Parameters
    ----------
    name : str
        A file of this format with an article, as part of messages: "a Parquet file".
    recognise : callable, InputFile -> bool
        Returns whether an input has this format. Formats that are registered later are asked first.
    labels : tuple of str, default=()
        Names of the format in lists of known formats; empty for a format that is not read.
    suffixes : tuple of str, default=()
        Usual suffixes of file names. They are shown to users; the format is recognised by the
        content.
    read_stream : callable, (InputFile, ReadingOptions) -> RawTable, or None, default=None
        Reads a stream: a file, compressed or not, a pipe or standard input.
    read_path : callable, (str, ReadingOptions) -> RawTable, or None, default=None
        Reads a folder, or a file that is not compressed as a whole, by its name.
    open_matrix : callable, (str, str) -> array, or None, default=None
        Opens the matrix of a file, or one of its members, without reading it. Tables of a format
        that has it can be left in their file and read in blocks.
    container : str, default=""
        Containers of a format without `read_stream`, for help texts: "a folder or a .zip".
    extra : str or None, default=None
        The extra of mrshc that the format needs.
    has_dialects : bool, default=False
        Whether files differ by separators and decimal marks, so that options for them apply.
    advice : str, default=""
        For a format that is recognised, but not read: a sentence with advice, without its period.
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
    advice: str = ""

    def import_library(self, module: str) -> Any:
        """Return a module that is installed with the extra of this format."""
        try:
            # The package first, as `import a.b` does: `a.b` may be loaded while `a` is disabled.
            import_module(module.partition(".")[0])
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
    """Return all formats that can be read, in the order in which they are listed."""
    return tuple(known for known in _formats if not known.advice)


def recognise_format(file: InputFile) -> TableFormat | None:
    """Return the format of an input; None if it is not known."""
    # A specific format is registered after the general one that its files also have: Zarr archives
    # and Excel workbooks after .npz, GCT after delimited text.
    return next((known for known in reversed(_formats) if _has_format(file, known)), None)


def _has_format(file: InputFile, known: TableFormat) -> bool:
    """Return whether an input has a format that can be read from an input of its kind."""
    readers = [known.read_path, known.read_stream, known.advice or None]
    if file.is_folder:
        readers = readers[:1]
    elif file.path is None:
        readers = readers[1:]
    return any(reader is not None for reader in readers) and known.recognise(file)


def read_raw_table(path: str | os.PathLike[str], options: ReadingOptions) -> RawTable:
    """Read a table of any known format.

    Parameters
    ----------
    path : str or path
        Name of a file or a folder; "-" for standard input.
    options : ReadingOptions
        Options that the format does not use are mentioned in the notes of the table.
    """
    file = InputFile.from_path(path)
    known = None if file is None else recognise_format(file)
    if known is not None and known.read_path is not None:
        table = known.read_path(os.fspath(path), options)
    else:
        with open_stream(path) as stream:
            known, table = _read_stream(InputFile.from_stream(stream), options)
    titles = {*table.row_annotations, *table.column_annotations}
    # Silently ignoring a misspelt title would leave the column among the features.
    if absent := sorted(set(options.annotations) - titles):
        raise FlawError(f"has no column {absent[0]!r} that could be an annotation")
    for name in () if known.has_dialects else ("separator", "decimal"):
        if getattr(options, name) is not None:
            template = "{option} has no effect: the table is {kind}."
            table.notes.append(Sentence(template, option=Parameter(name), kind=known.name))
    return table


def _read_stream(file: InputFile, options: ReadingOptions) -> tuple[TableFormat, RawTable]:
    """Return the format of a stream and the table that it holds."""
    if not file.head.strip():
        raise FlawError("is empty")
    if options.in_memory is False:
        raise FlawError(
            Sentence(
                "cannot be read in blocks: only {known}, not compressed as a whole, can. Write it "
                "as one of them, or leave {blocks} out",
                known=list_formats(in_blocks=True),
                blocks=Setting("in_memory", False),
            )
        )
    known = recognise_format(file)
    if known is None:
        raise unknown_format_error()
    if known.read_stream is None:
        raise FlawError(f"is {known.name}. {known.advice}")
    return known, known.read_stream(file, options)


def find_format_in_blocks(path: str | os.PathLike[str]) -> TableFormat | None:
    """Return the format of a file whose matrix can be read in blocks; None for other inputs."""
    file = InputFile.from_path(path)
    known = None if file is None else recognise_format(file)
    return None if known is None or known.open_matrix is None else known


def unknown_format_error() -> FlawError:
    """Return the error about an input that has none of the known formats."""
    return FlawError(f"is not a table in a known format. Known formats are {list_formats()}")


def list_formats(
    conjunction: str = "and", *, in_blocks: bool = False, streams: bool = False
) -> str:
    """Return the names of the known formats as part of a sentence.

    Parameters
    ----------
    conjunction : str, default="and"
        The word before the last name.
    in_blocks : bool, default=False
        Only formats that can be read in blocks.
    streams : bool, default=False
        Only formats that can be read from streams.
    """
    chosen = [
        name
        for known in known_formats()
        if not (in_blocks and known.open_matrix is None)
        and not (streams and known.read_stream is None)
        for name in known.labels
    ]
    return _join_names(chosen, conjunction)


def _join_names(names: Sequence[str], conjunction: str) -> str:
    """Return names as part of a sentence: "a, b and c"."""
    *most, last = names
    return f"{', '.join(most)} {conjunction} {last}" if most else last
