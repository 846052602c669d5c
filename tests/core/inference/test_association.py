import numpy as np
import pytest
from scipy import stats

from mrshc.core.inference.association import (
    benjamini_hochberg,
    cauchy_combination,
    column_tests,
    combined_tests,
    rank_features,
    rank_p_values,
)
from mrshc.core.inference.device_association import DeviceRanks
from mrshc.core.kernels.association import MAX_COMPARED, MIN_DIGIT_RANKED
from storage_backends import matrix_at, tables


def p_values_of(X, *partitions):
    matrix = matrix_at(X)
    return rank_p_values(matrix, [np.asarray(p) for p in partitions], indices=np.arange(X.shape[1]))


def plain_p_value(x, labels):
    """One-way analysis of variance on ranks, as scipy makes it."""
    used = ~np.isnan(x) & (labels >= 0)
    ranks, groups = stats.rankdata(x[used]), labels[used]
    return stats.f_oneway(*(ranks[groups == g] for g in np.unique(groups))).pvalue


def assert_plain(found, X, partitions):
    expected = [[plain_p_value(x, labels) for labels in partitions] for x in X.T]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_p_values_are_those_of_scipy(k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(40, 15))
    X[:20, :5] += 1.5  # some very small ones
    partitions = [np.sort(np.arange(40) % k), rng.permutation(np.arange(40) % k)]
    assert_plain(p_values_of(X, *partitions), X, partitions)


def test_missing_cells_and_negative_labels_take_no_part():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 15))
    X[rng.random(X.shape) < 0.3] = np.nan
    partitions = [rng.integers(-1, k, size=40) for k in (2, 3, 6)]
    found = p_values_of(X, *partitions)
    assert_plain(found, X, partitions)
    other = X.copy()
    other[partitions[0] < 0] = 100.0
    np.testing.assert_array_equal(p_values_of(other, partitions[0]), found[:, :1])


def test_tied_values_share_their_mean_rank_and_make_the_test_more_careful():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, size=(40, 10)).astype(float)
    labels = rng.permutation(np.arange(40) % 3)
    order = rng.permutation(40)
    found = p_values_of(X, labels)
    np.testing.assert_allclose(p_values_of(X[order], labels[order]), found, rtol=1e-10)
    ranks = stats.rankdata(X, axis=0)
    groups = [ranks[labels == k] for k in range(3)]
    between = sum(len(g) * (g.mean(axis=0) - 20.5) ** 2 for g in groups)
    share = between / (40 * (40**2 - 1) / 12)  # of ranks without ties
    expected = stats.f.sf(share / 2 / ((1 - share) / 37), 2, 37)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)
    assert (found[:, 0] > stats.f_oneway(*groups).pvalue).all()


def test_rare_values_in_noise_make_no_discoveries():
    """With a variance that shrinks with the ties, pairs of rare values would be significant."""
    X = (np.random.default_rng(2).random((60, 4000)) < 0.1).astype(float)
    small = (np.arange(60) < 3).astype(np.intp)
    assert (p_values_of(X, small) > 1e-4).all()


def test_p_values_of_noise_are_uniform():
    X = np.random.default_rng(2).standard_t(1, size=(60, 3000))
    for k in (2, 4, 6):
        p_values = p_values_of(X, np.arange(60) % k)[:, 0]
        assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_features_without_comparable_groups_have_a_p_value_of_one():
    X = np.random.default_rng(3).normal(size=(6, 4))
    X[:, 0] = 5.0
    X[:, 1] = np.nan
    X[0, 1] = 1.0
    X[:3, 2] = np.nan
    halves, single, apart = np.repeat([0, 1], 3), np.zeros(6, np.intp), np.arange(6)
    found = p_values_of(X, halves, single, apart, np.full(6, -1))
    np.testing.assert_array_equal(found[:3], 1.0)
    assert 0 < found[3, 0] < 1
    np.testing.assert_array_equal(found[3, 1:], 1.0)


def test_monotone_transformations_change_nothing():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 8))
    labels = np.arange(30) % 3
    found = p_values_of(X, labels)
    for other in (np.exp(X), X**3, 1e140 * X, 1e-140 * X, -X):
        np.testing.assert_allclose(p_values_of(other, labels), found, rtol=1e-9)


def test_p_values_do_not_depend_on_the_other_features_or_their_order():
    X = np.random.default_rng(5).normal(size=(300, 4000))  # more than one block
    labels = np.arange(300) % 4
    matrix = matrix_at(X)
    every = rank_p_values(matrix, [labels], indices=np.arange(4000))
    some = np.array([3999, 17, 0, 2500])
    np.testing.assert_array_equal(rank_p_values(matrix, [labels], indices=some), every[some])
    fewer = rank_p_values(matrix, [np.arange(300) % 6, labels], indices=some)
    np.testing.assert_array_equal(fewer[:, 1:], every[some])
    assert rank_p_values(matrix, [labels], indices=some[:0]).shape == (0, 1)


