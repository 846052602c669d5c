"""`mrshc predict`: assign new samples to the clusters of a result."""

from __future__ import annotations

import sys
from dataclasses import asdict, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from mrshc.app.cli.reading_options import ReadingOptions
from mrshc.app.cli.temporary_folder_fallback import use_temporary_folder_of
from mrshc.app.cli.terminal_output import TerminalOutput
from mrshc.errors import UserError
from mrshc.io.streams import refuse_missing_file

# Options of `mrshc cluster` for reading a table that have no meaning for new samples, since neither
# annotations nor classes are used, only few features are read, and other columns are ignored.
_OMITTED_OPTIONS = ("samples", "samples_sheet", "truth", "in_memory", "keep_numeric")


def _reading_options() -> Any:
    """Return a group of options like `ReadingOptions`, without those that have no meaning here."""
    hints = get_type_hints(ReadingOptions, include_extras=True)
    kept = [
        (option.name, hints[option.name], field(default=option.default))
        for option in fields(ReadingOptions)
        if option.name not in _OMITTED_OPTIONS
    ]
    return make_dataclass("NewTableOptions", kept, frozen=True, kw_only=True)


NewTableOptions: Any = _reading_options()


def predict(
    folder: Annotated[
        Path, typer.Argument(metavar="RESULT", help="Folder that mrshc cluster has written.")
    ],
    file: Annotated[
        str,
        typer.Argument(
            metavar="NEWFILE",
            help="Table of new samples, in the units of the table that was clustered; - reads from "
            "standard input.",
        ),
    ],
    reading: NewTableOptions,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV file for the table; by default, it is printed."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only warnings.")] = False,
) -> None:
    """Assign new samples to the clusters of a result.

    A sample is assigned to the cluster whose centre is nearest, in the features and with the
    distance of the tree. The new samples are preprocessed like the data of the result, so give them
    in the same units. Features are matched by name; features that are not needed are ignored.

    The table has one row for each sample: the nearest cluster and the distance to its centre, and
    the second nearest cluster and its distance. If both distances are similar, the sample lies
    between two clusters.

    Example: mrshc predict result new.tsv --out new-clusters.csv

    Example: mrshc predict result new.tsv > new-clusters.csv
    """
    refuse_missing_file(file)
    use_temporary_folder_of(folder / "predict" if out is None else out)
    _refuse_output(out, file, overwrite=overwrite)
    from mrshc.io import load_result, predict_clusters
    from mrshc.io.result import format_csv
    from mrshc.shell.atomic_files import write_text

    # If the table is printed, sentences on standard output would be read as part of it.
    output = TerminalOutput(quiet=quiet or out is None)
    # The result is read first, since reading a large table takes time.
    result = load_result(folder)
    # Columns of numbers that are not features are ignored, so they need not be set aside.
    options = ReadingOptions(**asdict(reading), keep_numeric=True)
    table = options.read(file, output, min_samples=1)
    assigned = predict_clusters(result, table)
    if result.n_clusters_ == 1:
        output.print_warning("The result has a single cluster, so every sample is assigned to it.")
    text = format_csv(assigned, index_label="sample")
    if out is None:
        # The text is written as bytes, since CSV is UTF-8 in any locale.
        sys.stdout.buffer.write(text.encode())
        return
    write_text(out, text)
    sizes = assigned["cluster"].value_counts().sort_index()
    counts = ", ".join(f"{size:,} to cluster {cluster}" for cluster, size in sizes.items())
    output.print_sentence(f"New samples: {counts}.")
    output.print_sentence(f"Table written to {out}")


def _refuse_output(out: Path | None, file: str, *, overwrite: bool) -> None:
    """Raise UserError if the output file may not be written."""
    if out is None:
        return
    if out.is_dir():
        raise UserError(f"{out} is a folder, but a file for the table was wanted. Add a file name.")
    if file != "-" and out.exists() and Path(file).exists() and out.samefile(file):
        raise UserError(f"{out} is the table of new samples. Choose another name for the output.")
    if out.exists() and not overwrite:
        raise UserError(
            f"{out} exists already. Add --overwrite to replace it, or choose another name."
        )
