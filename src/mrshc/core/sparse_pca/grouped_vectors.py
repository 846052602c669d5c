"""Bounds of the inner products of columns with groups of similar vectors.

Certificates contain thousands of vectors, many of which are similar. Vectors are grouped, and the
inner products of a column with all vectors of a group are bounded together, in a subspace with few
dimensions and in single precision. Only vectors of groups with a large bound are used one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.leader_groups import (
    CheckedColumns,
    VectorGroups,
    find_large_products,
    leader_clustering,
)
from mrshc.core.kernels.single_bounds import (
    SingleColumns,
    SingleGroups,
    mark_large_products,
    write_centred_columns,
    write_transposed,
)

# Similar vectors are grouped, and a single bound is computed for the inner products of a column
# with all vectors of a group. This constant is the largest distance between a vector and the centre
# of its group, after the vectors have been divided by their thresholds and multiplied by the
# typical norm of a column. A larger radius gives fewer groups but looser bounds. The value was
# chosen on one simulated data set. It affects the computation time, but not the result.
_GROUP_RADIUS = 0.2

# The bounds are computed in a subspace that contains the leading principal axes of the centres of
# the groups. The number of axes is the smallest for which the median distance of the centres from
# the subspace, in the units of the radius, is at most this value. Fewer axes give faster but looser
# bounds. The value was chosen on one simulated data set. It affects the computation time, but not
# the result.
_DISTANCE_FROM_SUBSPACE = 0.15

# Centres of groups that are longer than this multiple of the median length are shortened before the
# subspace is computed. The value has not been tuned; it does not affect the result.
_MAX_RELATIVE_LENGTH = 10.0

_SINGLE_EPS = float(np.finfo(np.float32).eps)

# Number of columns of which bounds are computed together in memory. Their inner products with about
# a thousand groups fit into a processor's cache. The number does not affect the result.
_N_BOUNDED_TOGETHER = 512


class GroupedVectors(NamedTuple):
    """Vectors in groups, and a subspace that nearly contains the centres of the groups."""

    groups: VectorGroups
    basis: NDArray[np.float32]  # (r, n_samples), orthonormal basis of the subspace, in rows
    coordinates: NDArray[np.float32]  # (n_groups, r), the centres in this basis
    single: SingleGroups  # the groups in single precision


def group_vectors(vectors: Float, shifts: Float, owners: Index) -> GroupedVectors:
    """Return vectors in groups of vectors that are close to each other.

    The parameters are the attributes of a
    :class:`~mrshc.core.sparse_pca.certificates.CertificateBatch`.
    """
    leaders, labels = leader_clustering(vectors, _GROUP_RADIUS)
    order, centres = np.argsort(labels, kind="stable"), vectors[leaders]
    distances = np.linalg.norm(vectors - centres[labels], axis=1)
    basis = _leading_subspace(centres)
    coordinates = centres @ basis.T
    # The rounding error of an inner product of n terms is at most about n times eps times the
    # product of the two norms. Each coordinate of a column has such an error. The factor 4
    # covers the conversion to single precision and the rounding of the bound itself.
    rounding = 4.0 * centres.shape[1] * _SINGLE_EPS
    lengths = np.linalg.norm(centres, axis=1) + np.abs(coordinates).sum(axis=1)
    groups = VectorGroups(
        vectors=vectors[order],
        shifts=shifts[order],
        owners=owners[order],
        distances=distances[order],
        ends=np.cumsum(np.bincount(labels)),
        centres=centres,
        radii=_group_maxima(distances, labels),
        largest_shifts=_group_maxima(shifts, labels),
        rests=np.linalg.norm(centres - coordinates @ basis, axis=1),
        errors=rounding * lengths,
    )
    # Numbers that overflow in single precision give bounds that exclude no column.
    with np.errstate(over="ignore"):
        return GroupedVectors(
            groups,
            basis.astype(np.float32),
            coordinates.astype(np.float32),
            _groups_in_single_precision(groups, rounding),
        )


def may_exceed(
    limit: float,
    grouped: GroupedVectors,
    block: NDArray[Any],
    *,
    offsets: Float,
    fill: float,
    unit: float,
) -> Mask:
    """Return which columns of a block may have an inner product above a limit with some vector.

    Parameters
    ----------
    limit : float
        The limit, for columns that are divided by `unit`.
    grouped : GroupedVectors
        The vectors.
    block : ndarray of shape (n_samples, b)
        Columns before centring, with NaN for missing values.
    offsets : ndarray of shape (b,)
        Offsets of the columns.
    fill : float
        Value that replaces missing values after centring.
    unit : float
        Typical Euclidean norm of a column.
    """
    masks = [np.empty(0, np.uint8)]
    for start in range(0, block.shape[1], _N_BOUNDED_TOGETHER):
        part = slice(start, min(start + _N_BOUNDED_TOGETHER, block.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            columns, projected = _single_columns(block, part, offsets, fill, unit, grouped.basis)
            products = grouped.coordinates @ projected
        masks.append(mark_large_products(grouped.single, columns, products, limit))
    return np.concatenate(masks).astype(bool)


def largest_products(
    limit: float, grouped: GroupedVectors, columns: Float, missing_norms: Float
) -> Float:
    """Return the largest inner product of each column with the vectors of each certificate.

    Only products above a limit are computed exactly. The result has the shape (n_certificates, b).

    Parameters
    ----------
    limit : float
        The limit.
    grouped : GroupedVectors
        The vectors.
    columns : ndarray of shape (b, n_samples)
        Centred columns, divided by their typical norm, stored as the rows of this array.
    missing_norms : ndarray of shape (b,)
        Square root of the number of missing values in each column.
    """
    checked, projected = _project_columns(columns, missing_norms, grouped.basis)
    with np.errstate(over="ignore", invalid="ignore"):
        products = grouped.coordinates @ projected
    return find_large_products(grouped.groups, checked, products, limit)


def _leading_subspace(centres: Float) -> Float:
    """Return an orthonormal basis of a subspace that nearly contains all centres.

    The basis, of shape (r, n_samples), consists of leading right singular vectors of `centres`, an
    array of shape (n_groups, n_samples).
    """
    n_groups, n = centres.shape
    # A vector is very long if its threshold is nearly zero. Shorter vectors of the same direction
    # are used instead, since the subspace would otherwise depend on these vectors only.
    lengths = np.linalg.norm(centres, axis=1)
    limit = _MAX_RELATIVE_LENGTH * np.median(lengths)
    centres = centres * np.minimum(limit / np.maximum(lengths, limit), 1.0)[:, None]
    # The eigenvectors of the smaller of the two Gram matrices take less time than singular vectors.
    if n_groups < n:
        _, left = np.linalg.eigh(centres @ centres.T)
        axes = centres.T @ left[:, ::-1]
    else:
        axes = np.linalg.eigh(centres.T @ centres)[1][:, ::-1]
    axes = np.linalg.qr(axes)[0]
    squared_coordinates = (centres @ axes) ** 2
    squared_norms = (centres**2).sum(axis=1, keepdims=True)
    rests = np.sqrt(np.maximum(squared_norms - squared_coordinates.cumsum(axis=1), 0.0))
    is_close = np.median(rests, axis=0) <= _DISTANCE_FROM_SUBSPACE
    # If half of the vectors are very long, rounding errors may keep the distances above the limit.
    n_axes = int(np.argmax(is_close)) + 1 if is_close.any() else axes.shape[1]
    return np.ascontiguousarray(axes[:, :n_axes].T)


def _groups_in_single_precision(groups: VectorGroups, rounding: float) -> SingleGroups:
    """Return groups of vectors in single precision.

    `rounding` is a bound of the rounding error of an inner product, divided by both norms.
    """
    single = np.float32
    return SingleGroups(
        vectors=groups.vectors.astype(single),
        distances=groups.distances.astype(single),
        shifts=groups.shifts.astype(single),
        vector_errors=(rounding * np.linalg.norm(groups.vectors, axis=1)).astype(single),
        ends=groups.ends,
        centres=groups.centres.astype(single),
        radii=groups.radii.astype(single),
        largest_shifts=groups.largest_shifts.astype(single),
        rests=groups.rests.astype(single),
        errors=groups.errors.astype(single),
    )


def _single_columns(
    block: NDArray[Any],
    part: slice,
    offsets: Float,
    fill: float,
    unit: float,
    basis: NDArray[np.float32],
) -> tuple[SingleColumns, NDArray[np.float32]]:
    """Return columns in single precision with their norms, and their coordinates in a subspace.

    `part` gives the positions of the columns in the block. The other parameters are those of
    `write_centred_columns` and of `_project_columns`.
    """
    n, m = block.shape[0], part.stop - part.start
    centred, values = np.empty((n, m), np.float32), np.empty((m, n), np.float32)
    squares, n_missing = np.empty(m), np.empty(m)
    # Other blocks are copied: the compiled function would read them in another order than they are
    # stored, or would have to be compiled once more for read-only arrays.
    is_usable = block.flags.c_contiguous and block.flags.writeable
    source, first = (block, part.start) if is_usable else (np.array(block[:, part], order="C"), 0)
    write_centred_columns(source, first, offsets[part], fill, unit, centred, squares, n_missing)
    write_transposed(centred, values)
    projected = basis @ centred
    columns = SingleColumns(
        values=values,
        norms=np.sqrt(squares).astype(np.float32),
        rests=_norms_outside_subspace(squares, projected, n),
        # The factor ensures that the conversion to single precision does not round down.
        gaps=(np.sqrt(n_missing) * (1.0 + 2.0 * _SINGLE_EPS)).astype(np.float32),
    )
    return columns, projected


def _norms_outside_subspace(
    squares: Float, projected: NDArray[np.float32], n: int
) -> NDArray[np.float32]:
    """Return bounds of the norms of the parts of columns that are orthogonal to a subspace.

    Parameters
    ----------
    squares : ndarray of shape (b,)
        Squared norms of the columns.
    projected : ndarray of shape (r, b)
        Coordinates of the columns in the subspace.
    n : int
        Number of samples.
    """
    within = np.einsum("ij,ij->j", projected, projected).astype(np.float64)
    # The second term is a bound of the rounding error of the squared norm in single precision.
    rests = np.maximum(squares - within, 0.0) + 4.0 * n * _SINGLE_EPS * squares
    norms: NDArray[np.float32] = np.sqrt(rests).astype(np.float32)
    return norms


def _project_columns(
    columns: Float, missing_norms: Float, basis: NDArray[np.float32]
) -> tuple[CheckedColumns, NDArray[np.float32]]:
    """Return columns with their norms, and their coordinates in a subspace.

    Parameters
    ----------
    columns : ndarray of shape (b, n_samples)
        The columns, stored as the rows of this array.
    missing_norms : ndarray of shape (b,)
        Square root of the number of missing values in each column.
    basis : ndarray of shape (r, n_samples)
        Orthonormal basis of the subspace.

    Returns
    -------
    checked : CheckedColumns
        The columns and their norms.
    projected : ndarray of shape (r, b)
        The coordinates. Single precision is accurate enough for bounds and halves the time of the
        matrix products.
    """
    squares = np.einsum("ji,ji->j", columns, columns)
    with np.errstate(over="ignore", invalid="ignore"):
        projected = basis @ columns.astype(np.float32).T
        checked = CheckedColumns(
            values=columns,
            norms=np.sqrt(squares).astype(np.float32),
            rests=_norms_outside_subspace(squares, projected, basis.shape[1]),
            # The factor ensures that the conversion to single precision does not round down.
            gaps=(missing_norms * (1.0 + 2.0 * _SINGLE_EPS)).astype(np.float32),
        )
    return checked, projected


def _group_maxima(values: Float, labels: Index) -> Float:
    """Return, for each label, the largest of the values with this label.

    The values must not be negative.
    """
    largest = np.zeros(labels.max() + 1)
    np.maximum.at(largest, labels, values)
    return largest
