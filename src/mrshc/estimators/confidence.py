"""How sure a clustering is: significance of the splits, and stability under resampling."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import cophenet
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mrshc.core import parallel
from mrshc.core.association import analyse_variance, f_tail, q_values_of_tested
from mrshc.core.missing_values import complete
from mrshc.core.parallel import no_progress, progress_bar
from mrshc.core.significance import (
    MIN_BRANCH_SAMPLES,
    NO_TEST,
    GaussianNull,
    NodeTest,
    Split,
    as_compared,
    cluster_index,
    estimate_null,
    estimate_null_of_sigclust,
    fill_missing,
    first_split,
    groups_around,
    label_by_splits,
    separation,
    sequential_p_value,
    top_down_tests,
)
from mrshc.core.stability import Refit, StabilityResult, summarise_refits
from mrshc.core.trees import Tree, linkage_matrix
from mrshc.estimators.base import HierarchicalClusterer, UnsupportedClustersWarning
from mrshc.estimators.high_variance import HighVarianceHC
from mrshc.estimators.mrshc import MrSHC
from mrshc.validation import (
    check_data_of_fit,
    check_integer,
    check_n_jobs,
    check_number,
    draw_seed,
    random_numbers,
)

# A node below the root is tested in the features that differ between it and the branches around
# it, if there are as many as a supported clustering has.
_MAX_Q_VALUE, _MIN_FEATURES = 0.05, 5
_MIN_SUBSAMPLE = 3


@dataclass(frozen=True, eq=False)
class BranchSignificance:
    """Significance of the splits of a tree; returned by :func:`mrshc.branch_significance`.

    The arrays have one entry for each tested node, from the root downwards.

    Attributes
    ----------
    node : ndarray of int
        Row of the node in the linkage matrix.
    n_samples : ndarray of int
        Number of samples below the node.
    statistic : ndarray
        The statistic of `statistic_name`.
    p_value, threshold : ndarray
        P-value, and the largest at which the split is significant.
    significant : ndarray of bool
        Whether the samples below the node are more than one Gaussian group.
    agreement : ndarray
        Adjusted Rand index of the split in the tree and of the one that was tested, which is found
        in other features.
    n_simulations : ndarray of int
        Number of simulated data sets.
    labels : ndarray of int of shape (n_samples_of_tree,)
        Clusters if the tree is divided at the significant nodes, in the order of the leaves; -1 for
        outlying samples above them.
    alpha : float
        Level of the tests, for the whole tree.
    statistic_name : {"separation", "cluster_index"}
        "separation": 1 minus the standard deviation within the branches over that of all samples,
        along the line through the means. "cluster_index": sum of squares within the branches over
        the total, if no features are selected; small values indicate clusters.
    """

    node: np.ndarray
    n_samples: np.ndarray
    statistic: np.ndarray
    p_value: np.ndarray
    threshold: np.ndarray
    significant: np.ndarray
    agreement: np.ndarray
    n_simulations: np.ndarray
    labels: np.ndarray
    alpha: float
    statistic_name: str


def branch_significance(
    model: Any,
    X: Any,
    *,
    alpha: float = 0.05,
    n_simulations: int = 100,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> BranchSignificance:
    """Test which splits of a tree are clearer than splits of data without clusters.

    From the root downwards, data without clusters are simulated with the means, the variances and
    the correlations of the samples below a node, and the whole fit is repeated on them.

    Parameters
    ----------
    model : AssociationHC, MrSHC, SHC, COSA or HighVarianceHC
        Fitted estimator.
    X : array-like of shape (n_samples, n_features)
        The data that were passed to `fit`, in memory.
    alpha : float, default=0.05
        Probability, for the whole tree, that a node of one Gaussian group is significant.
    n_simulations : int, default=100
        Largest number of simulated data sets for a test; fewer where the decision is clear.
    random_state : int, RandomState instance or None, default=None
        Seed of the simulated data.
    n_jobs : int or None, default=None
        Number of simulated data sets at the same time, as in joblib. The result does not depend on
        it.

    Returns
    -------
    BranchSignificance
        One entry for each tested node, and `labels`.

    See Also
    --------
    stability : How often clusters, branches and features recur in subsamples.

    Notes
    -----
    A small p-value means that the samples are not a sample of one Gaussian distribution; a uniform
    gradient is not, either. The guide has the tests. If the tree is built from all features, the
    test is that of sigclust2 [1]_.

    References
    ----------
    .. [1] Kimes, P. K., Liu, Y., Hayes, D. N. and Marron, J. S. (2017). Statistical significance
       for hierarchical clustering. Biometrics 73(3), 811-821. https://doi.org/10.1111/biom.12647

    Examples
    --------
    >>> from mrshc import HighVarianceHC, branch_significance
    >>> from mrshc.datasets import make_simulation_1
    >>> X = make_simulation_1(0, mu=2.0).X
    >>> model = HighVarianceHC(50, linkage="ward").fit(X)
    >>> result = branch_significance(model, X, n_simulations=20, random_state=0)
    >>> bool(result.significant[0])
    True
    """
    _check_data(model, X, "branch_significance")
    alpha = check_number("alpha", alpha, low=0.0, high=1.0)
    n_simulations = check_integer("n_simulations", n_simulations, low=10)
    with progress_bar("Significance") as progress, parallel.threads(1):
        tester = _NodeTester(
            model,
            np.ascontiguousarray(model.data_of_fit(X).values, dtype=np.float64),
            n_simulations=n_simulations,
            seed=draw_seed(random_state),
            n_jobs=check_n_jobs(n_jobs),
            progress=progress,
        )
        with _without_warnings():
            rows = list(top_down_tests(model._tree, alpha, tester.test))
    nodes = np.array([node for node, _, _ in rows], dtype=np.intp)
    thresholds = np.array([threshold for _, threshold, _ in rows], dtype=float)
    p_values = np.array([test.p_value for _, _, test in rows], dtype=float)
    significant = p_values <= thresholds
    return BranchSignificance(
        node=nodes - model.n_leaves_,
        n_samples=np.array([model._tree.n_samples_below(node) for node in nodes], dtype=np.intp),
        statistic=np.array([test.statistic for _, _, test in rows], dtype=float),
        p_value=p_values,
        threshold=thresholds,
        significant=significant,
        agreement=np.array([test.agreement for _, _, test in rows], dtype=float),
        n_simulations=np.array([test.n_simulations for _, _, test in rows], dtype=np.intp),
        labels=label_by_splits(model._tree, nodes[significant]),
        alpha=alpha,
        statistic_name="separation" if tester.selects else "cluster_index",
    )


class _NodeTester:
    """Tests nodes of the tree of a model; `selects` tells whether the model selects features."""

    def __init__(
        self,
        model: Any,
        X: np.ndarray,
        *,
        n_simulations: int,
        seed: int,
        n_jobs: int | None,
        progress: parallel.Progress,
    ) -> None:
        self._model, self._tree, self._X = model, model._tree, X
        self._n_simulations, self._seed, self._n_jobs = n_simulations, seed, n_jobs
        self._progress, self._n_simulated = progress, 0
        self.selects = not _uses_all_features(model, X.shape[1])
        statistic = separation if self.selects else cluster_index
        self._refit = partial(_split_of_refit, model, statistic)
        self._tree_of_all = partial(_split_of_tree, model, statistic)
        self._statistic = statistic

    def test(self, node: int, threshold: float) -> NodeTest:
        """Return the test of a node, given the threshold of its p-value."""
        rows = np.setdiff1d(self._tree.members(node), self._model._outliers)
        X = self._X[rows]
        if node == self._tree.root:
            is_first = self._is_below_first_child(node, rows)
            if min(is_first.sum(), (~is_first).sum()) < MIN_BRANCH_SAMPLES:
                return NO_TEST
            columns = _compared_columns(self._model, X, self._model.get_support())
            split = (self._statistic(columns, is_first), np.arange(rows.size), is_first)
            return self._test_split(node, X, rows, split, self._refit, threshold)
        # Within a cluster of all samples, a test in the features that showed this cluster would be
        # biased. Those that differ from the branches around it are independent of the deviations
        # within it, for Gaussian samples.
        features = self._features_around(node) if self.selects else np.empty(0, np.intp)
        if features.size < _MIN_FEATURES:
            return self._test_procedure(node, X, rows, self._refit, threshold)
        half = threshold / 2
        first = self._test_procedure(node, X[:, features], rows, self._tree_of_all, half)
        if first.p_value <= half:
            return replace(first, p_value=2 * first.p_value)
        second = self._test_procedure(node, X, rows, self._refit, half)
        best = min((first, second), key=lambda test: test.p_value)
        return replace(
            best,
            p_value=min(1.0, 2 * best.p_value),
            n_simulations=first.n_simulations + second.n_simulations,
        )

    def _features_around(self, node: int) -> np.ndarray:
        groups = groups_around(self._tree, node)
        p_values = f_tail(*analyse_variance(self._X, groups[None])[:3])[0]
        return np.flatnonzero(q_values_of_tested(p_values) <= _MAX_Q_VALUE)

    def _test_procedure(
        self, node: int, X: np.ndarray, rows: np.ndarray, procedure: Any, threshold: float
    ) -> NodeTest:
        split = procedure(X, self._seed)
        if np.isnan(split[0]):
            return NO_TEST
        return self._test_split(node, X, rows, split, procedure, threshold)

    def _test_split(
        self,
        node: int,
        X: np.ndarray,
        rows: np.ndarray,
        split: Split,
        procedure: Any,
        threshold: float,
    ) -> NodeTest:
        """Compare a split with the splits that the procedure finds in simulated data."""
        null = estimate_null(X) if self.selects else estimate_null_of_sigclust(X)
        sign = 1.0 if self.selects else -1.0  # small cluster indices are extreme
        statistic, kept, is_first = split

        def simulate(numbers: range) -> np.ndarray:
            arguments = ((null, procedure, [self._seed, node, number]) for number in numbers)
            statistics = []
            for value in parallel.run_fits(_split_simulated, arguments, self._n_jobs):
                statistics.append(sign * value)
                self._n_simulated += 1
                self._progress(self._n_simulated, max(self._n_simulations, self._n_simulated))
            return np.array(statistics)

        p_value, n_simulations = sequential_p_value(
            sign * statistic, simulate, n_simulations=self._n_simulations, threshold=threshold
        )
        in_tree = self._is_below_first_child(node, rows[kept])
        agreement = float(adjusted_rand_score(in_tree, is_first))
        return NodeTest(statistic, p_value, agreement, n_simulations)

    def _is_below_first_child(self, node: int, rows: np.ndarray) -> np.ndarray:
        return np.isin(rows, self._tree.members(self._tree.children(node)[0]))


def _split_simulated(null: GaussianNull, procedure: Any, seed: list[int]) -> float:
    rng = np.random.default_rng(seed)
    drawn = null.draw(rng)
    with _without_warnings(), no_progress():
        return procedure(drawn, int(rng.integers(np.iinfo(np.int32).max)))[0]


def _uses_all_features(model: Any, p: int) -> bool:
    wanted: Any = getattr(model, "n_features_to_select", None)
    is_selector = isinstance(model, HighVarianceHC | MrSHC)
    return is_selector and not isinstance(wanted, str) and bool(np.min(wanted) >= p)


def _split_of_refit(model: Any, statistic: Any, X: np.ndarray, seed: int) -> Split:
    """Return the first split of a fit of the model, with its selection of features."""
    fitted = _clone(model, seed)

    def divide(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        support = _fit_observed(fitted, part)
        return _compared_columns(fitted, part, support), fitted.cut(2) == 0

    return first_split(X, divide, statistic)


def _split_of_tree(model: Any, statistic: Any, X: np.ndarray, _: int) -> Split:
    """Return the first split of a tree of all features."""

    def divide(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distances = complete(part).distances(model.metric)
        tree = Tree(linkage_matrix(distances, model.linkage))
        return as_compared(fill_missing(part), model.metric), tree.cut(2) == 0

    return first_split(X, divide, statistic)


def _compared_columns(model: Any, X: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Return the selected features as the distances of a fitted model compare them."""
    columns = fill_missing(X[:, support])
    weights = model._compared_weights()
    if weights is not None:
        columns = columns * np.sqrt(weights)
    return as_compared(columns, model.metric)


