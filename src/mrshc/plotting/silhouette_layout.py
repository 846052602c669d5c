"""Where the silhouette widths of samples lie in a plot. No drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mrshc.core.array_types import Float, Index
from mrshc.plotting.arguments import check_numbers
from mrshc.plotting.colours import natural_sort_key


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SilhouetteRows:
    """Samples by cluster and from the widest to the narrowest, from top to bottom."""

    order: Index  # (n,), samples
    places: Float  # (n,), their height in the picture; clusters are set apart
    clusters: Index  # (n,), position of their cluster
    names: tuple[str, ...]  # (K,)
    averages: Float  # (K,)
    centres: Float  # (K,), middle of each cluster in the picture


def silhouette_rows(widths: ArrayLike, labels: ArrayLike) -> SilhouetteRows:
    """Arrange silhouette widths for a picture.

    Examples
    --------
    >>> from mrshc.plotting import silhouette_rows
    >>> silhouette_rows([0.1, 0.5, 0.3], [0, 1, 0]).order
    array([2, 0, 1])
    """
    values, known = check_numbers("widths", widths), np.asarray(labels)
    if values.ndim != 1 or known.shape != values.shape or not values.size:
        raise ValueError(
            "widths and labels must hold one entry for each sample, got the shapes "
            f"{values.shape} and {known.shape}. Give the silhouette widths of the same samples."
        )
    levels = sorted(set(known.tolist()), key=natural_sort_key)
    position = {level: k for k, level in enumerate(levels)}
    clusters = np.array([position[level] for level in known.tolist()], dtype=np.intp)
    order = np.lexsort((-values, clusters))
    gap = max(1.0, 0.02 * values.size)
    places = np.arange(values.size) + gap * clusters[order]
    members = [clusters[order] == k for k in range(len(levels))]
    counted = np.issubdtype(known.dtype, np.integer)
    return SilhouetteRows(
        order=order,
        places=places,
        clusters=clusters[order],
        names=tuple(f"cluster {level + 1}" if counted else str(level) for level in levels),
        averages=np.array([values[order][m].mean() for m in members]),
        centres=np.array([places[m].mean() for m in members]),
    )
