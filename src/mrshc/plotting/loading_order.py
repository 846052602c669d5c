"""The features with the largest loadings of a component. No drawing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mrshc.core.array_types import Index
from mrshc.plotting.arguments import check_numbers, check_top


def largest_loadings(component: ArrayLike, top: int) -> Index:
    """Return the features with the largest absolute loadings, largest first; never zero ones.

    Examples
    --------
    >>> from mrshc.plotting import largest_loadings
    >>> largest_loadings([0.1, 0.0, -0.9], top=5)
    array([2, 0])
    """
    size = np.abs(check_numbers("component", component))
    if size.ndim != 1:
        raise ValueError(
            f"component must hold one loading for each feature, got the shape {size.shape}. Give a "
            "row of components_."
        )
    first: Index = np.argsort(-size, kind="stable")[: check_top(top)]
    return first[size[first] > 0]
