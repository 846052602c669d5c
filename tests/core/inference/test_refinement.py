from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist

from mrshc.core.inference import feature_scores
from mrshc.core.inference.feature_scores import association_scores, split_into_folds
from mrshc.core.inference.refinement import refine_feature_set, refine_feature_sets
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.core.trees.tree import LINKAGES
from mrshc.datasets import (
    make_noise,
    make_section2_example,
    make_simulation_1,
    make_simulation_2,
)
from storage_backends import mapped, matrix_at, path_on, tables


def run_refinement(X, start, **settings):
    return refine_feature_set(matrix_at(X), np.asarray(start), RefinementSettings(**settings))


def refined_after_search(X, *, q=20, rank=1, **settings):
    """Refine the features of sparse components, which agree with each other by selection."""
    matrix = matrix_at(X)
    path = path_on(matrix, n_components=rank)
    start = path.search(q=q, rank=rank, tolerance=0).indices
    return refine_feature_set(matrix, start, RefinementSettings(**settings))


# Comparison with a simple implementation -------------------------------------------------------


def plain_cuts(X, linkage):
    """The clusters of scipy's tree for each cut, as lists of samples."""
    tree = scipy_linkage(pdist(X, "euclidean" if linkage == "ward" else "sqeuclidean"), linkage)
    n = len(X)
    merged = {i: [i] for i in range(n)}
    cuts = {}
    for i, (a, b) in enumerate(tree[:, :2].astype(int)):
        merged[n + i] = merged.pop(a) + merged.pop(b)
        cuts[n - 1 - i] = [list(samples) for samples in merged.values()]
    return [cuts[k] for k in (2, 3, 4, 5, 6, 7) if k < n]


def plain_scores(tested, X, linkage):
    """P-values and strengths of the columns of `tested`, from trees on the columns of X."""
    p_values, between = [], []
    ranks = stats.rankdata(tested, axis=0)
    for clusters in plain_cuts(X, linkage):
        p_values.append(stats.f_oneway(*(ranks[samples] for samples in clusters)).pvalue)
        means = np.array([tested[samples].mean(axis=0) for samples in clusters])
        sizes = [len(samples) for samples in clusters]
        between.append(np.dot(sizes, (means - tested.mean(axis=0)) ** 2))
    # A p-value of 1 is ignored, and others are limited to 0.999.
    is_used = np.array(p_values) < 1 - 1e-12
    quantiles = stats.cauchy.isf(np.minimum(p_values, 0.999))
    means = np.where(is_used, quantiles, 0.0).sum(axis=0) / np.maximum(is_used.sum(axis=0), 1)
    combined = np.where(is_used.any(axis=0), stats.cauchy.sf(means), 1.0)
    return combined, np.mean(between, axis=0)


def standardised_samples(X):
    """Return samples whose squared distances are 1 - correlation."""
    centred = X - X.mean(axis=1, keepdims=True)
    return centred / (np.sqrt(2) * np.linalg.norm(centred, axis=1, keepdims=True))


def plain_association(X, present, linkage="complete", prepare=np.asarray):
    """P-values and strengths of all features, each from trees that were built without it."""
    by_variance = sorted(present, key=lambda j: -X[:, j].var())
    p_values, strengths = np.empty(X.shape[1]), np.empty(X.shape[1])
    groups = [(np.setdiff1d(np.arange(X.shape[1]), present), by_variance)]
    for fold in range(min(10, len(by_variance))):
        others = [j for place, j in enumerate(by_variance) if place % 10 != fold]
        groups.append((by_variance[fold::10], others))
    for tested, others in groups:
        scores = plain_scores(X[:, tested], prepare(X[:, sorted(others)]), linkage)
        p_values[tested], strengths[tested] = scores
    return p_values, strengths