def test_p_values_do_not_depend_on_the_storage(implementation):
    partitions = [np.arange(24) % 2, np.arange(24) // 8 - 1]
    some = np.array([399, 17, 0, 250])
    for A in tables(implementation):
        expected = p_values_of(implementation.in_memory(A), *partitions)
        matrix = matrix_at(implementation(A))
        every = rank_p_values(matrix, partitions, indices=np.arange(400))
        np.testing.assert_array_equal(every, expected)
        np.testing.assert_array_equal(
            rank_p_values(matrix, partitions, indices=some), expected[some]
        )


# Rank tests and sums of squares together --------------------------------------------------------


def plain_between(x, labels):
    """Sum of squares between clusters over the observed values, scaled to all samples."""
    used = ~np.isnan(x)
    if not used.any():
        return 0.0
    x, labels, n = x[used], labels[used], x.size
    clusters = [x[labels == k] for k in np.unique(labels)]
    return sum(c.size * (c.mean() - x.mean()) ** 2 for c in clusters) * n / x.size


def random_partitions(rng, n, cluster_counts=(2, 3, 5, 7)):
    """Return partitions, one in each row, that need not contain all of their clusters."""
    return np.stack([rng.integers(k, size=n) for k in cluster_counts])


@pytest.mark.parametrize("kind", ["continuous", "ties", "missing values", "ties, missing values"])
def test_tests_of_columns_are_rank_tests_and_sums_of_squares(kind):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 30)) * 10.0 ** rng.integers(-3, 4, size=30)
    X[:20, :5] += 1.5
    if "ties" in kind:
        X = rng.integers(0, 4, size=X.shape).astype(float)
        X[:, 7] = 3.0
    if "missing" in kind:
        X[rng.random(X.shape) < 0.3] = np.nan
        X[:, 8] = np.nan
        X[1:, 9] = np.nan
    partitions = random_partitions(rng, 40)
    found = column_tests(X, partitions)
    np.testing.assert_allclose(found.p_values, p_values_of(X, *partitions), rtol=1e-9)
    expected = [[plain_between(x, labels) for labels in partitions] for x in X.T]
    np.testing.assert_allclose(found.between, expected, rtol=1e-9, atol=1e-18)


def test_sums_of_squares_keep_their_digits_if_the_mean_is_large():
    rng = np.random.default_rng(9)
    # Multiples of 2 ** -10 are stored exactly even after a shift by 2 ** 20.
    X = np.round(1024 * rng.normal(size=(30, 6))) / 1024
    partitions = random_partitions(rng, 30)
    expected = column_tests(X, partitions)
    found = column_tests(X + 2.0**20, partitions)
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    np.testing.assert_allclose(found.between, expected.between, rtol=1e-6, atol=1e-9)


def test_features_without_comparable_groups_have_no_association():
    X = np.random.default_rng(3).normal(size=(6, 3))
    X[:, 0] = 5.0
    X[:, 1] = np.nan
    partitions = np.stack([np.repeat([0, 1], 3), np.zeros(6, np.intp), np.arange(6)])
    found = column_tests(X, partitions)
    np.testing.assert_array_equal(found.p_values[:2], 1.0)
    np.testing.assert_array_equal(found.between[:2], 0.0)
    np.testing.assert_array_equal(found.p_values[2, 1:], 1.0)
    # With one sample in each cluster, the sum of squares is that of the centred values.
    assert found.between[2, 1] == pytest.approx(0.0, abs=1e-12)
    assert found.between[2, 2] == pytest.approx(6 * X[:, 2].var())


def test_each_feature_and_each_partition_is_tested_on_its_own():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 4000))  # more than one block
    partitions = random_partitions(rng, 300)
    every = combined_tests(matrix_at(X), partitions[:, None], DeviceRanks())
    some = np.array([3999, 17, 0, 2500])
    found = column_tests(X[:, some], partitions[2:3])
    combined = cauchy_combination(found.p_values)
    np.testing.assert_array_equal(combined, every.p_values[some, 2])
    np.testing.assert_array_equal(found.between, every.strengths[some, 2:3])


def test_the_tests_of_the_cuts_of_a_tree_are_combined():
    rng = np.random.default_rng(12)
    X, partitions = rng.normal(size=(40, 30)), random_partitions(rng, 40)
    found = combined_tests(matrix_at(X), np.stack([partitions[:2], partitions[2:]]), DeviceRanks())
    tests = column_tests(X, partitions)
    for tree, cuts in enumerate((slice(2), slice(2, 4))):
        expected = cauchy_combination(tests.p_values[:, cuts])
        np.testing.assert_array_equal(found.p_values[:, tree], expected)
        np.testing.assert_array_equal(found.strengths[:, tree], tests.between[:, cuts].mean(axis=1))


def test_association_does_not_depend_on_the_storage(implementation):
    partitions = random_partitions(np.random.default_rng(11), 24)
    # On a device, the sums of squares are added in another order.
    rtol = 1e-10 if implementation.name == "array API" else 0.0
    for A in tables(implementation):
        expected = combined_tests(
            matrix_at(implementation.in_memory(A)), partitions[None], DeviceRanks()
        )
        found = combined_tests(matrix_at(implementation(A)), partitions[None], DeviceRanks())
        np.testing.assert_allclose(found.p_values, expected.p_values, rtol=rtol, atol=0.0)
        np.testing.assert_allclose(found.strengths, expected.strengths, rtol=1e-8)


