"""`branch_significance` of fitted estimators."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.sparse import csc_array
from sklearn.cluster import KMeans

import reference
from mrshc import SHC, HighVarianceHC, MrSHC, branch_significance
from mrshc.datasets import make_noise, make_simulation_1
from mrshc.errors import ParameterError
from mrshc.metrics import adjusted_rand_index

RECOMMENDED = {"selection": "association", "linkage": "ward", "random_state": 0}
CLEAR = make_simulation_1(0, mu=3.0, sizes=(12, 12, 12)).X[:, :150]
FILTER = HighVarianceHC(40, linkage="ward")
TREE = ("node", "n_samples", "statistic", "p_value", "threshold", "significant", "agreement")


def assert_equal(one, other):
    for name in (*TREE, "n_simulations", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.parametrize(
    "model",
    [
        MrSHC(**RECOMMENDED),
        FILTER,
        SHC(50, linkage="average", random_state=0),
        pytest.param(
            MrSHC(50, rank=1, linkage="average", n_references=5, random_state=0),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_clear_clusters_are_found(model):
    fitted = model.fit(CLEAR)
    found = branch_significance(fitted, CLEAR, n_simulations=20, random_state=0)
    truth = np.repeat([0, 1, 2], 12)
    assert adjusted_rand_index(truth, found.labels) == 1.0
    assert found.significant.sum() == 2
    assert found.statistic_name == "separation"
    # The root is the last row of the linkage matrix and comes first.
    assert found.node[0] == 34
    np.testing.assert_array_equal(found.n_samples, fitted.linkage_matrix_[found.node, 3])
    np.testing.assert_allclose(found.threshold, 0.05 * (found.n_samples - 1) / 35)
    np.testing.assert_array_equal(found.significant, found.p_value <= found.threshold)
    assert (found.agreement[found.significant] == 1.0).all()


@pytest.mark.parametrize("options", [{}, {"noise_correlation": 0.6}, {"factor_loading": 2.0}])
def test_data_without_clusters_are_not_divided(options):
    n_divided = 0
    for seed in range(20):
        X = make_noise(seed, n_samples=40, n_features=200, **options).X
        found = branch_significance(FILTER.fit(X), X, n_simulations=20, random_state=0)
        n_divided += int(found.labels.max() > 0)
        assert found.significant.any() == (found.labels.max() > 0)
    # The expected number is one. Four or more have a probability of 0.016.
    assert n_divided <= 3


def test_outlying_samples_do_not_hide_clusters():
    X = CLEAR.copy()
    X[0, :] += 40.0  # forms a branch of its own
    found = branch_significance(FILTER.fit(X), X, n_simulations=20, random_state=0)
    assert found.labels[0] == -1
    assert found.n_samples[0] == 35
    assert adjusted_rand_index(np.repeat([0, 1, 2], 12)[1:], found.labels[1:]) == 1.0


def test_a_group_of_outlying_samples_is_not_significant():
    X = make_noise(0, n_samples=40, n_features=200).X
    X[:3] += 5.0
    found = branch_significance(FILTER.fit(X), X, n_simulations=20, random_state=0)
    np.testing.assert_array_equal(found.labels, 0)


def test_correlation_distances_are_compared_without_the_levels_of_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 100))
    X[:20, :20] += 2.0
    X[20:, 20:40] += 2.0
    X += 20.0 * rng.normal(size=(40, 1))
    model = HighVarianceHC(99, metric="correlation", linkage="average").fit(X)
    found = branch_significance(model, X, n_simulations=20, random_state=0)
    assert found.p_value[0] < 0.001


def test_outliers_of_a_robust_fit_are_not_tested():
    X = CLEAR[:, :70].copy()
    X[3, :] += 30.0  # a failed array
    X[20, 5] = 1000.0
    model = MrSHC(**RECOMMENDED, robust=True).fit(X)
    assert 3 in model.outlier_samples_
    found = branch_significance(model, X, n_simulations=20, random_state=0)
    assert found.significant[0]
    rest = np.delete(np.arange(36), model.outlier_samples_)
    assert adjusted_rand_index(np.repeat([0, 1, 2], 12)[rest], found.labels[rest]) == 1.0


def test_parameters_are_reduced_to_the_samples_and_features_of_a_node():
    X = CLEAR[:, :100].copy()
    X[:12, 60:] = np.nan  # no values in one of the clusters
    model = HighVarianceHC(80, linkage="average", n_clusters=20)
    found = branch_significance(model.fit(X), X, n_simulations=10, random_state=0)
    assert found.node.size > 0


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (HighVarianceHC(30), "cluster_index"),
        (MrSHC([30], rank=2, n_references=5, random_state=0), "cluster_index"),
        (MrSHC(30, **RECOMMENDED), "separation"),
        (SHC(30, random_state=0), "separation"),
    ],
)
def test_the_test_of_sigclust2_is_used_only_if_nothing_is_selected(model, name):
    X = CLEAR[:, :30]
    found = branch_significance(model.fit(X), X, n_simulations=10, random_state=0)
    assert found.statistic_name == name


# Reproducibility ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [FILTER, MrSHC(**RECOMMENDED)])
def test_the_result_does_not_depend_on_n_jobs(model):
    X = make_simulation_1(0, mu=1.5, sizes=(10, 10, 10)).X[:, :120]
    results = [
        branch_significance(model.fit(X), X, n_simulations=10, random_state=3, n_jobs=n_jobs)
        for n_jobs in (None, 3)
    ]
    assert_equal(*results)


@pytest.mark.filterwarnings("error")
def test_the_result_does_not_depend_on_processes_and_checkpoints(tmp_path):
    fitted = FILTER.fit(CLEAR)
    expected = branch_significance(fitted, CLEAR, n_simulations=10, random_state=3)
    options = {"n_simulations": 10, "random_state": 3, "checkpoint": tmp_path / "x"}
    with parallel_config("loky", n_jobs=2):
        assert_equal(branch_significance(fitted, CLEAR, **options), expected)
    assert_equal(branch_significance(fitted, CLEAR, **options), expected)


def test_the_seed_determines_the_simulations():
    X = make_noise(1, n_samples=30, n_features=60).X
    one, other = (
        branch_significance(FILTER.fit(X), X, n_simulations=10, random_state=seed)
        for seed in (0, 1)
    )
    assert one.p_value[0] != other.p_value[0]
    assert one.statistic[0] == other.statistic[0]


def test_tables_and_single_precision_are_accepted():
    fitted = FILTER.fit(CLEAR)
    expected = branch_significance(fitted, CLEAR, n_simulations=10, random_state=0)
    table = pd.DataFrame(CLEAR).rename(columns=str)
    with_names = HighVarianceHC(40, linkage="ward").fit(table)
    assert_equal(branch_significance(with_names, table, n_simulations=10, random_state=0), expected)
    single = CLEAR.astype(np.float32)
    found = branch_significance(FILTER.fit(single), single, n_simulations=10, random_state=0)
    np.testing.assert_array_equal(found.labels, expected.labels)


def test_missing_values_are_accepted():
    X = CLEAR.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    found = branch_significance(FILTER.fit(X), X, n_simulations=20, random_state=0)
    assert adjusted_rand_index(np.repeat([0, 1, 2], 12), found.labels) == 1.0


def test_the_callback_counts_nodes_and_simulations():
    calls = []
    found = branch_significance(
        FILTER.fit(CLEAR),
        CLEAR,
        n_simulations=10,
        random_state=0,
        callback=lambda *call: calls.append(call),
    )
    assert [n_simulated for _, n_simulated in calls] == [*range(1, len(calls) + 1)]
    assert len(calls) == found.n_simulations.sum()
    assert [n_nodes for n_nodes, _ in calls] == sorted(n_nodes for n_nodes, _ in calls)
    assert calls[-1][0] < found.node.size
    # The limit holds for each test. A node below the root may be tested twice.
    assert found.n_simulations[0] == 10
    assert found.n_simulations[1:].max() == 20


def test_the_model_is_not_changed():
    model = MrSHC(**RECOMMENDED).fit(CLEAR)
    before, labels = model.get_params(), model.labels_.copy()
    branch_significance(model, CLEAR, n_simulations=10, random_state=0)
    assert model.get_params() == before
    np.testing.assert_array_equal(model.labels_, labels)


# sigclust2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["B", "I"])
def test_without_a_selection_the_p_values_are_those_of_sigclust2(name):
    X = reference.matrix("input_B")[:, :40] if name == "B" else reference.matrix("simI_rep1")
    model = HighVarianceHC(X.shape[1], linkage="ward").fit(X)
    found = branch_significance(model, X, n_simulations=200, random_state=0)
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


# Refusals ----------------------------------------------------------------------------------------


def test_other_data_are_refused():
    fitted = FILTER.fit(CLEAR)
    with pytest.raises(ValueError, match="X must be the data of the fit"):
        branch_significance(fitted, CLEAR[::-1])
    with pytest.raises(ValueError, match="with 36 samples, got 30"):
        branch_significance(fitted, CLEAR[:30])


def test_data_outside_memory_are_refused():
    X = csc_array(np.where(CLEAR > 1, CLEAR, 0.0))
    with pytest.raises(ValueError, match="branch_significance needs X in memory"):
        branch_significance(HighVarianceHC(10).fit(X), X)


def test_other_estimators_are_refused():
    with pytest.raises(ParameterError, match="branch_significance needs a fitted MrSHC"):
        branch_significance(KMeans(2, n_init=1).fit(CLEAR), CLEAR)


def test_a_complementary_fit_is_refused():
    first = SHC(10, random_state=0).fit(CLEAR)
    second = SHC(10, complement_of=first.dissimilarity_, random_state=0).fit(CLEAR)
    with pytest.raises(ParameterError, match="complement_of refers to a fit of these samples"):
        branch_significance(second, CLEAR)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.5}, "alpha"),
        ({"alpha": "small"}, "alpha"),
        ({"n_simulations": 5}, "n_simulations must be a whole number at least 10"),
        ({"n_simulations": 20.5}, "n_simulations"),
        ({"random_state": "a"}, "random_state"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        branch_significance(FILTER.fit(CLEAR), CLEAR, **options)


def test_few_samples_have_no_tests():
    X = CLEAR[10:18]
    found = branch_significance(HighVarianceHC(10).fit(X), X)
    assert found.node.size == 0
    np.testing.assert_array_equal(found.labels, 0)
