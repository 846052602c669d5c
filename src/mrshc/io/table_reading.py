"""Reading of a table of samples and features from a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mrshc.io.formats import ReadingOptions, find_format_in_blocks, list_formats, read_raw_table
from mrshc.io.orientation import MIN_SAMPLES, orient_table
from mrshc.io.raw_table import Orientation
from mrshc.io.sample_annotations import join_annotations, read_sample_annotations
from mrshc.io.streams import FlawError, TableError, display_name, table_error
from mrshc.io.table import Table
from mrshc.shell.wording import Parameter, ParameterError, Sentence, Setting

# Names of separators that are difficult to type in a shell.
_NAMED_SEPARATORS = {"tab": "\t", r"\t": "\t", "space": " "}


def read_table(
    path: str | os.PathLike[str],
    *,
    features: Orientation | None = None,
    samples: str | os.PathLike[str] | None = None,
    samples_sheet: str | int | None = None,
    truth: str | None = None,
    annotations: str | Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    na_values: Sequence[str | float] = (),
    keep_numeric: bool = False,
    in_memory: bool | None = None,
    min_samples: int = MIN_SAMPLES,
) -> Table:
    r"""Read a table of samples and features.

    The format is recognised from the content of the file. Names and annotations are read along with
    the values, and the function determines whether the features are in rows or in columns. The
    notes of the returned table state how the file was interpreted.

    Parameters
    ----------
    path : str or path
        Name of a file or folder, or "-" for standard input. A file may be delimited text (CSV, TSV
        and similar formats), GCT, Parquet, .npy, .npz, .h5ad, an Excel workbook (.xlsx) or an .h5
        file of 10x Genomics, and may be compressed with gzip, bzip2 or xz. A .zarr store may be a
        folder or a ZIP archive. A folder may contain the files matrix.mtx, barcodes.tsv and
        features.tsv of 10x Genomics.
    features : {"rows", "columns"} or None, default=None
        Whether the features are in rows or in columns. By default, the orientation is determined
        from the format, from `truth` or from the sample names in the table `samples`. If none of
        these determines the orientation, the features are assumed to be in rows if there are more
        rows than columns, and otherwise in columns. This is correct for most tables of gene
        expression data, which have one row for each gene.
    samples : str, path or None, default=None
        Name of a second table, delimited text or an Excel workbook, which contains annotations of
        the samples. One of its columns must contain the sample names. The annotations of samples
        without a row in this table are missing.
    samples_sheet : str, int or None, default=None
        Name of the sheet with the annotations, or its number, counted from 1, if `samples` is an
        Excel workbook. By default, the first sheet is read. The workbook may be that of the table
        itself.
    truth : str or None, default=None
        Title of an annotation of the samples, such as known classes. If a column of the file has
        this title, the column is not a feature even if it contains numbers. The rows are then
        assumed to be samples, unless `features` or the format states otherwise. If a row has this
        title instead, the same holds for the row and for the columns.
    annotations : str or sequence of str, default=()
        Title or titles of further columns of a text, Excel or Parquet file that are annotations
        even if they contain numbers. Columns of text need not be listed, since text is never a
        feature. If there is no column with a title, the row with this title is set aside, such as a
        row "age" among rows of genes. The columns are then assumed to be samples, unless `features`
        or the format states otherwise.
    separator : str or None, default=None
        Separator of the cells of a text file: a single character, "tab" or "space". By default, the
        separator is detected.
    decimal : {".", ","} or None, default=None
        Decimal mark of a text file. By default, the decimal mark is detected.
    sheet : str, int or None, default=None
        Name of a sheet of an Excel workbook, or its number, counted from 1. By default, the first
        sheet is read.
    na_values : sequence of str or float, default=()
        Further texts and numbers that stand for missing values, such as "ND" or -999.
    keep_numeric : bool, default=False
        Whether columns and rows of numbers are kept among the values even if they look like
        annotations of the samples. By default, an error is raised for a column or a row such as
        "age" or "batch", and for a column of whole numbers if the other columns contain fractions.
    in_memory : bool or None, default=None
        If True, the values are read into memory. If False, the values stay in the file, and
        estimators read them in blocks. This is possible for .npy, .h5ad and .zarr. By default, the
        values stay in the file only if this is possible and if they would take up more than half of
        the free memory.
    min_samples : int, default=3
        Smallest number of samples that is accepted. A clustering needs three; new samples for
        :meth:`mrshc.io.Result.predict` may be fewer.

    Returns
    -------
    Table
        The table: the matrix `X`, with samples in rows, and the names and annotations of samples
        and features.

    Notes
    -----
    Cells that are empty or contain NA, NaN, N/A, #N/A, <NA> or null, in upper or lower case, are
    read as missing values, which are NaN in `X`. Names are made unique. Control characters in names
    and annotations are replaced by blanks.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mrshc.io import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "genes.csv")
    >>> text = "gene,a,b,c\nTP53,1,2,3\nMYC,4,NA,6\nEGFR,7,8,9\nKIT,1,1,2\n"
    >>> _ = file.write_text(text, encoding="utf-8")
    >>> table = read_table(file)
    >>> table.X.shape, list(table.feature_names)
    ((3, 4), ['TP53', 'MYC', 'EGFR', 'KIT'])
    >>> folder.cleanup()
    """
    annotations = [annotations] if isinstance(annotations, str) else annotations
    if samples_sheet is not None and samples is None:
        raise ParameterError(
            "{sheet} has no effect without {samples}. Name the workbook with {samples}.",
            sheet=Parameter("samples_sheet"),
            samples=Parameter("samples"),
        )
    options = ReadingOptions(
        annotations=annotations,
        truth=truth,
        separator=_check_separator(separator),
        decimal=_check_decimal_mark(decimal),
        sheet=None if sheet is None else str(sheet),
        na_values=[str(value) for value in na_values],
        keep_numeric=keep_numeric,
        in_memory=in_memory,
    )
    given: dict[str, Any] = {"features": features, "truth": truth}
    given |= {"samples": None if samples is None else display_name(samples)}
    given |= {"samples_sheet": samples_sheet}
    given |= {"annotations": list(annotations), "separator": separator, "decimal": decimal}
    given |= {"sheet": sheet, "na_values": list(na_values), "keep_numeric": keep_numeric or None}
    given |= {"in_memory": in_memory}
    name = display_name(path)
    try:
        table = _read_and_orient(
            path,
            options,
            features=features,
            samples=samples,
            samples_sheet=None if samples_sheet is None else str(samples_sheet),
            min_samples=min_samples,
        )
    except FlawError as flaw:
        raise table_error(name, flaw) from None
    except MemoryError:
        raise TableError(
            Sentence(
                "{name} does not fit into memory. Store it as {formats} and give {elsewhere}, or "
                "use a machine with more memory.",
                name=name,
                formats=list_formats("or", in_blocks=True),
                elsewhere=Setting("in_memory", False),
            )
        ) from None
    # Only arguments that differ from their default are kept, since they are recorded in
    # result.json. `in_memory=False` is kept because the default is None.
    reading = {k: v for k, v in given.items() if v or v is False}
    return replace(table, source=name, reading=reading)


def _read_and_orient(
    path: str | os.PathLike[str],
    options: ReadingOptions,
    *,
    features: Orientation | None,
    samples: str | os.PathLike[str] | None,
    samples_sheet: str | None,
    min_samples: int,
) -> Table:
    """Return a table with samples in rows.

    If `samples`, the name of a second table, is given, the annotations in that table are added.
    """
    raw = read_raw_table(path, options)
    if samples is None:
        return orient_table(raw, features=features, truth=options.truth, min_samples=min_samples)
    # The annotations are read before the table is oriented, since their sample names are used to
    # determine whether the samples are in rows or in columns.
    annotations = read_sample_annotations(samples, sheet=samples_sheet)
    table = orient_table(
        raw,
        features=features,
        truth=options.truth,
        annotations=annotations,
        min_samples=min_samples,
    )
    name = display_name(samples)
    if samples_sheet is not None:
        name = f"sheet {samples_sheet!r} of {name}"
    return join_annotations(table, annotations, file_name=name, na_values=options.na_values)


def can_read_in_blocks(path: str | os.PathLike[str]) -> bool:
    """Return whether the values of a table can stay in the file and be read in blocks.

    Parameters
    ----------
    path : str or path
        Name of the file or the folder. Standard input, pipes and files that are compressed as a
        whole cannot be read in blocks.

    Returns
    -------
    bool
        Whether the format of the file allows the matrix to be read in blocks.

    Examples
    --------
    >>> from mrshc.io import can_read_in_blocks
    >>> can_read_in_blocks("-")
    False
    """
    return find_format_in_blocks(path) is not None


def _check_separator(given: str | None) -> str | None:
    """Return a separator as a single character, or None if `given` is None.

    Raise TableError if `given` is neither a single character nor the name of a separator.
    """
    separator = _NAMED_SEPARATORS.get(given or "", given)
    if separator is not None and len(separator) != 1:
        raise TableError(f"A separator must be a single character or 'tab', got {given!r}.")
    return separator


def _check_decimal_mark(given: str | None) -> str | None:
    """Return `given`; raise TableError if it is not a point, a comma or None."""
    if given not in (None, ".", ","):
        raise TableError(f"A decimal mark must be '.' or ',', got {given!r}.")
    return given
