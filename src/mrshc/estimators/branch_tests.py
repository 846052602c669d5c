"""Significance of the branches of a fitted estimator: the fit is repeated on simulated data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.inference.branch_significance import (
    MIN_BRANCH_SAMPLES,
    MIN_NODE_SAMPLES,
    BranchSignificance,
    GaussianNull,
    NodeTest,
    cluster_index,
    estimate_null,
    estimate_null_of_sigclust,
    is_decided,
    label_by_nodes,
    looks,
    separation,
    tested_nodes,
    upper_tail_p_value,
)
from mrshc.core.parallel import limit_blas_to_one_thread, run_in_parallel
from mrshc.errors import Parameter, ParameterError
from mrshc.estimators.feature_refinement import UnsupportedClustersWarning
from mrshc.estimators.refits import clone_for_refit, fit_observed_features, values_of_fit
from mrshc.validation.parameters import check_integer, check_n_jobs, check_number, check_seed


def branch_significance(
    model: Any,
    X: Any,
    *,
    alpha: float = 0.05,
    n_simulations: int = 100,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], None] | None = None,
) -> BranchSignificance:
    r"""Test which splits of a tree are clearer than splits of data without clusters.

    The tree is tested from the root downwards. For each node, data without clusters are simulated
    with the means, the variances and the correlations of the samples below the node. The whole fit,
    with the selection of the features, is repeated on them. The split is significant if its
    branches are separated more clearly than those of simulated data.

    Parameters
    ----------
    model : MrSHC, SHC or HighVarianceHC
        Fitted estimator.
    X : array-like of shape (n_samples, n_features)
        The data that were passed to `fit`, in memory.
    alpha : float, default=0.05
        Bound of the probability that any node is significant whose samples form a single Gaussian
        group.
    n_simulations : int, default=100
        Largest number of simulated data sets for each node. Fewer are used if the decision is clear
        after 10, 20, 40, 60 or 80 of them.
    random_state : int, RandomState instance or None, default=None
        Determines the simulated data. Pass an int for reproducible results.
    n_jobs : int or None, default=None
        Number of simulated data sets that are processed in parallel, as in joblib. It does not
        affect the result.
    callback : callable or None, default=None
        Function that is called after each simulated data set with two arguments: the number of
        nodes that are done, and the number of simulated data sets so far.

    Returns
    -------
    BranchSignificance
        Its attributes `node`, `n_samples`, `statistic`, `p_value`, `threshold` and `significant`
        have one entry for each tested node, from the root downwards; `labels` are the clusters that
        result from the significant splits.

    Raises
    ------
    ValueError
        If X is invalid, is not in memory, or is not the data of the fit.
    ParameterError
        If a parameter is invalid, or if the model is an `SHC` with `complement_of`.

    See Also
    --------
    stability : Stability of clusters, features and branches under resampling.

    Notes
    -----
    A small p-value means that the samples below the node are not a sample of one Gaussian
    distribution. Usually there are clusters, but other deviations can be the reason, too. Above
    all, a uniform gradient is not Gaussian. The p-value does not mean that the split is reproduced
    in other data; see :func:`stability`.

    Only nodes with at least 10 samples are tested, and only if the node above is significant. The
    threshold of a node with m of the n samples is :math:`\alpha (m - 1) / (n - 1)` [1]_. Branches
    with fewer than four samples are treated as outlying samples: they are left out, and the test
    continues with the other branch.

    The features of the whole tree were selected with the clusters of all samples. Within one of
    these clusters, a test with the same features would be biased. Therefore the model is fitted
    again to the samples below a node, and the split of this fit is tested. The attribute
    `agreement` compares it with the split in the tree.

    If `n_features_to_select` is the number of all features, so that nothing is selected, the test
    is that of Kimes and others [1]_.

    References
    ----------
    .. [1] Kimes, P. K., Liu, Y., Hayes, D. N. and Marron, J. S. (2017). Statistical significance
       for hierarchical clustering. Biometrics 73(3), 811-821. https://doi.org/10.1111/biom.12647

    Examples
    --------
    >>> from mrshc import MrSHC, branch_significance
    >>> from mrshc.datasets import make_simulation_1
    >>> X = make_simulation_1(0).X
    >>> model = MrSHC(selection="association", linkage="ward", random_state=0).fit(X)
    >>> result = branch_significance(model, X, n_simulations=20, random_state=0)
    >>> bool(result.significant[0])
    True
    """
    values = values_of_fit(model, X, function="branch_significance")
    if getattr(model, "complement_of", None) is not None:
        raise ParameterError(
            "branch_significance needs a model that can be fitted to simulated data, but "
            "{complement_of} refers to a fit of these data. Test the first fit instead.",
            complement_of=Parameter("complement_of"),
        )
    alpha = check_number("alpha", alpha, low=0.0, high=1.0, advice="The default is 0.05.")
    n_simulations = check_integer(
        "n_simulations", n_simulations, low=10, high=None, advice="The default is 100."
    )
    tester = _NodeTester(
        model,
        values,
        n_simulations=n_simulations,
        seed=int(check_seed(random_state).randint(np.iinfo(np.int32).max)),
        n_jobs=check_n_jobs(n_jobs),
        callback=callback,
    )
    with warnings.catch_warnings():
        # Clusters of simulated data are not supported. Filters apply to all threads, so they are
        # set here and not in the threads.
        warnings.simplefilter("ignore", UnsupportedClustersWarning)
        rows = [*tested_nodes(model._tree, alpha=alpha, test_node=tester.test)]
    return _summarise(model, rows, alpha=alpha, selects=tester.selects)


def _summarise(
    model: Any, rows: list[tuple[int, float, NodeTest]], *, alpha: float, selects: bool
) -> BranchSignificance:
    """Return the result for the tested nodes, given their numbers, thresholds and tests."""
    tree = model._tree
    nodes = np.array([node for node, _, _ in rows], dtype=np.intp)
    thresholds = np.array([threshold for _, threshold, _ in rows], dtype=float)
    tests = [test for _, _, test in rows]
    p_values = np.array([test.p_value for test in tests], dtype=float)
    significant = p_values <= thresholds
    return BranchSignificance(
        node=nodes - tree.n_samples,
        n_samples=np.array([tree.n_samples_below(node) for node in nodes], dtype=np.intp),
        statistic=np.array([test.statistic for test in tests], dtype=float),
        p_value=p_values,
        threshold=thresholds,
        significant=significant,
        agreement=np.array([test.agreement for test in tests], dtype=float),
        n_simulations=np.array([test.n_simulations for test in tests], dtype=np.intp),
        labels=label_by_nodes(tree, nodes[significant]),
        alpha=alpha,
        statistic_name="separation" if selects else "cluster_index",
    )


class _NodeTester:
    """Tests nodes of the tree of a model.

    Parameters
    ----------
    model : TreeClusterer
        Fitted estimator.
    X : ndarray of shape (n, p)
        The data of the fit.
    n_simulations : int
        Largest number of simulated data sets for each node.
    seed : int
        Seed of all random numbers.
    n_jobs : int or None
        Number of workers.
    callback : callable or None
        Function that is called with the numbers of finished nodes and of simulated data sets.
    """

    def __init__(
        self,
        model: Any,
        X: NDArray[Any],
        *,
        n_simulations: int,
        seed: int,
        n_jobs: int | None,
        callback: Callable[[int, int], None] | None,
    ) -> None:
        self._model, self._X = model, X
        self._n_simulations, self._seed, self._n_jobs = n_simulations, seed, n_jobs
        self._callback = callback
        self._n_nodes, self._n_done = 0, 0
        # If all features are used, the statistic is the cluster index of sigclust2.
        self.selects = not (
            isinstance(model.n_features_to_select, Integral)
            and model.n_features_to_select >= X.shape[1]
        )

    def test(self, node: int, threshold: float) -> NodeTest:
        """Return the test of a node, given the threshold of its p-value."""
        rows = self._model._tree.members(node)
        observed, agreement = self._observed_split(node, rows)
        if np.isnan(observed):
            return NodeTest(statistic=np.nan, p_value=1.0, agreement=np.nan, n_simulations=0)
        sign = 1.0 if self.selects else -1.0  # small cluster indices are extreme
        with limit_blas_to_one_thread():
            estimate = estimate_null if self.selects else estimate_null_of_sigclust
            null = estimate(self._X[rows].astype(np.float64))
        simulated = np.empty(0)
        p_value = 1.0
        for n_wanted in looks(self._n_simulations):
            more = self._simulate(null, node, range(simulated.size, n_wanted))
            simulated = np.concatenate([simulated, more])
            p_value = upper_tail_p_value(sign * observed, sign * simulated)
            if is_decided(p_value, n_simulated=simulated.size, threshold=threshold):
                break
        self._n_nodes += 1
        return NodeTest(
            statistic=observed,
            p_value=p_value,
            agreement=agreement,
            n_simulations=simulated.size,
        )

    def _observed_split(self, node: int, rows: Index) -> tuple[float, float]:
        """Return the statistic of the split of a node, and its agreement with the tree."""
        tree = self._model._tree
        in_tree = np.isin(rows, tree.members(tree.children(node)[0]))
        if node == tree.root:
            statistic = self._statistic(self._model, self._X, self._model.get_support(), in_tree)
            return statistic, 1.0
        model = clone_for_refit(self._model, seed=self._seed)
        with limit_blas_to_one_thread():
            statistic, kept, is_first = self._split(model, self._X[rows])
        agreement = adjusted_rand_score(in_tree[kept], is_first) if kept.size else np.nan
        return statistic, float(agreement)

    def _simulate(self, null: GaussianNull, node: int, numbers: range) -> Float:
        """Return the statistics of simulated data sets with the given numbers."""
        arguments = ({"null": null, "node": node, "number": number} for number in numbers)
        tasks = run_in_parallel(self._simulate_once, arguments, n_jobs=self._n_jobs)
        statistics = []
        with closing(tasks):
            for statistic in tasks:
                statistics.append(statistic)
                self._n_done += 1
                if self._callback is not None:
                    self._callback(self._n_nodes, self._n_done)
        return np.array(statistics)

    def _simulate_once(self, null: GaussianNull, node: int, number: int) -> float:
        """Return the statistic of one simulated data set for a node."""
        rng = np.random.default_rng([self._seed, node, number])
        model = clone_for_refit(self._model, seed=int(rng.integers(np.iinfo(np.int32).max)))
        return self._split(model, null.draw(rng))[0]

    def _split(self, model: Any, X: NDArray[Any]) -> tuple[float, Index, Mask]:
        """Fit a model, and return the statistic of its first split, samples and first branch.

        If a branch is too small, its samples are left out and the fit is repeated. The statistic is
        NaN if too few samples are left.
        """
        kept = np.arange(len(X))
        while kept.size >= MIN_NODE_SAMPLES:
            support = fit_observed_features(_limit_to(model, kept.size), X[kept])
            is_first = model.cut(2) == 0
            if min(is_first.sum(), (~is_first).sum()) >= MIN_BRANCH_SAMPLES:
                return self._statistic(model, X[kept], support, is_first), kept, is_first
            kept = kept[is_first == (2 * is_first.sum() > kept.size)]
        return np.nan, np.empty(0, np.intp), np.empty(0, bool)

    def _statistic(self, model: Any, X: NDArray[Any], support: Mask, is_first: Mask) -> float:
        """Return the statistic of a split, computed from the selected features."""
        columns = X[:, support].astype(np.float64)
        # A missing value contributes nothing to the projection of its sample.
        columns = np.where(np.isnan(columns), np.nanmean(columns, axis=0), columns)
        if (weights := model._distance_weights()) is not None:
            columns *= np.sqrt(weights)
        return separation(columns, is_first) if self.selects else cluster_index(columns, is_first)


def _limit_to(model: Any, n_samples: int) -> Any:
    """Return the model after parameters that exceed the number of samples were reduced."""
    limited = {
        name: min(value, n_samples)
        for name, value in model.get_params(deep=False).items()
        if name in ("n_clusters", "rank") and isinstance(value, Integral)
    }
    return model.set_params(**limited)
