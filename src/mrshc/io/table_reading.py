"""Reading of a table of samples and features from a file, with notes on its interpretation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mrshc.errors import Sentence, Setting
from mrshc.io.formats import ReadingOptions, find_format_in_blocks, list_formats, read_raw_table
from mrshc.io.orientation import orient_table
from mrshc.io.raw_table import Orientation
from mrshc.io.sample_annotations import join_annotations, read_sample_annotations
from mrshc.io.streams import FlawError, TableError, display_name, table_error
from mrshc.io.table import Table

# Names of separators that are awkward to type in a shell.
_NAMED_SEPARATORS = {"tab": "\t", r"\t": "\t", "space": " "}


def read_table(
    path: str | os.PathLike[str],
    *,
    features: Orientation | None = None,
    samples: str | os.PathLike[str] | None = None,
    truth: str | None = None,
    annotations: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    in_memory: bool | None = None,
) -> Table:
    r"""Read a table of samples and features.

    The format is recognised by the content of the file. Names and annotations are read with the
    values, and it is decided whether the features are in rows or in columns. The notes of the
    returned table state how the file was interpreted.

    Parameters
    ----------
    path : str or path
        A table as text (CSV, TSV and the like) or GCT, a Parquet, .npy, .npz or .h5ad file, each of
        them possibly compressed by gzip, bzip2 or xz; a .zarr folder or archive; or "-" for
        standard input.
    features : {"rows", "columns"} or None, default=None
        The side of the features. By default, the side that the format defines or that follows from
        the names shared with `samples`; otherwise the longer side, which is the rows in most tables
        of expression data.
    samples : str, path or None, default=None
        A second table, with annotations of the samples. One of its columns holds their names.
    truth : str or None, default=None
        Name of an annotation of the samples. A column of this name is not a feature even if it
        holds numbers, and its rows are samples.
    annotations : sequence of str, default=()
        Further columns of text files and Parquet files that are annotations even if they hold
        numbers. Columns of text always are.
    separator : str or None, default=None
        Separator of the cells of a text file: a single character, "tab" or "space". By default, it
        is detected.
    decimal : {".", ","} or None, default=None
        Decimal mark of a text file. By default, it is detected.
    in_memory : bool or None, default=None
        Whether the values are read into memory, or left in the file, from which estimators read
        them in blocks. The latter is possible for .npy, .h5ad and .zarr. By default, the values are
        read if they take no more than half of the free memory.

    Returns
    -------
    Table
        With `X`, samples in rows, and the names and annotations of samples and features.

    Raises
    ------
    TableError
        If the file cannot be read, or is not a table of samples and features.

    See Also
    --------
    mrshc.io.load_result : Load the result of a clustering.
    mrshc.exports.gct : Write a table as GCT.

    Notes
    -----
    Cells that are empty or hold NA, NaN, N/A, #N/A, <NA> or null, in upper or lower case, are
    missing values, which are NaN in `X`. Names are made unique, and control characters in names and
    annotations are removed.

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
    options = ReadingOptions(
        annotations=annotations,
        truth=truth,
        separator=_check_separator(separator),
        decimal=_check_decimal_mark(decimal),
        in_memory=in_memory,
    )
    given: dict[str, Any] = {"features": features, "truth": truth}
    given |= {"samples": None if samples is None else display_name(samples)}
    given |= {"annotations": list(annotations), "separator": separator, "decimal": decimal}
    given |= {"in_memory": in_memory}
    name = display_name(path)
    try:
        table = _read_and_orient(path, options, features=features, samples=samples)
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
    # Options that were not given are left out of result.json; `in_memory=False` was given.
    reading = {k: v for k, v in given.items() if v or v is False}
    return replace(table, source=name, reading=reading)


def _read_and_orient(
    path: str | os.PathLike[str],
    options: ReadingOptions,
    *,
    features: Orientation | None,
    samples: str | os.PathLike[str] | None,
) -> Table:
    """Return a table with samples in rows, joined with the annotations of a second table."""
    raw = read_raw_table(path, options)
    if samples is None:
        return orient_table(raw, features=features, truth=options.truth)
    # Read before the table is oriented: the names of the samples tell which side they are on.
    annotations = read_sample_annotations(samples)
    table = orient_table(raw, features=features, truth=options.truth, annotations=annotations)
    return join_annotations(table, annotations, file_name=display_name(samples))


def can_read_in_blocks(path: str | os.PathLike[str]) -> bool:
    """Return whether the values of a table can be left in the file and read in blocks.

    Parameters
    ----------
    path : str or path
        Name of the file or the folder. Standard input and pipes cannot be read in blocks, nor can
        files that are compressed as a whole.

    Returns
    -------
    bool
        True if the format of the file allows the matrix to be read in blocks.

    See Also
    --------
    mrshc.io.read_table : Read a table; `in_memory=False` leaves the values in the file.

    Examples
    --------
    >>> from mrshc.io import can_read_in_blocks
    >>> can_read_in_blocks("-")
    False
    """
    return find_format_in_blocks(path) is not None


def _check_separator(given: str | None) -> str | None:
    """Return a separator as a single character; refuse other texts."""
    separator = _NAMED_SEPARATORS.get(given or "", given)
    if separator is not None and len(separator) != 1:
        raise TableError(f"A separator must be a single character or 'tab', got {given!r}.")
    return separator


def _check_decimal_mark(given: str | None) -> str | None:
    """Return a decimal mark; refuse other texts."""
    if given not in (None, ".", ","):
        raise TableError(f"A decimal mark must be '.' or ',', got {given!r}.")
    return given