def stability(
    model: Any,
    X: Any,
    *,
    n_resamples: int = 50,
    fraction: float = 0.8,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> StabilityResult:
    """Return how stable clusters, branches and selected features are if samples are left out.

    The fit, with the selection of the features, is repeated on random subsamples. If a fit finds
    another number of clusters, its tree is cut into as many as the model has.

    Parameters
    ----------
    model : AssociationHC, MrSHC, SHC, COSA or HighVarianceHC
        Fitted estimator with clusters.
    X : array-like of shape (n_samples, n_features)
        The data that were passed to `fit`, in memory.
    n_resamples : int, default=50
        Number of subsamples. 50 are enough for clusters, 200 for the frequencies of features.
    fraction : float, default=0.8
        Share of the samples in a subsample, drawn without replacement.
    random_state : int, RandomState instance or None, default=None
        Seed of the subsamples.
    n_jobs : int or None, default=None
        Number of subsamples at the same time, as in joblib. The result does not depend on it.

    Returns
    -------
    StabilityResult
        `cluster_jaccard`, `feature_frequency`, `branch_support` and `consensus`.

    See Also
    --------
    branch_significance : Test the splits of the tree.

    Notes
    -----
    Clusters with a Jaccard index of at least 0.75 are usually called stable; those below 0.6 should
    not be interpreted [1]_. Stable clusters need not be real: an elongated group may be divided in
    the same way each time.

    References
    ----------
    .. [1] Hennig, C. (2007). Cluster-wise assessment of cluster stability. Computational Statistics
       and Data Analysis 52(1), 258-271. https://doi.org/10.1016/j.csda.2006.11.025

    Examples
    --------
    >>> from mrshc import AssociationHC, stability
    >>> from mrshc.datasets import make_simulation_1
    >>> X = make_simulation_1(0).X
    >>> result = stability(AssociationHC().fit(X), X, n_resamples=10, random_state=0)
    >>> bool((result.cluster_jaccard > 0.8).all())
    True
    """
    values = _check_data(model, X, "stability")
    if not hasattr(model, "labels_"):
        raise ValueError(
            "stability needs a model with clusters, but n_clusters was None in the fit. Give the "
            "number of clusters and fit again."
        )
    n_resamples = check_integer("n_resamples", n_resamples, low=2)
    n, n_clusters = len(values), int(model.labels_.max()) + 1
    smallest = max(_MIN_SUBSAMPLE, n_clusters)
    if smallest >= n:
        raise ValueError(
            f"stability needs subsamples of at least {smallest} samples, for a tree with "
            f"{n_clusters} clusters, but there are only {n}. Fit with fewer clusters, or use more "
            "samples."
        )
    advice = f"Each subsample needs at least {smallest} of the {n} samples, but not all."
    low, high = (smallest - 0.5) / n, 1.0 - 0.5 / n
    fraction = check_number("fraction", fraction, low=low, high=high, advice=advice)
    seeds = random_numbers(random_state).randint(np.iinfo(np.int32).max, size=(n_resamples, 2))
    arguments = (
        (_clone(model, int(fit_seed)), values, _subsample(n, fraction, int(seed)), n_clusters)
        for seed, fit_seed in seeds
    )
    with progress_bar("Stability") as progress, _without_warnings():
        fits = parallel.run_fits(_refit, arguments, check_n_jobs(n_jobs))
        refits = parallel.count(fits, n_resamples, progress)
        return summarise_refits(model._tree, model.labels_, values.shape[1], refits)


def _subsample(n: int, fraction: float, seed: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).permutation(n)[: round(fraction * n)])


