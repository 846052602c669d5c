"""Simulated data: the designs of the paper, harder variants of them, and contaminations.

Features that distinguish the clusters are called informative; all others are noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

Noise = Literal["normal", "t3", "t5"]
Spread = Literal["one direction", "every feature"]

# Number of features in a correlated block: small enough for many independent blocks among the 450
# noise features of the simulations. Part of the definition of the simulated data.
_BLOCK_SIZE = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedData:
    """A data set with known clusters and known informative features.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, with samples in rows.
    labels : ndarray of int of shape (n_samples,)
        True cluster of each sample, 0, 1, ...
    support : ndarray of bool of shape (n_features,)
        Mask of the informative features.
    sample_names : tuple of str of length n_samples
        C1.1, C1.2, ...: cluster and number of each sample, counted from 1.
    feature_names : tuple of str of length n_features
        V1, V2, ... as in the paper.
    outlying : tuple of int
        Indices of the samples that were made outliers.

    See Also
    --------
    make_section2_example, make_simulation_1, make_simulation_2, make_noise
    """

    X: NDArray[np.float64]
    labels: NDArray[np.intp]
    support: NDArray[np.bool_]
    sample_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    outlying: tuple[int, ...] = ()


def make_section2_example(random_state: Any = None, *, noise_sd: float = 0.1) -> SimulatedData:
    """Simulate the example of section 2 of the paper.

    20 samples in 4 clusters of 5, and 15 features, 4 of which are informative. V1 and V2 separate
    clusters 1 and 4 from 2 and 3; V3 and V4 separate 1 and 2 from 3 and 4. No single component
    separates all four clusters.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the noise.
    noise_sd : float, default=0.1
        Standard deviation of the informative features around their means; that of the others is 1.

    Returns
    -------
    SimulatedData
        The data and the truth.

    See Also
    --------
    make_simulation_1, make_simulation_2 : The simulation study of the paper.

    Notes
    -----
    The paper [1]_ writes N(mu, 0.1) for the informative features. This may mean a standard
    deviation of 0.1, the default here, or a variance of 0.1, that is `noise_sd=0.316`.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745

    Examples
    --------
    >>> from mrshc.datasets import make_section2_example
    >>> data = make_section2_example(0)
    >>> data.X.shape, int(data.support.sum())
    ((20, 15), 4)
    """
    first = np.array([1.0, -1.0, -1.0, 1.0])  # means of V1 and V2 in the four clusters
    second = np.array([1.0, 1.0, -1.0, -1.0])  # means of V3 and V4
    errors = _draw_noise(check_random_state(random_state), (20, 15))
    errors[:, :4] *= noise_sd  # the informative features come first
    means = np.column_stack([first, first, second, second])
    return _add_cluster_means(errors, means, sizes=[5] * 4)


def make_simulation_1(
    random_state: Any = None,
    *,
    mu: float = 1.0,
    sizes: Sequence[int] = (20, 20, 20),
    noise: Noise = "normal",
    noise_correlation: float = 0.0,
) -> SimulatedData:
    """Simulate data of Simulation I of the paper.

    60 samples in 3 clusters, and 500 features, 50 of which are informative. The clusters have the
    means 0, mu and -mu in every informative feature, so that one component separates them.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the noise.
    mu : float, default=1.0
        Distance between neighbouring cluster means in each informative feature, in multiples of
        the standard deviation of the noise.
    sizes : sequence of int, default=(20, 20, 20)
        Number of samples in each of the three clusters.
    noise : {"normal", "t3", "t5"}, default="normal"
        Distribution of the noise: normal, or Student's t with 3 or 5 degrees of freedom, scaled to
        the variance 1 so that only the tails differ.
    noise_correlation : float in [0, 1), default=0.0
        Correlation between the features that are not informative, within blocks of ten features.

    Returns
    -------
    SimulatedData
        The data and the truth.

    See Also
    --------
    make_simulation_2 : A design in which no single component separates all clusters.
    make_noise : Data without clusters.

    Notes
    -----
    The defaults of `sizes`, `noise` and `noise_correlation` are those of the paper [1]_. Other
    values are variants that the paper does not contain.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1
    >>> data = make_simulation_1(0)
    >>> data.X.shape, int(data.support.sum())
    ((60, 500), 50)
    """
    # The same means in all 50 informative features, as in the paper.
    means = np.repeat([[0.0], [mu], [-mu]], 50, axis=1)
    rng = check_random_state(random_state)
    errors = _draw_noise(
        rng, (sum(sizes), 500), noise=noise, correlation=noise_correlation, n_independent=50
    )
    return _add_cluster_means(errors, means, sizes=sizes)


def make_simulation_2(
    random_state: Any = None,
    *,
    mu: float = 1.0,
    informative_sd: float = 1.0,
    sizes: Sequence[int] = (20, 20, 20, 20),
    noise: Noise = "normal",
    noise_correlation: float = 0.0,
) -> SimulatedData:
    """Simulate data of Simulation II of the paper.

    80 samples in 4 clusters, and 500 features, two sets of 25 of which are informative. The sets
    separate different clusters, so that two components are needed to separate all of them.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the noise.
    mu : float, default=1.0
        Scale of the cluster means: mu, -1.5 mu, 0 and 0 in the first set of informative features,
        mu, 0, -mu and 0 in the second.
    informative_sd : float, default=1.0
        Standard deviation of the informative features around their means.
    sizes : sequence of int, default=(20, 20, 20, 20)
        Number of samples in each of the four clusters.
    noise : {"normal", "t3", "t5"}, default="normal"
        Distribution of the noise, as in :func:`make_simulation_1`.
    noise_correlation : float in [0, 1), default=0.0
        Correlation between the features that are not informative, within blocks of ten features.

    Returns
    -------
    SimulatedData
        The data and the truth.

    See Also
    --------
    make_simulation_1 : A design in which one component separates the clusters.

    Notes
    -----
    The paper [1]_ writes N(mu, 0.1) for the informative features, that is a standard deviation of
    0.1, or of 0.316 if 0.1 is a variance. Only a standard deviation of 1 agrees with its tables,
    which is why it is the default.

    References
    ----------
    .. [1] Zhang, H. and Zamar, R. H. (2014). Multi-rank sparse hierarchical clustering.
       https://arxiv.org/abs/1409.0745

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_2
    >>> data = make_simulation_2(0)
    >>> data.X.shape, int(data.support.sum())
    ((80, 500), 50)
    """
    # Each set of 25 features leaves two clusters at the same mean: the second separates others.
    first = np.repeat([[mu], [-1.5 * mu], [0.0], [0.0]], 25, axis=1)
    second = np.repeat([[mu], [0.0], [-mu], [0.0]], 25, axis=1)
    rng = check_random_state(random_state)
    errors = _draw_noise(
        rng, (sum(sizes), 500), noise=noise, correlation=noise_correlation, n_independent=50
    )
    errors[:, :50] *= informative_sd
    return _add_cluster_means(errors, np.hstack([first, second]), sizes=sizes)


def make_noise(
    random_state: Any = None,
    *,
    n_samples: int = 60,
    n_features: int = 500,
    noise: Noise = "normal",
) -> SimulatedData:
    """Simulate data without clusters.

    All samples have the same label, and no feature is informative.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the noise.
    n_samples : int, default=60
        Number of samples.
    n_features : int, default=500
        Number of features.
    noise : {"normal", "t3", "t5"}, default="normal"
        Distribution of the noise, as in :func:`make_simulation_1`.

    Returns
    -------
    SimulatedData
        The data and the truth.

    See Also
    --------
    make_simulation_1, make_simulation_2 : Data with clusters, of the same size by default.

    Examples
    --------
    >>> from mrshc.datasets import make_noise
    >>> make_noise(0, n_samples=10, n_features=4).X.shape
    (10, 4)
    """
    errors = _draw_noise(check_random_state(random_state), (n_samples, n_features), noise=noise)
    return _add_cluster_means(errors, np.empty((1, 0)), sizes=[n_samples])


def with_missing_cells(
    data: SimulatedData, random_state: Any = None, *, share: float
) -> SimulatedData:
    """Return a copy of the data in which random cells are missing (NaN).

    Every cell is missing with the same probability, independently of its value and of other cells.

    Parameters
    ----------
    data : SimulatedData
        The data; not changed.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of cells.
    share : float in [0, 1)
        Probability of a cell to be missing.

    Returns
    -------
    SimulatedData
        The same data with missing cells.

    See Also
    --------
    with_outlying_cells : Replace random cells by outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.datasets import make_simulation_1, with_missing_cells
    >>> incomplete = with_missing_cells(make_simulation_1(0), 0, share=0.05)
    >>> round(float(np.isnan(incomplete.X).mean()), 2)
    0.05
    """
    _check_share(share)
    missing = check_random_state(random_state).uniform(size=data.X.shape) < share
    return replace(data, X=np.where(missing, np.nan, data.X))


def with_outlying_cells(
    data: SimulatedData, random_state: Any = None, *, share: float, sd: float
) -> SimulatedData:
    """Return a copy of the data in which random cells are replaced by outliers.

    Parameters
    ----------
    data : SimulatedData
        The data; not changed.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of cells and of their values.
    share : float in [0, 1)
        Probability of a cell to be replaced.
    sd : float
        Standard deviation of the outliers, which are normal with mean 0.

    Returns
    -------
    SimulatedData
        The same data with outlying cells.

    See Also
    --------
    with_outlying_samples : Shift whole samples.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1, with_outlying_cells
    >>> contaminated = with_outlying_cells(make_simulation_1(0), 0, share=0.02, sd=10.0)
    >>> float(abs(contaminated.X).max()) > 20
    True
    """
    _check_share(share)
    rng = check_random_state(random_state)
    is_outlying = rng.uniform(size=data.X.shape) < share
    # Values are drawn for all cells, so that they do not depend on the number of replaced ones.
    return replace(data, X=np.where(is_outlying, rng.normal(0.0, sd, size=data.X.shape), data.X))


def with_outlying_samples(
    data: SimulatedData,
    random_state: Any = None,
    *,
    share: float,
    shift: float,
    spread: Spread = "one direction",
) -> SimulatedData:
    """Return a copy of the data in which random samples are shifted, each in a random direction.

    Parameters
    ----------
    data : SimulatedData
        The data; not changed.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of samples and of their directions.
    share : float in [0, 1)
        Proportion of samples to shift; their number is rounded.
    shift : float
        Size of the shift, see `spread`.
    spread : {"one direction", "every feature"}, default="one direction"
        "one direction": `shift` is the Euclidean norm of the shift of a sample. "every feature":
        `shift` is added to, or subtracted from, every feature of a sample.

    Returns
    -------
    SimulatedData
        The same data with outlying samples, whose indices are in `outlying`.

    See Also
    --------
    with_outlying_cells : Replace random cells by outliers.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1, with_outlying_samples
    >>> with_outlying_samples(make_simulation_1(0), 0, share=0.05, shift=10.0).outlying
    (26, 35, 59)
    """
    if spread not in get_args(Spread):
        raise ValueError(
            f"spread must be one of {get_args(Spread)}, got {spread!r}. Choose one of them."
        )
    _check_share(share)
    rng = check_random_state(random_state)
    n, p = data.X.shape
    rows = np.sort(rng.choice(n, size=round(share * n), replace=False))
    # Normal vectors have no preferred direction; their signs are random signs.
    directions = rng.normal(size=(rows.size, p))
    if spread == "every feature":
        directions = np.sign(directions)
    else:
        directions /= np.linalg.norm(directions, axis=1)[:, None]
    X = data.X.copy()  # the data of the caller must not change
    X[rows] += shift * directions
    return replace(data, X=X, outlying=tuple(rows.tolist()))


def _check_share(share: float) -> None:
    """Refuse a value that is not a proportion below one."""
    if not 0 <= share < 1:
        raise ValueError(
            f"share must be in [0, 1), got {share!r}. Give a proportion, such as 0.05 for 5 %."
        )


def _draw_noise(
    rng: np.random.RandomState,
    shape: tuple[int, int],
    *,
    noise: Noise = "normal",
    correlation: float = 0.0,
    n_independent: int = 0,
) -> NDArray[np.float64]:
    """Return noise of variance 1, of the given shape.

    Features after the first `n_independent` are correlated within blocks of ten.
    """
    if noise not in get_args(Noise):
        raise ValueError(
            f"noise must be one of {get_args(Noise)}, got {noise!r}. Choose one of them."
        )
    if not 0 <= correlation < 1:
        raise ValueError(
            f"noise_correlation must be in [0, 1), got {correlation!r}. Use 0 for independent "
            "features."
        )
    n, p = shape
    if noise == "normal":
        errors = rng.normal(size=shape)
    else:
        degrees_of_freedom = int(noise[1:])
        # Student's t has the variance d / (d - 2) with d degrees of freedom.
        scale = np.sqrt(degrees_of_freedom / (degrees_of_freedom - 2))
        errors = rng.standard_t(degrees_of_freedom, size=shape) / scale
    if correlation > 0:
        # A factor shared by the features of a block: variances remain 1, correlations are equal.
        # The number of blocks is rounded up; the last one may be incomplete.
        n_blocks = -(-(p - n_independent) // _BLOCK_SIZE)
        factors = rng.normal(size=(n, n_blocks))
        shared = np.repeat(factors, _BLOCK_SIZE, axis=1)[:, : p - n_independent]
        errors[:, n_independent:] *= np.sqrt(1 - correlation)
        errors[:, n_independent:] += np.sqrt(correlation) * shared
    return errors


def _add_cluster_means(
    errors: NDArray[np.float64], means: NDArray[np.float64], *, sizes: Sequence[int]
) -> SimulatedData:
    """Return the data of clusters with given means.

    Parameters
    ----------
    errors : array of shape (n_samples, n_features)
        Noise; not changed.
    means : array of shape (n_clusters, n_informative)
        Means of the first features in each cluster; the others have the mean 0.
    sizes : sequence of int of length n_clusters
        Number of samples in each cluster.
    """
    if len(sizes) != len(means):
        raise ValueError(
            f"sizes must hold {len(means)} numbers, one for each cluster, got {len(sizes)}. This "
            "design has a fixed number of clusters."
        )
    # Samples of a cluster are adjacent: names and tables are easier to read than in random order.
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
