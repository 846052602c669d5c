"""Simulated data: the designs of the paper, and variants with outliers or missing values.

The paper is Zhang and Zamar (2014). Features that distinguish the clusters are called informative;
all other features are noise features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Noise = Literal["normal", "t3", "t5"]
Factor = Literal["normal", "uniform", "exponential"]
Spread = Literal["one direction", "every feature"]

# Number of features in a block of correlated features. The number is small enough that the 450
# noise features of the simulations contain many independent blocks. Changing the number would
# change the simulated data.
_BLOCK_SIZE = 10
# Number of features that depend on the factor of `make_noise`: as many as are informative in the
# simulations of the paper.
_N_FACTOR_FEATURES = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedData:
    """A data set with known clusters and known informative features.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, with samples in rows.
    labels : ndarray of int of shape (n_samples,)
        True cluster of each sample, numbered 0, 1, ...
    support : ndarray of bool of shape (n_features,)
        Mask of the informative features, which distinguish the clusters.
    sample_names : tuple of str of length n_samples
        Names such as "C2.7" for sample 7, which belongs to cluster 2. Clusters and samples are
        numbered from 1. The numbering of the samples does not restart in each cluster.
    feature_names : tuple of str of length n_features
        The names V1, V2, ..., as in the paper.
    outlying : tuple of int
        Indices of the samples that :func:`with_outlying_samples` has shifted; empty if no sample
        has been shifted.
    """

    X: NDArray[np.float64]
    labels: NDArray[np.intp]
    support: NDArray[np.bool_]
    sample_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    outlying: tuple[int, ...] = ()


def make_section2_example(random_state: Any = None, *, noise_sd: float = 0.1) -> SimulatedData:
    """Return data simulated as in the example in section 2 of the paper.

    The data have 20 samples, in 4 clusters of 5 samples, and 15 features, V1 to V15. The features
    V1 to V4 distinguish the clusters: V1 and V2 separate clusters 1 and 4 from clusters 2 and 3,
    and V3 and V4 separate clusters 1 and 2 from clusters 3 and 4. No single component separates all
    four clusters.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.
    noise_sd : float, default=0.1
        Standard deviation of V1 to V4 within each cluster. The other features have a standard
        deviation of 1.

    Returns
    -------
    SimulatedData
        The data, the true clusters and the informative features.

    Notes
    -----
    In the paper [1]_, the distribution of the informative features is N(mu, 0.1). It is not clear
    whether the number 0.1 is the standard deviation, which is the default here, or the variance,
    which corresponds to `noise_sd=0.316`.

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
    errors = _draw_noise(_as_random_state(random_state), (20, 15))
    errors[:, :4] *= noise_sd  # the first four features are informative
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
    """Return data simulated as in Simulation I of the paper.

    By default, the data have 60 samples in 3 clusters. They have 500 features, and the first 50
    features distinguish the clusters (informative features). In each informative feature, the
    cluster means are 0, mu and -mu, so one component separates all clusters.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.
    mu : float, default=1.0
        Distance between neighbouring cluster means in each informative feature. The standard
        deviation of all features within clusters is 1.
    sizes : sequence of int, default=(20, 20, 20)
        Number of samples in each of the three clusters.
    noise : {"normal", "t3", "t5"}, default="normal"
        Distribution of all features around the cluster means: normal, or Student's t with 3 or 5
        degrees of freedom. The t distributions are scaled to variance 1.
    noise_correlation : float in [0, 1), default=0.0
        Correlation between noise features (features that are not informative) in the same block of
        ten features. Features in different blocks are independent.

    Returns
    -------
    SimulatedData
        The data, the true clusters and the informative features.

    Notes
    -----
    The default values of `sizes`, `noise` and `noise_correlation` are those of the paper [1]_. The
    paper does not consider other values.

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
    # As in the paper, the cluster means are the same in all 50 informative features.
    means = np.repeat([[0.0], [mu], [-mu]], 50, axis=1)
    rng = _as_random_state(random_state)
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
    """Return data simulated as in Simulation II of the paper.

    By default, the data have 80 samples in 4 clusters. They have 500 features, and the first 50
    features distinguish the clusters (informative features). Features 1 to 25 and features 26 to 50
    separate different clusters, so two components are needed to separate all clusters.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.
    mu : float, default=1.0
        Scale of the cluster means. The means of the four clusters are mu, -1.5 mu, 0 and 0 in
        features 1 to 25, and mu, 0, -mu and 0 in features 26 to 50.
    informative_sd : float, default=1.0
        Standard deviation of the informative features within clusters. The noise features have a
        standard deviation of 1.
    sizes : sequence of int, default=(20, 20, 20, 20)
        Number of samples in each of the four clusters.
    noise : {"normal", "t3", "t5"}, default="normal"
        Distribution of all features around the cluster means, as in :func:`make_simulation_1`.
    noise_correlation : float in [0, 1), default=0.0
        Correlation between noise features (features that are not informative) in the same block of
        ten features. Features in different blocks are independent.

    Returns
    -------
    SimulatedData
        The data, the true clusters and the informative features.

    Notes
    -----
    In the paper [1]_, the distribution of the informative features is N(mu, 0.1). If 0.1 is the
    standard deviation, this corresponds to `informative_sd=0.1`; if 0.1 is the variance, it
    corresponds to `informative_sd=0.316`. However, only a standard deviation of 1 reproduces the
    tables of the paper, so the default is 1.

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
    # Each set of 25 features has the same mean in two of the clusters. The two clusters with equal
    # means in one set differ in the other set.
    first = np.repeat([[mu], [-1.5 * mu], [0.0], [0.0]], 25, axis=1)
    second = np.repeat([[mu], [0.0], [-mu], [0.0]], 25, axis=1)
    rng = _as_random_state(random_state)
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
    noise_correlation: float = 0.0,
    factor_loading: float = 0.0,
    factor: Factor = "normal",
) -> SimulatedData:
    """Return simulated data without clusters.

    All samples have the label 0, and no feature is informative.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.
    n_samples : int, default=60
        Number of samples.
    n_features : int, default=500
        Number of features.
    noise : {"normal", "t3", "t5"}, default="normal"
        Distribution of the features, as in :func:`make_simulation_1`.
    noise_correlation : float in [0, 1), default=0.0
        Correlation between features in the same block of ten features, as in
        :func:`make_simulation_1`.
    factor_loading : float, default=0.0
        Loading of the first 50 features on a factor with mean 0 and variance 1. The factor is a
        gradient between the samples: it orders them, but does not divide them into clusters.
    factor : {"normal", "uniform", "exponential"}, default="normal"
        Distribution of the factor.

    Returns
    -------
    SimulatedData
        The data. All labels are 0, and the mask of informative features is False everywhere.

    Examples
    --------
    >>> from mrshc.datasets import make_noise
    >>> make_noise(0, n_samples=10, n_features=4).X.shape
    (10, 4)
    """
    rng = _as_random_state(random_state)
    errors = _draw_noise(rng, (n_samples, n_features), noise=noise, correlation=noise_correlation)
    if factor not in get_args(Factor):
        raise ValueError(
            f"factor must be one of {get_args(Factor)}, got {factor!r}. Choose one of them."
        )
    if factor_loading:
        draw = {
            "normal": rng.normal,
            # Both have the mean 0 and the variance 1 of the normal factor.
            "uniform": lambda size: rng.uniform(-np.sqrt(3), np.sqrt(3), size=size),
            "exponential": lambda size: rng.exponential(size=size) - 1.0,
        }[factor]
        errors[:, :_N_FACTOR_FEATURES] += factor_loading * draw(size=(n_samples, 1))
    return _add_cluster_means(errors, np.empty((1, 0)), sizes=[n_samples])


