import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import pdist, squareform

from mrshc.core.data.centred_array import centre_array
from mrshc.core.data.statistics import column_variances
from mrshc.core.robust.missing_values import CompletedSamples, complete_missing_cells
from mrshc.core.trees.tree import (
    ADDITIVE_METRICS,
    METRICS,
    SQUARED_EUCLIDEAN_METRICS,
    agglomerate,
    pairwise_distances,
)
from mrshc.datasets import make_simulation_1
from mrshc.metrics import classification_error_rate


def low_rank(rng, n=60, q=20, *, rank=2, sd=1.0):
    signal = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, q))
    return signal + sd * rng.normal(size=(n, q))


def with_missing_cells(rng, X, share=0.2):
    missing = rng.random(X.shape) < share
    missing[:, missing.all(axis=0)] = False
    return np.where(missing, np.nan, X)


def scipy_distances(X, metric):
    return squareform(pdist(X, metric))


def assert_distances(distances):
    assert np.isfinite(distances).all()
    assert np.all(distances >= 0)
    np.testing.assert_array_equal(np.diag(distances), 0.0)
    np.testing.assert_allclose(distances, distances.T, rtol=1e-12)


# Comparison with a simple implementation ------------------------------------------------------


def plain_fit(X, rank):
    """Regularised iterative PCA: completed values, low-rank fit, loadings, signal and noise."""
    missing, (n, q) = np.isnan(X), X.shape
    counts = np.maximum((~missing).sum(axis=0), 1)
    start = np.nansum(X, axis=0) / counts
    values = np.where(missing, start, X)
    scale = np.sqrt(np.mean(np.sum((values - start) ** 2, axis=0) / counts))
    loadings = np.linalg.svd(values - start)[2][:rank].T
    # The number of values after centring, minus the number of parameters of the components.
    freedom = (n - 1) * q - rank * (n - 1 + q - rank)
    for _ in range(50):
        means = values.mean(axis=0)
        # One step of subspace iteration.
        basis = np.linalg.qr((values - means) @ loadings)[0]
        rotation, singular, rows = np.linalg.svd(basis.T @ (values - means), full_matrices=False)
        loadings = rows.T
        noise = (np.sum((values - means) ** 2) - np.sum(singular**2)) / freedom
        signal = np.maximum(singular**2 - noise * max(n, q), 0)
        fit = means + basis @ rotation @ np.diag(signal / singular) @ rows
        change = np.abs(fit - values)[missing].max(initial=0)
        values = np.where(missing, fit, values)
        if change <= 0.01 * scale:
            break
    return values, fit, loadings, signal, noise, freedom


def plain_completion(X):
    """Return completed values and their variances, computed for one sample after the other."""
    missing, (n, q) = np.isnan(X), X.shape
    values, fit, loadings, signal, noise, freedom = plain_fit(X, min(3, n - 2, q - 1))
    residuals = np.where(missing, 0, X - fit) ** 2
    residual_variances = residuals.sum(axis=0) / (~missing).sum(axis=0) * (n - 1) * q / freedom
    variances = np.zeros((n, q))
    used = loadings[:, signal > 0]  # scores of components without signal are zero
    prior = np.diag((n - 1) / signal[signal > 0])
    for i in range(n):
        observed = used[~missing[i]]
        covariance = np.linalg.inv(observed.T @ observed / noise + prior)
        of_scores = np.diag(used @ covariance @ used.T)
        variances[i, missing[i]] = (residual_variances + of_scores)[missing[i]]
    return values, variances


