"""Validation of the data to which an estimator is fitted.

Each error message states what is required of X, what was passed, and what the user can do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.conversion import as_stored_matrix, warn_of_absent_chunks
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.utils.sample_alignment import are_same_names, is_default_index, is_permuted_index
from mrshc.validation.anndata_names import (
    as_named_table,
    check_names_of_stored_data,
    set_names_of_stored_data,
)
from mrshc.validation.tables import (
    check_numeric_table,
    explain_conversion_errors,
    quoted_feature_name,
    warn_of_rounding,
)

# Double precision represents numbers from about 1e-308 to 1e308. Distances are sums of squares over
# features. Values above the first limit could overflow when they are squared and summed, and
# differences below the second limit could underflow.
_LARGEST, _SMALLEST = 1e150, 1e-150


def check_samples(estimator: Any, X: Any, *, reset: bool = True, n_threads: int = 1) -> DataMatrix:
    """Return X as a validated data matrix for an estimator.

    Parameters
    ----------
    estimator : estimator
        The estimator. If `reset` is True, its attributes `n_features_in_`, `feature_names_in_` and
        `sample_names_in_` are set, or deleted if they do not apply.
    X : array-like of shape (n_samples, n_features)
        Finite numbers, with NaN for missing values. Every sample and every feature must have at
        least one non-missing value. Data that are neither an array nor a table in memory are read
        once, unless their statistics have already been computed.
    reset : bool, default=True
        True if the estimator will be fitted to X. If False, the features of X, and its index if X
        is a DataFrame, are compared with those of the data to which the estimator was fitted.
    n_threads : int, default=1
        Number of threads that read the data.

    Returns
    -------
    data : DataMatrix
        The data. If X is neither an array nor a table in memory, the data are loaded into memory
        only if X has fewer than 3 samples or does not have more features than samples.

    Raises
    ------
    ValueError
        If X is not numeric, contains infinite or extreme values, or has fewer than 3 samples or
        fewer than 2 features. Also if all values of a sample or feature are missing, or if
        `reset` is False and the features or the index of X differ from those of the fit.
    """
    data = as_stored_matrix(X, report_absent_chunks=reset)
    if data is not None:
        n, p = data.shape
        # If this condition is False, X is small or probably transposed. X is then loaded into
        # memory and checked like an array.
        if p > n >= 3:
            if not reset:
                check_n_features(estimator, p)
                check_names_of_stored_data(estimator, X)
            _check_content(data, X=None, n_threads=n_threads)
            if reset:
                estimator.n_features_in_ = p
                set_names_of_stored_data(estimator, X)
                delete_attributes(estimator, "_column_labels_in")
            return data
        X = as_named_table(X, data.columns(np.arange(p)))
    X = as_named_table(X)
    array = _validate_array(estimator, X, reset=reset)
    data = ArrayMatrix(array)
    _check_content(data, X=X, n_threads=n_threads)
    if reset:
        _store_sample_names(estimator, X)
        _store_column_labels(estimator, X)
    return data


def column_labels(estimator: Any) -> list[str] | None:
    """Return the names of the features of the fit as text; None if they have no names.

    Unlike `feature_names_in_`, the names may also be numbers, such as gene identifiers.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = getattr(estimator, "_column_labels_in", None)
    return None if names is None else [str(name) for name in names]


