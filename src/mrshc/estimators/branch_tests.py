"""Significance of the branches of a fitted estimator: the fit is repeated on simulated data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mrshc.core.array_types import Float, Index, Mask
from mrshc.core.inference.association import benjamini_hochberg, column_tests
from mrshc.core.inference.branch_significance import (
    MIN_BRANCH_SAMPLES,
    BranchSignificance,
    NodeTest,
    combine_tests,
    groups_around,
    label_by_nodes,
    top_down_tests,
)
from mrshc.core.inference.gaussian_null import (
    GaussianNull,
    estimate_null,
    estimate_null_of_sigclust,
)
from mrshc.core.inference.sequential_p_value import sequential_p_value
from mrshc.core.inference.split_statistics import cluster_index, separation
from mrshc.core.parallel import limit_blas_to_one_thread, run_in_parallel
from mrshc.estimators.cosa import COSA
from mrshc.estimators.feature_refinement import UnsupportedClustersWarning
from mrshc.estimators.first_splits import (
    FirstSplit,
    Procedure,
    Refit,
    TreeOfAllFeatures,
    compared_columns,
)
from mrshc.estimators.mrshc import MrSHC
from mrshc.estimators.refits import values_of_fit
from mrshc.estimators.shc import SHC
from mrshc.estimators.simulation_journal import SimulationJournal
from mrshc.validation.parameters import check_integer, check_n_jobs, check_number, check_seed

# Largest q-value of a feature that differs between a node and the branches around it.
_MAX_Q_VALUE = 0.05
# Smallest number of such features for which a tree is tested, as in the refinement of features.
_MIN_FEATURES = 5
# Result for a node without a split whose branches both have enough samples.
_NO_TEST = NodeTest(statistic=np.nan, p_value=1.0, agreement=np.nan, n_simulations=0)


def branch_significance(
    model: Any,
    X: Any,
    *,
    alpha: float = 0.05,
    n_simulations: int = 100,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> BranchSignificance:
    r"""Test which splits of a tree are clearer than splits of data without clusters.

    The tree is tested from the root downwards. For each node, data without clusters are simulated
    with the means, the variances and the correlations of the samples below the node. The whole fit,
    with the selection of the features, is repeated on them. The split is significant if its
    branches are separated more clearly than those of simulated data.

    Parameters
    ----------
    model : MrSHC, SHC, COSA or HighVarianceHC
        Fitted estimator.
    X : array-like of shape (n_samples, n_features)
        The data that were passed to `fit`, in memory.
    alpha : float, default=0.05
        Level of the tests: the probability, for the whole tree, that any node is significant whose
        samples form a single Gaussian group. It is approximate, since the distribution is estimated
        from the data.
    n_simulations : int, default=100
        Largest number of simulated data sets for each test. Fewer are used if the decision is clear
        after 10, 20, 40, 60 or 80 of them. The root is tested once. A node below it may be tested
        twice, with different features (see Notes), and then needs up to twice this number.
    random_state : int, RandomState instance or None, default=None
        Determines the simulated data. Pass an int for reproducible results.
    n_jobs : int or None, default=None
        Number of simulated data sets that are processed in parallel, as in joblib. It does not
        affect the result.
    callback : callable or None, default=None
        Function that is called after each simulated data set with two arguments: the number of
        nodes that are done, and the number of simulated data sets so far.
    checkpoint : str, path-like or None, default=None
        File in which the statistics of simulated data are stored, so that an interrupted test can
        be continued by the same call. The file is not removed after the test. A checkpoint requires
        an integer `random_state`.

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
    UserError
        If the checkpoint is damaged, or belongs to another test.

    See Also
    --------
    stability : Stability of clusters, features and branches under resampling.

    Notes
    -----
    A small p-value means that the samples below the node are not a sample of one Gaussian
    distribution. Usually there are clusters, but other deviations can be the reason, too. Above
    all, a uniform gradient is not Gaussian, and several samples of one patient are not independent.
    The p-value concerns the samples below the node and not a particular division of them: compare
    `agreement`. It does not mean that the split is reproduced in other data; see :func:`stability`.

    Only nodes with at least 10 samples are tested, and only if the node above is significant. The
    threshold of a node with m of the n samples is :math:`\alpha (m - 1) / (n - 1)` [1]_. Branches
    with fewer than four samples are treated as outlying samples: they are left out, and the test
    continues with the other branch. Simulated data without a split into branches of at least four
    samples are ignored.

    The features of the model were selected with the clusters of all samples. Within one of these
    clusters, a test with the same features would be biased. Nodes below the root are therefore
    tested with other selections. The first consists of the features that differ between the node
    and the branches around it. For Gaussian samples, these differences are nearly independent of
    the deviations of the samples from the mean of the node. If the first test is not significant,
    the model is fitted again to the samples below the node, and the split of this fit is tested.
    Each of the two tests has half the threshold.

    A normal distribution is fitted to the statistics of the simulated data. P-values below 0.0001
    are extrapolations, and p-values above 0.25 may be based on 10 simulated data sets.

    If the tree is built from all features, whatever the data, the statistic and the null
    distribution are those of sigclust2 [1]_. The differences to sigclust2 are that small branches
    are left out, that the simulations may end early, and that the fitted normal distribution
    accounts for the errors of its parameters.

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
    values = values_of_fit(model, X, function="branch_significance")
    alpha = check_number("alpha", alpha, low=0.0, high=1.0, advice="The default is 0.05.")
    n_simulations = check_integer(
        "n_simulations", n_simulations, low=10, high=None, advice="The default is 100."
    )
    seed = int(check_seed(random_state).randint(np.iinfo(np.int32).max))
    journal = None
    if checkpoint is not None:
        advice = "A checkpoint needs a fixed seed: a continued test uses the same random numbers."
        check_integer("random_state", random_state, low=0, high=None, advice=advice)
        journal = SimulationJournal(checkpoint, model=model, X=values, seed=seed)
    tester = _NodeTester(
        model,
        model.data_of_fit(X).values,  # winsorised, if the fit is robust
        n_simulations=n_simulations,
        seed=seed,
        n_jobs=check_n_jobs(n_jobs),
        callback=callback,
        journal=journal,
    )
    with warnings.catch_warnings(), limit_blas_to_one_thread():
        # Clusters of simulated data are not supported. Filters apply to all threads, so they are
        # set here and not in the threads.
        warnings.simplefilter("ignore", UnsupportedClustersWarning)
        rows = [*top_down_tests(model._tree, alpha=alpha, test_node=tester.test)]
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


