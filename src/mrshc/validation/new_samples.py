"""Validation of new samples, which are assigned to the clusters of a fitted estimator.

New samples may have other features than the data of the fit, or the same features in another order.
Features with names are matched by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from mrshc.core.array_types import Float, Index
from mrshc.core.data.conversion import as_stored_matrix
from mrshc.core.trees.cluster_centres import ClusterCentres
from mrshc.errors import UserError
from mrshc.utils.sample_alignment import is_permuted_index
from mrshc.validation.anndata_names import as_named_table
from mrshc.validation.estimator_data import check_n_features, column_labels
from mrshc.validation.feature_order import labels_of_columns, take_columns
from mrshc.validation.tables import check_numeric_columns, explain_conversion_errors

# Largest number of names in a message, so that the message remains one sentence.
_MAX_LISTED_NAMES = 5
# Values of larger magnitude could overflow when they are squared and summed. The data of a fit have
# the same limit.
_LARGEST = 1e150
_DTYPES = [np.float64, np.float32]


def columns_of_new_samples(
    estimator: Any, X: Any, wanted: Index, *, allow_missing: bool = True
) -> Float:
    """Return the values of new samples in some of the features of the fit.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    X : array-like of shape (n_new_samples, n_features)
        The new samples; NaN marks a missing value. If X and the data of the fit have column names,
        the features are matched by name. Otherwise X must have all features of the fit, in the same
        order.
    wanted : ndarray of shape (q,)
        Indices of the features in the data of the fit.
    allow_missing : bool, default=True
        Whether values may be missing. If False, ValueError is raised if a value of an array, or a
        value in the wanted columns of a table, is missing.

    Returns
    -------
    columns : ndarray of shape (n_new_samples, q)
        Values of these features in double precision; they are not infinite.

    Raises
    ------
    ValueError
        If X is not numeric or contains infinity, or if features are missing or not unique.
    """
    known, given = column_labels(estimator), labels_of_columns(X)
    data = as_stored_matrix(X)
    if known is not None and given is not None:
        positions = match_features([known[j] for j in wanted], given)
        columns = (
            data.columns(positions) if data is not None else _to_array(take_columns(X, positions))
        )
    elif data is not None:
        check_n_features(estimator, data.shape[1])
        columns = data.columns(wanted)
    else:
        table = check_numeric_columns(as_named_table(X))
        if hasattr(table, "columns") and is_permuted_index(table.columns):
            raise UserError(
                "X must have the features of the fit in the same order, but its columns are "
                "numbered in another order. Sort them, or fit with column names."
            )
        with explain_conversion_errors(table):
            array = validate_data(
                estimator,
                table,
                reset=False,
                dtype=_DTYPES,
                ensure_all_finite="allow-nan" if allow_missing else True,
            )
        columns = array[:, wanted]
    columns = np.asarray(columns, dtype=np.float64)
    refuse_extreme_values(columns)
    return columns


def match_features(wanted: Sequence[str], given: Sequence[str]) -> Index:
    """Return the position of each wanted feature among the given names.

    Raise UserError if a wanted name does not occur among the given names, or occurs twice.
    """
    positions: dict[str, int] = {}
    repeated = set[str]()
    for position, name in enumerate(given):
        if name in positions:
            repeated.add(name)
        positions[name] = position
    if absent := [name for name in wanted if name not in positions]:
        raise UserError(
            f"New samples must have all {len(wanted):,} features that are needed to assign them, "
            f"but {len(absent):,} of them {'is' if len(absent) == 1 else 'are'} missing: "
            f"{_list_names(absent)}. Check the names, and whether samples are in rows; a feature "
            "that was not measured can be given as a column of missing values."
        )
    if twice := [name for name in wanted if name in repeated]:
        raise UserError(
            f"Names of features must be unique in new samples, but {_list_names(twice)} "
            f"{'names' if len(twice) == 1 else 'name'} more than one column. Keep one column of "
            "each."
        )
    return np.array([positions[name] for name in wanted], dtype=np.intp)


def refuse_incomparable_samples(
    centres: ClusterCentres, X: Float, names: Sequence[Any] | None = None
) -> None:
    """Raise UserError if a sample cannot be compared with the centres of the clusters.

    Parameters
    ----------
    centres : ClusterCentres
        The centres.
    X : ndarray of shape (n_new_samples, q)
        Values of the new samples in the features of the centres.
    names : sequence of length n_new_samples or None, default=None
        Names of the samples for the message; None for their positions.
    """
    is_comparable = centres.comparable_samples(X)
    if is_comparable.all():
        return
    first = int(np.argmin(is_comparable))
    name = str(first) if names is None else repr(str(names[first]))
    wanted = "an observed value"
    if centres.metric == "correlation":
        wanted = "at least three observed values, not all equal,"
    raise UserError(
        f"Every new sample needs {wanted} among the features that the clusters are compared in "
        f"({X.shape[1]:,}), but sample {name} does not have this. Drop it."
    )


def refuse_extreme_values(X: Float) -> None:
    """Raise UserError if a value is infinite or larger than the data of a fit may be."""
    is_extreme = np.abs(X) > _LARGEST  # False for NaN
    if is_extreme.any():
        i = int(is_extreme.any(axis=1).argmax())
        value = X[i][is_extreme[i]][0]
        raise UserError(
            f"New samples must have values below {_LARGEST:g}, but sample {i} holds {value:g}. "
            "Correct the transformation that produced it, such as a logarithm of zero."
        )


def _to_array(table: Any) -> NDArray[Any]:
    """Return a table of numbers as an array; raise ValueError if it holds other values."""
    table = check_numeric_columns(table)
    with explain_conversion_errors(table):
        # Infinite values are refused later, with a message that names the sample.
        array: NDArray[Any] = check_array(
            table, dtype=_DTYPES, ensure_all_finite=False, input_name="X"
        )
    return array


def _list_names(names: Sequence[str]) -> str:
    """Return the first few names in quotation marks, and the number of the others."""
    n_others = len(names) - _MAX_LISTED_NAMES
    listed = ", ".join(repr(name) for name in names[:_MAX_LISTED_NAMES])
    return listed + (f" and {n_others:,} more" if n_others > 0 else "")
