"""Reads the stored reference outputs."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd

from mrshc.core.sparse_pca.next_component import Component
from mrshc.core.trees.tree import agglomerate, pairwise_distances

ORACLES = Path(__file__).parent / "oracles"


def matrix(name: str) -> np.ndarray:
    """Return an input or a simulated draw."""
    path = next(ORACLES.glob(f"{name}.csv*"))
    return pd.read_csv(path).to_numpy(dtype=np.float64)


def table(name: str) -> pd.DataFrame:
    return pd.read_csv(ORACLES / f"{name}.csv")


def runs(name: str):
    with gzip.open(ORACLES / f"{name}.json.gz", "rt") as file:
        return json.load(file)


# R's name: ours, and what the two say of the same heights. R was given squared distances for all.
IN_R = {
    "complete": ("complete", lambda h: h),
    "average": ("average", lambda h: h),
    "single": ("single", lambda h: h),
    "mcquitty": ("weighted", lambda h: h),
    "ward.D": ("ward", np.square),
    "centroid": ("centroid", np.square),
    "median": ("median", np.square),
    "ward.D2": ("ward", lambda h: h),
}


def tree_as_in_r(run):
    distances = pairwise_distances(matrix(f"input_{run['input']}"), "sqeuclidean")
    if run["method"] == "ward.D2":  # takes what it is given for plain distances
        distances = distances**2
    linkage, convert = IN_R[run["method"]]
    return agglomerate(distances, linkage), convert


def searched_direction(slopes, l1_bound):
    """Threshold found to an absolute 1e-6 only, as PMA leaves it; for comparison with it."""
    magnitudes = np.abs(slopes)
    if magnitudes.sum() <= l1_bound * np.linalg.norm(slopes):
        return np.flatnonzero(slopes), slopes[slopes != 0] / np.linalg.norm(slopes)
    low, high = 0.0, magnitudes.max() - 1e-5
    while high - low >= 1e-6:
        soft = np.maximum(magnitudes - (low + high) / 2, 0)
        if soft.sum() < l1_bound * np.linalg.norm(soft):
            high = (low + high) / 2
        else:
            low = (low + high) / 2
    v = np.sign(slopes) * np.maximum(magnitudes - (low + high) / 2, 0)
    indices = np.flatnonzero(v)
    return indices, v[indices] / np.linalg.norm(v)


def components_with_searched_direction(matrix, earlier, *, starts, settings, **_):
    """In place of spc.next_components: one component, with PMA's inexact threshold."""
    component = component_with_searched_direction(
        matrix,
        earlier,
        starts=starts,
        l1_bound=settings.l1_bound,
        max_iter=settings.max_iter,
        tol=settings.tol,
    )
    return [component]


def component_with_searched_direction(
    matrix, earlier, *, starts, l1_bound, orthogonal=False, max_iter, tol, **_
):
    """In place of spc.next_component: whole matrices, and PMA's inexact threshold."""
    assert not orthogonal
    left = matrix.values - matrix.offsets
    v = starts.vectors[len(earlier)]
    for c in earlier:
        left[:, c.indices] -= c.scale * np.outer(c.u, c.weights)
    if matrix.missing is not None and earlier:
        observed = np.ones(left.shape, dtype=bool)
        observed[matrix.missing.coords] = False
        left[~observed] = left[observed].mean()
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        n_iter += 1
        u = left @ v
        u /= np.linalg.norm(u)
        indices, weights = searched_direction(left.T @ u, l1_bound)
        old, v = v, np.zeros(v.size)
        v[indices] = weights
        converged = np.abs(v - old).sum() <= tol
    return Component(
        u=u,
        indices=indices,
        weights=weights,
        scale=float(u @ left @ v),
        n_iter=n_iter,
        converged=converged,
    )