def plain_refinement(X, start, *, alpha=0.05, max_features=500, score=plain_association):
    """All sets of a refinement, from the start set on, and the last scores."""
    sets = [sorted(start)]
    for _ in range(6):
        p_values, strengths = score(X, sets[-1])
        associated = np.flatnonzero(stats.false_discovery_control(p_values) <= alpha)
        if associated.size < 5:
            break
        strongest = associated[np.argsort(-strengths[associated], kind="stable")]
        sets.append(sorted(strongest[:max_features].tolist()))
        old, new = set(sets[-2]), set(sets[-1])
        if len(old & new) >= 0.95 * max(len(old), len(new)) or sets[-1] in sets[:-1]:
            break
    return SimpleNamespace(
        sets=sets, associated=associated, strength=strengths[associated].sum(), p_values=p_values
    )


def scores_of(X, present, **settings):
    (found,) = association_scores(matrix_at(X), [present], RefinementSettings(**settings))
    return found


def assert_plain_scores(found, expected):
    p_values, strengths = expected
    np.testing.assert_allclose(found.p_values, p_values, rtol=1e-6)
    np.testing.assert_allclose(found.strengths, strengths, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["complete", "average", "ward"])
@pytest.mark.parametrize("size", [2, 7, 25])
def test_scores_equal_those_of_a_simple_implementation(linkage, size):
    X = make_simulation_1(size, mu=1.2, sizes=(10, 9, 8)).X[:, 35:75]
    present = np.sort(np.random.default_rng(size).choice(40, size, replace=False))
    found = scores_of(X, present, linkage=linkage)
    assert_plain_scores(found, plain_association(X, present, linkage))


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["average", "ward"])
def test_scores_of_correlations_equal_those_of_standardised_samples(linkage):
    X = make_simulation_1(3, mu=1.2, sizes=(10, 9, 8)).X[:, 35:75]
    X = X + np.random.default_rng(0).normal(size=40)
    present = np.sort(np.random.default_rng(3).choice(40, 25, replace=False))
    found = scores_of(X, present, linkage=linkage, metric="correlation")
    assert_plain_scores(found, plain_association(X, present, linkage, standardised_samples))


@pytest.mark.parametrize("n", [4, 5, 7, 8])
def test_trees_are_cut_into_at_most_seven_clusters_and_fewer_than_samples(n):
    X = np.random.default_rng(n).normal(size=(n, 12))
    assert_plain_scores(scores_of(X, np.arange(6)), plain_association(X, range(6)))


def test_several_sets_are_scored_as_each_set_alone():
    X = make_simulation_1(0, sizes=(10, 9, 8)).X[:, 20:80]
    sets = [np.arange(20), np.arange(10, 50, 2), np.array([3]), np.arange(20)]
    together = association_scores(matrix_at(X), sets, RefinementSettings())
    for present, found in zip(sets, together, strict=True):
        alone = scores_of(X, present)
        np.testing.assert_array_equal(found.p_values, alone.p_values)
        np.testing.assert_array_equal(found.strengths, alone.strengths)


@pytest.mark.parametrize("metric", ["sqeuclidean", "correlation"])
@pytest.mark.parametrize("is_missing", [False, True])
def test_scores_do_not_depend_on_the_division_into_tasks(metric, is_missing, monkeypatch):
    X = make_simulation_1(5002).X
    if is_missing:
        X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    sets = [np.arange(30), np.arange(3), np.arange(20, 70), np.arange(1), np.arange(12)]
    settings = RefinementSettings(linkage="ward", metric=metric)
    expected = association_scores(matrix_at(X), sets, settings)
    monkeypatch.setattr(feature_scores, "_MIN_SAMPLES_OF_FOLD_TASKS", 2)
    # Two threads, so that not all sets are prepared together.
    found = association_scores(matrix_at(X), sets, settings, n_jobs=2)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.p_values, other.p_values)
        np.testing.assert_array_equal(one.strengths, other.strengths)


