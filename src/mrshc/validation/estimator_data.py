"""Validate the data that an estimator is fitted to.

Each error says what is required of X, what was passed, and what to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.conversion import stored_matrix, table_in_memory, warn_of_absent_chunks
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.utils.sample_alignment import is_default_index, is_permuted_default_index, are_same_names
from mrshc.validation.tables import (
    explain_conversion_errors,
    feature_name,
    check_numeric_table,
    warn_of_rounding,
)

# The squares of larger values overflow in double precision, those of smaller ones underflow.
_LARGEST, _SMALLEST = 1e150, 1e-150


def check_samples(estimator: Any, X: Any, *, reset: bool = True, n_threads: int = 1) -> DataMatrix:
    """Return the finite, numeric data that an estimator is fitted to, or was (without `reset`).

    NaN marks a missing cell; every sample and every feature must have one that is not. Data that
    are stored elsewhere are passed over once, unless they were, and stay there, unless they have
    no more features than samples.
    """
    data = stored_matrix(X, report_absent_chunks=reset)
    if data is not None:
        n, p = data.shape
        if p > n >= 3:
            if not reset:
                check_n_features(estimator, p)
            _check_content(data, X=None, n_threads=n_threads)
            if reset:
                estimator.n_features_in_ = p
                delete_attributes(estimator, "feature_names_in_", "sample_names_in_")
            return data
        X = data.columns(np.arange(p))
    array = _validate_array(estimator, table_in_memory(X), reset=reset)
    data = ArrayMatrix(array)
    _check_content(data, X=table_in_memory(X), n_threads=n_threads)
    if reset:
        _store_sample_names(estimator, X)
    return data


def _validate_array(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Return an array or a table as scikit-learn's checks leave it; infinity is refused later."""
    X = check_numeric_table(X)
    _refuse_duplicate_names(X)
    if not reset:
        _refuse_other_samples(estimator, X)
    with explain_conversion_errors(X):
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


def _check_content(data: DataMatrix, *, X: Any, n_threads: int = 1) -> None:
    """Refuse features and samples without a value, and values that cannot be computed with.

    X, as it was given, has the names of the features; None if there are none.
    """
    summary = data.summary(n_threads=n_threads)
    for counts, kind in ((summary.counts, "feature"), (summary.row_counts, "sample")):
        if not counts.all():
            position = int(counts.argmin())
            name = feature_name(X, position) if kind == "feature" else str(position)
            raise _unobserved_error(kind, name)
    infinite = "somewhere"
    if data.in_memory and (np.isinf(summary.lowest) or np.isinf(summary.highest)):
        infinite = f"first at {_first_true_cell(np.isinf(data.values), X)}"
    _refuse_extreme_values(summary.lowest, summary.highest, infinite)
    if data.holds_integers:
        warn_of_rounding(max(summary.highest, -summary.lowest))


def check_n_features(estimator: Any, n_features: int) -> None:
    """Refuse data without names that have not as many features as those of the fit."""
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X must have the {estimator.n_features_in_} features of the fit, but has {n_features}."
        )


def delete_attributes(estimator: Any, *names: str) -> None:
    """Drop attributes of an earlier fit that this one does not set."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)


def _store_sample_names(estimator: Any, X: Any) -> None:
    """Store the index of a DataFrame, by which annotations and later data are matched."""
    if hasattr(X, "iloc"):
        estimator.sample_names_in_ = np.asarray(X.index)
    else:
        delete_attributes(estimator, "sample_names_in_")


def _refuse_other_samples(estimator: Any, X: Any) -> None:
    """Refuse a DataFrame whose samples are not those of the fit, in the same order."""
    if not hasattr(X, "iloc"):
        return
    known = getattr(estimator, "sample_names_in_", None)
    if known is None:
        if is_permuted_default_index(X.index):
            raise ValueError(
                "X must be the data of the fit with the samples in the same order, but its index "
                "is not sorted. Pass X.sort_index(), or the values without an index."
            )
        return
    # Names that were dropped, as by reset_index, cannot be compared; numbers can.
    dropped = is_default_index(X.index) and not (is_default_index(known) or is_permuted_default_index(known))
    if len(X) == len(known) and not dropped and not are_same_names(X.index, known):
        raise ValueError(
            "X must be the data of the fit with the samples in the same order, but its index "
            "differs from that of the fit. Pass X.loc[model.sample_names_in_], or the values "
            "without an index."
        )


def check_matrix_with_missing(X: Any) -> NDArray[Any]:
    """Return numeric data in which NaN marks a missing cell."""
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


def _unobserved_error(kind: str, what: str) -> ValueError:
    return ValueError(
        f"Every {kind} needs at least one observed value, but {kind} {what} of X has none. Drop it."
    )


def _refuse_extreme_values(low: float, high: float, where_infinite: str) -> None:
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


def _refuse_duplicate_names(X: Any) -> None:
    """Features are found again by name: scikit-learn wants the names to be unique, and so do we."""
    names, counts = np.unique([str(c) for c in getattr(X, "columns", ())], return_counts=True)
    if np.any(counts > 1):
        raise ValueError(
            f"Feature names must be unique, but {str(names[counts.argmax()])!r} names "
            f"{counts.max()} columns of X. Rename them, or pass the values without names."
        )


def _first_true_cell(mask: NDArray[np.bool_], X: Any) -> str:
    i, j = np.unravel_index(int(mask.argmax()), mask.shape)
    return f"sample {i}, feature {feature_name(X, int(j))}"
