"""Orientation of a table: detection of its feature axis, and conversion to samples in rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mrshc.io.raw_table import Orientation, RawTable, clean_unique_names, parse_annotation
from mrshc.io.streams import FlawError
from mrshc.io.table import Table, missing_values_message
from mrshc.shell.data_matrix import as_data_matrix
from mrshc.shell.text_cleaning import clean_text
from mrshc.shell.wording import Sentence, Setting

# Smallest numbers of samples and features that are accepted. With two samples there is only one
# tree, and with one feature there is nothing to select.
MIN_SAMPLES, _MIN_FEATURES = 3, 2
_SIDES: tuple[Orientation, Orientation] = ("rows", "columns")


def orient_table(
    raw: RawTable,
    *,
    features: Orientation | None,
    truth: str | None,
    annotations: pd.DataFrame | None = None,
    min_samples: int = MIN_SAMPLES,
) -> Table:
    """Return a table with samples in rows, unique names and typed annotations."""
    side, reason = _find_feature_side(raw, features=features, truth=truth, annotations=annotations)
    X = raw.values.T if side == "rows" else raw.values
    n, p = X.shape
    _refuse_too_few((n, p), side, min_samples=min_samples, notes=raw.notes)
    summary = Sentence(
        "{p:,} features and {n:,} samples; features in {side} ({reason}).",
        p=p,
        n=n,
        side=side,
        reason=reason,
    )
    notes: list[str] = [summary, *raw.notes]
    sides = [
        (raw.row_names, raw.row_annotations),
        (raw.column_names, raw.column_annotations),
    ]
    (samples, of_samples), (variables, of_features) = reversed(sides) if side == "rows" else sides
    sample_names = _unique_names(samples, "sample", count=n, notes=notes)
    feature_names = _unique_names(variables, "feature", count=p, notes=notes)
    for kind, columns in (("samples", of_samples), ("features", of_features)):
        if columns:
            notes.append(
                f"Annotations of the {kind}: {', '.join(clean_unique_names([*columns], 'column'))}."
            )
    data = as_data_matrix(X)
    # If the data stay in a file, missing values are counted later, in the first pass over the data.
    if data.in_memory and (n_missing := int(np.isnan(data.values).sum())):
        notes.append(missing_values_message(n_missing, data.shape))
    return Table(
        X=X,
        sample_names=sample_names,
        feature_names=feature_names,
        sample_annotations=_annotation_frame(of_samples, sample_names, decimal=raw.decimal),
        feature_annotations=_annotation_frame(of_features, feature_names, decimal=raw.decimal),
        source="",
        notes=tuple(notes),
        name_counts=None if variables is None else _count_names(variables),
    )


def _unique_names(
    given: Sequence[str] | None, kind: str, *, count: int, notes: list[str]
) -> NDArray[Any]:
    """Return an array of `count` distinct names; append a note to `notes` if names were changed."""
    old_names = [f"{kind} {i + 1}" for i in range(count)] if given is None else given
    new_names = clean_unique_names(old_names, kind)
    if changed := [new for old, new in zip(old_names, new_names, strict=True) if old != new]:
        names = f"1 {kind} name was" if len(changed) == 1 else f"{len(changed):,} {kind} names were"
        first = "it is now" if len(changed) == 1 else "the first is now"
        notes.append(
            f"{names} empty, not unique or held characters that cannot be shown; {first} "
            f"{changed[0]!r}."
        )
    return np.array(new_names, dtype=object)


def _count_names(names: Sequence[str]) -> NDArray[np.intp] | None:
    """Return how often each name occurs among all names; None if every name occurs once."""
    cleaned = [clean_text(name) for name in names]
    counts = Counter(cleaned)
    if len(counts) == len(cleaned):
        return None
    return np.array([counts[name] for name in cleaned], dtype=np.intp)


def _find_feature_side(
    raw: RawTable,
    *,
    features: Orientation | None,
    truth: str | None,
    annotations: pd.DataFrame | None,
) -> tuple[Orientation, str]:
    """Return where the features are, "rows" or "columns", and the reason as text for a message.

    The criteria are tried in decreasing order of reliability.
    """
    if features is not None:
        return features, "as requested"
    if raw.features_in is not None:
        return raw.features_in, "as the format defines"
    if truth is not None and truth in raw.row_annotations:
        return "columns", f"{truth!r} has a value for each row"
    if truth is not None and truth in raw.column_annotations:
        return "rows", f"{truth!r} has a value for each column"
    # A row that is an annotation among rows of values describes the samples.
    if raw.annotation_rows:
        return "rows", f"{raw.annotation_rows[0]!r} has a value for each column"
    if annotations is not None:
        # It is not known yet which column of the second table contains the sample names, so all its
        # columns are compared with the names of the rows and of the columns.
        listed = {name for column in annotations for name in annotations[column]}
        shared = [len(listed & set(names or ())) for names in (raw.row_names, raw.column_names)]
        if shared[0] != shared[1]:
            side: Orientation = "rows" if shared[1] > shared[0] else "columns"
            return side, "by the names of the samples"
    n_rows, n_columns = raw.values.shape
    negation = "" if n_rows > n_columns else "not "
    guess, other = _SIDES if n_rows > n_columns else _SIDES[::-1]
    return guess, Sentence(
        "{negation}more rows than columns; give {features} if that is wrong",
        negation=negation,
        features=Setting("features", other),
    )


def _refuse_too_few(
    shape: tuple[int, int], side: str, *, min_samples: int, notes: Sequence[str]
) -> None:
    """Raise FlawError if a table has too few samples or features.

    The message states that the orientation of the table may be wrong. It contains `notes`, the
    sentences on how the file was read: it may be the wrong sheet of a workbook.
    """
    n, p = shape
    if n < min_samples or p < _MIN_FEATURES:
        other = "columns" if side == "rows" else "rows"
        named: dict[str, Any] = {f"note_{i}": note for i, note in enumerate(notes)}
        raise FlawError(
            Sentence(
                "must hold at least {fewest[0]} samples and {fewest[1]} features, but has {n} and "
                "{p} with features in {side}.{notes} If they are in {other}, give {features}",
                fewest=(min_samples, _MIN_FEATURES),
                n=n,
                p=p,
                side=side,
                notes=Sentence("".join(f" {{{name}}}" for name in named), **named),
                other=other,
                features=Setting("features", other),
            )
        )


def _annotation_frame(
    columns: dict[str, list[Any]], names: NDArray[Any], *, decimal: str
) -> pd.DataFrame:
    """Return annotations as a data frame whose columns are numbers or text, indexed by `names`."""
    titles = clean_unique_names(list(columns), "column")
    content = {
        title: parse_annotation(column, decimal)
        for title, column in zip(titles, columns.values(), strict=True)
    }
    # The dtype of the index is given, since pandas would otherwise infer the dtype from the names.
    return pd.DataFrame(content, index=pd.Index(names, dtype=object))
