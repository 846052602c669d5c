"""Several sparse components under one L1 bound, computed one after the other in one compiled call.

A call from Python takes tens of microseconds, about as long as a few iterations of the alternating
algorithm on small data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.kernels.alternation import (
    AlternationSettings,
    AlternationStart,
    IterateRecord,
    alternate,
)
from mrshc.core.kernels.column_copies import ColumnCopies
from mrshc.core.kernels.jit import jit
from mrshc.core.kernels.residual import Residual
from mrshc.core.kernels.screening import SlopeHistory
from mrshc.core.kernels.slope_basis import SlopeBasis
from mrshc.core.kernels.slope_bounds import SlopeBounds
from mrshc.core.kernels.vectors import copy_into


class SequenceStarts(NamedTuple):
    """The vectors v from which the alternating algorithm starts, one row for each component."""

    vectors: Float  # (r, p)
    images: Float  # (r, n), the centred data times each vector


class SequenceHistories(NamedTuple):
    """A :class:`~mrshc.core.kernels.screening.SlopeHistory` for r components."""

    bounds: SlopeBounds  # the first axis of its arrays is that of the r components
    basis: SlopeBasis | None  # likewise
    copies: ColumnCopies | None  # copies of columns, which all components use


class SequenceEnd(NamedTuple):
    """The conditions under which a sequence of components ends."""

    rank: int  # number of components, including the earlier ones
    n_features: float  # number of features with a non-zero loading on at least one component


class ComponentSequence(NamedTuple):
    """The components that were computed, one in each row."""

    scores: Float  # (m, n)
    loadings: Float  # (m, p)
    scales: Float  # (m,)
    n_iter: Index  # (m,)
    converged: Mask  # (m,)


@jit()
def compute_components(
    residual: Residual,
    column_norms: Float,
    starts: SequenceStarts,
    settings: AlternationSettings,
    histories: SequenceHistories,
    end: SequenceEnd,
) -> tuple[Float, Float, Float, Index, Mask]:
    """Return the sparse components that follow the earlier components under an L1 bound.

    Each component is computed from the residual of all components before it. At least one component
    is computed.

    Parameters
    ----------
    residual : Residual
        The centred data minus the k earlier components. There must be no missing values, and no
        scores to which u is kept orthogonal.
    column_norms : array of shape (p,)
        Euclidean norms of the columns of the centred data.
    starts : SequenceStarts
        Start vectors of all components, including the earlier ones, which are not used.
    settings : AlternationSettings
        L1 bound and stopping criteria of each component.
    histories : SequenceHistories
        What earlier runs found out about slopes, to which this run adds.
    end : SequenceEnd
        Number of components, including the earlier ones, and number of features at which no further
        component is computed.

    Returns
    -------
    tuple
        The fields of a `ComponentSequence`.
    """
    k, n, p = residual.scores.shape[0], starts.images.shape[1], starts.vectors.shape[1]
    scores, scaled = np.empty((end.rank, n)), np.zeros((end.rank, p))
    is_loaded = np.zeros(p, np.bool_)
    for row in range(k):
        copy_into(scores[row], residual.scores[row])
        copy_into(scaled[row], residual.loadings[row])
        _mark_non_zero(scaled[row], is_loaded)
    loadings, scales = np.zeros((end.rank - k, p)), np.empty(end.rank - k)
    n_iter, converged = np.empty(end.rank - k, np.intp), np.empty(end.rank - k, np.bool_)
    record = IterateRecord(np.empty((0, n)), np.empty(0))  # the iterations are not recorded
    n_found = 0
    for row in range(k, end.rank):
        u, indices, weights, scale, last_iteration, is_converged = alternate(
            Residual(
                residual.X,
                residual.by_columns,
                residual.offsets,
                scores[:row],
                scaled[:row],
                residual.orthogonal_to,
                residual.corrections,
            ),
            column_norms,
            AlternationStart(starts.vectors[row], starts.images[row]),
            settings,
            _history_of(histories, row),
            record,
        )
        copy_into(scores[row], u)
        for i in range(indices.size):
            loadings[n_found, indices[i]] = weights[i]
            scaled[row, indices[i]] = scale * weights[i]
        scales[n_found], n_iter[n_found], converged[n_found] = scale, last_iteration, is_converged
        n_found += 1
        if _mark_non_zero(loadings[n_found - 1], is_loaded) >= end.n_features:
            break
    return (
        scores[k : k + n_found],
        loadings[:n_found],
        scales[:n_found],
        n_iter[:n_found],
        converged[:n_found],
    )


@jit()
def _history_of(histories: SequenceHistories, k: int) -> SlopeHistory:
    """Return the history of component k, counted from zero."""
    bounds = histories.bounds
    return SlopeHistory(
        SlopeBounds(bounds.scores[k], bounds.quantised[k], bounds.units[k], bounds.thresholds[k]),
        _basis_of(histories.basis, k),
        histories.copies,
    )


@jit()
def _basis_of(bases: SlopeBasis | None, k: int) -> SlopeBasis | None:
    if bases is None:
        return None
    return SlopeBasis(
        bases.vectors[k],
        bases.slopes[k],
        bases.orthonormal[k],
        bases.coefficients[k],
        bases.n_used[k],
    )


@jit()
def _mark_non_zero(values: Float, is_marked: Mask) -> int:
    """Mark the positions at which values are not zero, and return how many positions are marked."""
    count = 0
    for j in range(values.size):
        is_marked[j] |= values[j] != 0.0
        count += is_marked[j]
    return count
