"""COSA by compiled loops over all pairs and features, with an exponential for each of them.

The loops are those of a direct implementation in C or Fortran. They are compared with those of
`mrshc.core.cosa`, which need exponentials for each sample and feature only.
"""

import numpy as np
from numba import njit

# The settings of the R package rCOSA, as in mrshc.core.cosa.
_RELAXATION, _MAX_ITER, _WINDOW, _TOLERANCE = 0.1, 100, 11, 1e-5


@njit
def _distances(x, weights, eta):
    n, p = x.shape
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            total = weighted = 0.0
            for k in range(p):
                weight = max(weights[i, k], weights[j, k])
                total += weight
                weighted += weight * np.exp(-abs(x[i, k] - x[j, k]) / eta)
            result[i, j] = result[j, i] = -eta * total * np.log(weighted / total)
    return result


@njit
def _weights(x, neighbors, scale):
    n, p = x.shape
    n_neighbors = neighbors.shape[1]
    result = np.empty((n, p))
    order = n_neighbors // 2
    differences = np.empty(n_neighbors)
    for i in range(n):
        for k in range(p):
            # Sorting by insertion, which is fastest for so few values.
            for position in range(n_neighbors):
                value = abs(x[i, k] - x[neighbors[i, position], k])
                place = position
                while place > 0 and differences[place - 1] > value:
                    differences[place] = differences[place - 1]
                    place -= 1
                differences[place] = value
            result[i, k] = np.exp(-differences[order] / scale)
        result[i] /= result[i].sum()
    return result


def plain_cosa(X, *, scale=0.2):
    """Return the distances of COSA for data without missing values."""
    n, p = X.shape
    ordered = np.sort(X, axis=0)
    x = X / ((ordered[3 * n // 4 - 1] - ordered[n // 4 - 1]) / 1.35)
    n_neighbors = int(np.sqrt(n))
    weights = np.full((n, p), 1.0 / p)
    changes = []
    while len(changes) < _MAX_ITER:
        eta = scale * (1.0 + _RELAXATION * len(changes))
        distances = _distances(x, weights, eta)
        others = distances + np.diag(np.full(n, np.inf))
        neighbors = np.argsort(others, axis=1)[:, :n_neighbors]
        old, weights = weights, _weights(x, neighbors, scale)
        changes.append(np.abs(weights - old).sum() / (2 * n * (1 - 1 / p)))
        if len(changes) % _WINDOW == 0 and np.mean(changes[-_WINDOW:]) <= _TOLERANCE:
            break
    return distances