def _refit(model: Any, X: np.ndarray, rows: np.ndarray, n_clusters: int) -> Refit:
    with _without_warnings(), no_progress():
        support = _fit_observed(model, X[rows])
    labels = getattr(model, "labels_", None)
    if labels is None or labels.max() + 1 != n_clusters:
        labels = model.cut(n_clusters)
    return Refit(rows, model._tree, labels, support)


def _without_warnings() -> Any:
    """Return a context without the warning of unsupported clusters, in this thread's filters."""
    return warnings.catch_warnings(action="ignore", category=UnsupportedClustersWarning)


def _clone(model: Any, seed: int) -> Any:
    """Return an unfitted copy with one thread and a seed."""
    settings = {"n_jobs": 1, "random_state": seed}
    known = model.get_params(deep=False)
    return clone(model).set_params(**{k: v for k, v in settings.items() if k in known})


def _fit_observed(model: Any, X: np.ndarray) -> np.ndarray:
    """Fit a model to the features of X that have values, and return the mask of those selected.

    Parameters above the number of samples or features are reduced.
    """
    observed = ~np.isnan(X).all(axis=0)
    X = X if observed.all() else X[:, observed]
    n, p = X.shape
    limits = {"n_clusters": n, "rank": n, "n_neighbors": n - 1, "n_features_to_select": p}
    known = model.get_params(deep=False)
    for name, limit in limits.items():
        value = known.get(name)
        if isinstance(value, int | np.integer):
            model.set_params(**{name: min(value, limit)})
        elif not isinstance(value, str | None):
            model.set_params(**{name: sorted({min(int(each), limit) for each in value})})
    model.fit(X)
    support = np.zeros(observed.size, dtype=bool)
    support[observed] = model.get_support()
    return support


