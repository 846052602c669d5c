import numpy as np
import pytest

from mrshc.datasets import (
    make_noise,
    make_section2_example,
    make_simulation_1,
    make_simulation_2,
    with_missing_cells,
    with_outlying_cells,
    with_outlying_samples,
)

MAKERS = [
    (make_section2_example, (20, 15), 4, 4),
    (make_simulation_1, (60, 500), 3, 50),
    (make_simulation_2, (80, 500), 4, 50),
]


@pytest.mark.parametrize(("make", "shape", "n_clusters", "n_informative"), MAKERS)
def test_shapes_and_names(make, shape, n_clusters, n_informative):
    data = make(0)
    assert data.X.shape == shape == (len(data.sample_names), len(data.feature_names))
    assert len(set(np.bincount(data.labels))) == 1
    assert data.labels.max() + 1 == n_clusters
    np.testing.assert_array_equal(np.flatnonzero(data.support), np.arange(n_informative))
    assert len(set(data.sample_names)) == shape[0]


@pytest.mark.parametrize("make", [row[0] for row in MAKERS])
def test_equal_seeds_give_equal_data(make):
    np.testing.assert_array_equal(make(3).X, make(3).X)
    assert np.any(make(3).X != make(4).X)
    np.testing.assert_array_equal(make(np.random.RandomState(3)).X, make(3).X)


def cluster_means(data):
    return np.array([data.X[data.labels == k].mean(axis=0) for k in np.unique(data.labels)])


def test_section_2_means():
    means = cluster_means(make_section2_example(0, noise_sd=1e-9))[:, :4]
    np.testing.assert_allclose(
        means, [[1, 1, 1, 1], [-1, -1, 1, 1], [-1, -1, -1, -1], [1, 1, -1, -1]], atol=1e-6
    )


def test_simulation_means():
    means = cluster_means(make_simulation_2(0, informative_sd=1e-9, mu=0.8))
    np.testing.assert_allclose(means[:, 0], [0.8, -1.2, 0, 0], atol=1e-6)
    np.testing.assert_allclose(means[:, 30], [0.8, 0, -0.8, 0], atol=1e-6)
    first = cluster_means(make_simulation_1(0, mu=50.0))
    np.testing.assert_allclose(first[:, :50].mean(axis=1), [0, 50, -50], atol=0.2)
    assert np.abs(first[:, 50:]).max() < 1.5


def test_noise_has_the_given_standard_deviation():
    data = make_simulation_2(0, informative_sd=0.1)
    residual = data.X - cluster_means(data)[data.labels]
    assert residual[:, :50].std() == pytest.approx(0.1, rel=0.1)
    assert residual[:, 50:].std() == pytest.approx(1.0, rel=0.1)


def test_clusters_may_have_unequal_sizes():
    data = make_simulation_1(0, sizes=(40, 15, 5))
    assert np.bincount(data.labels).tolist() == [40, 15, 5]
    assert make_simulation_2(0, sizes=(5, 6, 7, 8)).X.shape == (26, 500)
    with pytest.raises(ValueError, match="sizes must hold 3 numbers, one for each cluster, got 2"):
        make_simulation_1(0, sizes=(30, 30))


def test_other_features_may_be_correlated_in_blocks():
    X = make_simulation_1(0, noise_correlation=0.5, sizes=(500, 500, 500)).X
    correlation = np.corrcoef(X[:, 50:80].T)
    within = np.kron(np.eye(3), np.ones((10, 10))) - np.eye(30)
    assert correlation[within == 1].mean() == pytest.approx(0.5, abs=0.05)
    assert np.abs(correlation[(within == 0) & ~np.eye(30, dtype=bool)]).max() < 0.15
    assert X[:, 50:].std() == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("correlation", [-0.5, 1.0, 1.5])
def test_impossible_correlations_are_refused(correlation):
    with pytest.raises(ValueError, match=r"noise_correlation must be in \[0, 1\)"):
        make_simulation_1(0, noise_correlation=correlation)


def test_noise_may_have_heavy_tails():
    assert np.abs(make_simulation_2(0, noise="t3").X).max() > 10
    with pytest.raises(ValueError, match="noise must be one of"):
        make_noise(0, noise="cauchy")


def test_pure_noise_has_no_clusters():
    data = make_noise(0)
    assert data.X.shape == (60, 500)
    assert not data.labels.any()
    assert not data.support.any()


def test_t_noise_has_the_variance_of_normal_noise():
    for noise in ("t3", "t5"):
        X = make_noise(0, n_samples=500, n_features=2000, noise=noise).X
        assert np.median(X.var(axis=0)) == pytest.approx(1, abs=0.15)


def test_the_given_share_of_cells_is_contaminated_and_no_other_cell_changes():
    data = make_simulation_1(0)
    gaps = with_missing_cells(data, 1, share=0.2).X
    assert np.isnan(gaps).mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_array_equal(gaps[~np.isnan(gaps)], data.X[~np.isnan(gaps)])
    spikes = with_outlying_cells(data, 1, share=0.02, sd=10.0).X
    changed = spikes != data.X
    assert changed.mean() == pytest.approx(0.02, abs=0.003)
    assert spikes[changed].std() == pytest.approx(10, rel=0.1)


def test_indices_of_shifted_samples_are_returned():
    data = make_simulation_2(0)
    moved = with_outlying_samples(data, 1, share=0.05, shift=10.0)
    lengths = np.linalg.norm(moved.X - data.X, axis=1)
    assert np.flatnonzero(lengths).tolist() == list(moved.outlying)
    np.testing.assert_allclose(lengths[list(moved.outlying)], np.full(4, 10.0))
    everywhere = with_outlying_samples(data, 1, share=0.05, shift=10.0, spread="every feature")
    shifts = (everywhere.X - data.X)[list(everywhere.outlying)]
    np.testing.assert_allclose(np.abs(shifts), 10.0)
    assert abs(shifts.mean()) < 1


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_shares_outside_zero_to_one_are_refused(share):
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\), got"):
        with_missing_cells(make_simulation_1(0), share=share)


def test_unknown_spread_is_refused():
    with pytest.raises(ValueError, match="spread must be one of"):
        with_outlying_samples(make_simulation_1(0), share=0.1, shift=1.0, spread="sideways")


@pytest.mark.parametrize("factor", ["normal", "uniform", "exponential"])
def test_a_factor_orders_the_samples_without_dividing_them(factor):
    X = make_noise(0, n_samples=2000, n_features=60, factor_loading=2.0, factor=factor).X
    score = X[:, :50].mean(axis=1) / 2.0
    assert abs(score.mean()) < 0.1
    assert score.var() == pytest.approx(1.0, abs=0.15)
    # The other features do not depend on it.
    assert np.abs(np.corrcoef(score, X[:, 50:].T)[0, 1:]).max() < 0.1
    expected = {"normal": 3.0, "uniform": 1.8, "exponential": 9.0}[factor]
    kurtosis = np.mean((score - score.mean()) ** 4) / score.var() ** 2
    assert kurtosis == pytest.approx(expected, rel=0.25)


def test_unknown_factors_are_refused():
    with pytest.raises(ValueError, match="factor must be one of"):
        make_noise(0, factor_loading=1.0, factor="bimodal")
