"""Reads a table of samples and features from a file, and says what was understood."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.data.interface import Source
from mrshc.errors import Sentence, Setting
from mrshc.io import formats
from mrshc.io.anndata_format import read_h5ad
from mrshc.io.large import read_large
from mrshc.io.matrix_file import kind_of
from mrshc.io.raw_table import Grid, Orientation, tidy, unique
from mrshc.io.streams import (
    FlawError,
    TableError,
    as_text,
    opened,
    seekable,
    shown,
    start_of,
    table_error,
)
from mrshc.io.text_format import read_cells, read_text
from mrshc.utils.text_cleaning import clean_text

_FEWEST_SAMPLES, _FEWEST_FEATURES = 3, 2
_NAMED = 5  # in an error, at most
_SIDES: tuple[Orientation, Orientation] = ("rows", "columns")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Samples and features of a file."""

    X: NDArray[Any] | Source  # (n, p), samples in rows; NaN: missing; or where that lies
    sample_names: NDArray[Any]  # (n,), texts, unique
    feature_names: NDArray[Any]  # (p,), texts, unique
    sample_annotations: pd.DataFrame  # (n, any), indexed by sample
    feature_annotations: pd.DataFrame  # (p, any), indexed by feature
    source: str
    notes: tuple[str, ...]  # sentences on what was understood
    reading: dict[str, Any] = field(default_factory=dict)  # options that were not the default

    def to_frame(self) -> pd.DataFrame:
        """Return the values with their names; what lies in a file is read."""
        X = self.X if isinstance(self.X, np.ndarray) else self.X.columns(np.arange(self.X.shape[1]))
        return pd.DataFrame(X, index=self.sample_names, columns=self.feature_names)


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
    name = shown(path)
    marks = {"separator": _separator(separator), "decimal": _decimal(decimal)}
    try:
        grid = _read_grid(path, annotations=annotations, truth=truth, in_memory=in_memory, **marks)
        notes_on_samples = None if samples is None else _read_annotations(samples)
        table = _oriented(grid, features=features, truth=truth, known=notes_on_samples)
        given: dict[str, Any] = {"features": features, "truth": truth}
        given |= {"samples": None if samples is None else shown(samples)}
        given |= {"annotations": list(annotations), "separator": separator, "decimal": decimal}
        given |= {"in_memory": in_memory}
        given = {k: v for k, v in given.items() if v or v is False}
        table = replace(table, source=name, reading=given)
        if notes_on_samples is not None:
            table = _joined(table, notes_on_samples, shown(samples or ""))
    except FlawError as flaw:
        raise table_error(name, flaw) from None
    except MemoryError:
        raise TableError(f"{name} does not fit into memory.") from None
    return table


def can_stay(path: str | os.PathLike[str]) -> bool:
    """Tell whether a table can be read with its values left in the file."""
    return kind_of(path) is not None


def _separator(given: str | None) -> str | None:
    separator = {"tab": "\t", r"\t": "\t", "space": " "}.get(given or "", given)
    if separator is not None and len(separator) != 1:
        raise TableError(f"A separator must be a single character or 'tab', got {given!r}.")
    return separator


def _decimal(given: str | None) -> str | None:
    if given not in (None, ".", ","):
        raise TableError(f"A decimal mark must be . or , got {given!r}.")
    return given


def _read_grid(
    path: str | os.PathLike[str],
    *,
    annotations: Collection[str],
    truth: str | None,
    separator: str | None,
    decimal: str | None,
    in_memory: bool | None,
) -> Grid:
    if (kind := kind_of(path)) is not None:
        return read_large(path, kind, in_memory=in_memory)
    named = {*annotations, *([] if truth is None else [truth])}
    with opened(path) as stream:
        head = start_of(stream)
        if not head.strip():
            raise FlawError("is empty")
        if in_memory is False:
            raise FlawError(
                Sentence(
                    "cannot stay in its file: only .npy, .h5ad and .zarr, not compressed as a "
                    "whole, are read in blocks. Write it as one of them, or leave {blocks} out",
                    blocks=Setting("in_memory", False),
                )
            )
        if head.startswith(b"\x93NUMPY"):
            return formats.read_numpy(seekable(stream))
        if head.startswith(b"PK\x03\x04"):
            return formats.read_numpy_archive(seekable(stream))
        if head.startswith(b"PAR1"):
            return formats.read_parquet(seekable(stream), annotations=named)
        if head.startswith(b"\x89HDF"):
            return read_h5ad(seekable(stream))
        with as_text(stream) as (text, start):
            if formats.is_gct(start):
                return formats.read_gct(text)
            grid = read_text(text, start, separator=separator, decimal=decimal, annotations=named)
        if absent := sorted(set(annotations) - set(grid.row_annotations)):
            raise FlawError(f"has no column {absent[0]!r} that could be an annotation")
        return grid


