"""What comes in from outside, checked once.

Each refusal says what was wanted, what came, and what to do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import pairwise
from numbers import Integral, Number
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data

from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.conversion import absent_parts, stored_matrix, table_in_memory
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.core.data.shape_and_dtype import OutOfRangeError, in_range
from mrshc.errors import Parameter, ParameterError, PythonOnly, UserError, refused
from mrshc.utils.sample_alignment import is_default, is_permuted, same_names

# The limit up to which double precision holds every whole number.
_EXACT = 2**53
# Squares of larger values overflow, of smaller ones vanish.
_LARGEST, _SMALLEST = 1e150, 1e-150
# The largest whole number that arrays and compiled functions take.
_LARGEST_INTEGER = 2**63 - 1
# The most repetitions, such as of reference samples: arrays hold a number for each of them, and
# standard errors do not become smaller in any digit that is shown.
MOST_REPETITIONS = 10**6


class NotNumericError(UserError, TypeError):
    """A cell of X that is no number. Also a TypeError, as scikit-learn's convention has it."""


def check_samples(estimator: Any, X: Any, *, reset: bool = True, n_threads: int = 1) -> DataMatrix:
    """Return the finite, numeric data that an estimator is fitted to, or was (without `reset`).

    NaN marks a missing cell; every sample and every feature must have one that is not. Data that
    are stored elsewhere are passed over once, unless they were, and stay there, unless they have
    no more features than samples.
    """
    data = stored_matrix(X)
    if reset:
        _warn_of_absent_chunks(X)
    if data is not None:
        n, p = data.shape
        if p > n >= 3:
            if not reset:
                check_n_features(estimator, p)
            _check_content(data, X=None, n_threads=n_threads)
            if reset:
                estimator.n_features_in_ = p
                forget(estimator, "feature_names_in_", "sample_names_in_")
            return data
        X = data.columns(np.arange(p))
    array = _checked_array(estimator, table_in_memory(X), reset=reset)
    data = ArrayMatrix(array)
    _check_content(data, X=table_in_memory(X), n_threads=n_threads)
    if reset:
        _keep_sample_names(estimator, X)
    return data


def _warn_of_absent_chunks(X: Any) -> None:
    """Warn of parts of a file that are not there: they are read as if they were values."""
    for note in absent_parts(X):
        warnings.warn(note, UserWarning, stacklevel=2)


def _checked_array(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Return an array or a table as scikit-learn's checks leave it; infinity is refused later."""
    X = _numbers(X)
    _refuse_duplicate_names(X)
    if not reset:
        _refuse_other_samples(estimator, X)
    with _sentences(X):
        array: NDArray[Any] = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=3,
            ensure_min_features=2,
        )
    return array


@contextmanager
def _sentences(X: Any) -> Iterator[None]:
    """Turn failures of a conversion to numbers into a sentence about the first bad cell."""
    try:
        with in_range():
            yield
    except OutOfRangeError:
        raise
    except TypeError as error:
        raise _object_error(X, reason=f" ({error})") or error from None
    except ValueError as error:
        raise _text_error(X) or _object_error(X) or error from None


def _check_content(data: DataMatrix, *, X: Any, n_threads: int = 1) -> None:
    """Refuse features and samples without a value, and values that cannot be computed with.

    X, as it was given, has the names of the features; None if there are none.
    """
    summary = data.summary(n_threads=n_threads)
    for counts, kind in ((summary.counts, "feature"), (summary.row_counts, "sample")):
        if not counts.all():
            position = int(counts.argmin())
            name = _feature_name(X, position) if kind == "feature" else str(position)
            raise _unobserved(kind, name)
    infinite = "somewhere"
    if data.in_memory and (np.isinf(summary.lowest) or np.isinf(summary.highest)):
        infinite = f"first at {_first_cell(np.isinf(data.values), X)}"
    _refuse_scale(summary.lowest, summary.highest, infinite)
    if data.holds_integers:
        _warn_of_rounding(max(summary.highest, -summary.lowest))


def check_n_features(estimator: Any, n_features: int) -> None:
    """Refuse data without names that have not as many features as those of the fit."""
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X must have the {estimator.n_features_in_} features of the fit, but has {n_features}."
        )


