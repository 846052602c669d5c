"""The simulated designs of the paper, harder variants of them, and ways to spoil them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

Noise = Literal["normal", "t3", "t5"]
Spread = Literal["one direction", "every feature"]

_BLOCK = 10  # features of a correlated block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedData:
    """A data set whose clusters and clustering features are known."""

    X: NDArray[np.float64]  # (n, p)
    labels: NDArray[np.intp]  # (n,), true cluster of each sample
    support: NDArray[np.bool_]  # (p,), True: a feature that makes the clusters
    sample_names: tuple[str, ...]  # (n,)
    feature_names: tuple[str, ...]  # (p,), V1, V2, ... as in the paper
    outlying: tuple[int, ...] = ()  # samples that were made outlying


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
    errors = _errors(check_random_state(random_state), (20, 15), "normal")
    errors[:, :4] *= noise_sd
    return _clustered(np.column_stack([pair_a, pair_a, pair_b, pair_b]), [5] * 4, errors)


def make_simulation_1(
    random_state: Any = None,
    *,
    mu: float = 1.0,
    sizes: Sequence[int] = (20, 20, 20),
    noise: Noise = "normal",
    noise_correlation: float = 0.0,
) -> SimulatedData:
    """Simulate Simulation I: 60 samples in 3 clusters, 500 features, 50 of them useful.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Seed of the noise.
    mu : float
        Distance between neighbouring cluster means in each useful feature, in units of the noise.
    sizes : sequence of int
        Samples in each of the three clusters.
    noise : {"normal", "t3", "t5"}
        Distribution around the means: normal, or Student's t with 3 or 5 degrees of freedom,
        scaled to the same variance so that only the tails differ.
    noise_correlation : float
        Correlation of the other features within blocks of ten.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(0)
    >>> data.X.shape, int(data.support.sum())
    ((60, 500), 50)
    """
    means = np.repeat([[0.0], [mu], [-mu]], 50, axis=1)
    rng = check_random_state(random_state)
    errors = _errors(rng, (sum(sizes), 500), noise, correlation=noise_correlation, n_free=50)
    return _clustered(means, sizes, errors)


def make_simulation_2(
    random_state: Any = None,
    *,
    mu: float = 1.0,
    informative_sd: float = 1.0,
    sizes: Sequence[int] = (20, 20, 20, 20),
    noise: Noise = "normal",
    noise_correlation: float = 0.0,
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
    sizes : sequence of int
        Samples in each of the four clusters.
    noise, noise_correlation
        As in :func:`make_simulation_1`.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_2
    >>> data = make_simulation_2(0)
    >>> data.X.shape, int(data.support.sum())
    ((80, 500), 50)
    """
    first = np.repeat([[mu], [-1.5 * mu], [0.0], [0.0]], 25, axis=1)
    second = np.repeat([[mu], [0.0], [-mu], [0.0]], 25, axis=1)
    rng = check_random_state(random_state)
    errors = _errors(rng, (sum(sizes), 500), noise, correlation=noise_correlation, n_free=50)
    errors[:, :50] *= informative_sd
    return _clustered(np.hstack([first, second]), sizes, errors)


def make_noise(
    random_state: Any = None,
    *,
    n_samples: int = 60,
    n_features: int = 500,
    noise: Noise = "normal",
) -> SimulatedData:
    """Simulate data without any clusters: all samples have the same label, no feature is useful.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        Seed of the noise.
    n_samples, n_features : int
        Size of the data.
    noise : {"normal", "t3", "t5"}
        As in :func:`make_simulation_1`.

    Examples
    --------
    >>> from mrshc.datasets import make_noise
    >>> make_noise(0, n_samples=10, n_features=4).X.shape
    (10, 4)
    """
    errors = _errors(check_random_state(random_state), (n_samples, n_features), noise)
    return _clustered(np.empty((1, 0)), [n_samples], errors)


def with_missing_cells(
    data: SimulatedData, random_state: Any = None, *, share: float
) -> SimulatedData:
    """Return data of which a share of the cells, taken at random, is missing (NaN).

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.datasets import make_simulation_1, with_missing_cells
    >>> spoilt = with_missing_cells(make_simulation_1(0), 0, share=0.05)
    >>> round(float(np.isnan(spoilt.X).mean()), 2)
    0.05
    """
    missing = check_random_state(random_state).uniform(size=data.X.shape) < _checked_share(share)
    return replace(data, X=np.where(missing, np.nan, data.X))


