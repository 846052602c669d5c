"""What users may pass: parameters, data of a fit, and new samples.

Errors are one sentence: what was wanted, what came, and what to do.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mrshc.core.centres import ClusterCentres
from mrshc.core.data import as_matrix
from mrshc.core.data.matrix import ArrayMatrix, DataMatrix, Summary, summarise

# Squares of larger values could overflow in sums, and those of smaller differences underflow.
_LARGEST, _SMALLEST = 1e150, 1e-150
_LARGEST_EXACT_INTEGER = 2**53
_N_LISTED = 5  # names in a message


# -------------------------------------------------------------------------------- Parameters


def check_integer(
    name: str, value: Any, *, low: int, high: int | None = None, advice: str = ""
) -> int:
    """Return an integer; raise ValueError if it is none or out of range."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not is_integer or value < low or value > (2**63 - 1 if high is None else high):
        wanted = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise ValueError(
            f"{name} must be a whole number {wanted}, got {value!r}. {advice}".rstrip()
        )
    return int(value)


def check_integer_or(name: str, value: Any, keyword: str | None, **limits: Any) -> int | None:
    """Return an integer, or None if the value is the keyword for an automatic choice."""
    if value is keyword or (isinstance(value, str) and value == keyword):
        return None
    return check_integer(name, value, **limits)


def check_increasing(name: str, values: Any, *, low: int, high: int, advice: str) -> list[int]:
    """Return a strictly increasing sequence of integers."""
    given = None if isinstance(values, str) or not np.iterable(values) else list(values)
    if not given:
        raise ValueError(
            f"{name} must be a whole number, an increasing sequence of them or 'auto', "
            f"got {values!r}."
        )
    checked = [check_integer(name, value, low=low, high=high, advice=advice) for value in given]
    if any(b <= a for a, b in pairwise(checked)):
        raise ValueError(
            f"{name} must increase from candidate to candidate, got {checked}. Sort them and drop "
            "duplicates."
        )
    return checked


def check_number(name: str, value: Any, *, low: float, high: float, advice: str = "") -> float:
    """Return a number; raise ValueError if it is none, NaN or out of range."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not is_number or not low <= value <= high:
        wanted = f"at least {low:g}" if np.isinf(high) else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{name} must be a number {wanted}, got {value!r}. {advice}".rstrip())
    return float(value)


def check_option(name: str, value: Any, options: Sequence[Any]) -> Any:
    """Return the option that equals the value."""
    for option in options:
        if type(value) is type(option) and value == option:
            return option
    listed = ", ".join(map(repr, options))
    raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return the number of threads; raise ValueError if it is none."""
    if n_jobs is None:
        return None
    is_integer = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool | np.bool_)
    if not is_integer or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a whole number of workers, -1 for every core, or None, got {n_jobs!r}."
        )
    return int(n_jobs)


def draw_seed(random_state: Any) -> int:
    """Return the seed of all random numbers of a fit."""
    return int(random_numbers(random_state).randint(np.iinfo(np.int32).max))


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Return the random numbers of a seed."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be None, a whole number in [0, {2**32 - 1}] or a RandomState "
            f"instance, got {random_state!r}."
        ) from None


# -------------------------------------------------------------------------------------- Data


def check_samples(
    estimator: Any, X: Any, *, reset: bool = True, min_samples: int = 3
) -> tuple[DataMatrix, Summary]:
    """Return the data of a fit and their statistics; raise ValueError if they are invalid."""
    _refuse_lazy_frame(X)
    _refuse_repeated_names(X)
    matrix = as_matrix(X)
    if matrix is not None and matrix.shape[1] > matrix.shape[0] >= min_samples:
        if reset:
            estimator.n_features_in_ = matrix.shape[1]
            estimator.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        check_width(estimator, matrix)
    else:
        # Small, or samples are in columns: checked like an array.
        array = _as_array(estimator, X, matrix, reset, min_samples, min_features=2)
        matrix = ArrayMatrix(array)
    summary = summarise(matrix)
    _check_content(matrix, summary, X)
    if reset:
        _store_names(estimator, X)
    return matrix, summary


def check_values(estimator: Any, X: Any, *, reset: bool = True) -> np.ndarray:
    """Return data in memory as an array, in which NaN marks missing values."""
    _refuse_lazy_frame(X)
    array = _as_array(estimator, X, as_matrix(X), reset)
    largest = float(np.abs(array).max(initial=0.0, where=~np.isnan(array)))
    _refuse_infinite(array, X, -largest, largest)
    if largest > _LARGEST:
        raise ValueError(
            f"X must have values below {_LARGEST:g}, got {largest:g}. Rescale it, or mark values "
            "that stand for missing ones as NaN."
        )
    _warn_of_rounding(X, largest)
    return array


