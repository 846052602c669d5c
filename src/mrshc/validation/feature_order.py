"""Names of the features of a table, and their order in the data of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Index
from mrshc.core.data.conversion import as_stored_matrix
from mrshc.errors import UserError
from mrshc.utils.sample_alignment import is_default_index
from mrshc.validation.anndata_names import as_named_table
from mrshc.validation.estimator_data import column_labels


def labels_of_columns(X: Any) -> list[str] | None:
    """Return the names of the columns of X as text; None if X has no names."""
    names = _names_of_columns(X)
    return None if names is None else [str(name) for name in names]


def take_columns(X: Any, positions: Index) -> Any:
    """Return some columns of a table, or of the matrix of an AnnData object in memory."""
    X = as_named_table(X)
    # Only tables of pandas have the attribute `iloc`; the others are tables of polars.
    return X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions.tolist()]


def in_order_of_fit(estimator: Any, X: Any) -> Any:
    """Return a table whose columns are the features of the fit, in the same order.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    X : array-like of shape (n_samples, n_features)
        The data. If X is a table in memory and the data of the fit had column names, the columns
        are matched by name, and other columns are left out. Any other X is returned unchanged.

    Raises
    ------
    UserError
        If a feature of the fit is not a column of the table.
    """
    known, names = column_labels(estimator), _names_of_columns(X)
    # The columns 0, 1, ... are not names. Names of data that are not a table are compared with
    # those of the fit when the data are checked, and so are names that are not unique.
    if known is None or names is None or is_default_index(names):
        return X
    given = [str(name) for name in names]
    if given == known or len(set(given)) < len(given) or as_stored_matrix(X) is not None:
        return X
    positions = {name: position for position, name in enumerate(given)}
    if absent := [name for name in known if name not in positions]:
        raise UserError(
            f"X must have the {len(known):,} features of the fit, but {len(absent):,} of them "
            f"{'is' if len(absent) == 1 else 'are'} missing, such as {absent[0]!r}. Pass the data "
            "that were passed to fit."
        )
    return take_columns(X, np.array([positions[name] for name in known], dtype=np.intp))


def known_feature_names(estimator: Any, X: Any) -> NDArray[Any] | None:
    """Return the names of the features: those of X or, if X has none, those of the fit.

    X has the features of the fit in the same order. Return None if neither of them has names; the
    columns 0, 1, ... of a table are not names.
    """
    names = _names_of_columns(X)
    if names is None or is_default_index(names):
        names = column_labels(estimator)
    if names is None:
        return None
    listed = np.empty(len(names), dtype=object)
    listed[:] = list(names)
    return listed


def _names_of_columns(X: Any) -> Any:
    """Return the names of the columns of a table or of an AnnData object; None without names."""
    names = getattr(X, "columns", None)
    if names is None or callable(names):  # a DataMatrix has a method of this name
        names = getattr(X, "var_names", None)  # AnnData
    return names