def forget(estimator: Any, *names: str) -> None:
    """Drop attributes of an earlier fit that this one does not set."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)


def _keep_sample_names(estimator: Any, X: Any) -> None:
    """Store the index of a DataFrame, by which annotations and later data are matched."""
    if hasattr(X, "iloc"):
        estimator.sample_names_in_ = np.asarray(X.index)
    else:
        forget(estimator, "sample_names_in_")


def _refuse_other_samples(estimator: Any, X: Any) -> None:
    """Refuse a DataFrame whose samples are not those of the fit, in the same order."""
    if not hasattr(X, "iloc"):
        return
    known = getattr(estimator, "sample_names_in_", None)
    if known is None:
        if is_permuted(X.index):
            raise ValueError(
                "X must be the data of the fit with the samples in the same order, but its index "
                "is not sorted. Pass X.sort_index(), or the values without an index."
            )
        return
    # Names that were dropped, as by reset_index, cannot be compared; numbers can.
    dropped = is_default(X.index) and not (is_default(known) or is_permuted(known))
    if len(X) == len(known) and not dropped and not same_names(X.index, known):
        raise ValueError(
            "X must be the data of the fit with the samples in the same order, but its index "
            "differs from that of the fit. Pass X.loc[model.sample_names_in_], or the values "
            "without an index."
        )


def check_matrix_with_missing(X: Any) -> NDArray[Any]:
    """Return numeric data in which NaN marks a missing cell."""
    _warn_of_absent_chunks(X)
    X = _numbers(X)
    with _sentences(X):
        array = check_array(
            X,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=2,
            ensure_min_features=2,
            input_name="X",
        )
    _check_content(ArrayMatrix(array), X=X)
    return array


def check_columns(X: Any) -> Any:
    """Return a table or an array whose columns are taken as they are; refuse other than numbers."""
    X = _numbers(X, rounded=False)
    if "O" in _kinds(X) and (error := _object_error(X)):
        raise error
    return X


def _unobserved(kind: str, what: str) -> ValueError:
    return ValueError(
        f"Every {kind} needs at least one observed value, but {kind} {what} of X has none. Drop it."
    )


def _refuse_scale(low: float, high: float, where_infinite: str) -> None:
    if np.isinf(low) or np.isinf(high):
        raise ValueError(
            f"X must be finite, but holds inf ({where_infinite}). Replace it, or mend the "
            "transformation that made it, such as a logarithm of zero."
        )
    largest = max(abs(low), abs(high))
    if largest > _LARGEST or 0 < high - low < _SMALLEST:
        raise ValueError(
            f"X must have values below {_LARGEST:g} that differ by more than {_SMALLEST:g}, got "
            f"values from {low:g} to {high:g}. Rescale it, the clusters do not depend on the unit."
        )


def check_dissimilarity(name: str, value: Any, *, n_samples: int) -> NDArray[np.float64]:
    """Return a symmetric matrix with a zero diagonal."""
    wanted = (n_samples, n_samples)
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    fits = array.shape == wanted and np.isfinite(array).all() and array.any()
    if not fits or np.diag(array).any() or not np.allclose(array, array.T):
        what = f"shape {array.shape}" if array.size else repr(value)
        raise ParameterError(
            "{parameter} must be {allowed}, got {what}.",
            parameter=Parameter(name),
            value=value,
            allowed="the dissimilarity_ of an earlier fit: symmetric, finite, zero on the "
            f"diagonal, of shape {wanted}",
            what=what,
        )
    return array


def check_integer(name: str, value: Any, *, low: int, high: int | None, advice: str) -> int:
    """Return a whole number within [low, high]."""
    largest = _LARGEST_INTEGER if high is None else high
    if not _is_integer(value) or not low <= value <= largest:
        high = largest if _is_integer(value) and value > largest else high
        wanted = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise refused(name, value, allowed=f"be a whole number {wanted}", advice=advice)
    return int(value)


def check_integer_or(name: str, value: Any, word: str | None, **limits: Any) -> int | None:
    """Return a whole number, or None for the word that stands for 'choose it for me'."""
    if value is None if word is None else isinstance(value, str) and value == word:
        return None
    return check_integer(name, value, **limits)


def check_jobs(n_jobs: Any) -> int | None:
    """Return a number of workers as joblib takes it."""
    if n_jobs is None:
        return None
    if not _is_integer(n_jobs) or n_jobs == 0:
        raise ParameterError(
            "{n_jobs} must {allowed},{none} got {value!r}.",
            n_jobs=Parameter("n_jobs"),
            value=n_jobs,
            allowed="be a whole number of workers, -1 for every core",
            none=PythonOnly(" or None,"),
        )
    return int(n_jobs)


def check_seed(random_state: Any) -> np.random.RandomState:
    """Return the generator of random numbers that a seed stands for."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise refused(
            "random_state",
            random_state,
            allowed=f"be None, a whole number in [0, {2**32 - 1}] or a RandomState instance",
        ) from None


def check_increasing(
    name: str, values: Any, *, low: int, high: int, advice: str
) -> tuple[int, ...]:
    """Return strictly increasing whole numbers within [low, high]."""
    listed = None if isinstance(values, str) or not np.iterable(values) else list(values)
    if not listed:
        raise refused(
            name, values, allowed="be a whole number, an increasing sequence of them or 'auto'"
        )
    checked = tuple(check_integer(name, v, low=low, high=high, advice=advice) for v in listed)
    if any(b <= a for a, b in pairwise(checked)):
        raise refused(
            name,
            list(checked),
            allowed="increase from candidate to candidate",
            advice="Sort them and drop duplicates.",
        )
    return checked