def make_clusters_with_own_features(
    random_state: Any = None,
    *,
    n_samples: int = 100,
    n_features: int = 20_000,
    n_clusters: int = 5,
    n_own: int = 40,
    shift: float = 1.5,
) -> SimulatedData:
    """Return simulated data in which each cluster differs from the others in features of its own.

    In the own features of a cluster, its samples have the mean `shift`, and all other samples have
    the mean 0. All features are normally distributed with standard deviation 1.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator.
    n_samples : int, default=100
        Number of samples. The cluster sizes differ by at most one.
    n_features : int, default=20000
        Number of features.
    n_clusters : int, default=5
        Number of clusters.
    n_own : int, default=40
        Number of features of each cluster. The own features of the first cluster come first.
    shift : float, default=1.5
        Mean of the own features of a cluster.

    Returns
    -------
    SimulatedData
        The data.

    Examples
    --------
    >>> from mrshc.datasets import make_clusters_with_own_features
    >>> data = make_clusters_with_own_features(0, n_samples=10, n_features=300, n_clusters=2)
    >>> data.X.shape, int(data.support.sum())
    ((10, 300), 80)
    """
    if n_clusters * n_own > n_features:
        raise ValueError(
            f"{n_clusters} clusters with {n_own} features each need {n_clusters * n_own} features, "
            f"got {n_features}. Raise n_features."
        )
    means = np.repeat(shift * np.eye(n_clusters), n_own, axis=1)
    sizes = [len(part) for part in np.array_split(np.arange(n_samples), n_clusters)]
    errors = _draw_noise(_as_random_state(random_state), (n_samples, n_features))
    return _add_cluster_means(errors, means, sizes=sizes)