def _read_annotations(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table in which every column is an annotation."""
    try:
        with opened(path) as stream, as_text(stream) as text:
            dialect, header, rows = read_cells(*text)
            titles = unique(header, "column")
    except FlawError as flaw:
        raise table_error(shown(path), flaw) from None
    # Cleaned as the names of the samples are, to which they are compared.
    cells = [[clean_text(cell) for cell in row] for row in rows]
    found = pd.DataFrame(cells, columns=titles, dtype=object)
    found.attrs["decimal"] = dialect.decimal
    return found


def _oriented(
    grid: Grid, *, features: Orientation | None, truth: str | None, known: pd.DataFrame | None
) -> Table:
    n_rows, n_columns = grid.values.shape
    side, reason = _features_side(grid, features=features, truth=truth, known=known)
    in_rows = side == "rows"
    X = grid.values.T if in_rows else grid.values
    names = (grid.column_names, grid.row_names) if in_rows else (grid.row_names, grid.column_names)
    kinds = ("sample", "feature")
    counts = (n_columns, n_rows) if in_rows else (n_rows, n_columns)
    notes: list[str] = [
        Sentence(
            "{p:,} features and {n:,} samples; features in {side} ({reason}).",
            p=counts[1],
            n=counts[0],
            side=side,
            reason=reason,
        ),
        *grid.notes,
    ]
    _refuse_too_few(counts, side)
    finished = []
    for given, kind, count in zip(names, kinds, counts, strict=True):
        plain = [f"{kind} {i + 1}" for i in range(count)] if given is None else given
        once = unique(plain, kind)
        if changed := [new for old, new in zip(plain, once, strict=True) if old != new]:
            notes.append(
                f"{len(changed):,} {kind} names were empty or not unique and were changed, the "
                f"first to {changed[0]!r}."
            )
        finished.append(np.array(once, dtype=object))
    of_rows, of_columns = grid.row_annotations, grid.column_annotations
    of_samples, of_features = (of_columns, of_rows) if in_rows else (of_rows, of_columns)
    for kind, columns in (("samples", of_samples), ("features", of_features)):
        if columns:
            notes.append(f"Annotations of the {kind}: {', '.join(unique([*columns], 'column'))}.")
    if isinstance(X, np.ndarray) and (n_missing := int(np.isnan(X).sum())):
        notes.append(missing(n_missing, X.shape))
    return Table(
        X=X,
        sample_names=finished[0],
        feature_names=finished[1],
        sample_annotations=_annotations(of_samples, finished[0], decimal=grid.decimal),
        feature_annotations=_annotations(of_features, finished[1], decimal=grid.decimal),
        source="",
        notes=tuple(notes),
    )


def missing(count: int, shape: tuple[int, ...]) -> str:
    """Say how many values are missing."""
    return f"{count:,} of {shape[0] * shape[1]:,} values are missing."


def _features_side(
    grid: Grid, *, features: Orientation | None, truth: str | None, known: pd.DataFrame | None
) -> tuple[Orientation, str]:
    """Return where the features are, and why."""
    if features is not None:
        return features, "as asked for"
    if grid.features_in is not None:
        return grid.features_in, "as the format has it"
    if truth is not None and truth in grid.row_annotations:
        return "columns", f"{truth!r} has a value for each row"
    if known is not None:
        listed = {name for column in known for name in known[column]}
        shared = [len(listed & set(names or ())) for names in (grid.row_names, grid.column_names)]
        if shared[0] != shared[1]:
            where: Orientation = "rows" if shared[1] > shared[0] else "columns"
            return where, "by the names of the samples"
    n_rows, n_columns = grid.values.shape
    more = "" if n_rows > n_columns else "not "
    guess, other = _SIDES if n_rows > n_columns else _SIDES[::-1]
    return guess, Sentence(
        "{more}more rows than columns; {features} says otherwise",
        more=more,
        features=Setting("features", other),
    )


def _refuse_too_few(counts: tuple[int, int], side: str) -> None:
    n, p = counts
    if n < _FEWEST_SAMPLES or p < _FEWEST_FEATURES:
        other = "columns" if side == "rows" else "rows"
        raise FlawError(
            Sentence(
                "must hold at least {fewest[0]} samples and {fewest[1]} features, but has {n} and "
                "{p} with features in {side}. If they are in {other}, say so with {features}",
                fewest=(_FEWEST_SAMPLES, _FEWEST_FEATURES),
                n=n,
                p=p,
                side=side,
                other=other,
                features=Setting("features", other),
            )
        )


def _annotations(
    columns: dict[str, list[Any]], names: NDArray[Any], *, decimal: str
) -> pd.DataFrame:
    titles = unique(list(columns), "column")
    content = {t: tidy(v, decimal) for t, v in zip(titles, columns.values(), strict=True)}
    return pd.DataFrame(content, index=pd.Index(names, dtype=object))


def _joined(table: Table, annotations: pd.DataFrame, source: str) -> Table:
    """Add the annotations of a second table, found by the names of the samples."""
    names = set(table.sample_names)
    key = max(annotations.columns, key=lambda c: len(names & set(annotations[c])))
    absent = [name for name in table.sample_names if name not in set(annotations[key])]
    if absent:
        shown_names = ", ".join(absent[:_NAMED]) + (", ..." if len(absent) > _NAMED else "")
        raise TableError(
            f"{source} must have a row for each sample, but {len(absent)} of {len(names)} have "
            f"none in its column {key!r}: {shown_names}. Add them, or mend the names."
        )
    counts = Counter(annotations[key])
    twice = [name for name in table.sample_names if counts[name] > 1]
    if twice:
        raise TableError(
            f"{source} must have one row for each sample, but has {counts[twice[0]]} for "
            f"{twice[0]!r}. Drop the others."
        )
    found = annotations.set_index(key).loc[list(table.sample_names)]
    both = table.sample_annotations.copy()
    replaced = [title for title in found.columns if title in both]
    for title in found.columns:
        both[title] = tidy(found[title], annotations.attrs["decimal"])
    spare = len(annotations) - len(names)
    note = f"Annotations from {source}: {', '.join(map(str, found.columns)) or 'none'}" + (
        f"; {spare:,} of its rows are of other samples." if spare else "."
    )
    if replaced:
        note += f" They replace the table's own: {', '.join(replaced)}."
    return replace(table, sample_annotations=both, notes=(*table.notes, note))
