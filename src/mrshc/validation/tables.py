"""Validation of arrays, lists and tables, which must be matrices of real numbers.

An error is raised if X contains text, dates, complex numbers or other objects. If possible, the
message states the position of the first such value. numpy and scikit-learn would convert some of
these values, such as text that looks like a number, without a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from numbers import Number
from typing import Any, SupportsFloat

import numpy as np

from mrshc.core.data.shape_and_dtype import OutOfRangeError, refuse_overflow
from mrshc.errors import UserError

# Double precision has 53 bits of precision, so every integer up to this number is represented
# exactly.
_LARGEST_EXACT_INTEGER = 2**53


class NotNumericError(UserError, TypeError):
    """Error raised if a value of X is an object that cannot be converted to a number.

    The class is derived from TypeError as well, as the conventions of scikit-learn require.
    """


def check_numeric_columns(X: Any) -> Any:
    """Return a table or an array after checking that it contains only numbers.

    Raise ValueError if X is not a matrix of real numbers, and NotNumericError if a value is an
    object that cannot be converted to a number.
    """
    X = check_numeric_table(X, rounded=False)
    if "O" in _dtype_kinds(X) and (error := _object_error(X)):
        raise error
    return X


@contextmanager
def explain_conversion_errors(X: Any) -> Iterator[None]:
    """Replace conversion errors by a ValueError that names the first value that is not a number.

    If all values are numbers, the original error is raised. If a number is too large for the type
    to which it is converted, OutOfRangeError is raised.

    Parameters
    ----------
    X : array-like
        The data that are converted to numbers inside this context.
    """
    try:
        with refuse_overflow():
            yield
    except OutOfRangeError:  # its message needs no addition
        raise
    except TypeError as error:
        raise _object_error(X, reason=f" ({error})") or error from None
    except ValueError as error:
        raise _text_error(X) or _object_error(X) or error from None


def check_numeric_table(X: Any, *, rounded: bool = True) -> Any:
    """Return a table or an array after checking that it is a matrix of real numbers.

    Raise ValueError if X is not a matrix or contains text, dates or complex numbers.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Array, DataFrame or list of lists. Text and dates are invalid, even if they could be
        converted to numbers.
    rounded : bool, default=True
        Whether X will be converted to double precision. If True, a warning is issued if X contains
        integers that are too large to be represented exactly.

    Returns
    -------
    X : array-like
        X itself, with two exceptions: a masked array is converted to an array with NaN for masked
        values, and sparse columns of a DataFrame are converted to dense columns.
    """
    # numpy.asarray would ignore the mask and use the masked values.
    if isinstance(X, np.ma.MaskedArray):
        with explain_conversion_errors(X):
            return np.ma.filled(X.astype(np.float64), np.nan)
    _refuse_non_matrix(X)
    kinds = _dtype_kinds(X)
    if set(kinds) & set("SUO") and (error := _text_error(X)):
        raise error
    if set(kinds) & set("mM"):
        raise _date_error()
    if "c" in kinds:
        raise ValueError(
            "Complex data not supported: X must hold real numbers. Take their real parts or their "
            "absolute values."
        )
    if rounded:
        warn_of_rounding(_largest_integer(X, [i for i, k in enumerate(kinds) if k in "iu"]))
    return _densify_sparse_columns(X)


def _densify_sparse_columns(X: Any) -> Any:
    """Return X; if X is a DataFrame, its sparse columns are converted to dense columns."""
    # Among pandas dtypes, only sparse dtypes have a fill value.
    if not hasattr(X, "iloc") or not any(hasattr(dtype, "fill_value") for dtype in X.dtypes):
        return X
    return X.astype({j: d.subtype for j, d in X.dtypes.items() if hasattr(d, "fill_value")})


def _dtype_kinds(X: Any) -> list[str]:
    """Return numpy's one-letter codes for the kinds of values in X.

    There is one code for each column of a table, for each row of a list, or for a whole array.
    """
    if isinstance(X, list | tuple):
        return [_dtype_kind(dtype) for dtype in _row_dtypes(X)]
    dtypes = list(X.dtypes) if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    return [_dtype_kind(dtype) for dtype in dtypes]


def _refuse_non_matrix(X: Any) -> None:
    """Raise ValueError if X is not a matrix, or if X is a polars LazyFrame."""
    wanted = "X must be a matrix of numbers with samples in rows"
    # A LazyFrame is recognised by its methods, since polars may not be installed.
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
    _refuse_wrong_dimensions(X, wanted)
    if getattr(getattr(X, "dtype", None), "names", None):
        raise ValueError(f"{wanted}, got a structured array. Pass its fields as columns.")


def _refuse_wrong_dimensions(X: Any, wanted: str) -> None:
    """Raise ValueError if an array or a list does not have two dimensions.

    `wanted` is the beginning of the message. Structured arrays are checked separately.
    """
    n_dimensions, what = (
        _dimensions_of_list(X)
        if isinstance(X, list | tuple)
        else (getattr(X, "ndim", 2), "an array")
    )
    if n_dimensions != 2 and not getattr(getattr(X, "dtype", None), "names", None):
        count = f"{n_dimensions} dimension" + ("" if n_dimensions == 1 else "s")
        raise ValueError(
            f"{wanted}, got {what}, which has {count}. Reshape your data to (n_samples, "
            "n_features)."
        )


def _dimensions_of_list(X: Sequence[Any]) -> tuple[int, str]:
    """Return the number of dimensions (1, 2 or 3) of a list or tuple, and a description of it."""
    kind = type(X).__name__
    if not len(X):
        return 1, f"an empty {kind}"
    if not any(hasattr(row, "__len__") and not isinstance(row, str) for row in X):
        return 1, f"a {kind} of single values"
    cells = X[0] if isinstance(X[0], list | tuple) else ()
    if any(isinstance(cell, list | tuple) or getattr(cell, "ndim", 0) for cell in cells):
        return 3, f"a {kind} of lists"
    return 2, f"a {kind}"


def _row_dtypes(rows: Sequence[Any]) -> list[Any]:
    """Return the dtype of each row; raise ValueError if the rows have different lengths."""
    lengths = [len(row) if hasattr(row, "__len__") else 1 for row in rows]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"Rows of X must have the same length, but row 0 has {lengths[0]} values and row "
            f"{next(i for i, n in enumerate(lengths) if n != lengths[0])} has another number. "
            "Use NaN for missing values."
        )
    return [_row_dtype(row) for row in rows]


def _row_dtype(row: Any) -> np.dtype[Any]:
    """Return the dtype of a row, which is object if the values have no common dtype."""
    try:
        return np.asarray(row).dtype
    except (TypeError, ValueError):  # values without a common dtype, such as times and numbers
        return np.dtype(object)


def _largest_integer(X: Any, positions: list[int]) -> int:
    """Return the largest absolute value in the integer columns of X, or 0 if there are none.

    Parameters
    ----------
    X : array-like
        The data.
    positions : list of int
        Positions of the integer columns of a table, or of the integer rows of a list. An array has
        only one dtype; for an array, the list is empty unless this dtype is an integer type.
    """
    if not positions:
        return 0
    # The values are converted to Python integers, because the absolute value of the smallest int64
    # overflows in numpy.
    return max((abs(int(value)) for value in _integer_extremes(X, positions)), default=0)


def warn_of_rounding(largest: float) -> None:
    """Issue a warning if integers with absolute values up to `largest` are rounded.

    In double precision, most integers above 2**53 are rounded.
    """
    if largest > _LARGEST_EXACT_INTEGER:
        warnings.warn(
            f"X holds whole numbers up to {largest:.3g}; above 2^53 they are rounded to 16 "
            "significant digits. Subtract an offset first if their differences matter.",
            UserWarning,
            stacklevel=2,
        )


def _integer_extremes(X: Any, positions: list[int]) -> list[Any]:
    """Return the largest and smallest values of the integer columns or rows at `positions`."""
    if hasattr(X, "iloc"):  # pandas, whose extension types may have missing values
        part = X.iloc[:, positions]
        return [*part.max().dropna(), *part.min().dropna()]
    if hasattr(X, "columns"):  # polars
        part = X[:, positions]
        extremes = [*part.max().row(0), *part.min().row(0)] if len(part) else []
        return [value for value in extremes if value is not None]
    parts = (
        [np.asarray(X[i]) for i in positions] if isinstance(X, list | tuple) else [np.asarray(X)]
    )
    return [value for part in parts if part.size for value in (part.max(), part.min())]


def _dtype_kind(dtype: Any) -> str:
    """Return numpy's one-letter code for the kind of a numpy, pandas or polars dtype.

    The code is "O" for polars dtypes that are neither numbers nor dates or times.
    """
    if hasattr(dtype, "is_numeric"):  # polars
        if dtype.is_integer():
            return "i"
        return "f" if dtype.is_numeric() else "M" if dtype.is_temporal() else "O"
    # An object without a dtype is treated as floating point. numpy converts the object later, and
    # raises an error if the conversion fails.
    return getattr(dtype, "kind", "f")


def _date_error() -> ValueError:
    return ValueError("X must be numeric, but holds dates or times. Drop or encode them.")


def _enumerate_cells(X: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Return an iterator over the positions and values of X, empty if X is not a matrix."""
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:  # rows of different length
        return iter(())
    return iter(np.ndenumerate(cells)) if cells.ndim == 2 else iter(())


