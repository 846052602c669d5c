"""Sparse principal components by the penalized matrix decomposition."""

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

# Values of the parameter `center`, and the names of these values in `mrshc.core`.
_CENTERS: dict[Any, Center] = {True: "columns", "grand": "grand", False: "none"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseComponents:
    """Sparse principal components of a matrix.

    The centred matrix is approximated by ``(scores * scale) @ loadings``.

    Attributes
    ----------
    scores : ndarray of shape (n_samples, n_components)
        Vectors u of the components, in columns. A column has unit length; it is zero if the earlier
        components already explain the matrix completely.
    scale : ndarray of shape (n_components,)
        Value of the objective u'Xv of each component.
    loadings : ndarray of shape (n_components, n_features)
        Vectors v of the components, in rows. A row has at most unit length.
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
    r"""Return sparse principal components.

    The components are those of the penalized matrix decomposition of Witten, Tibshirani and Hastie
    [1]_. The default values of the parameters are those of the function `SPC` of the R package PMA.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data with at least 2 samples and 2 features. NaN marks a missing value. When component k is
        computed, missing values are replaced by the mean of the observed values of :math:`X_k` (see
        Notes).
    l1_bound : float
        Upper bound on the L1 norm of the loadings of a component, between 1 (one nonzero loading)
        and the square root of the number of features (no sparsity).
    n_components : int, default=1
        Number of components, at most the smaller dimension of X.
    center : {"grand", True, False}, default="grand"
        Offset subtracted from X: the mean of all values ("grand"), the mean of each column (True),
        or no offset (False).
    orthogonal : bool, default=False
        Whether the vectors u are constrained to be orthogonal to each other. If False, earlier
        components are subtracted from X instead.
    max_iter : int, default=20
        Maximum number of iterations for each component.
    tol : float, default=1e-7
        The iteration stops when the L1 norm of the change of v is at most `tol`.
    init : array-like of shape (n_components, n_features) or None, default=None
        Initial vector v of each component. None uses the leading right singular vectors of X.

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

    where c is `l1_bound` and :math:`X_k` is the centred matrix X minus the components before k. If
    `orthogonal=True`, :math:`X_k` is X, and u is also constrained to be orthogonal to the vectors u
    of the components before k. The algorithm alternates :math:`u \propto X_k v` and
    :math:`v \propto \mathrm{soft}(X_k^\top u, \delta)`, where
    :math:`\mathrm{soft}(a, \delta) = \mathrm{sign}(a) \max(|a| - \delta, 0)` for each entry a, so
    small loadings are exactly zero. The soft threshold :math:`\delta` is the smallest nonnegative
    value for which :math:`\|v\|_1 \le c`. It is computed exactly, so the result does not
    depend on the unit of X. The problem is biconvex, and the alternation may converge to a local
    maximum. The sign of each component is chosen such that the loading with the largest absolute
    value is positive.

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
    # Constant features are not excluded: unless each column is centred, they can have nonzero
    # loadings.
    matrix = centre_array(X, center=check_center(center), drop_constant=False)
    starts = _starting_vectors(matrix, init, n_components)
    # The components are computed one after the other, since each depends on the earlier ones.
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
    """Return the name in `mrshc.core` for a value of the parameter `center`.

    Raise ParameterError if the value is invalid.
    """
    return _CENTERS[check_option("center", center, list(_CENTERS))]


def _starting_vectors(matrix: CentredArray, init: Any, n_components: int) -> AlternationStarts:
    """Return the initial vector v of each component: a row of `init`, or a singular vector.

    Singular vectors of the matrix are used if `init` is None. Raise ParameterError if `init` has
    another shape than (n_components, n_features) or is not finite.
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
    """Return all loadings of the components, of shape (n_components, n_features).

    A `Component` stores only nonzero loadings.
    """
    loadings = np.zeros((len(components), n_features))
    for row, component in zip(loadings, components, strict=True):
        row[component.indices] = component.weights
    return loadings