def _as_array(
    estimator: Any,
    X: Any,
    matrix: DataMatrix | None,
    reset: bool,
    min_samples: int = 1,
    min_features: int = 1,
) -> np.ndarray:
    """Return a table, a list or an array, or stored data, as a floating-point array."""
    if matrix is not None:
        values = matrix.columns(np.arange(matrix.shape[1]))
        X = as_table(X, values) if hasattr(X, "var_names") else values
    return validate_data(
        estimator,
        check_table(as_table(X)),
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,  # checked by the caller, with the place of the value
        ensure_min_samples=min_samples,
        ensure_min_features=min_features,
    )


def check_width(estimator: Any, matrix: DataMatrix) -> None:
    """Raise ValueError if the data have another number of features than those of the fit."""
    if matrix.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X must have the {estimator.n_features_in_} features of the fit, but has "
            f"{matrix.shape[1]}."
        )


def as_table(X: Any, values: Any = None) -> Any:
    """Return an AnnData object as a DataFrame, and anything else as it is."""
    if not hasattr(X, "isbacked"):
        return X
    import pandas as pd

    values = X.X if values is None else values
    return pd.DataFrame(values, index=X.obs_names, columns=X.var_names, copy=False)


def _refuse_lazy_frame(X: Any) -> None:
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise ValueError("X must be a matrix of numbers, got a LazyFrame. Call X.collect() first.")


def check_table(X: Any) -> Any:
    """Return a table, an array or a list that holds real numbers; raise ValueError if not."""
    if isinstance(X, np.ma.MaskedArray):  # numpy.asarray would ignore the mask
        return np.ma.filled(X.astype(np.float64), np.nan)
    if hasattr(X, "iloc") and hasattr(X, "name"):
        raise ValueError(
            "X must be a matrix of numbers with samples in rows, got a Series, which has one "
            "dimension. Pass a DataFrame."
        )
    if isinstance(X, list | tuple):
        lengths = [len(row) for row in X if hasattr(row, "__len__")]
        if len(set(lengths)) > 1:
            raise ValueError(
                f"Rows of X must have the same length, but one has {lengths[0]} values and "
                f"another {next(n for n in lengths if n != lengths[0])}. Use NaN for missing "
                "values."
            )
    for column, values in _suspicious_columns(X):
        _check_cells(values, column)
    if hasattr(X, "iloc") and any(hasattr(dtype, "fill_value") for dtype in X.dtypes):
        return X.astype({c: d.subtype for c, d in X.dtypes.items() if hasattr(d, "fill_value")})
    return X


def _suspicious_columns(X: Any) -> list[tuple[Any, np.ndarray]]:
    """Return the columns that may hold something other than numbers, with their names."""
    if hasattr(X, "dtypes") and hasattr(X, "iloc"):
        kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
        return [
            (X.columns[j], X.iloc[:, j].to_numpy())
            for j, kind in enumerate(kinds)
            if kind not in "bfui" or X.dtypes.iloc[j].name in ("category", "string")
        ]
    dtype = getattr(X, "dtype", None)
    if dtype is None and isinstance(X, list | tuple) and len(X):
        try:
            array = np.asarray(X)
        except ValueError:
            return []
        if array.ndim == 2 and array.dtype.kind not in "bfui":
            # Numbers in a list with text would have become text.
            return list(enumerate(np.array(X, dtype=object).T))
        return []
    if getattr(dtype, "kind", "f") in "mMSUO" and getattr(X, "ndim", 0) == 2:
        return list(enumerate(np.asarray(X).T))
    return []


def _check_cells(values: np.ndarray, column: Any) -> None:
    """Raise ValueError if a column holds text or dates."""
    if values.dtype.kind in "mM":
        raise ValueError(
            f"X must hold real numbers, but feature {column!r} holds dates or times. Drop or "
            "encode them."
        )
    for i, value in enumerate(values):
        if isinstance(value, str | bytes):
            raise ValueError(  # noqa: TRY004 - the values are wrong, not their container
                f"X must hold real numbers, but sample {i}, feature {column!r} holds the text "
                f"{str(value)!r}. Drop or encode it; missing values are NaN."
            )