def check_number(name: str, value: Any, *, low: float, high: float, advice: str) -> float:
    """Return a number within [low, high]."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise refused(name, value, allowed=f"lie in [{low:g}, {high:.6g}]", advice=advice)
    return float(value)


def check_option(name: str, value: Any, options: Sequence[Any]) -> Any:
    """Return one of the options."""
    value = value.item() if isinstance(value, np.generic) else value
    # True == 1, so identity of type matters too.
    if not any(type(value) is type(option) and value == option for option in options):
        known = ", ".join(repr(option) for option in options)
        raise refused(name, value, allowed=f"be one of {known}")
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _refuse_duplicate_names(X: Any) -> None:
    """Features are found again by name: scikit-learn wants the names to be unique, and so do we."""
    names, counts = np.unique([str(c) for c in getattr(X, "columns", ())], return_counts=True)
    if np.any(counts > 1):
        raise ValueError(
            f"Feature names must be unique, but {str(names[counts.argmax()])!r} names "
            f"{counts.max()} columns of X. Rename them, or pass the values without names."
        )


def _numbers(X: Any, *, rounded: bool = True) -> Any:
    """Refuse text and dates, also where they could be read as numbers; unmask masked arrays.

    Whole numbers that are `rounded` to double precision give a warning.
    """
    if isinstance(X, np.ma.MaskedArray):
        with _sentences(X):
            return np.ma.filled(X.astype(np.float64), np.nan)
    _refuse_other_than_a_matrix(X)
    kinds = _kinds(X)
    if set(kinds) & set("SUO") and (error := _text_error(X)):
        raise error
    if set(kinds) & set("mM"):
        raise _dates()
    if "c" in kinds:
        raise ValueError(
            "Complex data not supported: X must hold real numbers. Take their real parts or their "
            "absolute values."
        )
    if rounded:
        _warn_of_rounding(_largest_integer(X, [i for i, k in enumerate(kinds) if k in "iu"]))
    return _densified(X)


def _densified(X: Any) -> Any:
    """Return a DataFrame of sparse columns as a dense one; anything else as it is."""
    if not hasattr(X, "iloc") or not any(hasattr(dtype, "fill_value") for dtype in X.dtypes):
        return X
    return X.astype({j: d.subtype for j, d in X.dtypes.items() if hasattr(d, "fill_value")})


def _kinds(X: Any) -> list[str]:
    """Return the kinds of values in the columns of a table, the rows of a list, or an array."""
    if isinstance(X, list | tuple):
        return [_kind(dtype) for dtype in _row_dtypes(X)]
    dtypes = list(X.dtypes) if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    return [_kind(dtype) for dtype in dtypes]


def _refuse_other_than_a_matrix(X: Any) -> None:
    """Refuse objects that are no table, and tables that have not been computed yet."""
    wanted = "X must be a matrix of numbers with samples in rows"
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise ValueError(f"{wanted}, got a LazyFrame. Call X.collect() first.")
    is_table = isinstance(X, list | tuple) or any(
        hasattr(X, name) for name in ("__array__", "__array_interface__", "__dataframe__")
    )
    if isinstance(X, np.generic | str | bytes) or not is_table or isinstance(X, type):
        shown = repr(X) if X is None or isinstance(X, Number) else f"a {type(X).__name__}"
        raise ValueError(f"{wanted}, got {shown}. Pass an array, a DataFrame or a list of lists.")
    if hasattr(X, "name") and hasattr(X, "dtype") and getattr(X, "ndim", 1) == 1:
        raise ValueError(f"{wanted}, got a Series, which has one dimension. Pass a DataFrame.")
    if hasattr(X, "columns") and not len(X.columns):
        raise ValueError(f"{wanted}, got a DataFrame without columns. Pass one with features.")
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping | Set):
        kind = type(X[0]).__name__
        raise ValueError(f"{wanted}, got a list of {kind} values. Pass pandas.DataFrame(X).")
    _refuse_other_dimensions(X, wanted)
    if getattr(getattr(X, "dtype", None), "names", None):
        raise ValueError(f"{wanted}, got a structured array. Pass its fields as columns.")


def _refuse_other_dimensions(X: Any, wanted: str) -> None:
    """Refuse arrays and lists that have not two dimensions, other than records."""
    if isinstance(X, list | tuple):
        is_flat = not any(hasattr(row, "__len__") and not isinstance(row, str) for row in X)
        cells = X[0] if len(X) and isinstance(X[0], list | tuple) else ()
        is_deep = any(isinstance(c, list | tuple) or getattr(c, "ndim", 0) for c in cells)
        n_dimensions, what = 1 if is_flat else 3 if is_deep else 2, f"a {type(X).__name__}"
        what = f"{what} of {'lists' if is_deep else 'single values'}"
        what = what if len(X) else f"an empty {type(X).__name__}"
    else:
        n_dimensions, what = getattr(X, "ndim", 2), "an array"
    if n_dimensions != 2 and not getattr(getattr(X, "dtype", None), "names", None):
        count = f"{n_dimensions} dimension" + ("" if n_dimensions == 1 else "s")
        raise ValueError(
            f"{wanted}, got {what}, which has {count}. Reshape your data to (n_samples, "
            "n_features)."
        )


def _row_dtypes(rows: Sequence[Any]) -> list[Any]:
    """Return the types of the values in each row of a list of lists."""
    lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"Rows of X must have the same length, but row 0 has {lengths[0]} values and row "
            f"{next(i for i, n in enumerate(lengths) if n != lengths[0])} has another number. "
            "Fill the gaps with NaN."
        )
    return [_dtype_of(row) for row in rows]


def _dtype_of(row: Any) -> np.dtype[Any]:
    try:
        return np.asarray(row).dtype
    except (TypeError, ValueError):  # values that have no type in common, such as times and numbers
        return np.dtype(object)


def _largest_integer(X: Any, whole: list[int]) -> int:
    """Return the largest absolute value in the integer columns of a table, or rows of a list.

    `whole` are their positions; for an array, any entry stands for all of it.
    """
    return max((abs(int(value)) for value in _extremes(X, whole)), default=0) if whole else 0


def _warn_of_rounding(largest: float) -> None:
    """Warn of integers, up to the largest given, that double precision does not hold exactly."""
    if largest > _EXACT:
        warnings.warn(
            f"X holds whole numbers up to {largest:.3g}; above 2^53 they are rounded to 16 "
            "significant digits. Subtract an offset first if their differences matter.",
            UserWarning,
            stacklevel=2,
        )


def _extremes(X: Any, whole: list[int]) -> list[Any]:
    """Return the largest and smallest values of columns or rows of whole numbers."""
    if hasattr(X, "iloc"):  # pandas, whose extension types hold missing values
        part = X.iloc[:, whole]
        return [*part.max().dropna(), *part.min().dropna()]
    if hasattr(X, "columns"):  # polars
        part = X[:, whole]
        extremes = [*part.max().row(0), *part.min().row(0)] if len(part) else []
        return [value for value in extremes if value is not None]
    parts = [np.asarray(X[i]) for i in whole] if isinstance(X, list | tuple) else [np.asarray(X)]
    return [value for part in parts if part.size for value in (part.max(), part.min())]


def _kind(dtype: Any) -> str:
    """Return numpy's letter for a kind of values; "O" for anything that may hold text."""
    if hasattr(dtype, "is_numeric"):  # polars
        if dtype.is_integer():
            return "i"
        return "f" if dtype.is_numeric() else "M" if dtype.is_temporal() else "O"
    return getattr(dtype, "kind", "f")


