"""Align values of samples with the samples of a fit, by their index if they have one.

Indexes are compared by their values, not by their class: the index 0, 1, ..., n - 1 is the same
whether it is a RangeIndex or a list of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported when needed: pandas takes long to import
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleNames:
    """Names by which samples, or features, can be matched, in the order of the data.

    Attributes
    ----------
    of_fit : Index or None
        Names in the data of the fit; None if these had no index.
    alternatives : tuple of Index, default=()
        Other names of the same samples, such as those that are displayed.
    """

    of_fit: pd.Index | None
    alternatives: tuple[pd.Index, ...] = ()


def sample_names(model: Any, *tables: Any, names: Iterable[Any] | None = None) -> SampleNames:
    """Return the names by which samples can be matched.

    Parameters
    ----------
    model : fitted estimator or result
        It has the attribute `sample_names_in_` if it was fitted to a DataFrame.
    *tables : array-like
        Values of the samples; the index of a DataFrame holds alternative names.
    names : iterable or None, default=None
        Names that are displayed, also alternative names.

    Returns
    -------
    SampleNames
    """
    known = getattr(model, "sample_names_in_", None)
    others = [table.index for table in tables if _has_index(table)]
    others += [] if names is None else [list(names)]
    return SampleNames(
        of_fit=None if known is None else _object_index(known),
        alternatives=tuple(map(_object_index, others)),
    )


def row_names(X: Any) -> SampleNames:
    """Return the names of the samples of data to which nothing is fitted yet."""
    return SampleNames(of_fit=_object_index(X.index) if _has_index(X) else None)


def column_names(X: Any) -> SampleNames:
    """Return the names of the features of data to which nothing is fitted yet."""
    return SampleNames(of_fit=_object_index(X.columns) if _has_index(X) else None)


def align_samples(values: Any, samples: SampleNames, *, what: str, unit: str = "sample") -> Any:
    """Return a Series or DataFrame in the order of the samples; other values unchanged.

    Parameters
    ----------
    values : Series, DataFrame or any other object
        One entry or row for each sample.
    samples : SampleNames
        Names of the samples, as :func:`sample_names` returns them.
    what : str
        Name of the values in error messages.
    unit : str, default="sample"
        Name of the object that an entry describes, in error messages.

    Returns
    -------
    aligned : same type as `values`
        The values in the order of the samples.

    Raises
    ------
    ValueError
        If the index does not match any names of the samples.

    Notes
    -----
    The index 0, 1, ..., n - 1 is aligned by position if the fit had no names. Every other index is
    matched by its values.
    """
    if not _has_index(values):
        return values
    index = _object_index(values.index)
    known = [n for n in (samples.of_fit, *samples.alternatives) if n is not None]
    for names in known:
        if index.equals(names):
            return values
        # Further entries, of samples that are not in the fit, are dropped.
        if index.is_unique and names.isin(index).all():
            return values.iloc[index.get_indexer(names)]
    # A DataFrame made without names has this index; its rows are in the order of the data.
    if samples.of_fit is None and is_default_index(index):
        return values
    if not known:
        raise _unnamed_samples_error(index, what=what, unit=unit)
    # In the message, names are more useful than the row numbers of a default index.
    shown = next((names for names in known if not is_default_index(names)), known[0])
    raise _mismatch_error(index, shown, what=what, unit=unit)


def align_together(**given: Any) -> dict[str, Any]:
    """Return values of the same samples in the order of the first of them that has an index.

    Parameters
    ----------
    **given : array-like or None
        Values of the samples, by the name that error messages use.

    Returns
    -------
    dict
        The aligned values. Values without an index are taken to be in the order of the others.

    Raises
    ------
    ValueError
        If two indexes do not match, or if an index is a permutation of 0, 1, ..., n - 1 while other
        values have none: the order of these is unknown.
    """
    indexed = [(what, values) for what, values in given.items() if _has_index(values)]
    if not indexed:
        return given
    what, first = indexed[0]
    index = _object_index(first.index)
    has_unindexed = any(v is not None and not _has_index(v) for v in given.values())
    if has_unindexed and is_permuted_index(index):
        raise _unnamed_samples_error(index, what=what, unit="sample")
    samples = SampleNames(of_fit=index)
    return {name: align_samples(v, samples, what=name) for name, v in given.items()}


def align_square(values: Any, samples: SampleNames, *, what: str) -> Any:
    """Return a DataFrame of samples by samples in the order of the samples; others unchanged."""
    if not hasattr(values, "columns") or not _has_index(values):
        return values
    rows = align_samples(values, samples, what=f"The index of {what}")
    return align_samples(rows.T, samples, what=f"The columns of {what}").T


def are_same_names(some: Any, others: Any) -> bool:
    """Return whether two sequences of names are equal, in the same order."""
    return bool(_object_index(some).equals(_object_index(others)))


def is_default_index(index: Iterable[Any]) -> bool:
    """Return whether names are 0, 1, ..., n - 1 in this order, the default index of pandas."""
    return all(isinstance(name, Integral) and name == i for i, name in enumerate(index))


def is_permuted_index(index: Iterable[Any]) -> bool:
    """Return whether names are 0, 1, ..., n - 1 in another order, as after sorting or shuffling."""
    names = list(index)
    are_numbers = all(isinstance(name, Integral) for name in names)
    return are_numbers and not is_default_index(names) and is_default_index(sorted(names))


def _has_index(values: Any) -> bool:
    # Lists have a method `index` too, so that `iloc` is needed to recognise pandas.
    return hasattr(values, "iloc") and hasattr(values, "index")


def _object_index(names: Any) -> pd.Index:
    """Return names as an Index of objects, which may mix numbers, text and other values."""
    import pandas as pd

    # Tuples can be compared with the names of a fit, which are stored as an array.
    if isinstance(names, pd.MultiIndex):
        names = names.to_flat_index()
    return pd.Index(names, dtype=object)


def _unnamed_samples_error(index: pd.Index, *, what: str, unit: str) -> ValueError:
    """Return the error of values with an index for samples without names."""
    if is_permuted_index(index):
        return ValueError(
            f"{what} has an index in another order than the {unit}s, which have no names to match. "
            "Sort it by its index, or pass its values without an index."
        )
    return ValueError(
        f"{what} has an index, such as {index[:1].tolist()}, but the {unit}s have no names to "
        f"match it with. Fit to a DataFrame, or pass values in the order of the {unit}s without an "
        "index, such as by to_numpy()."
    )


def _mismatch_error(index: pd.Index, names: pd.Index, *, what: str, unit: str) -> ValueError:
    """Return the error of an index that lacks names of samples, or holds some twice."""
    # Missing names first: they are the more frequent mistake, and easier to correct.
    absent = names[~names.isin(index)]
    if len(absent):
        problem = (
            f"has no entry for {len(absent):,} of {len(names):,} {unit}s, such as {absent[0]!r}"
        )
    else:
        problem = f"has several entries for {index[index.duplicated()][0]!r}"
    return ValueError(
        f"{what} must have one entry for each {unit} by its index, but {problem}. Correct the "
        f"index, or pass values in the order of the {unit}s without an index, such as by "
        "to_numpy()."
    )
