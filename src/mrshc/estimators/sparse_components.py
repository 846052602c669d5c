"""Computation of sparse principal components by the penalized matrix decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Mask
from mrshc.core.data.centred_array import CentredArray, centre_array
from mrshc.core.data.centring import Center
from mrshc.core.sparse_pca.next_component import (
    AlternationStarts,
    Component,
    leading_starts,
    next_component,
    starts_from_vectors,
)
from mrshc.errors import Parameter, ParameterError
from mrshc.validation.estimator_data import check_matrix_with_missing
from mrshc.validation.parameters import check_integer, check_number, check_option

# Maps each value of the parameter `center` to the name that `mrshc.core` uses for this value.
_CENTERS: dict[Any, Center] = {True: "columns", "grand": "grand", False: "none"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseComponents:
    """Sparse principal components of a matrix.

    The centred matrix is approximated by ``(scores * scale) @ loadings``.

    Attributes
    ----------
    scores : ndarray of shape (n_samples, n_components)
        Vectors u of the components, in columns. A column has Euclidean norm 1, or 0 if the earlier
        components already explain the matrix completely.
    scale : ndarray of shape (n_components,)
        Value of the objective u'Xv for each component, where X is the centred matrix minus the
        earlier components. With `orthogonal=True`, X is the centred matrix.
    loadings : ndarray of shape (n_components, n_features)
        Vectors v of the components, in rows. The Euclidean norm of a row is at most 1.
    n_iter : ndarray of shape (n_components,)
        Number of iterations for each component.
    converged : ndarray of shape (n_components,)
        Whether each component converged within `max_iter` iterations.

    See Also
    --------
    sparse_components : Computes the components.
    """

    scores: Float  # (n_samples, n_components)
    scale: Float  # (n_components,)
    loadings: Float  # (n_components, n_features)
    n_iter: NDArray[np.intp]  # (n_components,)
    converged: Mask  # (n_components,)


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
    r"""Return sparse principal components of a matrix.

    The components are computed by the penalized matrix decomposition of Witten, Tibshirani and
    Hastie [1]_. The defaults are those of the function `SPC` in the R package PMA.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data with at least 2 samples and 2 features. NaN marks a missing value. For component k, a
        missing value is replaced by the mean of all observed values of the matrix :math:`X_k` that
        is defined in the Notes.
    l1_bound : float
        Upper bound on the L1 norm of the loadings of a component, between 1 (one nonzero loading)
        and the square root of the number of features (no sparsity).
    n_components : int, default=1
        Number of components, at most the smaller dimension of X.
    center : {"grand", True, False}, default="grand"
        Offset subtracted from X: the mean of all values ("grand"), the mean of each column (True),
        or no offset (False).
    orthogonal : bool, default=False
        Whether each vector u is constrained to be orthogonal to the vectors u of the earlier
        components. If False, the earlier components are subtracted from X instead.
    max_iter : int, default=20
        Maximum number of iterations for each component.
    tol : float, default=1e-7
        The iteration stops when the L1 norm of the change in v is at most `tol`.
    init : array-like of shape (n_components, n_features) or None, default=None
        Initial vector v of each component, in rows. If None, the iterations start from the leading
        right singular vectors of the centred matrix X.

    Returns
    -------
    SparseComponents
        Object with the attributes `scores`, `scale`, `loadings`, `n_iter` and `converged`.

    Raises
    ------
    ValueError
        If X is invalid.
    ParameterError
        If a parameter is invalid.

    See Also
    --------
    MrSHC : Clusters samples on the features with nonzero loadings.
    sklearn.decomposition.SparsePCA : Computes sparse components by dictionary learning.

    Notes
    -----
    Component k maximises

    .. math::

        u^\top X_k v \quad \text{subject to} \quad
        \|u\|_2 \le 1, \; \|v\|_2 \le 1, \; \|v\|_1 \le c,

    where c is `l1_bound` and :math:`X_k` is the centred matrix X minus the first k - 1 components.
    If `orthogonal=True`, :math:`X_k` is the centred matrix X itself, and u is also constrained to
    be orthogonal to the vectors u of the first k - 1 components. The algorithm alternates between
    :math:`u \propto X_k v` and :math:`v \propto \mathrm{soft}(X_k^\top u, \delta)`. Here
    :math:`\mathrm{soft}(a, \delta) = \mathrm{sign}(a) \max(|a| - \delta, 0)` is applied to each
    entry a, so small loadings become exactly zero. The soft threshold :math:`\delta` is the
    smallest nonnegative value for which :math:`\|v\|_1 \le c`. The threshold is computed exactly,
    so the result does not depend on the unit of X. The objective is not concave in u and v jointly,
    so the alternation may converge to a local maximum. The sign of each component is chosen such
    that the loading with the largest absolute value is positive.

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
    >>> sparse_components(X, l1_bound=1.0).loadings
    array([[1., 0., 0., 0., 0.]])
    >>> sparse_components(X, l1_bound=1.3).loadings.round(2)
    array([[0.93, 0.37, 0.  , 0.  , 0.  ]])
    """
    X = check_matrix_with_missing(X)
    n, p = X.shape
    l1_bound = check_number(
        "l1_bound",
        l1_bound,
        low=1.0,
        high=float(np.sqrt(p)),
        advice="Larger bounds have no effect.",
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
    # Constant features are not excluded, since they can have nonzero loadings unless `center` is
    # True.
    matrix = centre_array(X, center=check_center(center), drop_constant=False)
    starts = _starting_vectors(matrix, init, n_components)
    # Each component depends on the earlier components, so they are computed one after the other.
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
    """Return the name that `mrshc.core` uses for a value of the parameter `center`.

    Raise ParameterError if the value is invalid.
    """
    return _CENTERS[check_option("center", center, list(_CENTERS))]


def _starting_vectors(matrix: CentredArray, init: Any, n_components: int) -> AlternationStarts:
    """Return the initial vectors v of the components, which are the rows of `init`.

    If `init` is None, the leading right singular vectors of the matrix are used. Raise
    ParameterError if the shape of `init` is not (n_components, n_features), or if a value is not
    finite.
    """
    if init is None:
        return leading_starts(matrix, n_components)
    vectors = np.asarray(init, dtype=np.float64)
    wanted = (n_components, matrix.shape[1])
    if vectors.shape != wanted or not np.isfinite(vectors).all():
        raise ParameterError(
            "{init} must {allowed}, got the shape {shape}. Give None to start from singular "
            "vectors.",
            init=Parameter("init"),
            value=init,
            allowed=f"hold finite numbers in the shape {wanted}, one starting vector in each row",
            shape=vectors.shape,
        )
    return starts_from_vectors(matrix, vectors)


def dense_loadings(components: Sequence[Component], n_features: int) -> Float:
    """Return the loadings of the components as an array of shape (n_components, n_features).

    The array includes zero loadings, which a `Component` does not store.
    """
    loadings = np.zeros((len(components), n_features))
    for row, component in zip(loadings, components, strict=True):
        row[component.indices] = component.weights
    return loadings