@pytest.mark.parametrize(
    ("n", "q", "rank", "share"),
    [
        (12, 8, 5, 0.1),  # three components of five
        (12, 8, 1, 0.2),  # components of noise
        (6, 15, 2, 0.2),
        (30, 4, 2, 0.3),  # one degree of freedom fewer for each component
        (9, 3, 1, 0.2),  # two components
        (9, 2, 1, 0.2),  # one component
        (4, 9, 2, 0.1),
        (3, 9, 1, 0.1),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_completed_values_and_variances_equal_those_of_a_simple_implementation(
    n, q, rank, share, seed
):
    rng = np.random.default_rng(seed)
    X = 5.0 + low_rank(rng, n, q, rank=rank, sd=0.5)
    is_missing = rng.random(X.shape) < share
    is_missing[:2] = False
    is_missing[-1, 0] = True
    X[is_missing] = np.nan
    found = complete_missing_cells(X)
    values, variances = plain_completion(X)
    np.testing.assert_allclose(found.values, values, rtol=1e-7)
    np.testing.assert_allclose(found.variances, variances, rtol=1e-6)


def test_features_with_a_single_observed_value_and_samples_without_any_are_completed():
    X = low_rank(np.random.default_rng(11), 10, 5, sd=0.5) + 3.0
    X[1:, 2] = np.nan
    X[4] = np.nan
    found = complete_missing_cells(X)
    values, variances = plain_completion(X)
    np.testing.assert_allclose(found.values, values, rtol=1e-7)
    np.testing.assert_allclose(found.variances, variances, rtol=1e-6)


@pytest.mark.parametrize(
    ("X", "values", "variances"),
    [
        ([[1.0], [np.nan], [4.0]], [[1], [2.5], [4]], [[0], [2.25], [0]]),
        ([[1.0, np.nan], [np.nan, 7]], [[1, 7], [1, 7]], [[0, 0], [0, 0]]),
        ([[1.0, 2], [5, np.nan]], [[1, 2], [5, 2]], [[0, 0], [0, 0]]),
        ([[np.nan], [np.nan]], [[0], [0]], [[0], [0]]),
        ([[2.0, 3, 1], [2, np.nan, 1], [2, 3, 1]], [[2, 3, 1]] * 3, np.zeros((3, 3))),
    ],
    ids=["one feature", "two samples", "two samples, one missing", "nothing observed", "constant"],
)
def test_without_components_missing_values_are_estimated_by_column_means(X, values, variances):
    found = complete_missing_cells(np.array(X))
    np.testing.assert_allclose(found.values, values)
    np.testing.assert_allclose(found.variances, variances, atol=1e-15)


def test_a_feature_without_observed_values_is_completed_by_zeros():
    X = low_rank(np.random.default_rng(12), 10, 5)
    X[:, 3] = np.nan
    found = complete_missing_cells(X)
    np.testing.assert_allclose(found.values[:, 3], 0, atol=1e-12)
    np.testing.assert_allclose(found.variances, 0, atol=1e-12)


def test_values_without_noise_have_no_variance():
    """Only the first feature varies, so that one component explains all values exactly."""
    X = np.column_stack([np.tile([1.0, -1.0], 4), np.full(8, 5.0), np.full(8, 5.0)])
    X[3, 1] = np.nan
    found = complete_missing_cells(X)
    np.testing.assert_allclose(found.values[3], [-1, 5, 5], rtol=1e-12)
    np.testing.assert_array_equal(found.variances, 0)


@pytest.mark.parametrize("others_are_complete", [False, True])
@pytest.mark.parametrize("excluded", [[0], [2], [7, 3], [11]])
def test_missing_values_of_excluded_samples_are_column_means(excluded, others_are_complete):
    rng = np.random.default_rng(13)
    X = 4.0 + low_rank(rng, 12, 5)
    others = np.setdiff1d(np.arange(12), excluded)
    if not others_are_complete:
        X[others[[0, 3, 3, 5]], [1, 0, 4, 3]] = np.nan
    X[excluded, 1:3] = np.nan
    found = complete_missing_cells(X, excluded=np.array(excluded))
    rest = X[others], np.zeros((others.size, 5))
    if not others_are_complete:
        rest = plain_completion(X[others])
    np.testing.assert_allclose(found.values[others], rest[0], rtol=1e-7)
    np.testing.assert_allclose(found.variances[others], rest[1], rtol=1e-6)
    for i in excluded:
        np.testing.assert_allclose(found.values[i, 1:3], rest[0].mean(axis=0)[1:3], rtol=1e-7)
        np.testing.assert_array_equal(found.values[i, [0, 3, 4]], X[i, [0, 3, 4]])
        np.testing.assert_allclose(found.variances[i, 1:3], rest[0].var(axis=0)[1:3], rtol=1e-6)
        np.testing.assert_array_equal(found.variances[i, [0, 3, 4]], 0)


def test_excluding_no_sample_changes_nothing():
    rng = np.random.default_rng(14)
    X = with_missing_cells(rng, low_rank(rng, 12, 5))
    found, expected = complete_missing_cells(X, excluded=np.empty(0, int)), plain_completion(X)
    np.testing.assert_allclose(found.values, expected[0], rtol=1e-7)
    np.testing.assert_allclose(found.variances, expected[1], rtol=1e-6)


def test_expected_distances_follow_the_formulas_of_normal_distributions():
    rng = np.random.default_rng(15)
    values = rng.normal(size=(7, 4)).round(1)
    variances = np.where(rng.random((7, 4)) < 0.4, rng.uniform(0.1, 3, size=(7, 4)), 0)
    values[1] = values[0]  # equal means do not make an expected distance of zero
    expected = {metric: np.zeros((7, 7)) for metric in ADDITIVE_METRICS}
    for i, j in zip(*np.nonzero(~np.eye(7, dtype=bool)), strict=True):
        for d, v in zip(np.abs(values[i] - values[j]), variances[i] + variances[j], strict=True):
            expected["sqeuclidean"][i, j] += d**2 + v
            folded = stats.foldnorm.mean(d / np.sqrt(v), scale=np.sqrt(v)) if v else d
            expected["cityblock"][i, j] += folded
    samples = CompletedSamples(values=values, variances=variances)
    for metric in ADDITIVE_METRICS:
        np.testing.assert_allclose(samples.distances(metric), expected[metric], rtol=1e-10)


def test_expected_correlations_have_expected_sums_of_squares():
    """Errors are independent, so they increase the sums of squares but not the products."""
    rng = np.random.default_rng(16)
    values = rng.normal(size=(7, 5))
    variances = np.where(rng.random((7, 5)) < 0.4, rng.uniform(0.1, 3, size=(7, 5)), 0)
    draws = values + np.sqrt(variances) * rng.normal(size=(200_000, 7, 5))
    draws -= draws.mean(axis=2, keepdims=True)
    products = np.einsum("dik,djk->ij", draws, draws) / len(draws)
    scale = np.sqrt(np.diag(products))
    expected = 1 - products / np.outer(scale, scale)
    found = CompletedSamples(values=values, variances=variances).distances("correlation")
    assert_distances(found)
    np.testing.assert_allclose(found, expected, atol=0.005)  # the error of 200,000 draws
    plain = CompletedSamples(values=values, variances=None).distances("correlation")
    assert np.abs(plain - expected).max() > 0.1


@pytest.mark.parametrize("metric", METRICS)
def test_complete_data_are_not_changed(metric):
    X = np.random.default_rng(0).normal(size=(10, 4))
    samples = complete_missing_cells(X)
    assert samples.values is X
    np.testing.assert_array_equal(samples.distances(metric), pairwise_distances(X, metric))
    np.testing.assert_allclose(samples.distances(metric), scipy_distances(X, metric), atol=1e-15)


def test_observed_cells_and_the_array_of_the_caller_do_not_change():
    rng = np.random.default_rng(1)
    X = with_missing_cells(rng, low_rank(rng))
    before = X.copy()
    samples = complete_missing_cells(X)
    np.testing.assert_array_equal(X, before)
    observed = ~np.isnan(X)
    np.testing.assert_array_equal(samples.values[observed], X[observed])
    np.testing.assert_array_equal(samples.variances > 0, ~observed)
    assert np.isfinite(samples.values).all()


def test_missing_cells_are_predicted_from_the_other_cells_of_their_sample():
    rng = np.random.default_rng(2)
    truth = low_rank(rng, sd=0.2)
    X = with_missing_cells(rng, truth)
    missing = np.isnan(X)
    error = (complete_missing_cells(X).values - truth)[missing]
    from_means = (np.nanmean(X, axis=0) - truth)[missing]
    assert np.mean(error**2) < 0.1 * np.mean(from_means**2)


def test_the_variance_estimates_the_squared_error():
    rng = np.random.default_rng(3)
    errors, variances = [], []
    for _ in range(20):
        truth = low_rank(rng, sd=0.5)
        X = with_missing_cells(rng, truth)
        samples, missing = complete_missing_cells(X), np.isnan(X)
        errors.append(np.mean((samples.values - truth)[missing] ** 2))
        variances.append(np.mean(samples.variances[missing]))
    assert 0.7 < np.mean(variances) / np.mean(errors) < 1.2


def test_a_sample_without_observed_cells_has_average_distances():
    rng = np.random.default_rng(8)
    ratios = []
    for _ in range(20):
        truth = low_rank(rng, sd=0.5)
        X = truth.copy()
        X[0] = np.nan
        far = complete_missing_cells(X).distances("sqeuclidean")[0, 1:].mean()
        ratios.append(far / scipy_distances(truth, "sqeuclidean")[1:, 1:].mean())
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)


def test_excluded_samples_do_not_change_the_others():
    rng = np.random.default_rng(9)
    X = with_missing_cells(rng, low_rank(rng, n=30))
    with_excluded = np.vstack([np.full(X.shape[1], 50.0), X])
    with_excluded[0, :3] = np.nan
    apart = complete_missing_cells(with_excluded, excluded=np.array([0])).distances("sqeuclidean")
    assert_distances(apart)
    np.testing.assert_array_equal(apart[1:, 1:], complete_missing_cells(X).distances("sqeuclidean"))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("q", "rank", "sd"), [(20, 2, 1.0), (20, 2, 0.3), (10, 0, 1.0)])
