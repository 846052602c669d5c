"""The table to read, and options for reading it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrshc.app.cli.completion import complete_from
from mrshc.app.cli.help_lists import BLOCK_FORMATS_AND, BLOCK_FORMATS_OR, TABLE_FORMATS
from mrshc.app.cli.help_panels import option_factory
from mrshc.app.cli.option_names import SetsParameter, option_for_parameter
from mrshc.errors import UserError
from mrshc.shell.wording import reword

if TYPE_CHECKING:
    from mrshc.app.cli.terminal_output import TerminalOutput
    from mrshc.io import Table

_reading_option = option_factory("Reading")

FileArgument = Annotated[
    str,
    typer.Argument(
        help=f"Table of numbers: {TABLE_FORMATS}; - reads from standard input. {BLOCK_FORMATS_AND} "
        "files that do not fit into memory are read in blocks."
    ),
]


class FeatureAxis(StrEnum):
    """Whether the features are the rows or the columns of a table."""

    rows = "rows"
    columns = "columns"


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """Options for reading the table."""

    features: Annotated[
        FeatureAxis | None,
        _reading_option(
            "--features",
            help="Whether features are in rows or in columns; by default, the longer side.",
        ),
    ] = None
    # The two tables may list the samples in different orders, so samples are matched by name.
    samples: Annotated[
        Path | None,
        _reading_option(
            "--samples",
            help="Second table (text or Excel) with annotations of the samples, matched by name; "
            "some samples may be absent from it.",
        ),
    ] = None
    samples_sheet: Annotated[
        str | None,
        _reading_option(
            "--samples-sheet",
            help="Sheet with the annotations, by name or number, if --samples is an Excel "
            "workbook; by default, the first. The workbook may be that of the table.",
        ),
    ] = None
    truth: Annotated[
        str | None,
        _reading_option(
            "--truth",
            help="Annotation of the samples with known classes, for scores and colours; the fit "
            "does not use it.",
        ),
    ] = None
    annotation: Annotated[
        list[str] | None,
        _reading_option(
            "--annotation",
            help="Column of numbers that is an annotation, such as age; if the features are in "
            "rows, row of numbers or text. May be given repeatedly.",
        ),
        SetsParameter("annotations"),
    ] = None
    separator: Annotated[
        str | None,
        _reading_option(
            "--separator",
            autocompletion=complete_from("tab", "space"),
            help="Character between cells; detected by default, if the file is text.",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        _reading_option(
            "--decimal",
            autocompletion=complete_from(".", ","),
            help="Decimal mark, . or a comma; detected by default.",
        ),
    ] = None
    sheet: Annotated[
        str | None,
        _reading_option(
            "--sheet", help="Sheet of an Excel workbook, by name or number; by default, the first."
        ),
    ] = None
    na_values: Annotated[
        list[str] | None,
        _reading_option(
            "--na-values",
            help="Text or number that stands for a missing value, such as ND or -999, in addition "
            "to empty cells, NA, NaN and null; may be given repeatedly.",
        ),
    ] = None
    keep_numeric: Annotated[
        bool,
        _reading_option(
            "--keep-numeric",
            help="Keep columns and rows of numbers among the values even if they look like "
            "annotations, such as age or batch. Without it, they are an error; see --annotation.",
        ),
    ] = False
    # None: the size of the data and the free memory determine whether data are read into memory.
    in_memory: Annotated[
        bool | None,
        _reading_option(
            "--in-memory/--out-of-core",
            help=f"Read all values of a {BLOCK_FORMATS_OR} file into memory, or leave them in the "
            "file and read them in blocks, once for each pass over the data. By default they are "
            "read into memory if they take no more than half of the free memory. Preprocessing, "
            "--robust and --method hc need them in memory.",
        ),
    ] = None

    def refuse_missing_files(self, file: str) -> None:
        """Raise TableError if the table or the table of annotations does not exist.

        The check is made before slow modules are imported.
        """
        from mrshc.io.streams import refuse_missing_file

        for path in (file, self.samples):
            if path is not None:
                refuse_missing_file(path)
        if self.samples is None or file == "-" or not self.samples.samefile(file):
            return
        # Another sheet of the same workbook is another table.
        if self.samples_sheet in (None, self.sheet or "1"):
            raise UserError(
                f"--samples must name a table of annotations, but {file} is the table of values. "
                "If the annotations are in another sheet of the workbook, name it with "
                "--samples-sheet; otherwise write them to a file of their own."
            )

    def read(
        self,
        file: str,
        output: TerminalOutput,
        *,
        prefers_out_of_core: bool = False,
        min_samples: int | None = None,
    ) -> Table:
        """Read and return the table, and print how it was interpreted."""
        from mrshc.io import can_read_in_blocks, read_table

        # An explicit --in-memory or --out-of-core takes precedence.
        in_memory = self.in_memory
        if prefers_out_of_core and in_memory is None and can_read_in_blocks(file):
            in_memory = False
        with output.show_status(f"Reading {file}"):
            table = read_table(
                file,
                features=None if self.features is None else self.features.value,
                samples=self.samples,
                samples_sheet=self.samples_sheet,
                truth=self.truth,
                annotations=self.annotation or (),
                separator=self.separator,
                decimal=self.decimal,
                sheet=self.sheet,
                na_values=self.na_values or (),
                keep_numeric=self.keep_numeric,
                in_memory=in_memory,
                **({} if min_samples is None else {"min_samples": min_samples}),
            )
        # The notes from the library mention parameters, which are replaced by the corresponding
        # options of the command line.
        notes = tuple(reword(note, option_for_parameter) for note in table.notes)
        table = replace(table, notes=notes)
        output.print_sentence(f"Read {table.source}: {table.notes[0]}")
        for note in table.notes[1:]:
            output.print_sentence(f"  {note}")
        return table