def with_outlying_cells(
    data: SimulatedData, random_state: Any = None, *, share: float, sd: float
) -> SimulatedData:
    """Return data of which a share of the cells, taken at random, is replaced by N(0, sd^2).

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1, with_outlying_cells
    >>> spoilt = with_outlying_cells(make_simulation_1(0), 0, share=0.02, sd=10.0)
    >>> float(abs(spoilt.X).max()) > 20
    True
    """
    rng = check_random_state(random_state)
    spoilt = rng.uniform(size=data.X.shape) < _checked_share(share)
    return replace(data, X=np.where(spoilt, rng.normal(0.0, sd, size=data.X.shape), data.X))


def with_outlying_samples(
    data: SimulatedData,
    random_state: Any = None,
    *,
    share: float,
    shift: float,
    spread: Spread = "one direction",
) -> SimulatedData:
    """Return data of which a share of the samples is shifted, each in a direction of its own.

    Parameters
    ----------
    data : SimulatedData
        What to spoil.
    random_state : int, RandomState instance or None
        Seed of the samples taken and of their directions.
    share : float
        Share of the samples.
    shift : float
        Length of the shift along a random direction; with `spread="every feature"` the shift in
        each single feature, up or down at random.
    spread : {"one direction", "every feature"}
        What `shift` measures.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1, with_outlying_samples
    >>> with_outlying_samples(make_simulation_1(0), 0, share=0.05, shift=10.0).outlying
    (26, 35, 59)
    """
    if spread not in get_args(Spread):
        raise ValueError(f"spread must be one of {get_args(Spread)}, got {spread!r}.")
    rng = check_random_state(random_state)
    n, p = data.X.shape
    rows = np.sort(rng.choice(n, size=round(_checked_share(share) * n), replace=False))
    directions = rng.normal(size=(rows.size, p))
    if spread == "every feature":
        directions = np.sign(directions)
    else:
        directions /= np.linalg.norm(directions, axis=1)[:, None]
    X = data.X.copy()
    X[rows] += shift * directions
    return replace(data, X=X, outlying=tuple(rows.tolist()))


def _checked_share(share: float) -> float:
    if not 0 <= share < 1:
        raise ValueError(f"share must lie in [0, 1), got {share!r}.")
    return share


def _errors(
    rng: np.random.RandomState,
    shape: tuple[int, int],
    noise: Noise,
    *,
    correlation: float = 0.0,
    n_free: int = 0,
) -> NDArray[np.float64]:
    """Draw noise; features after the first `n_free` are correlated within blocks of ten."""
    if noise not in get_args(Noise):
        raise ValueError(f"noise must be one of {get_args(Noise)}, got {noise!r}.")
    if not 0 <= correlation < 1:
        raise ValueError(f"noise_correlation must lie in [0, 1), got {correlation!r}.")
    n, p = shape
    if noise == "normal":
        errors = rng.normal(size=shape)
    else:
        freedom = int(noise[1:])
        errors = rng.standard_t(freedom, size=shape) / np.sqrt(freedom / (freedom - 2))
    if correlation > 0:
        common = rng.normal(size=(n, -(-(p - n_free) // _BLOCK)))
        shared = np.repeat(common, _BLOCK, axis=1)[:, : p - n_free]
        errors[:, n_free:] *= np.sqrt(1 - correlation)
        errors[:, n_free:] += np.sqrt(correlation) * shared
    return errors


def _clustered(
    means: NDArray[np.float64], sizes: Sequence[int], errors: NDArray[np.float64]
) -> SimulatedData:
    """Add (cluster, useful feature) means to noise."""
    if len(sizes) != len(means):
        raise ValueError(f"sizes must hold {len(means)} numbers, got {len(sizes)}.")
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n_features = errors.shape[1]
    support = np.arange(n_features) < means.shape[1]
    X = errors.copy()
    X[:, support] += means[labels]
    return SimulatedData(
        X=X,
        labels=labels,
        support=support,
        sample_names=tuple(f"C{label + 1}.{i + 1}" for i, label in enumerate(labels)),
        feature_names=tuple(f"V{j + 1}" for j in range(n_features)),
    )