def _validate_array(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Return X as an array that scikit-learn has validated.

    Raise ValueError if X is not a valid table of numbers, or if feature names are not unique. If
    `reset` is False, raise ValueError also if the features or the index of X differ from those of
    the fit. Infinite values are detected later, in `_check_content`.
    """
    X = check_numeric_table(X)
    _refuse_duplicate_names(X)
    if not reset:
        _refuse_other_sample_index(estimator, X)
    with explain_conversion_errors(X):
        array: NDArray[Any] = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # checked by `_check_content`, with a more detailed message
            ensure_min_samples=3,  # with two samples, only one tree is possible
            ensure_min_features=2,
        )
    return array


def _check_content(data: DataMatrix, *, X: Any, n_threads: int = 1) -> None:
    """Raise ValueError if a sample or feature has only missing values, or if values are extreme.

    Values are extreme if a value is infinite, if an absolute value exceeds 1e150, or if the largest
    and the smallest value differ by less than 1e-150 but are not equal. A warning is issued if
    large integers are rounded.

    Parameters
    ----------
    data : DataMatrix
        The data.
    X : object
        The data as passed by the user, from which the feature names in messages are taken; None if
        there are no feature names.
    n_threads : int, default=1
        Number of threads that read the data.
    """
    summary = data.summary(n_threads=n_threads)
    for counts, kind in ((summary.counts, "feature"), (summary.row_counts, "sample")):
        if not counts.all():
            position = int(counts.argmin())
            name = quoted_feature_name(X, position) if kind == "feature" else str(position)
            raise _unobserved_error(kind, name)
    # The position of an infinite value is reported only for data in memory, because data in a file
    # would have to be read a second time.
    infinite = "at an unknown position"
    if data.in_memory and (np.isinf(summary.lowest) or np.isinf(summary.highest)):
        infinite = f"first at {_first_true_cell(np.isinf(data.values), X)}"
    _refuse_extreme_values(summary.lowest, summary.highest, infinite)
    # Integers are converted to floating point for all computations, which may round them.
    if data.holds_integers:
        warn_of_rounding(max(summary.highest, -summary.lowest))


def check_n_features(estimator: Any, n_features: int) -> None:
    """Raise ValueError if `n_features` differs from the number of features in the fitted data."""
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X must have the {estimator.n_features_in_} features of the fit, but has "
            f"{n_features}. Pass data with the same features in the same order."
        )


def delete_attributes(estimator: Any, *names: str) -> None:
    """Delete those attributes of an estimator that are listed in `names`, if they exist.

    Such attributes may remain from an earlier fit, although they do not apply to the current fit.
    """
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)


def _store_sample_names(estimator: Any, X: Any) -> None:
    """Set the attribute `sample_names_in_` to the index of X, or delete it if X has no index.

    The names are used to match annotations and later data with the samples of the fit.
    """
    if hasattr(X, "iloc"):  # only a pandas DataFrame has an index
        estimator.sample_names_in_ = np.asarray(X.index)
    else:
        delete_attributes(estimator, "sample_names_in_")


def _store_column_labels(estimator: Any, X: Any) -> None:
    """Store column names that are not all strings, which scikit-learn does not store.

    Names 0, 1, ..., p - 1 are not stored: they are the default of pandas, and not names.
    """
    columns = getattr(X, "columns", None)
    has_names = hasattr(estimator, "feature_names_in_")
    if columns is None or has_names or is_default_index(columns):
        delete_attributes(estimator, "_column_labels_in")
    else:
        estimator._column_labels_in = np.asarray([str(name) for name in columns], dtype=object)


def _refuse_other_sample_index(estimator: Any, X: Any) -> None:
    """Raise ValueError if a DataFrame does not have the samples of the fit in the same order.

    The index of the DataFrame is compared with the sample names of the fit, unless the numbers of
    samples differ. If the fit had no sample names, the index must not contain the row numbers
    0, 1, ..., n - 1 in another order. Data without an index are accepted.
    """
    if not hasattr(X, "iloc"):
        return
    known = getattr(estimator, "sample_names_in_", None)
    if known is None:
        if is_permuted_index(X.index):
            raise ValueError(
                "X must be the data of the fit with the samples in the same order, but its index "
                "is not sorted. Pass X.sort_index(), or the values without an index."
            )
        return
    # X may have a default index (0, 1, ...), for example after `reset_index`. If the samples of the
    # fit had other names, such an index contains no information about the order of the samples, and
    # X is accepted. If the names of the fit are also row numbers, the two indexes are compared.
    has_numbers = is_default_index(known) or is_permuted_index(known)
    is_reset = is_default_index(X.index) and not has_numbers
    if len(X) == len(known) and not is_reset and not are_same_names(X.index, known):
        raise ValueError(
            "X must be the data of the fit with the samples in the same order, but its index "
            "differs from that of the fit. Pass X.loc[model.sample_names_in_], or the values "
            "without an index."
        )


def check_matrix_with_missing(X: Any) -> NDArray[Any]:
    """Return X as a validated array, for a function that is not part of an estimator.

    Raise ValueError if X is not a numeric matrix, is too small, contains infinite or extreme
    values, or has a sample or feature in which all values are missing.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data, with NaN for missing values. At least 2 samples and 2 features are required.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The data, in single precision if X is in single precision, otherwise in double precision.
    """
    warn_of_absent_chunks(X)
    X = check_numeric_table(X)
    with explain_conversion_errors(X):
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


def _unobserved_error(kind: str, name: str) -> ValueError:
    """Return the error for a feature or sample (`kind`) in which all values are missing."""
    return ValueError(
        f"Every {kind} needs at least one observed value, but {kind} {name} of X has none. Drop it."
    )


def _refuse_extreme_values(low: float, high: float, where_infinite: str) -> None:
    """Raise ValueError if values from `low` to `high` are too large or differ too little.

    The squares of very large values would overflow, and the squares of very small differences would
    underflow. `where_infinite` is a description of the position of an infinite value, for the
    message.
    """
    if np.isinf(low) or np.isinf(high):
        raise ValueError(
            f"X must be finite, but holds inf ({where_infinite}). Replace it, or correct the "
            "transformation that produced it, such as a logarithm of zero."
        )
    largest = max(abs(low), abs(high))
    if largest > _LARGEST or 0 < high - low < _SMALLEST:
        raise ValueError(
            f"X must have values below {_LARGEST:g} that differ by more than {_SMALLEST:g}, got "
            f"values from {low:g} to {high:g}. Rescale it; the clusters do not depend on the unit."
        )


def _refuse_duplicate_names(X: Any) -> None:
    """Raise ValueError if two features of a table have the same name.

    Names must be unique because features are matched by name.
    """
    if not hasattr(X, "columns"):
        return
    names, counts = np.unique([str(c) for c in X.columns], return_counts=True)
    if np.any(counts > 1):
        raise ValueError(
            f"Feature names must be unique, but {str(names[counts.argmax()])!r} names "
            f"{counts.max()} columns of X. Rename them, or pass the values without names."
        )


def _first_true_cell(mask: NDArray[np.bool_], X: Any) -> str:
    """Return a description of the position of the first True in a mask, for a message.

    X is the data as passed by the user, from which feature names are taken.
    """
    i, j = np.unravel_index(int(mask.argmax()), mask.shape)
    return f"sample {i}, feature {quoted_feature_name(X, int(j))}"