def test_expected_distances_are_those_of_the_true_samples_on_average(metric, q, rank, sd):
    rng = np.random.default_rng(4)
    ratios, filled = [], []
    for _ in range(10):
        # The features have different means, as in most data with correlations.
        truth = low_rank(rng, q=q, rank=rank, sd=sd) + 3 * rng.normal(size=q)
        X = with_missing_cells(rng, truth)
        true = scipy_distances(truth, metric).sum()
        ratios.append(complete_missing_cells(X).distances(metric).sum() / true)
        means = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        filled.append(scipy_distances(means, metric).sum() / true)
    # A ratio of expectations is only approximately the expectation of a correlation.
    error = 0.06 if metric == "correlation" else 0.03
    assert np.mean(ratios) == pytest.approx(1, abs=error)
    assert np.mean(filled) < 0.9, "filling in means would make distances too small"


@pytest.mark.parametrize("metric", SQUARED_EUCLIDEAN_METRICS)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_completed_samples_are_points_in_euclidean_space(share, metric):
    """Ward's linkage and k-means on distances are valid only for Euclidean distances."""
    rng = np.random.default_rng(5)
    distances = complete_missing_cells(
        with_missing_cells(rng, low_rank(rng, n=30), share)
    ).distances(metric)
    assert_distances(distances)
    centring = np.eye(30) - 1 / 30
    gram = -0.5 * centring @ distances @ centring
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * np.trace(gram)


