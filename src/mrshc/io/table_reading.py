"""Reads a table of samples and features from a file, and says what was understood."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mrshc.errors import Sentence, Setting
from mrshc.io.formats import ReadingOptions, format_in_blocks, listing, read_raw_table
from mrshc.io.orientation import orient
from mrshc.io.raw_table import Orientation
from mrshc.io.sample_annotations import join, read_annotations
from mrshc.io.streams import FlawError, TableError, shown, table_error
from mrshc.io.table import Table


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

    Parameters
    ----------
    path : str or path
        A table as text (CSV, TSV and the like) or GCT, compressed by gzip, bzip2 or xz or not; a
        Parquet file, .npy, .npz, .h5ad; a .zarr folder or archive; or "-" for standard input. The
        content tells which.
    features : {"rows", "columns"} or None
        Where the features are. By default what the format says, or what names shared with
        `samples` say; else the longer side, which is the rows in most tables of expression data.
    samples : str, path or None
        A second table, with annotations of the samples, which it names in one of its columns.
    truth : str or None
        Name of an annotation of the samples: a column of this name is not a feature even if it
        holds numbers, and its rows are samples.
    annotations : sequence of str
        More columns of text files and Parquet that are annotations even if they hold numbers.
        Columns of text always are.
    separator, decimal : str or None
        Of a text file; found out by default.
    in_memory : bool or None
        Whether the values are read, or stay in their file, from which estimators read them in
        blocks; .npy, .h5ad and .zarr can stay. By default they are read if they take no more than
        half of the memory that is free.

    Returns
    -------
    Table
        With `X`, samples in rows, and the names and annotations of both sides.

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
        separator=_separator(separator),
        decimal=_decimal(decimal),
        in_memory=in_memory,
    )
    given: dict[str, Any] = {"features": features, "truth": truth}
    given |= {"samples": None if samples is None else shown(samples)}
    given |= {"annotations": list(annotations), "separator": separator, "decimal": decimal}
    given |= {"in_memory": in_memory}
    name = shown(path)
    try:
        table = _read(path, options, features=features, samples=samples)
    except FlawError as flaw:
        raise table_error(name, flaw) from None
    except MemoryError:
        raise TableError(
            Sentence(
                "{name} does not fit into memory. Store it as {formats} and give {elsewhere}, or "
                "use a larger machine.",
                name=name,
                formats=listing("or", in_blocks=True),
                elsewhere=Setting("in_memory", False),
            )
        ) from None
    reading = {k: v for k, v in given.items() if v or v is False}
    return replace(table, source=name, reading=reading)


def _read(
    path: str | os.PathLike[str],
    options: ReadingOptions,
    *,
    features: Orientation | None,
    samples: str | os.PathLike[str] | None,
) -> Table:
    raw = read_raw_table(path, options)
    if samples is None:
        return orient(raw, features=features, truth=options.truth)
    annotations = read_annotations(samples)
    table = orient(raw, features=features, truth=options.truth, known=annotations)
    return join(table, annotations, file_name=shown(samples))


def can_stay(path: str | os.PathLike[str]) -> bool:
    """Tell whether a table can be read with its values left in the file."""
    return format_in_blocks(path) is not None


def _separator(given: str | None) -> str | None:
    separator = {"tab": "\t", r"\t": "\t", "space": " "}.get(given or "", given)
    if separator is not None and len(separator) != 1:
        raise TableError(f"A separator must be a single character or 'tab', got {given!r}.")
    return separator


def _decimal(given: str | None) -> str | None:
    if given not in (None, ".", ","):
        raise TableError(f"A decimal mark must be . or , got {given!r}.")
    return given
