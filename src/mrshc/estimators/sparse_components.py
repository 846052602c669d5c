"""Sparse principal components by the penalized matrix decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mrshc.core import parallel
from mrshc.core.data.matrix import centring
from mrshc.core.sparse_components import Columns, ComponentPath, Starts, starts_in_memory
from mrshc.validation import check_integer, check_number, check_option, check_samples


@dataclass(frozen=True, eq=False)
class SparseComponents:
    """Sparse principal components of a matrix.

    Attributes
    ----------
    scores : ndarray of shape (n_samples, n_components)
        Vectors u, of norm 1.
    scale : ndarray of shape (n_components,)
        u'Xv.
    loadings : ndarray of shape (n_components, n_features)
        Vectors v.
    n_iter, converged : ndarray of shape (n_components,)
        Number of iterations, and whether they converged.
    """

    scores: np.ndarray
    scale: np.ndarray
    loadings: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray


def sparse_components(
    X: Any,
    *,
    l1_bound: float,
    n_components: int = 1,
    center: Any = "grand",
    orthogonal: bool = False,
    max_iter: int = 20,
    tol: float = 1e-7,
    init: Any = None,
) -> SparseComponents:
    """Return sparse principal components of a matrix.

    Component k maximises u'Xv, where u has length 1, v has length 1 and absolute values that sum to
    at most `l1_bound`, and X is centred and the first k - 1 components are subtracted (Witten,
    Tibshirani and Hastie [1]_). The defaults are those of `SPC` in R's PMA, but the soft threshold
    is exact.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data in memory. A missing value is replaced by the mean of all observed values of the matrix
        from which earlier components are subtracted.
    l1_bound : float
        Bound between 1 and the square root of the number of features.
    n_components : int, default=1
        Number of components.
    center : {"grand", True, False}, default="grand"
        What is subtracted: the mean of all values, that of each feature, or nothing.
    orthogonal : bool, default=False
        Whether each u is kept orthogonal to the earlier ones, instead of subtracting components.
    max_iter, tol : int, float
        The iteration ends when v changes by at most `tol` in L1 norm.
    init : array-like of shape (n_components, n_features) or None, default=None
        Vectors v to start from; None means the leading right singular vectors.

    Returns
    -------
    SparseComponents
        The components, each with a positive largest loading.

    See Also
    --------
    MrSHC : Clusters samples by the features that the components select.

    References
    ----------
    .. [1] Witten, D. M., Tibshirani, R. and Hastie, T. (2009). A penalized matrix decomposition,
       with applications to sparse principal components and canonical correlation analysis.
       Biostatistics 10(3), 515-534. https://doi.org/10.1093/biostatistics/kxp008

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc import sparse_components
    >>> X = np.outer([1.0, -1.0, 2.0, -2.0], [3.0, 2.0, 0.0, 0.0, 0.0])
    >>> sparse_components(X, l1_bound=1.3).loadings.round(2)
    array([[0.93, 0.37, 0.  , 0.  , 0.  ]])
    """
    matrix, summary = check_samples(BaseEstimator(), X, min_samples=2)
    n, p = matrix.shape
    l1_bound = check_number("l1_bound", l1_bound, low=1.0, high=float(np.sqrt(p)))
    r = check_integer("n_components", n_components, low=1, high=min(n, p))
    max_iter = check_integer("max_iter", max_iter, low=1)
    tol = check_number("tol", tol, low=0.0, high=np.inf)
    center = check_option("center", center, ("grand", True, False))
    is_orthogonal = check_option("orthogonal", orthogonal, (True, False))
    offsets, features = centring(summary, center, exclude_constant=False), np.arange(p)
    columns = offsets.columns(matrix, features)
    with parallel.threads(1):
        if init is None:
            starts = starts_in_memory(columns, offsets, r)
        else:
            vectors = np.asarray(init, dtype=np.float64)
            if vectors.shape != (r, p) or not np.isfinite(vectors).all():
                raise ValueError(
                    f"init must hold finite numbers in the shape {(r, p)}, one vector in each row, "
                    f"got the shape {vectors.shape}. Give None to start from singular vectors."
                )
            missing = np.isnan(columns)
            filled = np.where(missing, offsets.fill or 0.0, columns)
            starts = Starts(vectors, vectors @ filled.T, vectors @ missing.T)
        path = ComponentPath(
            Columns.fill(features, np.ascontiguousarray(columns.T), offsets.fill),
            starts,
            offsets,
            max_iter=max_iter,
            tol=tol,
            is_orthogonal=is_orthogonal,
        )
        found = path.solve(l1_bound, r)
    return SparseComponents(
        found.scores.T, found.scales * offsets.unit, found.loadings, found.n_iter, found.converged
    )
