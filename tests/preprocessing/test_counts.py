"""Counts are filtered and normalised as the formulas say."""

import numpy as np
import pytest

from mrshc.preprocessing import (
    CountsPerMillion,
    Log2,
    LowCountFilter,
    SizeFactors,
    chain,
    prepare,
)


def simulated_counts(n=8, p=60, *, seed=0, depths=None):
    """Return negative binomial counts; the second half of the samples has higher features 0-5."""
    rng = np.random.default_rng(seed)
    depths = rng.uniform(0.5, 2, size=n) if depths is None else np.asarray(depths)
    means = np.outer(depths, np.exp(rng.normal(5, 1, size=p)))
    means[n // 2 :, :6] *= 8
    return rng.negative_binomial(10, 10 / (10 + means)).astype(float)


def size_factors_by_the_formula(K):
    """Return the size factors of Anders and Huber (2010), equation 5, computed in plain loops."""
    m = len(K)
    factors = []
    for i in range(m):
        ratios = [
            K[i, j] / np.prod([K[v, j] ** (1 / m) for v in range(m)])
            for j in range(K.shape[1])
            if all(K[v, j] > 0 for v in range(m))
        ]
        factors.append(np.median(ratios))
    return np.array(factors)


def test_size_factors_are_medians_of_ratios_to_geometric_means():
    K = simulated_counts()
    K[2, 7] = 0  # a feature with a zero is not used
    step = SizeFactors().fit(K)
    np.testing.assert_allclose(step.size_factors_, size_factors_by_the_formula(K), rtol=1e-12)
    np.testing.assert_allclose(step.transform(K), K / step.size_factors_[:, None])
    assert step.reference_[7] == 0


def test_size_factors_find_the_depths_in_spite_of_a_dominating_feature():
    depths = np.array([1.0, 2, 4, 0.5, 1, 3])
    K = np.outer(depths, np.arange(1, 101.0)) * 8
    K[3:, 0] *= 1000  # affects totals, but not the median
    factors = SizeFactors().fit(K).size_factors_
    np.testing.assert_allclose(factors / factors[0], depths / depths[0])
    totals = K.sum(axis=1)
    assert not np.allclose(totals / totals[0], depths / depths[0], rtol=0.1)


def test_new_samples_are_compared_with_the_reference_of_the_fit():
    K = simulated_counts(10)
    step = SizeFactors().fit(K[:8])
    np.testing.assert_allclose(step.transform(3 * K[:8]), step.transform(K[:8]))
    alone = step.transform(K[8:9])
    np.testing.assert_allclose(alone, step.transform(K[8:])[:1])


def test_missing_counts_are_left_out():
    K = simulated_counts()
    K[0, 3] = K[4, 50] = np.nan
    complete = [j for j in range(K.shape[1]) if j not in (3, 50)]
    factors = SizeFactors().fit(K).size_factors_
    np.testing.assert_allclose(factors, size_factors_by_the_formula(K[:, complete]), rtol=0.05)
    per_million = CountsPerMillion().fit_transform(K)
    np.testing.assert_allclose(np.nansum(per_million, axis=1), 1e6)
    assert np.isnan(per_million[0, 3])


def test_counts_per_million_have_equal_totals():
    K = simulated_counts()
    np.testing.assert_allclose(CountsPerMillion().fit_transform(K), K / K.sum(1)[:, None] * 1e6)


@pytest.mark.parametrize("step", [CountsPerMillion, SizeFactors])
def test_a_prior_count_is_a_count_of_an_average_sample(step):
    """Zeros have the same value in all samples; 0 and 1 count differ as in raw counts."""
    K = np.tile(np.arange(1.0, 41), (4, 1)) * np.array([[1], [1], [2], [2]])
    K = np.hstack([K, np.zeros((4, 1))])
    X = step(prior_count=0.5).fit_transform(K)
    np.testing.assert_allclose(X[:, -1], X[0, -1])
    per_count = X[:, -1] / 0.5  # of an average sample
    ratio = (X[0, 0] - X[0, -1]) / per_count[0]
    average = 1.5 if step is CountsPerMillion else np.sqrt(2)  # arithmetic or geometric mean
    np.testing.assert_allclose(ratio, average)
    np.testing.assert_allclose(X - X[:, -1:], step().fit_transform(K))
    with pytest.raises(ValueError, match="prior_count must be"):
        step(prior_count=-1).fit(K)


@pytest.mark.parametrize(
    ("low", "n_samples", "kept"), [(10, 2, [0, 2]), (10, 3, [2]), (0, 3, "all")]
)
def test_features_need_enough_counts_in_enough_samples(low, n_samples, kept):
    K = [[10, 9, 30, 0], [15, 9, 10, 0], [0, 11, 25, np.nan]]
    if kept == "all":  # a missing value is not a sample
        kept = [0, 1, 2]
    chosen = LowCountFilter(low, n_samples).fit(K).get_support(indices=True)
    assert chosen.tolist() == kept


@pytest.mark.parametrize("step", [CountsPerMillion(), SizeFactors(), LowCountFilter(1, 1)], ids=str)
def test_negative_values_are_not_counts(step):
    with pytest.raises(
        ValueError, match=r"not be negative, but 1 value of X is \(first in feature 1"
    ):
        step.fit([[1, -2], [3, 4]])


def test_samples_without_counts_are_refused():
    with pytest.raises(ValueError, match="a count above 0, but sample 1 has none"):
        CountsPerMillion().fit([[1, 2], [0, 0]])
    with pytest.raises(ValueError, match=r"positive in all samples, but X has 0.*='cpm'"):
        SizeFactors().fit([[1, 0], [0, 1]])
    step = SizeFactors().fit([[1, 2, 3], [2, 3, 4]])
    with pytest.raises(ValueError, match="are 0 or missing in sample 1"):
        step.transform([[1, 2, 3], [0, 0, 5]])
    with pytest.raises(ValueError, match="are 0 or missing in sample 0"):
        step.transform([[np.nan, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_count": -1}, "min_count must be"),
        ({"min_samples": 0}, "min_samples must be a whole number in"),
        ({"min_samples": 4}, r"min_samples must be a whole number in \[1, 3\], got 4"),
    ],
)
def test_filters_need_possible_limits(parameters, message):
    with pytest.raises(ValueError, match=message):
        LowCountFilter(**parameters).fit(np.ones((3, 2)))


@pytest.mark.parametrize("name", ["cpm", "size-factors"])
def test_a_normalisation_is_followed_by_logarithms(name):
    K = simulated_counts()
    K[0, 0] = 0
    steps = chain(normalize=name, min_count=20, min_samples=3)
    assert [type(step).__name__ for step in steps] == [
        "LowCountFilter",
        {"cpm": "CountsPerMillion", "size-factors": "SizeFactors"}[name],
        "Log2",
    ]
    assert (steps[1].prior_count, steps[2].pseudocount) == (1, 0)
    assert chain(normalize=name, pseudocount=0.5)[0].prior_count == 0.5
    prepared = prepare(K, steps)
    expected = Log2().fit_transform(steps[1].fit_transform(K[:, prepared.kept]))
    np.testing.assert_allclose(prepared.X, expected)
    assert "prior count 1" in prepared.log[1].description


def test_no_normalisation_changes_nothing_and_unknown_ones_are_refused():
    assert chain(normalize="none") == chain() == []
    with pytest.raises(ValueError, match="normalize must be one of 'cpm', 'size-factors', 'none'"):
        chain(normalize="tmm")
    assert repr(chain(min_samples=4)) == "[LowCountFilter(min_samples=4)]"


def test_normalised_counts_do_not_depend_on_the_depths():
    """Raw counts differ by depth; after normalisation the groups differ most."""
    depths = [1, 4, 1, 4, 1, 4, 1, 4]
    K = simulated_counts(depths=depths)
    for name in ("cpm", "size-factors"):
        X = prepare(K, chain(normalize=name)).X
        distances = np.square(X[:, None] - X[None]).sum(-1)
        same_group = distances[0, 1]  # different depths
        other_group = distances[0, 4]  # the same depth
        assert other_group > 2 * same_group


def test_size_factors_need_enough_features():
    X = np.random.default_rng(0).poisson(30.0, size=(10, 100)) + 1
    X[0, 19:] = 0  # 19 features are positive in all samples
    with pytest.raises(ValueError, match=r"at least 20 features .* but X has 19.*'cpm'"):
        SizeFactors().fit(X)
    X[0, 19] = 1
    step = SizeFactors().fit(X)
    assert step.describe().startswith("samples divided by size factors of 20 features, ")
    # In small tables, half of the features suffice.
    assert SizeFactors().fit(X[1:, :10]).reference_.all()


def test_unknown_standardisations_are_refused():
    with pytest.raises(ValueError, match="standardize must be one of 'samples'"):
        chain(standardize="sample")