def test_expected_distances_are_those_of_drawn_samples():
    rng = np.random.default_rng(6)
    values, missing = rng.normal(size=(6, 3)), rng.random((6, 3)) < 0.5
    variances = missing * np.array([0.5, 2.0, 0.0])
    samples = CompletedSamples(values=values, variances=variances)
    draws = values + np.sqrt(variances) * rng.normal(size=(20_000, 6, 3))
    apart = draws[:, :, None] - draws[:, None, :]
    for metric, lengths in (("cityblock", np.abs(apart)), ("sqeuclidean", apart**2)):
        expected = lengths.sum(axis=-1).mean(axis=0)
        found = samples.distances(metric)
        assert_distances(found)
        np.testing.assert_allclose(found, expected, rtol=0.03, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_unit_of_the_data_does_not_matter(metric, scale):
    rng = np.random.default_rng(7)
    X = with_missing_cells(rng, low_rank(rng, n=12, q=6))
    power = {"sqeuclidean": 2, "cityblock": 1, "correlation": 0}[metric]
    scaled = complete_missing_cells(X * scale).distances(metric)
    np.testing.assert_allclose(
        scaled / scale**power, complete_missing_cells(X).distances(metric), rtol=1e-9
    )


def test_shifts_of_the_features_and_order_of_rows_and_columns_do_not_matter():
    rng = np.random.default_rng(8)
    X = with_missing_cells(rng, low_rank(rng, n=20, q=8))
    expected = complete_missing_cells(X).distances("sqeuclidean")
    rows, columns = rng.permutation(20), rng.permutation(8)
    for other in (X + 100 * rng.normal(size=8), X[:, columns]):
        np.testing.assert_allclose(
            complete_missing_cells(other).distances("sqeuclidean"), expected, rtol=1e-8
        )
    np.testing.assert_allclose(
        complete_missing_cells(X[rows]).distances("sqeuclidean"),
        expected[np.ix_(rows, rows)],
        rtol=1e-8,
    )


def degenerate_tables():
    rng = np.random.default_rng(9)

    def table(n, q, *cells):
        X = rng.normal(size=(n, q))
        for rows, columns in cells:
            X[rows, columns] = np.nan
        return X

    constant = np.full((8, 3), 2.0)
    constant[0, 0] = constant[3, 1] = np.nan
    some_constant = table(8, 4, (2, 1), (5, 3))
    some_constant[:, 0] = 1.0
    some_constant[4, 0] = np.nan
    copies = np.repeat(table(5, 4, (2, 1)), 4, axis=0)
    return {
        "one feature": table(6, 1, (2, 0)),
        "two features": table(6, 2, (2, 0), (3, 1)),
        "three samples": table(3, 2, (0, 0)),
        "three samples, many features": table(3, 30, (0, 0), (1, slice(3, 9))),
        "a sample without any": table(10, 4, (3, slice(None))),
        "a feature with one": table(10, 4, (slice(1, None), 2)),
        "only the diagonal": np.where(np.eye(6) > 0, rng.normal(size=(6, 6)), np.nan),
        "nothing varies": constant,
        "a constant feature": some_constant,
        "copies": copies,
        "more features than samples": with_missing_cells(rng, rng.normal(size=(5, 50)), 0.4),
        "mostly missing": with_missing_cells(rng, rng.normal(size=(20, 10)), 0.9),
    }


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", degenerate_tables())
def test_degenerate_tables_have_distances(name, metric):
    X = degenerate_tables()[name]
    distances = complete_missing_cells(X).distances(metric)
    assert_distances(distances)
    agglomerate(distances, "average" if metric == "cityblock" else "ward")
    whole = ~np.isnan(X).any(axis=1)
    both = np.ix_(whole, whole)
    np.testing.assert_allclose(
        distances[both], pairwise_distances(X, metric)[both], rtol=1e-9, atol=1e-12
    )


def test_a_sample_of_which_nothing_is_known_is_as_far_as_any():
    """Its cells are as uncertain as the features vary, not only as the components leave them."""
    rng = np.random.default_rng(10)
    ratios = []
    for _ in range(20):
        truth = low_rank(rng, rank=2, sd=0.3)
        X = truth.copy()
        X[0] = np.nan
        ratios.append(
            complete_missing_cells(X).distances("sqeuclidean")[0].sum()
            / scipy_distances(truth, "sqeuclidean")[1:, 1:].sum(axis=1).mean()
        )
    assert np.mean(ratios) == pytest.approx(1, abs=0.2)


def test_a_fifth_of_the_cells_missing_hardly_blurs_the_clusters():
    errors = []
    for seed in range(5):
        data = make_simulation_1(seed)
        rng = np.random.default_rng(seed)
        X = data.X[:, data.support]
        both = [
            complete_missing_cells(table).distances("sqeuclidean")
            for table in (X, with_missing_cells(rng, X))
        ]
        cuts = [agglomerate(distances, "ward").cut(3) for distances in both]
        errors.append([classification_error_rate(data.labels, cut) for cut in cuts])
    complete, missing = np.mean(errors, axis=0)
    assert missing < complete + 0.05


# Missing cells of a centred matrix -----------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_columns_come_back_with_their_missing_cells(layout, dtype):
    rng = np.random.default_rng(6)
    X = rng.normal(loc=3, size=(9, 12)).astype(dtype)
    X[rng.random(X.shape) < 0.3] = np.nan
    matrix = centre_array(layout(X), center="columns", drop_constant=True)
    for indices in (np.arange(12), np.array([7, 2, 11]), np.empty(0, np.intp)):
        found = matrix.columns(indices)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, X[:, indices])


def test_variances_are_those_of_the_observed_cells():
    X = np.random.default_rng(8).normal(size=(20, 4)) + 1e6
    X[::3, 1] = np.nan
    X[1:, 2] = np.nan
    X[:, 3] = 0.1
    X[4, 3] = np.nan
    variances = column_variances(X)
    np.testing.assert_allclose(variances[:2], np.nanvar(X[:, :2], axis=0, ddof=1), rtol=1e-9)
    assert variances[2] == variances[3] == 0.0