def _check_content(matrix: DataMatrix, summary: Summary, X: Any) -> None:
    """Raise ValueError for samples or features without values, and for extreme values."""
    for counts, kind in ((summary.counts, "feature"), (summary.row_counts, "sample")):
        if not counts.all():
            position = int(counts.argmin())
            names = column_names(X) if kind == "feature" else None
            name = repr(names[position]) if names else str(position)
            raise ValueError(
                f"Every {kind} needs at least one observed value, but {kind} {name} of X has none. "
                "Drop it."
            )
    low, high = summary.lowest, summary.highest
    _refuse_infinite(matrix.values if matrix.in_memory else None, X, low, high)
    if max(abs(low), abs(high)) > _LARGEST or 0 < high - low < _SMALLEST:
        raise ValueError(
            f"X must have values below {_LARGEST:g} that differ by more than {_SMALLEST:g}, got "
            f"values from {low:g} to {high:g}. Rescale it; the clusters do not depend on the unit."
        )
    _warn_of_rounding(X, max(high, -low))


def _refuse_infinite(values: np.ndarray | None, X: Any, low: float, high: float) -> None:
    """Raise ValueError for infinite values, with the place of the first if they are in memory."""
    if not (np.isinf(low) or np.isinf(high)):
        return
    place = ""
    if values is not None:
        i, j = np.argwhere(np.isinf(values))[0]
        names = column_names(X)
        place = f" (first at sample {i}, feature {repr(names[j]) if names else j})"
    raise ValueError(
        f"X must be finite, but holds inf{place}. Replace it, or correct the transformation that "
        "produced it, such as a logarithm of zero."
    )


def _warn_of_rounding(X: Any, largest: float) -> None:
    """Warn of whole numbers that double precision cannot represent."""
    dtypes = getattr(X, "dtypes", [getattr(X, "dtype", None)])
    kinds = {getattr(dtype, "kind", "") for dtype in dtypes}
    if kinds & set("iu") and largest > _LARGEST_EXACT_INTEGER:
        warn_caller(
            UserWarning(
                f"X holds whole numbers up to {largest:.3g}; above 2^53 they are rounded to 16 "
                "significant digits. Subtract an offset first if their differences matter."
            )
        )


def warn_caller(warning: Warning) -> None:
    """Warn at the line of the user that called this package, perhaps through scikit-learn."""
    frame, level = sys._getframe(), 1
    packages = ("mrshc", "sklearn", "joblib")
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in packages:
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


# ------------------------------------------------------------------------------------- Names


def column_names(X: Any) -> list[str] | None:
    """Return the names of the features as text; None if there are none or only numbers 0, 1, ..."""
    names = getattr(X, "columns", None)
    if names is None or callable(names):  # a DataMatrix has a method of this name
        names = getattr(X, "var_names", None)
    if names is None or is_default_index(names):
        return None
    return [str(name) for name in names]


def is_default_index(names: Any) -> bool:
    """Return whether names are the numbers 0, 1, ..., which say nothing."""
    return list(names) == list(range(len(names)))


def _refuse_repeated_names(X: Any) -> None:
    """Raise ValueError if two features have the same name."""
    names = column_names(X) or []
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"Feature names must be unique, but {repeated!r} names {names.count(repeated)} columns "
            "of X. Rename them, or pass the values without names."
        )


def _store_names(estimator: Any, X: Any) -> None:
    """Store the names of features and samples; delete those of an earlier fit."""
    samples = getattr(X, "obs_names", getattr(X, "index", None) if hasattr(X, "iloc") else None)
    estimator._feature_names = column_names(X)
    if hasattr(X, "var_names"):
        estimator.feature_names_in_ = np.asarray(X.var_names, dtype=object)
    if samples is not None:
        estimator.sample_names_in_ = np.asarray(samples)
    elif hasattr(estimator, "sample_names_in_"):
        del estimator.sample_names_in_


def in_order_of_fit(estimator: Any, X: Any, wanted: np.ndarray | None = None) -> Any:
    """Return a table with the features of the fit in their order, if both have names.

    `wanted` are the features that are needed; None means all.
    """
    _refuse_lazy_frame(X)
    known, given = getattr(estimator, "_feature_names", None), column_names(X)
    if known is None or given is None:
        numbers = [str(j) for j in range(len(given or ()))]
        if given is not None and sorted(given) == sorted(numbers):
            raise ValueError(
                "X must have the features of the fit in the same order, but its columns are "
                "numbered in another order. Sort them, or fit with column names."
            )
        return X
    needed = known if wanted is None else [known[j] for j in wanted]
    if wanted is None and given == known:
        return X
    positions = positions_of_features(needed, given)
    if (matrix := as_matrix(X)) is not None:
        return ArrayMatrix(matrix.columns(positions))
    X = as_table(X)
    return X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions.tolist()]


