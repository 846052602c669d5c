"""Sort values that belong to samples, such as true classes, in the order of the samples of a fit.

Values with an index (a pandas Series or DataFrame) are matched by the index. Other values are
assumed to be in the order of the samples. Two indexes are equal if they contain the same names in
the same order, even if they have different types: a RangeIndex equals an Index of the same
integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing pandas is slow, so it is imported only when it is needed
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleNames:
    """Names of the samples (or features) of a data set, in the order of the data.

    The index of a Series or DataFrame is matched to these names.

    Attributes
    ----------
    of_fit : Index or None
        Names in the data to which a model was fitted, or None if the data had no index.
    alternatives : tuple of Index, default=()
        Other names of the same samples, such as the names shown in a plot.
    """

    of_fit: pd.Index | None
    alternatives: tuple[pd.Index, ...] = ()


def sample_names(model: Any, *tables: Any, names: Iterable[Any] | None = None) -> SampleNames:
    """Return the names of the samples of a fitted model."""
    known = getattr(model, "sample_names_in_", None)
    others = [table.index for table in tables if _has_index(table)]
    others += [] if names is None else [list(names)]
    return SampleNames(
        of_fit=None if known is None else _object_index(known),
        alternatives=tuple(map(_object_index, others)),
    )


def row_names(X: Any) -> SampleNames:
    """Return the names of the samples of X: its index, or no names if X has no index.

    This function is used for data to which no model has been fitted yet.
    """
    return SampleNames(of_fit=_object_index(X.index) if _has_index(X) else None)


def column_names(X: Any) -> SampleNames:
    """Return the names of the features of X: its columns, or no names if X is not a DataFrame.

    This function is used for data to which no model has been fitted yet.
    """
    return SampleNames(of_fit=_object_index(X.columns) if _has_index(X) else None)


def feature_names_of(names: Iterable[Any] | None) -> SampleNames:
    """Return the names of features in the form that :func:`align_samples` needs."""
    return SampleNames(of_fit=None if names is None else _object_index(list(names)))


def align_samples(values: Any, samples: SampleNames, *, what: str, unit: str = "sample") -> Any:
    """Return a Series or DataFrame sorted in the order of the samples.

    Objects without an index, such as arrays and lists, are returned unchanged.

    Notes
    -----
    The index of `values` is matched to the names of the samples in the fit, or to one of their
    alternative names. If the data of the fit had no names and the index is 0, 1, ..., n - 1, the
    values are assumed to be in the order of the samples.
    """
    if not _has_index(values):
        return values
    index = _object_index(values.index)
    known = [n for n in (samples.of_fit, *samples.alternatives) if n is not None]
    for names in known:
        if index.equals(names):
            return values
        # Entries for samples that are not in the fit are dropped.
        if index.is_unique and names.isin(index).all():
            return values.iloc[index.get_indexer(names)]
    # A DataFrame without names has the default index 0, 1, ..., n - 1. Its rows are assumed to be
    # in the order of the samples.
    if samples.of_fit is None and is_default_index(index):
        return values
    if not known:
        raise _unnamed_samples_error(index, what=what, unit=unit)
    # The message shows names if there are any, since names are more useful than the row numbers of
    # a default index.
    shown = next((names for names in known if not is_default_index(names)), known[0])
    raise _mismatch_error(index, shown, what=what, unit=unit)


def align_together(**given: Any) -> dict[str, Any]:
    """Return several arguments, which contain values of the same samples, in a common order.

    The common order is that of the first argument with an index (a pandas Series or DataFrame).
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
    """Return a DataFrame with samples in both rows and columns, sorted in the order of `samples`.

    Objects other than a DataFrame are returned unchanged. Raise ValueError if the index or the
    columns do not match the names of the samples. `what` is the name of `values` in the error
    message.
    """
    if not hasattr(values, "columns") or not _has_index(values):
        return values
    rows = align_samples(values, samples, what=f"The index of {what}")
    return align_samples(rows.T, samples, what=f"The columns of {what}").T


def are_same_names(some: Any, others: Any) -> bool:
    """Return whether two sequences contain the same names in the same order."""
    return bool(_object_index(some).equals(_object_index(others)))


def is_default_index(index: Iterable[Any]) -> bool:
    """Return whether an index is 0, 1, ..., n - 1, which is the default index of pandas."""
    return all(isinstance(name, Integral) and name == i for i, name in enumerate(index))


def is_permuted_index(index: Iterable[Any]) -> bool:
    """Return whether an index contains the numbers 0, 1, ..., n - 1, but not in this order.

    The default index of pandas has this form after the rows have been sorted or shuffled.
    """
    names = list(index)
    are_numbers = all(isinstance(name, Integral) for name in names)
    return are_numbers and not is_default_index(names) and is_default_index(sorted(names))


def _has_index(values: Any) -> bool:
    # Lists also have an attribute `index`, so the attribute `iloc` is tested as well to recognise
    # pandas objects.
    return hasattr(values, "iloc") and hasattr(values, "index")


def _object_index(names: Any) -> pd.Index:
    """Return names as an Index of type object, which may contain numbers, text and other values."""
    import pandas as pd

    # The entries of a MultiIndex are converted to tuples, since fitted models store names in an
    # array, and these entries are tuples in an array.
    if isinstance(names, pd.MultiIndex):
        names = names.to_flat_index()
    return pd.Index(names, dtype=object)


def _unnamed_samples_error(index: pd.Index, *, what: str, unit: str) -> ValueError:
    """Return the error for values that have an index although the samples have no names.

    `index` is the index of the values, `what` is the name of the values, and `unit` is "sample" or
    "feature".
    """
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
    """Return the error for an index that does not contain each name of a sample exactly once.

    `index` is the index of the values, `names` are the names of the samples, `what` is the name of
    the values, and `unit` is "sample" or "feature".
    """
    # Missing names are reported first, since they are the more frequent mistake and easier to
    # correct.
    absent = names[~names.isin(index)]
    if len(absent):
        problem = (
            f"has no entry for {len(absent):,} of {len(names):,} {unit}s, such as {absent[0]!r}"
        )
    else:
        problem = f"has several entries for {index[index.duplicated()][0]!r}"
    return ValueError(
        f"{what} must have one entry for each {unit} by its index, but {problem}. Correct the "
        f"index, or add missing entries as missing values, such as by reindex(names of the "
        f"{unit}s)."
    )
