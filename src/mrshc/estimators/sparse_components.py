"""Sparse principal components as a function of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.centred_array import CentredArray, centred_array
from mrshc.core.data.centring import Center
from mrshc.core.sparse_pca.next_component import (
    Component,
    Starts,
    leading_starts,
    next_component,
    starts_at,
)
from mrshc.errors import Parameter, ParameterError
from mrshc.validation.estimator_data import check_matrix_with_missing
from mrshc.validation.parameters import check_integer, check_number, check_option

_CENTERS: dict[Any, Center] = {True: "columns", "grand": "grand", False: "none"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseComponents:
    """Sparse principal components: X is about the sum of scale[k] * scores[:, k] loadings[k]."""

    scores: Float  # (n, k), columns of unit length; zero if nothing was left of X
    scale: Float  # (k,), u'Xv
    loadings: Float  # (k, p), rows of at most unit length
    n_iter: NDArray[np.intp]  # (k,)
    converged: Mask  # (k,)


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
    """Return sparse principal components (Witten, Tibshirani and Hastie 2009).

    Each maximises u'Xv with |u|_2 <= 1, |v|_2 <= 1 and |v|_1 <= l1_bound. The defaults are those
    of R's PMA; the largest loading of each component is positive.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data; NaN marks a missing cell, filled with the mean of the observed cells of what the
        earlier components leave.
    l1_bound : float
        Bound on |v|_1, between 1 (one feature) and the root of the number of features (all).
    n_components : int, default=1
        Number of components.
    center : {"grand", True, False}, default="grand"
        Subtract one mean of all cells, the mean of each column, or nothing.
    orthogonal : bool, default=False
        Make the u's orthogonal instead of subtracting earlier components from X.
    max_iter : int, default=20
        Largest number of alternations for each component.
    tol : float, default=1e-7
        A component has converged when v moves by at most this much in L1 norm.
    init : array-like of shape (n_components, n_features) or None
        Starting v of each component; the leading right singular vectors of X by default.

    Returns
    -------
    SparseComponents
        With `scores`, `scale`, `loadings`, `n_iter` and `converged`.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc import sparse_components
    >>> X = np.outer([1.0, -1.0, 2.0, -2.0], [3.0, 2.0, 0.0, 0.0, 0.0])
    >>> sparse_components(X, l1_bound=1.0).loadings
    array([[1., 0., 0., 0., 0.]])
    """
    X = check_matrix_with_missing(X)
    n, p = X.shape
    l1_bound = check_number(
        "l1_bound", l1_bound, low=1.0, high=float(np.sqrt(p)), advice="Above, it has no effect."
    )
    n_components = check_integer(
        "n_components",
        n_components,
        low=1,
        high=min(n, p),
        advice="There are no more components than samples and features.",
    )
    max_iter = check_integer("max_iter", max_iter, low=1, high=None, advice="The default is 20.")
    tol = check_number("tol", tol, low=0.0, high=np.inf, advice="The default is 1e-7.")
    check_option("orthogonal", orthogonal, (True, False))
    matrix = centred_array(X, center=check_center(center), drop_constant=False)
    starts = _starting_vectors(matrix, init, n_components)
    components: list[Component] = []
    for _ in range(n_components):
        components.append(
            next_component(
                matrix,
                components,
                starts=starts,
                l1_bound=l1_bound,
                orthogonal=orthogonal,
                max_iter=max_iter,
                tol=tol,
            )
        )
    return SparseComponents(
        scores=np.column_stack([c.u for c in components]),
        scale=np.array([c.scale for c in components]),
        loadings=dense_loadings(components, p),
        n_iter=np.array([c.n_iter for c in components]),
        converged=np.array([c.converged for c in components]),
    )


def check_center(center: Any) -> Center:
    """Return what the public values of `center` stand for."""
    return _CENTERS[check_option("center", center, list(_CENTERS))]


def _starting_vectors(matrix: CentredArray, init: Any, n_components: int) -> Starts:
    if init is None:
        return leading_starts(matrix, n_components)
    vectors = np.asarray(init, dtype=np.float64)
    wanted = (n_components, matrix.shape[1])
    if vectors.shape != wanted or not np.isfinite(vectors).all():
        raise ParameterError(
            "{init} must {allowed}, got the shape {shape}.",
            init=Parameter("init"),
            value=init,
            allowed=f"hold finite numbers in the shape {wanted}, one starting vector in each row",
            shape=vectors.shape,
        )
    return starts_at(matrix, vectors)


def dense_loadings(components: Sequence[Component], n_features: int) -> Float:
    """Return the loadings of sparse components as rows over all features."""
    loadings = np.zeros((len(components), n_features))
    for row, component in zip(loadings, components, strict=True):
        row[component.indices] = component.weights
    return loadings