def _dates() -> ValueError:
    return ValueError("X must be numeric, but holds dates or times. Drop or encode them.")


def _cells(X: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Return the positions and values of the cells of a table; of none if it is no matrix."""
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:  # rows of different length
        return iter(())
    return iter(np.ndenumerate(cells)) if cells.ndim == 2 else iter(())


def _text_error(X: Any) -> ValueError | None:
    """Return a sentence about the first cell that holds text or a date, if there is one."""
    for (i, j), value in _cells(X):
        if isinstance(value, np.datetime64 | np.timedelta64):  # numpy would take it for a number
            return _dates()
        if isinstance(value, str | bytes):
            return ValueError(
                f"X must be numeric, but holds the text {value!r} in sample {i}, feature "
                f"{_feature_name(X, j)}. Drop or encode the text columns."
            )
    return None


def _object_error(X: Any, *, reason: str = "") -> ValueError | None:
    """Return a sentence about the first cell that cannot be converted to a number, if any."""
    for (i, j), value in _cells(X):
        is_number = isinstance(value, SupportsFloat) and getattr(value, "ndim", 0) == 0
        if value is not None and not is_number:
            return NotNumericError(
                f"X must be numeric, but holds a {type(value).__name__} in sample {i}, feature "
                f"{_feature_name(X, j)}{reason}. Drop or encode such columns."
            )
    return None


def _first_cell(mask: NDArray[np.bool_], X: Any) -> str:
    i, j = np.unravel_index(int(mask.argmax()), mask.shape)
    return f"sample {i}, feature {_feature_name(X, int(j))}"


def _feature_name(X: Any, j: int) -> str:
    names = getattr(X, "columns", None)
    return str(j) if names is None else repr(str(names[j]))