def with_missing_cells(
    data: SimulatedData, random_state: Any = None, *, share: float
) -> SimulatedData:
    """Return a copy of the data in which randomly chosen values are replaced by NaN.

    The values are missing completely at random: each value is replaced with the same probability,
    independently of all values.

    Parameters
    ----------
    data : SimulatedData
        The data, which are not changed.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of the values that are replaced.
    share : float in [0, 1)
        Probability that a value is replaced.

    Returns
    -------
    SimulatedData
        A copy of the data with missing values.

    Examples
    --------
    >>> import numpy as np
    >>> from mrshc.datasets import make_simulation_1, with_missing_cells
    >>> incomplete = with_missing_cells(make_simulation_1(0), 0, share=0.05)
    >>> round(float(np.isnan(incomplete.X).mean()), 2)
    0.05
    """
    _check_share(share)
    missing = _as_random_state(random_state).uniform(size=data.X.shape) < share
    return replace(data, X=np.where(missing, np.nan, data.X))


def with_outlying_cells(
    data: SimulatedData, random_state: Any = None, *, share: float, sd: float
) -> SimulatedData:
    """Return a copy of the data in which randomly chosen values are replaced by outliers.

    Each value is replaced with the same probability, independently of all values.

    Parameters
    ----------
    data : SimulatedData
        The data, which are not changed.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of the values that are replaced, and for the outliers.
    share : float in [0, 1)
        Probability that a value is replaced.
    sd : float
        Standard deviation of the outliers, which are normally distributed with mean 0.

    Returns
    -------
    SimulatedData
        A copy of the data with outliers.

    Examples
    --------
    >>> from mrshc.datasets import make_simulation_1, with_outlying_cells
    >>> contaminated = with_outlying_cells(make_simulation_1(0), 0, share=0.02, sd=10.0)
    >>> float(abs(contaminated.X).max()) > 20
    True
    """
    _check_share(share)
    rng = _as_random_state(random_state)
    is_outlying = rng.uniform(size=data.X.shape) < share
    # An outlier is drawn for every value of X, so that the outliers do not depend on which values
    # are replaced.
    return replace(data, X=np.where(is_outlying, rng.normal(0.0, sd, size=data.X.shape), data.X))