# Combination and correction ---------------------------------------------------------------------


def test_the_combination_follows_the_formula_of_the_paper():
    p_values = np.random.default_rng(6).random((200, 5)) ** [1, 2, 3, 4, 5]
    expected = stats.cauchy.sf(np.mean(np.tan((0.5 - p_values) * np.pi), axis=1))
    np.testing.assert_allclose(cauchy_combination(p_values), expected, rtol=1e-5)


def test_the_combination_of_equal_p_values_is_theirs():
    for p in (0.0, 1e-300, 1e-100, 1e-15, 0.9e-15, 1e-9, 0.3, 0.5, 1.0):
        assert cauchy_combination(np.full((1, 4), p))[0] == pytest.approx(p, rel=1e-7)


def test_a_tiny_p_value_is_multiplied_by_the_number_of_p_values():
    for p in (1e-300, 1e-16, 1e-15, 1e-14, 1e-10):
        rows = np.array([[p, 0.3, 0.5, 0.7]])
        assert cauchy_combination(rows)[0] == pytest.approx(4 * p, rel=1e-2)
    assert cauchy_combination(np.array([[0.0, 0.5, 1.0]]))[0] == 0.0


def test_p_values_of_one_are_ignored():
    """They mean that no test was possible."""
    rows = np.array([[0.3, 1.0], [1.0, 0.3], [0.3, 0.3], [1.0, 1.0]])
    np.testing.assert_allclose(cauchy_combination(rows), [0.3, 0.3, 0.3, 1.0], rtol=1e-12)


@pytest.mark.parametrize(("large", "used"), [(0.9985, 0.9985), (0.9992, 0.999), (0.99999, 0.999)])
def test_large_p_values_are_replaced_before_they_are_combined(large, used):
    """The Cauchy quantile of 0.999 cancels that of 0.001, so the combined p-value is one half."""
    expected = stats.cauchy.sf(np.mean(stats.cauchy.isf([0.001, used])))
    found = cauchy_combination(np.array([[0.001, large]]))[0]
    assert found == pytest.approx(expected, rel=1e-6)
    if used == 0.999:
        assert found == pytest.approx(0.5, rel=1e-6)


def test_the_combination_never_falls_when_a_p_value_rises():
    grid = np.concatenate([10.0 ** np.arange(-300, -1, 0.1), np.linspace(0.1, 0.99, 50)])
    combined = cauchy_combination(np.column_stack([grid, np.full(grid.size, 0.4)]))
    assert np.all(np.diff(combined) >= 0)
    assert np.all((combined >= 0) & (combined <= 1))


def test_q_values_are_those_of_scipy():
    rng = np.random.default_rng(7)
    for size in (1, 2, 50, 1000):
        p_values = np.round(rng.random(size) ** 3, 3)  # with ties and zeros
        np.testing.assert_allclose(
            benjamini_hochberg(p_values), stats.false_discovery_control(p_values)
        )


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.5, 1.0])
def test_small_q_values_need_only_the_small_p_values(share):
    rng = np.random.default_rng(8)
    p_values = rng.random(1000) ** 2
    all_q_values = benjamini_hochberg(p_values)
    is_small = p_values <= share
    q_values = benjamini_hochberg(p_values[is_small], n_hypotheses=1000)
    np.testing.assert_array_equal(q_values <= share, all_q_values[is_small] <= share)
    assert not np.any(all_q_values[~is_small] <= share)
    exact = q_values <= share
    np.testing.assert_array_equal(q_values[exact], all_q_values[is_small][exact])


def make_unusual_values(kind, size):
    """Return values whose order is difficult to find from their leading bits."""
    rng = np.random.default_rng(9)
    normal = rng.normal(size=size)
    return {
        "single": normal.astype(np.float32).astype(np.float64),
        "double": normal,
        "ties": rng.integers(-2, 3, size=size).astype(np.float64),
        "zeros": np.where(rng.random(size) < 0.5, -0.0, 0.0),
        "last bits": 1.0 + rng.integers(2000, size=size) * np.finfo(np.float64).eps,
        "negative": -1.0 - rng.integers(2000, size=size) * np.finfo(np.float64).eps,
        "tiny": rng.integers(-9, 9, size=size) * np.finfo(np.float64).smallest_subnormal,
        "large": normal * 1e300,
    }[kind]


@pytest.mark.parametrize("n", [MAX_COMPARED + 1, MIN_DIGIT_RANKED - 1, MIN_DIGIT_RANKED])
@pytest.mark.parametrize(
    "kind", ["single", "double", "ties", "zeros", "last bits", "negative", "tiny", "large"]
)
@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_ranks_are_midranks(n, kind, share_missing):
    features = make_unusual_values(kind, (3, n))
    features[np.random.default_rng(0).random(features.shape) < share_missing] = np.nan
    ranks = rank_features(features)
    expected = stats.rankdata(features, axis=1, nan_policy="omit")
    observed = ~np.isnan(features)
    np.testing.assert_array_equal(ranks[observed], expected[observed])
