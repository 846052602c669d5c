"""Significance of branches and stability of fitted trees."""

import numpy as np
import pytest
from scipy.sparse import csc_array
from sklearn.base import clone
from sklearn.cluster import KMeans

import reference
from mrshc.core.significance import separation
from mrshc.core.trees import Tree
from mrshc.datasets import make_simulation_1
from mrshc.estimators import (
    COSA,
    SHC,
    AssociationHC,
    HighVarianceHC,
    MrSHC,
    branch_significance,
    stability,
)

CLEAR = make_simulation_1(0, mu=3.0, sizes=(12, 12, 12)).X[:, :120]
FILTER = HighVarianceHC(60, linkage="ward", n_clusters=3)


# Significance -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["B", "I"])
def test_without_a_selection_the_p_values_are_those_of_sigclust2(name):
    X = reference.matrix("input_B")[:, :40] if name == "B" else reference.matrix("simI_rep1")
    model = HighVarianceHC(X.shape[1], linkage="ward").fit(X)
    found = branch_significance(model, X, n_simulations=100, random_state=0)
    assert found.statistic_name == "cluster_index"
    # The nodes of sigclust2 are in the order of the linkage matrix, from the root downwards.
    nodes = reference.runs("sigclust2")[name]["nodes"]
    for row, node in enumerate(found.node):
        expected = nodes[len(X) - 2 - node]
        assert found.statistic[row] == pytest.approx(expected["ci"])
        assert found.significant[row] == (expected["type"] == "sig")
        if found.p_value[row] > 1e-3 and expected["type"] != "no_test":
            # Four standard errors of two proportions, from 200 simulations of sigclust2 and from
            # those of this test.
            p = expected["p_norm"]
            n_simulated = 1 / (1 / 200 + 1 / found.n_simulations[row])
            assert abs(found.p_value[row] - p) < 4 * np.sqrt(p * (1 - p) / n_simulated)


@pytest.mark.parametrize(
    "model",
    [
        FILTER,
        AssociationHC(),
        SHC(40, n_clusters=3),
        COSA(n_clusters=3),
        HighVarianceHC(60, metric="correlation", linkage="average", n_clusters=3),
        MrSHC(30, rank=1, n_references=5, n_clusters=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_tests_of_clear_clusters_agree_with_the_tree(model):
    model = clone(model).fit(CLEAR)
    found = branch_significance(model, CLEAR, n_simulations=10, random_state=0)
    tree, n = Tree(model.linkage_matrix_), 36
    assert found.statistic_name == "separation"
    assert (found.node[0], found.n_samples[0], found.threshold[0]) == (n - 2, n, 0.05)
    np.testing.assert_array_equal(found.threshold, 0.05 * (found.n_samples - 1) / (n - 1))
    np.testing.assert_array_equal(found.significant, found.p_value <= found.threshold)
    np.testing.assert_array_equal(found.n_samples, tree.linkage_matrix[found.node, 3])
    is_first = np.isin(np.arange(n), tree.members(tree.children(tree.root)[0]))
    if type(model) in (HighVarianceHC, AssociationHC, MrSHC):
        columns = CLEAR[:, model.get_support()]
        if model.metric == "correlation":
            columns = columns - columns.mean(axis=1, keepdims=True)
            columns /= np.linalg.norm(columns, axis=1, keepdims=True)
        assert found.statistic[0] == pytest.approx(separation(columns, is_first))
    if isinstance(model, SHC):
        columns = CLEAR * np.sqrt(model.feature_weights_)
        assert found.statistic[0] == pytest.approx(separation(columns, is_first))
    assert found.agreement[0] == 1.0
    if not isinstance(model, COSA) and model.metric != "correlation":
        assert found.significant[0]
    assert set(found.n_simulations) <= {0, 10, 20}
    if not isinstance(model, MrSHC):
        return
    again = branch_significance(model, CLEAR, n_simulations=10, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(again.p_value, found.p_value)
    other = branch_significance(model, CLEAR, n_simulations=10, random_state=1)
    assert other.p_value[0] != found.p_value[0]


# Stability ----------------------------------------------------------------------------------


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [branch_significance, stability])
def test_other_data_and_models_are_refused(function):
    fitted = clone(FILTER).fit(CLEAR)
    with pytest.raises(ValueError, match="X must be the data of the fit, but its samples have"):
        function(fitted, CLEAR[::-1])
    with pytest.raises(ValueError, match="with 36 samples, got 30"):
        function(fitted, CLEAR[:30])
    with pytest.raises(TypeError, match=r"needs a fitted estimator with a tree.*got KMeans"):
        function(KMeans(3).fit(CLEAR), CLEAR)
    sparse = csc_array(np.where(CLEAR > 1, CLEAR, 0.0))
    with pytest.raises(ValueError, match=f"{function.__name__} needs X in memory"):
        function(clone(FILTER).fit(sparse), sparse)
    first = SHC(10, n_clusters=2).fit(CLEAR)
    second = SHC(10, n_clusters=2, complement_of=first.dissimilarity_).fit(CLEAR)
    with pytest.raises(ValueError, match="complement_of refers to a fit of these samples"):
        function(second, CLEAR)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (branch_significance, {"alpha": 2}, r"alpha must be a number in \[0, 1\]"),
        (branch_significance, {"n_simulations": 9}, "n_simulations must be .* at least 10, got 9"),
        (branch_significance, {"n_jobs": 0}, "n_jobs must be"),
        (stability, {"n_resamples": 1}, "n_resamples must be a whole number at least 2"),
        (stability, {"fraction": 1.0}, "Each subsample needs at least 3 of the 36 samples, but"),
        (stability, {"fraction": 0.06}, "fraction must be a number in"),
        (stability, {"random_state": "x"}, "random_state|seed"),
    ],
)
def test_invalid_parameters_are_refused(function, options, message):
    with pytest.raises(ValueError, match=message):
        function(clone(FILTER).fit(CLEAR), CLEAR, **options)


def test_stability_needs_clusters_and_samples():
    model = HighVarianceHC(10).fit(CLEAR)
    with pytest.raises(ValueError, match="stability needs a model with clusters"):
        stability(model, CLEAR)
    model = HighVarianceHC(10, n_clusters=3).fit(CLEAR[:3])
    with pytest.raises(ValueError, match=r"subsamples of at least 3 samples, .* there are only 3"):
        stability(model, CLEAR[:3])