def test_a_single_feature_is_not_tested_with_a_tree_of_itself():
    X = np.random.default_rng(0).normal(size=(20, 6))
    found = scores_of(X, np.array([2]))
    assert (found.p_values[2], found.strengths[2]) == (1.0, 0.0)
    assert np.all(np.delete(found.p_values, 2) < 1)
    assert np.all(np.delete(found.strengths, 2) > 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mu", "options"),
    [
        (1.2, {}),
        (1.2, {"max_features": 12}),
        (0.8, {}),
        (0.0, {}),
        (0.0, {"alpha": 0.6, "max_features": 9}),
    ],
    ids=["clusters", "capped", "weak clusters", "noise", "noise, large alpha"],
)
def test_rounds_equal_those_of_a_simple_implementation(mu, options):
    n_rounds = []
    for seed in range(3):
        X = make_simulation_1(seed, mu=mu, sizes=(10, 9, 8)).X[:, 30:90]
        start = np.random.default_rng(seed).choice(60, 15, replace=False)
        expected = plain_refinement(X, start, **options)
        found = run_refinement(X, start, **options)
        supported = expected.associated.size >= 5
        assert found.supported is supported
        np.testing.assert_array_equal(
            found.features, expected.sets[-1] if supported else expected.sets[0]
        )
        np.testing.assert_array_equal(found.associated, expected.associated if supported else [])
        assert found.strength == pytest.approx(expected.strength if supported else 0.0)
        q_values = stats.false_discovery_control(expected.p_values)
        np.testing.assert_allclose(found.q_values, q_values, rtol=1e-6)
        n_rounds.append((found.n_rounds, len(expected.sets) - supported))
    assert all(found == expected for found, expected in n_rounds)


@pytest.mark.parametrize(("size", "is_tested"), [(3, False), (4, True)])
def test_trees_of_correlations_have_at_least_three_features(size, is_tested):
    """Without one of three features, only two are left."""
    X = make_simulation_1(0, mu=3.0).X[:, :100]
    found = scores_of(X, np.arange(size), metric="correlation")
    assert np.all(found.p_values[:size] < 1) == is_tested
    assert np.all(found.p_values[:size] == 1) != is_tested
    assert np.all(found.strengths[:size] > 0) == is_tested
    assert np.all(found.p_values[size:] < 1)


def test_a_feature_never_helps_to_make_the_trees_it_is_tested_against():
    X = np.random.default_rng(0).normal(size=(30, 40))
    present = np.arange(25)
    X[:, 3] *= 10  # first of all folds, and stays so
    before = scores_of(X, present)
    changed = X.copy()
    changed[:, 3] = np.sign(X[:, 3]) * X[:, 3] ** 2
    after = scores_of(changed, present)
    assert after.p_values[3] == before.p_values[3]
    assert np.mean(after.p_values != before.p_values) > 0.5, "it does help with the others"
    assert np.mean(after.strengths != before.strengths) > 0.5


def test_folds_deal_every_feature_once_by_decreasing_variance():
    variances = np.array([5.0, 1, 9, 3, 7, 2, 8, 4, 6, 0, 11, 10])
    parts = split_into_folds(variances)
    assert [fold.tolist() for fold in parts[:3]] == [[10, 1], [11, 9], [2]]
    assert sorted(np.concatenate(parts)) == list(range(12))
    assert len(split_into_folds(variances[:3])) == 3
    assert [len(split_into_folds(np.arange(float(q)))) for q in (9, 10, 11, 40)] == [9, 10, 10, 10]


# Associated features ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("make", "rank"), [(make_simulation_1, 1), (make_simulation_2, 2)])
def test_nearly_all_features_of_the_simulations_are_found_and_few_others(make, rank, seed):
    data = make(seed)
    found = refined_after_search(data.X, rank=rank)
    hits = data.support[found.associated].sum()
    assert found.supported
    assert hits >= 45
    assert hits >= 0.85 * found.associated.size
    np.testing.assert_array_equal(found.features, found.associated)
    np.testing.assert_array_equal(found.associated, np.flatnonzero(found.q_values <= 0.05))


