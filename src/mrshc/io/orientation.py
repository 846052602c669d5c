"""Decides which side of a table holds the samples and which the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.core.data.conversion import data_matrix
from mrshc.errors import Sentence, Setting
from mrshc.io.raw_table import Orientation, RawTable, tidy, unique
from mrshc.io.streams import FlawError
from mrshc.io.table import Table, missing

# Fewer do not make a tree, or leave nothing to select.
_FEWEST_SAMPLES, _FEWEST_FEATURES = 3, 2
_SIDES: tuple[Orientation, Orientation] = ("rows", "columns")


def orient(
    raw: RawTable,
    *,
    features: Orientation | None,
    truth: str | None,
    known: pd.DataFrame | None = None,
) -> Table:
    """Return a table with samples in rows, its names unique and its annotations typed.

    Parameters
    ----------
    raw : RawTable
        As the file has it.
    features : {"rows", "columns"} or None
        Where the features are; None: where the format, the annotations or the shape suggest.
    truth : str or None
        An annotation of the samples, which tells where they are.
    known : DataFrame or None
        Annotations of the samples; the column with their names tells where they are.
    """
    side, reason = _features_side(raw, features=features, truth=truth, known=known)
    X = raw.values.T if side == "rows" else raw.values
    n, p = X.shape
    _refuse_too_few((n, p), side)
    found = Sentence(
        "{p:,} features and {n:,} samples; features in {side} ({reason}).",
        p=p,
        n=n,
        side=side,
        reason=reason,
    )
    notes: list[str] = [found, *raw.notes]
    sides = [
        (raw.row_names, raw.row_annotations),
        (raw.column_names, raw.column_annotations),
    ]
    (samples, of_samples), (genes, of_features) = reversed(sides) if side == "rows" else sides
    sample_names = _unique_names(samples, "sample", count=n, notes=notes)
    feature_names = _unique_names(genes, "feature", count=p, notes=notes)
    for kind, columns in (("samples", of_samples), ("features", of_features)):
        if columns:
            notes.append(f"Annotations of the {kind}: {', '.join(unique([*columns], 'column'))}.")
    data = data_matrix(X)
    if data.in_memory and (n_missing := int(np.isnan(data.values).sum())):
        notes.append(missing(n_missing, data.shape))
    return Table(
        X=X,
        sample_names=sample_names,
        feature_names=feature_names,
        sample_annotations=_annotations(of_samples, sample_names, decimal=raw.decimal),
        feature_annotations=_annotations(of_features, feature_names, decimal=raw.decimal),
        source="",
        notes=tuple(notes),
    )


def _unique_names(
    given: Sequence[str] | None, kind: str, *, count: int, notes: list[str]
) -> NDArray[Any]:
    """Return names that differ; those that had to be changed are noted."""
    plain = [f"{kind} {i + 1}" for i in range(count)] if given is None else given
    once = unique(plain, kind)
    if changed := [new for old, new in zip(plain, once, strict=True) if old != new]:
        names = f"1 {kind} name was" if len(changed) == 1 else f"{len(changed):,} {kind} names were"
        first = "it is now" if len(changed) == 1 else "the first is now"
        notes.append(
            f"{names} empty, not unique or held characters that cannot be shown; {first} "
            f"{changed[0]!r}."
        )
    return np.array(once, dtype=object)


def _features_side(
    raw: RawTable, *, features: Orientation | None, truth: str | None, known: pd.DataFrame | None
) -> tuple[Orientation, str]:
    """Return where the features are, and why."""
    if features is not None:
        return features, "as asked for"
    if raw.features_in is not None:
        return raw.features_in, "as the format has it"
    if truth is not None and truth in raw.row_annotations:
        return "columns", f"{truth!r} has a value for each row"
    if known is not None:
        listed = {name for column in known for name in known[column]}
        shared = [len(listed & set(names or ())) for names in (raw.row_names, raw.column_names)]
        if shared[0] != shared[1]:
            where: Orientation = "rows" if shared[1] > shared[0] else "columns"
            return where, "by the names of the samples"
    n_rows, n_columns = raw.values.shape
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