def with_outlying_samples(
    data: SimulatedData,
    random_state: Any = None,
    *,
    share: float,
    shift: float,
    spread: Spread = "one direction",
) -> SimulatedData:
    """Return a copy of the data in which randomly chosen samples are shifted in random directions.

    Parameters
    ----------
    data : SimulatedData
        The data, which are not changed.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of the samples and of the directions.
    share : float in [0, 1)
        Proportion of samples that are shifted. The number of shifted samples is rounded to an
        integer.
    shift : float
        Size of the shift. Its meaning depends on `spread`.
    spread : {"one direction", "every feature"}, default="one direction"
        Distribution of the direction, which is drawn separately for each shifted sample. With "one
        direction", the direction is uniform on the sphere, and `shift` is the Euclidean norm of the
        shift. With "every feature", `shift` is added to or subtracted from each feature, with equal
        probability.

    Returns
    -------
    SimulatedData
        A copy of the data with shifted samples. The attribute `outlying` contains the indices of
        the shifted samples.

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
    rng = _as_random_state(random_state)
    n, p = data.X.shape
    rows = np.sort(rng.choice(n, size=round(share * n), replace=False))
    # The direction of a vector of independent normal values is uniformly distributed, and the signs
    # of the values are random.
    directions = rng.normal(size=(rows.size, p))
    if spread == "every feature":
        directions = np.sign(directions)
    else:
        directions /= np.linalg.norm(directions, axis=1)[:, None]
    X = data.X.copy()  # the caller's data must not change
    X[rows] += shift * directions
    return replace(data, X=X, outlying=tuple(rows.tolist()))


def _check_share(share: float) -> None:
    """Raise ValueError if `share` is not in [0, 1)."""
    if not 0 <= share < 1:
        raise ValueError(
            f"share must be in [0, 1), got {share!r}. Give a proportion, such as 0.05 for 5 %."
        )


def _as_random_state(random_state: Any) -> Any:
    """Return the generator of a seed, or the generator itself, as scikit-learn defines it."""
    # The import of scikit-learn takes a second, for which the demo would have to wait before its
    # first sentence.
    if isinstance(random_state, int):
        return np.random.RandomState(random_state)
    from sklearn.utils import check_random_state

    return check_random_state(random_state)


def _draw_noise(
    rng: np.random.RandomState,
    shape: tuple[int, int],
    *,
    noise: Noise = "normal",
    correlation: float = 0.0,
    n_independent: int = 0,
) -> NDArray[np.float64]:
    """Return an array of shape (n_samples, n_features) of random values with mean 0 and variance 1.

    The first `n_independent` features are independent of all other features. The other features are
    divided into blocks of ten. Two features in the same block have the given correlation, and
    features in different blocks are independent.

    Raise ValueError if `noise` is not a known distribution, or if `correlation` is not in [0, 1).
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
        # Student's t distribution with d degrees of freedom has the variance d / (d - 2).
        scale = np.sqrt(degrees_of_freedom / (degrees_of_freedom - 2))
        errors = rng.standard_t(degrees_of_freedom, size=shape) / scale
    if correlation > 0:
        # A normal factor is added to all features of a block, and the features are scaled such that
        # their variances remain 1. The number of blocks is rounded up, so the last block may have
        # fewer features.
        n_blocks = -(-(p - n_independent) // _BLOCK_SIZE)
        factors = rng.normal(size=(n, n_blocks))
        shared = np.repeat(factors, _BLOCK_SIZE, axis=1)[:, : p - n_independent]
        errors[:, n_independent:] *= np.sqrt(1 - correlation)
        errors[:, n_independent:] += np.sqrt(correlation) * shared
    return errors


def _add_cluster_means(
    errors: NDArray[np.float64], means: NDArray[np.float64], *, sizes: Sequence[int]
) -> SimulatedData:
    """Return simulated data: noise plus the cluster means of the informative features."""
    if len(sizes) != len(means):
        raise ValueError(
            f"sizes must hold {len(means)} numbers, one for each cluster, got {len(sizes)}. This "
            "design has a fixed number of clusters."
        )
    # The samples of a cluster are adjacent, because names and tables would be harder to read if the
    # samples were in random order.
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
