"""Reads the stored reference outputs."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd

from mrshc.core.trees import Tree, linkage_matrix, pairwise_distances

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
    return Tree(linkage_matrix(distances, linkage)), convert


def searched_direction(slopes, l1_bound):
    """Unit vector with a threshold found to an absolute 1e-6 only, as PMA leaves it."""
    magnitudes = np.abs(slopes)
    if magnitudes.sum() <= l1_bound * np.linalg.norm(slopes):
        return slopes / np.linalg.norm(slopes)
    low, high = 0.0, magnitudes.max() - 1e-5
    while high - low >= 1e-6:
        soft = np.maximum(magnitudes - (low + high) / 2, 0)
        if soft.sum() < l1_bound * np.linalg.norm(soft):
            high = (low + high) / 2
        else:
            low = (low + high) / 2
    v = np.sign(slopes) * np.maximum(magnitudes - (low + high) / 2, 0)
    return v / np.linalg.norm(v)


def components_as_in_r(X, bound, starts, *, max_iter, tol=1e-7, direction=searched_direction):
    """Return u, d and v of each component, with whole matrices; X is centred, NaN is missing."""
    missing, left, components = np.isnan(X), X.copy(), []
    for v in starts:
        left[missing] = left[~missing].mean() if missing.any() else 0.0
        for _ in range(max_iter):
            u = left @ v
            u = u / np.linalg.norm(u)
            old, v = v, direction(left.T @ u, bound)
            if np.abs(v - old).sum() <= tol:
                break
        components.append((u, u @ left @ v, v))
        left = left - components[-1][1] * np.outer(u, v)
    return [np.array(part) for part in zip(*components, strict=True)]