@pytest.mark.parametrize("noise", ["normal", "t3"])
@pytest.mark.parametrize(("n", "p"), [(60, 500), (20, 500), (10, 300)])
def test_nothing_is_supported_in_noise(noise, n, p):
    for seed in range(4):
        X = make_noise(seed, n_samples=n, n_features=p, noise=noise).X
        found = refined_after_search(X)
        assert not found.supported
        assert found.associated.size == 0
        assert found.features.size == 20


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("n", [12, 60])
def test_noise_of_zeros_and_ones_supports_nothing(n, share):
    """Counts, mutations and single cells have many ties: an F test takes them for certainty."""
    for seed in range(3):
        X = (np.random.default_rng(seed).random((n, 300)) < share).astype(float)
        assert not refined_after_search(X).supported


def test_independent_features_are_not_replaced():
    data = make_section2_example(1)
    found = run_refinement(data.X, [0, 1, 2, 3])
    assert not found.supported
    np.testing.assert_array_equal(found.features, [0, 1, 2, 3])


def test_few_features_are_lost_with_a_fifth_of_the_cells_missing():
    data = make_simulation_1(0)
    X = np.where(np.random.default_rng(0).random(data.X.shape) < 0.2, np.nan, data.X)
    found = refined_after_search(X)
    assert found.supported
    assert data.support[found.associated].sum() >= 40
    assert data.support[found.associated].mean() >= 0.85


def test_a_feature_is_not_lost_because_it_is_missing_in_one_odd_sample():
    """That sample is a cluster of its own, which says nothing of the feature; the others do."""
    data = make_simulation_1(0, mu=1.5)
    rng = np.random.default_rng(0)
    X = np.where(rng.random(data.X.shape) < 0.1, np.nan, data.X)
    X[0] = 8 * rng.normal(size=500)
    X[0, :25] = np.nan
    found = run_refinement(X, np.arange(15, 35))
    assert np.isin(np.arange(25, 50), found.associated).sum() >= 22
    assert np.isin(np.arange(25), found.associated).sum() >= 22


def test_a_tree_is_built_from_the_features_with_the_largest_strength():
    """The strongest features have a larger scale, and not the smallest p-values."""
    data = make_simulation_1(1)
    X = data.X.copy()
    strong = np.arange(5, 50, 3)  # 15 features
    noise = np.random.default_rng(0).normal(size=(60, 15))
    X[:, strong] = 10.0 * (X[:, strong] + 0.2 * noise)
    every = run_refinement(X, strong)
    capped = run_refinement(X, strong, max_features=15)
    assert capped.associated.size > 40
    np.testing.assert_array_equal(capped.features, strong)
    left_out = np.setdiff1d(capped.associated, capped.features)
    assert np.median(capped.q_values[left_out]) < np.median(capped.q_values[strong])
    assert every.features.size > 40
    # The strength is the sum over all associated features, with and without the limit.
    expected = scores_of(X, capped.features).strengths[capped.associated].sum()
    assert capped.strength == pytest.approx(expected, rel=1e-6)


def test_noise_features_of_the_start_set_are_removed():
    data = make_simulation_1(2, mu=1.5)
    found = run_refinement(data.X, np.concatenate([np.arange(20), np.arange(100, 120)]))
    assert data.support[found.associated].mean() > 0.85
    assert data.support[found.associated].sum() >= 48


def test_fewer_than_the_fewest_features_support_nothing():
    X = np.random.default_rng(0).normal(size=(40, 50))
    X[:20, :4] += 5.0
    few = run_refinement(X, [0, 1, 2, 3])
    assert not few.supported
    assert run_refinement(X, [0, 1, 2, 3], min_features=4).associated[:4].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("n_associated", "is_supported"), [(4, False), (5, True), (6, True)])
def test_clusters_are_supported_by_at_least_five_features(n_associated, is_supported):
    X = np.random.default_rng(1).normal(size=(40, 20))
    X[:20, :n_associated] += 8.0
    found = run_refinement(X, np.arange(6))
    assert found.supported is is_supported
    expected = np.arange(n_associated if is_supported else 0)
    np.testing.assert_array_equal(found.associated, expected)


