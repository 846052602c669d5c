"""Match annotations to samples by name where both have names, and by position where not."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import pandas as pd


def sample_names(model: Any, *tables: Any, names: Iterable[Any] | None = None) -> list[pd.Index]:
    """Return the names by which samples may be found, those of the fit first.

    Parameters
    ----------
    model : fitted estimator or result
        With `sample_names_in_` if it was fitted to a DataFrame.
    *tables : array-like
        Values of the samples; the index of a DataFrame names them.
    names : iterable or None
        Names that are shown.
    """
    given = [getattr(model, "sample_names_in_", None)]
    given += [table.index for table in tables if isinstance(table, pd.DataFrame)]
    given += [None if names is None else list(names)]
    # As objects: names may hold what no other type of pandas takes.
    return [pd.Index(some, dtype=object) for some in given if some is not None]


def align_samples(values: Any, samples: list[pd.Index], *, what: str) -> Any:
    """Return a Series or DataFrame in the order of the samples; anything else as it came.

    Parameters
    ----------
    values : Series, DataFrame or anything else
        With an entry or a row for each sample.
    samples : list of Index
        Alternative names of the samples, in their order; see :func:`sample_names`.
    what : str
        Name of the values in an error.

    Notes
    -----
    A default index (0, 1, ...) names nothing: such values are matched by position, as values
    without an index are.
    """
    if not isinstance(values, pd.Series | pd.DataFrame) or isinstance(values.index, pd.RangeIndex):
        return values
    index = values.index.astype(object)
    for names in samples:
        if index.equals(names):
            return values
        if index.is_unique and names.isin(index).all():
            return values.iloc[index.get_indexer(names)]
    named = [names for names in samples if not _is_default(names)]
    if named:
        raise _mismatch(index, named[0], what)
    if values.index.dtype.kind in "iu" and _is_default(sorted(index)):
        raise ValueError(
            f"{what} has an index in another order than the samples, which have no names to match. "
            "Sort it by its index, or pass its values without an index."
        )
    return values


def _is_default(index: Iterable[Any]) -> bool:
    return all(isinstance(name, Integral) and name == i for i, name in enumerate(index))


def _mismatch(index: pd.Index, names: pd.Index, what: str) -> ValueError:
    absent = names[~names.isin(index)]
    if len(absent):
        problem = (
            f"has no entry for {len(absent):,} of {len(names):,} samples, such as {absent[0]!r}"
        )
    else:
        problem = f"has several entries for {index[index.duplicated()][0]!r}"
    return ValueError(
        f"{what} must have one entry for each sample by its index, but {problem}. Correct the "
        "index, or pass values in the order of the samples without an index."
    )
