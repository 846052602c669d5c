"""The simulated designs of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedData:
    """A data set whose clusters and clustering features are known."""

    X: NDArray[np.float64]  # (n, p)
    labels: NDArray[np.intp]  # (n,), true cluster of each sample
    support: NDArray[np.bool_]  # (p,), True: a feature that makes the clusters
    sample_names: tuple[str, ...]  # (n,)
    feature_names: tuple[str, ...]  # (p,), V1, V2, ... as in the paper


def make_section2_example(random_state: Any = None, *, noise_sd: float = 0.1) -> SimulatedData:
    """Simulate the example of section 2: 20 samples in 4 clusters, 15 features, 4 of them useful.

    V1 and V2 tell clusters 1 and 4 from 2 and 3; V3 and V4 tell 1 and 2 from 3 and 4. No single
    component shows all four clusters.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Seed of the noise.
    noise_sd : float
        Standard deviation of the useful features around their means; the others have 1. The
        paper's "N(mu, 0.1)" may mean 0.1 or, read as a variance, 0.316.

    Examples
    --------
    >>> from mrshc.datasets import make_section2_example
    >>> data = make_section2_example(0)
    >>> data.X.shape, int(data.support.sum())
    ((20, 15), 4)
    """
    pair_a = np.array([1.0, -1.0, -1.0, 1.0])
    pair_b = np.array([1.0, 1.0, -1.0, -1.0])
    means = np.column_stack([pair_a, pair_a, pair_b, pair_b])
    return _simulate(means, [5] * 4, n_features=15, sd=noise_sd, random_state=random_state)


def make_simulation_1(random_state: Any = None, *, mu: float = 1.0) -> SimulatedData:
    """Simulate Simulation I: 60 samples in 3 clusters, 500 features, 50 of them useful.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Seed of the noise.
    mu : float
        Distance between neighbouring cluster means in each useful feature, in units of the noise.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(0)
    >>> data.X.shape, int(data.support.sum())
    ((60, 500), 50)
    """
    means = np.repeat([[0.0], [mu], [-mu]], 50, axis=1)
    return _simulate(means, [20] * 3, n_features=500, sd=1.0, random_state=random_state)


def make_simulation_2(
    random_state: Any = None, *, mu: float = 1.0, informative_sd: float = 1.0
) -> SimulatedData:
    """Simulate Simulation II: 80 samples in 4 clusters, 500 features, two sets of 25 useful.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Seed of the noise.
    mu : float
        Scale of the cluster means.
    informative_sd : float
        Standard deviation of the useful features around their means. The paper prints
        "N(mu, 0.1)", but only 1 agrees with its tables; 0.1 and 0.316 (variance 0.1) are the
        printed readings.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_2
    >>> data = make_simulation_2(0)
    >>> data.X.shape, int(data.support.sum())
    ((80, 500), 50)
    """
    first = np.repeat([[mu], [-1.5 * mu], [0.0], [0.0]], 25, axis=1)
    second = np.repeat([[mu], [0.0], [-mu], [0.0]], 25, axis=1)
    means = np.hstack([first, second])
    return _simulate(means, [20] * 4, n_features=500, sd=informative_sd, random_state=random_state)


def _simulate(
    means: NDArray[np.float64], sizes: list[int], *, n_features: int, sd: float, random_state: Any
) -> SimulatedData:
    """Draw samples around (cluster, useful feature) means, then append noise features."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = check_random_state(random_state).normal(size=(labels.size, n_features))
    support = np.arange(n_features) < means.shape[1]
    X[:, support] = means[labels] + sd * X[:, support]
    return SimulatedData(
        X=X,
        labels=labels,
        support=support,
        sample_names=tuple(f"C{label + 1}.{i + 1}" for i, label in enumerate(labels)),
        feature_names=tuple(f"V{j + 1}" for j in range(n_features)),
    )