def positions_of_features(needed: Sequence[str], given: Sequence[str]) -> np.ndarray:
    """Return where the needed features are among the given ones."""
    positions = {name: position for position, name in enumerate(given)}
    if absent := [name for name in needed if name not in positions]:
        raise ValueError(
            f"X must have all {len(needed):,} features that are needed, but {len(absent):,} of "
            f"them {'is' if len(absent) == 1 else 'are'} missing: {_listed(absent)}. Check the "
            "names, and whether samples are in rows; a feature that was not measured can be given "
            "as a column of missing values."
        )
    if len(positions) < len(given):
        repeated = {name for name in needed if given.count(name) > 1}
        if repeated:
            raise ValueError(
                f"Names of features must be unique, but {_listed(sorted(repeated))} names more "
                "than one column. Keep one column of each."
            )
    return np.array([positions[name] for name in needed], dtype=np.intp)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _N_LISTED
    listed = ", ".join(map(repr, names[:_N_LISTED]))
    return listed + (f" and {more:,} more" if more > 0 else "")


def _has_other_samples(index: Any, known: Any) -> bool:
    """Return whether the index of a table says that its samples are not those of the fit."""
    given = [str(name) for name in index]
    numbers = [str(i) for i in range(len(given))]
    if known is None:  # only numbers in another order can differ from nothing
        return given != numbers and sorted(given) == sorted(numbers)
    names = [str(name) for name in known]
    # Numbers in their order, as after `reset_index`, say nothing, unless the fit had numbers.
    return given != names and (given != numbers or sorted(names) == sorted(numbers))


def check_data_of_fit(estimator: Any, X: Any) -> DataMatrix:
    """Return the data of a fit; raise ValueError if X cannot be these data."""
    given = getattr(X, "obs_names", X.index if hasattr(X, "iloc") else None)
    X = in_order_of_fit(estimator, X)
    known = getattr(estimator, "sample_names_in_", None)
    if given is not None and _has_other_samples(given, known):
        raise ValueError(
            "X must be the data of the fit with the samples in the same order, but its index "
            "differs from that of the fit. Pass X.loc[model.sample_names_in_], or the values "
            "without an index."
        )
    matrix, _ = check_samples(estimator, X, reset=False)
    if matrix.shape[0] != estimator.n_leaves_:
        raise ValueError(
            f"X must be the data of the fit, with {estimator.n_leaves_} samples, got "
            f"{matrix.shape[0]}. Pass the data that were passed to fit."
        )
    return matrix


def check_new_samples(estimator: Any, X: Any, features: np.ndarray) -> np.ndarray:
    """Return the values (m, q) of new samples in some features of the fit, as float64."""
    known, given = getattr(estimator, "_feature_names", None), column_names(X)
    X = in_order_of_fit(estimator, X, features)
    matrix = as_matrix(X)
    if known is not None and given is not None:
        columns = check_table(X) if matrix is None else matrix.columns(np.arange(features.size))
        columns = np.asarray(columns, dtype=np.float64)
    elif matrix is not None:
        check_width(estimator, matrix)
        columns = matrix.columns(features)
    else:
        array = validate_data(
            estimator,
            check_table(as_table(X)),
            reset=False,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )
        columns = array[:, features].astype(np.float64)
    refuse_extreme_values(columns)
    return columns


def refuse_extreme_values(X: np.ndarray) -> None:
    """Raise ValueError if new samples hold values that overflow."""
    is_extreme = np.abs(X) > _LARGEST  # False for NaN
    if is_extreme.any():
        i, j = np.argwhere(is_extreme)[0]
        raise ValueError(
            f"New samples must have values below {_LARGEST:g}, but sample {i} holds {X[i, j]:g}. "
            "Correct the transformation that produced it, such as a logarithm of zero."
        )


def refuse_incomparable_samples(
    centres: ClusterCentres, X: np.ndarray, names: Sequence[Any] | None = None
) -> None:
    """Raise ValueError if new samples have no distances to the centres of the clusters."""
    is_comparable = centres.comparable(X)
    if not is_comparable.all():
        first = int(is_comparable.argmin())
        wanted = "an observed value"
        if centres.metric == "correlation":
            wanted = "at least three observed values, not all equal,"
        raise ValueError(
            f"Every new sample needs {wanted} among the features that the clusters are compared in "
            f"({X.shape[1]:,}), but sample {first if names is None else repr(names[first])} does "
            "not have this. Drop it."
        )