def _text_error(X: Any) -> ValueError | None:
    """Return the error for the first value that is text or a date; None if no value is."""
    for (i, j), value in _enumerate_cells(X):
        # Dates must be detected here, because numpy would convert a date to a number.
        if isinstance(value, np.datetime64 | np.timedelta64):
            return _date_error()
        if isinstance(value, str | bytes):
            return ValueError(
                f"X must be numeric, but holds the text {value!r} in sample {i}, feature "
                f"{quoted_feature_name(X, j)}. Drop or encode the text columns."
            )
    return None


def _object_error(X: Any, *, reason: str = "") -> ValueError | None:
    """Return the error for the first value that is not a number; None if all values are numbers.

    `reason` is added to the message.
    """
    for (i, j), value in _enumerate_cells(X):
        is_number = isinstance(value, SupportsFloat) and getattr(value, "ndim", 0) == 0
        if value is not None and not is_number:  # None is a missing value in object columns
            return NotNumericError(
                f"X must be numeric, but holds a {type(value).__name__} in sample {i}, feature "
                f"{quoted_feature_name(X, j)}{reason}. Drop or encode such columns."
            )
    return None


def quoted_feature_name(X: Any, j: int) -> str:
    """Return the quoted name of feature j, or its position j if X has no feature names."""
    names = getattr(X, "columns", None)
    return str(j) if names is None else repr(str(names[j]))