def _uses_all_features(model: Any, *, n_features: int) -> bool:
    """Return whether a model builds its tree from all features, whatever the data."""
    if isinstance(model, MrSHC) and (model.refine or model.selection != "silhouette"):
        return False  # features that are not associated with the clusters are removed
    if isinstance(model, SHC | COSA):
        return False  # the features are weighted
    wanted = model.n_features_to_select
    if isinstance(wanted, str):
        return False  # a number is chosen
    return bool(np.min(wanted) >= n_features)


class _NodeTester:
    """Tests nodes of the tree of a model.

    Parameters
    ----------
    model : TreeClusterer
        Fitted estimator.
    X : ndarray of shape (n, p)
        The data from which the tree was built.
    n_simulations : int
        Largest number of simulated data sets for each test.
    seed : int
        Seed of all random numbers.
    n_jobs : int or None
        Number of workers.
    callback : callable or None
        Function that is called with the numbers of tested nodes and of simulated data sets.
    journal : SimulationJournal or None
        Statistics that were simulated before, to which further statistics are added.
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
        journal: SimulationJournal | None,
    ) -> None:
        self._journal = journal
        self._model, self._tree = model, model._tree
        # Rounding depends on the order of the values in memory.
        self._X = np.ascontiguousarray(X, dtype=np.float64)
        # A robust fit attaches outlying samples to the finished tree.
        self._outlying = model._outlier_rows
        self._n_simulations, self._seed, self._n_jobs = n_simulations, seed, n_jobs
        self._callback = callback
        self._n_nodes, self._n_simulated = 0, 0
        # If all features are used, the test is that of sigclust2.
        self.selects = not _uses_all_features(model, n_features=X.shape[1])
        statistic = separation if self.selects else cluster_index
        self._refit = Refit(model=model, statistic=statistic)
        self._tree_of_all = TreeOfAllFeatures(model=model, statistic=statistic)

    def test(self, node: int, threshold: float) -> NodeTest:
        """Return the test of a node, given the threshold of its p-value."""
        if node == self._tree.root:
            result = self._test_root(threshold)
        else:
            result = self._test_below_root(node, threshold)
        self._n_nodes += 1
        return result

    def _test_root(self, threshold: float) -> NodeTest:
        """Return the test of the first split of the model."""
        rows = self._tested_rows(self._tree.root)
        is_first = self._is_below_first_child(self._tree.root, rows)
        if min(is_first.sum(), (~is_first).sum()) < MIN_BRANCH_SAMPLES:
            return _NO_TEST  # the other samples of a branch are outlying
        columns = compared_columns(self._model, self._X[rows], support=self._model.get_support())
        split = FirstSplit(
            statistic=self._refit.statistic(columns, is_first),
            rows=np.arange(rows.size),
            is_first=is_first,
        )
        return self._test_split(
            self._tree.root,
            self._X[rows],
            split=split,
            procedure=self._refit,
            threshold=threshold,
        )

    def _test_below_root(self, node: int, threshold: float) -> NodeTest:
        """Return the test of a node below the root, which does not use features of the model.

        The features of the model were selected with the clusters below the node. Two selections
        without this bias are used: the features that differ between the node and the branches
        around it, and the features that a fit to the samples below the node selects.
        """
        X = self._X[self._tested_rows(node)]
        features = self._features_around(node) if self.selects else np.empty(0, dtype=np.intp)
        if features.size < _MIN_FEATURES:
            return self._test_procedure(node, X, procedure=self._refit, threshold=threshold)
        # Each of the two tests has half the threshold. The second takes much longer, and is not
        # needed if the first is significant.
        first = self._test_procedure(
            node, X[:, features], procedure=self._tree_of_all, threshold=threshold / 2
        )
        if first.p_value <= threshold / 2:
            return replace(first, p_value=2 * first.p_value)
        second = self._test_procedure(node, X, procedure=self._refit, threshold=threshold / 2)
        return combine_tests([first, second])

    def _features_around(self, node: int) -> Index:
        """Return the features that differ between a node and the branches around it.

        Under the null hypothesis, the mean of the samples below the node is independent of the
        deviations of the samples from this mean, because they are Gaussian. A selection by
        differences of means therefore does not bias a test of the samples below the node.
        """
        groups = groups_around(self._tree, node)
        p_values = column_tests(self._X, groups[None, :]).p_values[:, 0]
        is_tested = p_values < 1.0  # a p-value of 1 means that no test was possible
        q_values = np.ones(p_values.size)
        q_values[is_tested] = benjamini_hochberg(p_values[is_tested])
        return np.flatnonzero(q_values <= _MAX_Q_VALUE)

    def _test_procedure(
        self, node: int, X: Float, *, procedure: Procedure, threshold: float
    ) -> NodeTest:
        """Return the test of the split that a procedure finds in the samples below a node."""
        split = procedure.split(X, seed=self._seed)
        if np.isnan(split.statistic):
            return _NO_TEST
        return self._test_split(node, X, split=split, procedure=procedure, threshold=threshold)

    def _test_split(
        self,
        node: int,
        X: Float,
        *,
        split: FirstSplit,
        procedure: Procedure,
        threshold: float,
    ) -> NodeTest:
        """Return the test of a split by comparison with splits of simulated data."""
        null = estimate_null(X) if self.selects else estimate_null_of_sigclust(X)
        sign = 1.0 if self.selects else -1.0  # small cluster indices are extreme
        p_value, n_simulations = sequential_p_value(
            sign * split.statistic,
            lambda numbers: sign * self._simulate(null, numbers, procedure=procedure, node=node),
            n_simulations=self._n_simulations,
            threshold=threshold,
        )
        in_tree = self._is_below_first_child(node, self._tested_rows(node)[split.rows])
        return NodeTest(
            statistic=split.statistic,
            p_value=p_value,
            agreement=float(adjusted_rand_score(in_tree, split.is_first)),
            n_simulations=n_simulations,
        )

    def _simulate(
        self, null: GaussianNull, numbers: range, *, procedure: Procedure, node: int
    ) -> Float:
        """Return the statistics of simulated data sets with the given numbers."""

        def simulate(wanted: Iterable[int]) -> Generator[float, None, None]:
            arguments = (
                {"null": null, "procedure": procedure, "seed": [self._seed, node, number]}
                for number in wanted
            )
            return run_in_parallel(_split_simulated, arguments, n_jobs=self._n_jobs)

        if self._journal is None:
            results = simulate(numbers)
        else:
            name = type(procedure).__name__
            results = self._journal.complete(numbers, simulate, node=node, procedure=name)
        statistics = []
        with closing(results):
            for statistic in results:
                statistics.append(statistic)
                self._n_simulated += 1
                if self._callback is not None:
                    self._callback(self._n_nodes, self._n_simulated)
        return np.array(statistics)

    def _tested_rows(self, node: int) -> Index:
        """Return the samples below a node, without those that a robust fit found to be outlying."""
        return np.setdiff1d(self._tree.members(node), self._outlying)

    def _is_below_first_child(self, node: int, rows: Index) -> Mask:
        """Return which of the given samples are below the first child of a node."""
        return np.isin(rows, self._tree.members(self._tree.children(node)[0]))


def _split_simulated(*, null: GaussianNull, procedure: Procedure, seed: list[int]) -> float:
    """Return the statistic of a procedure on simulated data."""
    rng = np.random.default_rng(seed)
    drawn = null.draw(rng)
    return procedure.split(drawn, seed=int(rng.integers(np.iinfo(np.int32).max))).statistic