@pytest.mark.parametrize(("size", "supported"), [(4, None), (5, False), (6, False)])
def test_a_start_set_of_fewer_than_five_features_is_not_refuted(size, supported):
    X = np.random.default_rng(1).normal(size=(30, 20))
    found = run_refinement(X, np.arange(size)[::-1])
    assert found.supported is supported
    assert found.n_rounds == 1
    np.testing.assert_array_equal(found.features, np.arange(size))


def test_a_tree_is_built_from_at_most_five_hundred_features():
    X = np.random.default_rng(2).normal(size=(20, 530))
    X[:10, :510] += 8.0
    found = run_refinement(X, np.arange(490))
    assert np.isin(np.arange(510), found.associated).all()
    assert found.features.size == 500


def test_a_feature_is_associated_if_its_q_value_is_alpha_or_less():
    X = np.random.default_rng(3).normal(size=(20, 30))
    X[:10, :15] += 2.0
    settings = {"max_features": 5, "min_features": 1}
    q_values = run_refinement(X, np.arange(5), alpha=0.0, **settings).q_values  # of one round
    alpha = np.sort(q_values)[14]
    expected = np.flatnonzero(q_values <= alpha)
    found = run_refinement(X, np.arange(5), alpha=alpha, min_features=expected.size)
    assert found.supported
    just_below = np.nextafter(alpha, 0)
    fewer = run_refinement(X, np.arange(5), alpha=just_below, min_features=expected.size)
    assert fewer.supported is None  # the start set itself has fewer features than that


# Number of rounds ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_associated", "start", "n_rounds"),
    [
        (40, np.arange(38), 1),  # 38 of 40 features stay the same
        (40, np.arange(37), 2),
        (38, np.arange(40), 1),
        (38, np.arange(41), 2),  # 38 of 41
    ],
    ids=["38/40", "37/40", "40 to 38", "41 to 38"],
)
def test_rounds_end_when_95_percent_of_the_features_stay_the_same(n_associated, start, n_rounds):
    """Every round gives the same associated features, so there are at most two rounds."""
    X = np.random.default_rng(0).normal(size=(30, 45))
    X[:15, :n_associated] += 8.0
    found = run_refinement(X, start)
    np.testing.assert_array_equal(found.associated, np.arange(n_associated))
    assert found.n_rounds == n_rounds


def next_set(matrix, present, settings):
    """Return the features with the largest strengths, if all features are associated."""
    (scores,) = association_scores(matrix, [np.array(present)], settings)
    strongest = np.argsort(-scores.strengths, kind="stable")[: settings.max_features]
    return tuple(np.sort(strongest).tolist())


def noise_of_equal_variance(rng, shape):
    """Return noise in which the strengths depend on the clusters rather than on the variances."""
    X = rng.normal(size=shape)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_refinement_ends_after_six_rounds():
    """In noise, the six features with the largest strengths are different in each round."""
    settings = RefinementSettings(alpha=1.0, max_features=6)
    for seed in range(20):
        matrix = matrix_at(noise_of_equal_variance(np.random.default_rng(seed), (20, 200)))
        sets = [tuple(range(6))]
        for _ in range(7):
            sets.append(next_set(matrix, sets[-1], settings))
        # The rounds would neither converge nor repeat before the seventh round.
        if len(set(sets)) == 8:
            break
    else:
        pytest.fail("no data set needs seven rounds")
    found = refine_feature_set(matrix, np.array(sets[0]), settings)
    assert found.n_rounds == 6
    np.testing.assert_array_equal(found.features, sets[6])


def test_rounds_end_when_a_set_occurs_again():
    """In few features of noise, the three with the largest strengths soon repeat."""
    settings, n_longer = RefinementSettings(alpha=1.0, max_features=3), 0
    for seed in range(12):
        matrix = matrix_at(noise_of_equal_variance(np.random.default_rng(seed), (15, 7)))
        sets = [(0, 1, 2)]
        while sets[-1] not in sets[:-1]:
            sets.append(next_set(matrix, sets[-1], settings))
        if len(sets) > 7:
            continue
        n_longer += sets[-1] != sets[-2]
        found = refine_feature_set(matrix, np.array(sets[0]), settings)
        assert found.n_rounds == len(sets) - 1
        assert tuple(found.features.tolist()) == sets[-1]
    assert n_longer > 1, "some cycles must have more than one set"


