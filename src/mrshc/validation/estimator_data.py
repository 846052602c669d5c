"""Validation of the data to which an estimator is fitted.

Each error says what is required of X, what was passed, and what to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from mrshc.core.data.array_matrix import ArrayMatrix
from mrshc.core.data.conversion import as_stored_matrix, unwrap_anndata, warn_of_absent_chunks
from mrshc.core.data.data_matrix import DataMatrix
from mrshc.utils.sample_alignment import are_same_names, is_default_index, is_permuted_index
from mrshc.validation.tables import (
    check_numeric_table,
    explain_conversion_errors,
    feature_name,
    warn_of_rounding,
)

# Double precision holds numbers from about 1e-308 to 1e308. Squares of values beyond 1e150 would
# overflow or underflow; the margin leaves room for sums over features.
_LARGEST, _SMALLEST = 1e150, 1e-150


def check_samples(estimator: Any, X: Any, *, reset: bool = True, n_threads: int = 1) -> DataMatrix:
    """Return the validated data to which an estimator is, or was, fitted.

    Parameters
    ----------
    estimator : estimator
        With `reset`, its attributes on the names and the number of features are set.
    X : array-like of shape (n_samples, n_features)
        Finite numbers; NaN marks a missing value. Every sample and every feature must have at
        least one observed value. Data that are not an array in memory are read in one pass, unless
        their summary is known already.
    reset : bool, default=True
        True for the data of a fit; False for data that must agree with those of the fit.
    n_threads : int, default=1
        Number of threads that read the data.

    Returns
    -------
    data : DataMatrix
        Data that are not an array in memory remain in their storage, unless they have no more
        features than samples.

    Raises
    ------
    ValueError
        If X is not numeric, not finite, too small, or differs from the data of the fit.
    """
    data = as_stored_matrix(X, report_absent_chunks=reset)
    if data is not None:
        n, p = data.shape
        # Otherwise X is small or its orientation is wrong, and the checks of arrays apply.
        if p > n >= 3:
            if not reset:
                check_n_features(estimator, p)
            _check_content(data, X=None, n_threads=n_threads)
            if reset:
                estimator.n_features_in_ = p
                delete_attributes(estimator, "feature_names_in_", "sample_names_in_")
            return data
        X = data.columns(np.arange(p))
    array = _validate_array(estimator, unwrap_anndata(X), reset=reset)
    data = ArrayMatrix(array)
    _check_content(data, X=unwrap_anndata(X), n_threads=n_threads)
    if reset:
        _store_sample_names(estimator, X)
    return data


def _validate_array(estimator: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Return X as an array validated by scikit-learn; infinity is refused later."""
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
            ensure_all_finite=False,  # `_check_content` names the first infinite value
            ensure_min_samples=3,  # with two samples there is only one tree
            ensure_min_features=2,
        )
    return array


def _check_content(data: DataMatrix, *, X: Any, n_threads: int = 1) -> None:
    """Refuse unobserved features and samples, and infinite or extreme values.

    Parameters
    ----------
    data : DataMatrix
        The data.
    X : object
        The data as the user passed them, for the names of features; None if there are none.
    n_threads : int, default=1
        Number of threads that read the data.
    """
    summary = data.summary(n_threads=n_threads)
    for counts, kind in ((summary.counts, "feature"), (summary.row_counts, "sample")):
        if not counts.all():
            position = int(counts.argmin())
            name = feature_name(X, position) if kind == "feature" else str(position)
            raise _unobserved_error(kind, name)
    # The position is known only for data in memory: a second pass for a message is not worth it.
    infinite = "at an unknown position"
    if data.in_memory and (np.isinf(summary.lowest) or np.isinf(summary.highest)):
        infinite = f"first at {_first_true_cell(np.isinf(data.values), X)}"
    _refuse_extreme_values(summary.lowest, summary.highest, infinite)
    # Computations are in floating point, whatever the storage.
    if data.holds_integers:
        warn_of_rounding(max(summary.highest, -summary.lowest))


def check_n_features(estimator: Any, n_features: int) -> None:
    """Refuse data whose number of features differs from that of the fit."""
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X must have the {estimator.n_features_in_} features of the fit, but has "
            f"{n_features}. Pass data with the same features in the same order."
        )


def delete_attributes(estimator: Any, *names: str) -> None:
    """Delete fitted attributes, if they exist, that the present fit does not set."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)


def _store_sample_names(estimator: Any, X: Any) -> None:
    """Set `sample_names_in_`, by which annotations and later data are matched."""
    if hasattr(X, "iloc"):  # a DataFrame of pandas; other tables have no index
        estimator.sample_names_in_ = np.asarray(X.index)
    else:
        delete_attributes(estimator, "sample_names_in_")


def _refuse_other_sample_index(estimator: Any, X: Any) -> None:
    """Refuse a DataFrame whose samples are not those of the fit, in the same order."""
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
    # A default index in place of names, as after reset_index, holds no information on the order. If
    # the names of the fit are row numbers themselves, it can be compared with them.
    has_numbers = is_default_index(known) or is_permuted_index(known)
    is_reset = is_default_index(X.index) and not has_numbers
    if len(X) == len(known) and not is_reset and not are_same_names(X.index, known):
        raise ValueError(
            "X must be the data of the fit with the samples in the same order, but its index "
            "differs from that of the fit. Pass X.loc[model.sample_names_in_], or the values "
            "without an index."
        )


def check_matrix_with_missing(X: Any) -> NDArray[Any]:
    """Return the validated data of a function that is no estimator.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        At least 2 samples and 2 features; NaN marks a missing value.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        In single precision if X is, otherwise in double precision.
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
    """Return the error of a feature or sample without any observed value."""
    return ValueError(
        f"Every {kind} needs at least one observed value, but {kind} {name} of X has none. Drop it."
    )


def _refuse_extreme_values(low: float, high: float, where_infinite: str) -> None:
    """Refuse data with a given smallest and largest value that cannot be squared."""
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
    """Refuse a table in which two features have the same name: features are matched by name."""
    names, counts = np.unique([str(c) for c in getattr(X, "columns", ())], return_counts=True)
    if np.any(counts > 1):
        raise ValueError(
            f"Feature names must be unique, but {str(names[counts.argmax()])!r} names "
            f"{counts.max()} columns of X. Rename them, or pass the values without names."
        )


def _first_true_cell(mask: NDArray[np.bool_], X: Any) -> str:
    """Return the position of the first True of a mask, for a message."""
    i, j = np.unravel_index(int(mask.argmax()), mask.shape)
    return f"sample {i}, feature {feature_name(X, int(j))}"
