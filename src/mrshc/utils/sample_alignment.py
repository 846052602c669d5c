"""Match values of samples to the samples of a fit: by the index where there is one.

Only the values of an index decide, never its class: the index 0, 1, ..., n - 1 is the same whether
it is a RangeIndex or a list of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported late: estimators must not wait for it
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleNames:
    """Names by which samples, or features, can be matched, in their order."""

    of_fit: pd.Index | None  # None if the data of the fit had no index
    alternatives: tuple[pd.Index, ...] = ()  # other names of the same samples, such as those shown


def sample_names(model: Any, *tables: Any, names: Iterable[Any] | None = None) -> SampleNames:
    """Return the names by which samples can be matched.

    Parameters
    ----------
    model : fitted estimator or result
        With `sample_names_in_` if it was fitted to a DataFrame.
    *tables : array-like
        Values of the samples; the index of a DataFrame names them.
    names : iterable or None
        Names that are shown.
    """
    known = getattr(model, "sample_names_in_", None)
    others = [table.index for table in tables if _has_index(table)]
    others += [] if names is None else [list(names)]
    return SampleNames(
        of_fit=None if known is None else _object_index(known),
        alternatives=tuple(map(_object_index, others)),
    )


def row_names(X: Any) -> SampleNames:
    """Return the names of the samples of data that are not fitted yet."""
    return SampleNames(of_fit=_object_index(X.index) if _has_index(X) else None)


def column_names(X: Any) -> SampleNames:
    """Return the names of the features of data that are not fitted yet."""
    return SampleNames(of_fit=_object_index(X.columns) if _has_index(X) else None)


def align_samples(values: Any, samples: SampleNames, *, what: str, unit: str = "sample") -> Any:
    """Return a Series or DataFrame in the order of the samples; anything else as it came.

    Parameters
    ----------
    values : Series, DataFrame or anything else
        With an entry or a row for each sample.
    samples : SampleNames
        See :func:`sample_names`.
    what : str
        Name of the values in an error.
    unit : str, default="sample"
        What an entry belongs to, in an error.

    Notes
    -----
    An index 0, 1, ..., n - 1 goes by position if the fit had no names. All others are matched by
    their values, and refused if they do not match.
    """
    if not _has_index(values):
        return values
    index = _object_index(values.index)
    known = [n for n in (samples.of_fit, *samples.alternatives) if n is not None]
    for names in known:
        if index.equals(names):
            return values
        if index.is_unique and names.isin(index).all():
            return values.iloc[index.get_indexer(names)]
    if samples.of_fit is None and is_default_index(index):
        return values
    if not known:
        raise _unnamed_samples_error(index, what, unit)
    # Names that a reader gave say more than numbers do.
    raise _mismatch_error(index, next((n for n in known if not is_default_index(n)), known[0]), what, unit)


def align_together(**given: Any) -> dict[str, Any]:
    """Return values of the same samples in one order, that of the first that has an index.

    Values without an index go by position. Beside those, an index that is a permutation of 0, 1,
    ..., n - 1 is refused: the order of the samples is not known.
    """
    named = [(what, values) for what, values in given.items() if _has_index(values)]
    if not named:
        return given
    what, first = named[0]
    index = _object_index(first.index)
    if any(v is not None and not _has_index(v) for v in given.values()) and is_permuted_default_index(index):
        raise _unnamed_samples_error(index, what, "sample")
    samples = SampleNames(of_fit=index)
    return {name: align_samples(v, samples, what=name) for name, v in given.items()}


def align_square(values: Any, samples: SampleNames, *, what: str) -> Any:
    """Return a DataFrame with samples in rows and columns in their order; others as they came."""
    if not hasattr(values, "columns") or not _has_index(values):
        return values
    rows = align_samples(values, samples, what=f"The index of {what}")
    return align_samples(rows.T, samples, what=f"The columns of {what}").T


def are_same_names(some: Any, others: Any) -> bool:
    """Tell whether two sequences of names are equal, in the same order."""
    return bool(_object_index(some).equals(_object_index(others)))


def is_default_index(index: Iterable[Any]) -> bool:
    """Tell whether names are 0, 1, ..., n - 1 in this order, as pandas numbers rows by default."""
    return all(isinstance(name, Integral) and name == i for i, name in enumerate(index))


def is_permuted_default_index(index: Iterable[Any]) -> bool:
    """Tell whether names are 0, 1, ..., n - 1 in another order."""
    names = list(index)
    are_numbers = all(isinstance(name, Integral) for name in names)
    return are_numbers and not is_default_index(names) and is_default_index(sorted(names))


def _has_index(values: Any) -> bool:
    return hasattr(values, "iloc") and hasattr(values, "index")


def _object_index(names: Any) -> pd.Index:
    """Return names as objects: they may hold what no other type of pandas takes."""
    import pandas as pd

    if isinstance(names, pd.MultiIndex):
        names = names.to_flat_index()
    return pd.Index(names, dtype=object)


def _unnamed_samples_error(index: pd.Index, what: str, unit: str) -> ValueError:
    if is_permuted_default_index(index):
        return ValueError(
            f"{what} has an index in another order than the {unit}s, which have no names to match. "
            "Sort it by its index, or pass its values without an index."
        )
    return ValueError(
        f"{what} has an index, such as {index[:1].tolist()}, but the {unit}s have no names to "
        f"match it with. Fit to a DataFrame, or pass values in the order of the {unit}s without an "
        "index, such as by to_numpy()."
    )


def _mismatch_error(index: pd.Index, names: pd.Index, what: str, unit: str) -> ValueError:
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