# Several sets ------------------------------------------------------------------------------------


def assert_identical(one, other):
    assert (one.supported, one.n_rounds, one.strength) == (
        other.supported,
        other.n_rounds,
        other.strength,
    )
    for name in ("features", "associated", "q_values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def several_starts(X):
    """Start sets that need different numbers of rounds, one of them twice, one in noise."""
    rng = np.random.default_rng(0)
    return [
        np.arange(20),
        rng.choice(X.shape[1], 30, replace=False),
        np.arange(60, 70),
        np.arange(20)[::-1],
        np.arange(25, 50),
        np.array([1, 70]),
    ]


def test_sets_are_refined_independently_of_each_other():
    X = make_simulation_1(3, mu=0.9).X[:, :120]
    starts = several_starts(X)
    together = refine_feature_sets(matrix_at(X), starts, RefinementSettings())
    assert len({found.n_rounds for found in together}) > 1
    for start, found in zip(starts, together, strict=True):
        assert_identical(found, run_refinement(X, start))


@pytest.mark.parametrize("n_continued", [0, 1, 2, 3, 6, 9])
def test_the_sets_with_the_largest_strength_in_the_first_round_are_continued(
    n_continued, monkeypatch
):
    X = make_simulation_1(3, mu=0.9).X[:, :120]
    starts = several_starts(X)
    whole = [run_refinement(X, start) for start in starts]
    with monkeypatch.context() as patch:
        patch.setattr("mrshc.core.inference.refinement._MAX_ROUNDS", 1)
        first = [run_refinement(X, start) for start in starts]
    # Equal starts have equal strengths; the first of them is continued first.
    order = sorted(range(len(starts)), key=lambda i: (-first[i].strength, i))
    found = refine_feature_sets(matrix_at(X), starts, RefinementSettings(), n_continued=n_continued)
    for i, result in enumerate(found):
        assert_identical(result, whole[i] if i in order[:n_continued] else first[i])


def test_a_continued_set_is_refined_to_its_end_even_if_its_strength_decreases():
    """In noise, the strengths change from round to round without a trend."""
    settings, n_weaker = RefinementSettings(alpha=1.0, max_features=6), 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = matrix_at(noise_of_equal_variance(rng, (20, 60)))
        starts = [rng.choice(60, 6, replace=False) for _ in range(4)]
        found = refine_feature_sets(matrix, starts, settings, n_continued=1)
        first = int(np.argmax([result.n_rounds for result in found]))
        assert_identical(found[first], refine_feature_set(matrix, starts[first], settings))
        assert [result.n_rounds for i, result in enumerate(found) if i != first] == [1, 1, 1]
        n_weaker += found[first].strength < max(result.strength for result in found)
    assert n_weaker > 0


def test_one_round_of_all_sets_is_one_pass_over_the_data(tmp_path):
    X = make_simulation_1(3, mu=0.9).X[:, :120]
    matrix, starts = matrix_at(mapped(X, tmp_path)), several_starts(X)
    n_before = matrix.n_passes
    found = refine_feature_sets(matrix, starts, RefinementSettings())
    assert matrix.n_passes - n_before == max(result.n_rounds for result in found)


def test_no_sets_have_no_results():
    assert refine_feature_sets(matrix_at(np.eye(5)), [], RefinementSettings()) == []


# Invariance ------------------------------------------------------------------------------------


def assert_same(one, other, order=None):
    order = np.arange(one.q_values.size) if order is None else order
    assert (one.supported, one.n_rounds) == (other.supported, other.n_rounds)
    np.testing.assert_array_equal(one.features, np.sort(order[other.features]))
    np.testing.assert_array_equal(one.associated, np.sort(order[other.associated]))
    np.testing.assert_allclose(one.q_values[order], other.q_values, rtol=1e-6)


def test_order_of_the_columns_does_not_matter():
    X = make_simulation_1(3).X[:, :200]
    order = np.random.default_rng(0).permutation(200)
    start = np.flatnonzero(np.isin(order, np.arange(20)))
    assert_same(run_refinement(X, np.arange(20)), run_refinement(X[:, order], start), order)


def test_order_of_the_start_set_does_not_matter():
    X = make_simulation_1(3).X[:, :200]
    start = np.random.default_rng(0).permutation(20)
    assert_same(run_refinement(X, np.arange(20)), run_refinement(X, start))


def test_order_of_the_samples_does_not_matter():
    X = make_simulation_1(4).X[:, :200]
    order = np.random.default_rng(0).permutation(60)
    assert_same(run_refinement(X, np.arange(20)), run_refinement(X[order], np.arange(20)))


def test_layout_precision_and_unit_of_the_data_do_not_matter():
    X = make_simulation_1(5).X[:, :100].astype(np.float32)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    narrow = run_refinement(X, np.arange(20))
    for other in (X.astype(float), np.asfortranarray(X), 1e100 * X.astype(float)):
        assert_same(narrow, run_refinement(other, np.arange(20)))


@pytest.mark.slow
def test_the_storage_does_not_matter(implementation):
    for A in tables(implementation):
        for start in (np.arange(20), [5]):
            assert_same(
                run_refinement(implementation.in_memory(A), start),
                run_refinement(implementation(A), start),
            )


# Degenerate data -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_small_start_grows(size):
    data = make_simulation_1(0, mu=3.0)
    found = run_refinement(data.X[:, :100], np.arange(size))
    assert data.support[found.associated].sum() >= 48


@pytest.mark.parametrize("n", [3, 4, 5, 8])
@pytest.mark.parametrize("p", [2, 9])
def test_few_samples_and_features_are_accepted(n, p):
    X = np.random.default_rng(n * p).normal(size=(n, p))
    for start in ([0], [0, 1], np.arange(p)):
        found = run_refinement(X, start)
        np.testing.assert_array_equal(found.features, start)
        assert not found.supported
        assert np.isfinite(found.q_values).all()


@pytest.mark.parametrize("linkage", LINKAGES)
def test_every_linkage_refines(linkage):
    data = make_simulation_1(0, mu=2.0)
    found = run_refinement(data.X[:, :150], np.arange(20), linkage=linkage)
    assert data.support[found.associated].sum() >= 45


def test_city_blocks_refine():
    data = make_simulation_1(0, mu=2.0)
    found = run_refinement(data.X[:, :150], np.arange(20), metric="cityblock")
    assert data.support[found.associated].sum() >= 45


def test_constant_columns_and_copies_of_samples_do_no_harm():
    data = make_simulation_1(1, mu=2.0)
    X = np.repeat(data.X[:, :120], 2, axis=0)
    X[:, [0, 60]] = 7.0
    found = run_refinement(X, np.arange(20))
    assert not np.isin([0, 60], found.associated).any()
    np.testing.assert_array_equal(found.q_values[[0, 60]], 1.0)
    assert data.support[found.associated].sum() >= 48


def test_samples_that_are_all_the_same_support_nothing():
    X = np.zeros((12, 20))
    X[:, 10:] = np.random.default_rng(0).normal(size=(12, 10))
    assert not run_refinement(X, np.arange(10)).supported


@pytest.mark.parametrize(("n", "supported"), [(6, None), (7, True), (8, True)])
def test_clusters_of_few_samples_are_not_refuted(n, supported):
    """With six samples, even features that separate the clusters perfectly have large p-values."""
    X = np.random.default_rng(0).normal(size=(n, 60))
    X[: n // 2] += 50.0
    settings = RefinementSettings(linkage="ward")
    found = refine_feature_set(matrix_at(X), np.arange(20), settings)
    assert found.supported is supported


def test_noise_of_seven_samples_is_not_supported():
    X = np.random.default_rng(0).normal(size=(7, 60))
    settings = RefinementSettings(linkage="ward")
    assert refine_feature_set(matrix_at(X), np.arange(20), settings).supported is False
