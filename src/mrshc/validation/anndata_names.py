"""Names of the samples and features of AnnData objects.

The functions do not import anndata: an object can be an AnnData object only if its package has
already been imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.data.conversion import is_anndata


def as_named_table(X: Any, values: NDArray[Any] | None = None) -> Any:
    """Return an AnnData object as a DataFrame, with its names, and other data unchanged.

    Parameters
    ----------
    X : object
        The data.
    values : ndarray of shape (n_samples, n_features) or None, default=None
        Values of X as an array in memory. If None, X itself has its values in memory. They are not
        copied.
    """
    if not is_anndata(X):
        return X if values is None else values
    import pandas as pd

    values = X.X if values is None else values
    return pd.DataFrame(values, index=X.obs_names, columns=X.var_names, copy=False)


def set_names_of_stored_data(estimator: Any, X: Any) -> None:
    """Set the names of an estimator that is fitted to data which are not a table.

    Only AnnData objects have names. For other data, the attributes `feature_names_in_` and
    `sample_names_in_` are deleted, since they may remain from an earlier fit.
    """
    names = (X.var_names, X.obs_names) if is_anndata(X) else (None, None)
    for attribute, values in zip(("feature_names_in_", "sample_names_in_"), names, strict=True):
        if values is not None:
            setattr(estimator, attribute, np.asarray(values, dtype=object))
        elif hasattr(estimator, attribute):
            delattr(estimator, attribute)


def check_names_of_stored_data(estimator: Any, X: Any) -> None:
    """Raise ValueError if the features of an AnnData object are not those of the fit, in order."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None or not is_anndata(X):
        return
    if not np.array_equal(np.asarray(X.var_names, dtype=object), known):
        raise ValueError(
            "The features of X must be those of the fit in the same order, but the names differ. "
            "Pass adata[:, model.feature_names_in_]."
        )