def _check_data(model: Any, X: Any, function: str) -> np.ndarray:
    """Return the data of a fit as an array; raise ValueError if X are not these data."""
    if not isinstance(model, HierarchicalClusterer):
        raise TypeError(
            f"{function} needs a fitted estimator with a tree, such as AssociationHC, got "
            f"{type(model).__name__}."
        )
    if getattr(model, "complement_of", None) is not None:
        raise ValueError(
            f"{function} needs a model that can be fitted to other samples, but complement_of "
            "refers to a fit of these samples. Use the first fit instead."
        )
    matrix = check_data_of_fit(model, X)  # not winsorised: each fit winsorises its own data
    if not matrix.in_memory:
        raise ValueError(
            f"{function} needs X in memory, as an array or a table, but X is stored in another "
            "form, such as a file or a sparse matrix. Load it, or select fewer features first."
        )
    # The values of the fit are not stored, so the tree is compared. Outlying samples are attached
    # to a tree that was built without them, and SHC and COSA store their dissimilarities.
    if not len(model._outliers) and not hasattr(model, "dissimilarity_"):
        Z = linkage_matrix(model.sample_distances(X), model.linkage)
        found, known = cophenet(Z), cophenet(model.linkage_matrix_)
        if not np.allclose(found, known, rtol=1e-6, atol=1e-9 * known.max()):
            raise ValueError(
                "X must be the data of the fit, but its samples have other distances. Pass the "
                "data that were passed to fit, with samples and features in the same order."
            )
    return matrix.values
