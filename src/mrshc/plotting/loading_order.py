"""Choice of the features with the largest loadings on a component. Nothing is drawn here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrshc.plotting.arguments import check_numbers, check_top


def largest_loadings(component: ArrayLike, top: int) -> NDArray[np.intp]:
    """Return the features with the largest absolute loadings on a component.

    Parameters
    ----------
    component : array-like of shape (n_features,)
        Loadings of one sparse component, such as a row of `components_`.
    top : int
        Largest number of features to return.

    Returns
    -------
    features : ndarray of shape (n_shown,)
        Indices of the features, in decreasing order of the absolute loading. Features with a
        loading of zero are left out.

    Examples
    --------
    >>> from mrshc.plotting import largest_loadings
    >>> largest_loadings([0.1, 0.0, -0.9], top=5)
    array([2, 0])
    """
    sizes = np.abs(check_numbers("component", component))
    if sizes.ndim != 1:
        raise ValueError(
            f"component must hold one loading for each feature, got the shape {sizes.shape}. Pass "
            "one row of components_."
        )
    # A stable sort keeps features with equal absolute loadings in the order of the data.
    largest: NDArray[np.intp] = np.argsort(-sizes, kind="stable")[: check_top(top)]
    return largest[sizes[largest] > 0]
