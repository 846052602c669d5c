import numpy as np
import pytest
from scipy import stats

from mrshc.core.inference.markers import Contrast, marker_statistics
from mrshc.core.trees.tree import METRICS, agglomerate, pairwise_distances
from mrshc.datasets import make_noise, make_simulation_1, make_simulation_2
from storage_backends import matrix_at, tables


def contrasts_of(labels):
    """Each cluster against all others."""
    return [
        Contrast(inside=np.flatnonzero(labels == k), outside=np.flatnonzero(labels != k))
        for k in np.unique(labels)
    ]


def compute_markers(X, features, labels, *, linkage="complete", metric="sqeuclidean", weights=None):
    return marker_statistics(
        matrix_at(X),
        np.asarray(features),
        contrasts_of(labels),
        linkage=linkage,
        metric=metric,
        weights=weights,
    )


def tree_of(X, features, linkage="complete"):
    return agglomerate(pairwise_distances(X[:, features], "sqeuclidean"), linkage)


def naive_p_values(X, contrast):
    """Without cross-fitting: ranks of every feature against the cluster itself."""
    ranks = stats.rankdata(X, axis=0)
    return stats.f_oneway(ranks[contrast.inside], ranks[contrast.outside]).pvalue


def test_features_outside_the_tree_are_tested_against_the_clusters_themselves():
    X = make_simulation_1(0).X[:, 30:80]
    features = np.arange(0, 50, 3)
    labels = tree_of(X, features).cut(3)
    outside = np.setdiff1d(np.arange(50), features)
    for contrast, found in zip(
        contrasts_of(labels), compute_markers(X, features, labels), strict=True
    ):
        np.testing.assert_allclose(
            found.p_values[outside], naive_p_values(X[:, outside], contrast), rtol=1e-8
        )
        np.testing.assert_allclose(
            found.q_values, stats.false_discovery_control(found.p_values), rtol=1e-12
        )


def test_a_feature_of_the_tree_is_tested_against_the_branch_that_trees_without_it_have():
    X = make_simulation_1(1, mu=1.5).X[:, 40:60]
    features = np.arange(8)  # one in each fold
    labels = tree_of(X, features).cut(3)
    found = compute_markers(X, features, labels)
    for j in features:
        tree = tree_of(X, np.delete(features, j))
        branches = [tree.members(node) for node in range(tree.root + 1)]
        for contrast, mark in zip(contrasts_of(labels), found, strict=True):
            inside = set(contrast.inside.tolist())
            shares = [len(inside & set(b)) / len(inside | set(b)) for b in branches]
            best = branches[int(np.argmax(shares))]
            rest = np.setdiff1d(np.arange(60), best)
            expected = naive_p_values(X[:, [j]], Contrast(inside=best, outside=rest))[0]
            if max(shares) < 0.5 or not rest.size:
                expected = 1.0
            assert mark.p_values[j] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("partial_group", ["inside", "outside"])
@pytest.mark.parametrize(
    ("n_common", "n_others", "is_replaced"),
    [(5, 3, False), (5, 2, True), (6, 3, True)],
    ids=["5/11", "5/10", "6/11"],
)
def test_a_group_is_replaced_by_a_branch_with_a_jaccard_index_of_at_least_one_half(
    n_common, n_others, is_replaced, partial_group
):
    """Feature 0 is tested with the tree of feature 1, which has three distant branches."""
    rng = np.random.default_rng(4)
    # Each branch of eight samples consists of two smaller branches of four samples.
    branch = np.array([0.0, 10, 1, 12, 3, 14, 4, 15])
    feature_1 = np.concatenate([branch, branch + 3000, branch + 4000])
    X = np.column_stack([rng.normal(size=24), feature_1])
    partial = np.concatenate([np.arange(n_common), np.arange(8, 8 + n_others)])
    tree = tree_of(X, [1])
    jaccard = [
        np.intersect1d(partial, tree.members(node)).size
        / np.union1d(partial, tree.members(node)).size
        for node in range(tree.root + 1)
    ]
    assert max(jaccard) == n_common / (8 + n_others)
    assert tree.members(int(np.argmax(jaccard))).tolist() == list(range(8))
    if partial_group == "inside":  # compared with all other samples
        contrast = Contrast(inside=partial, outside=np.setdiff1d(np.arange(24), partial))
        replacement = Contrast(inside=np.arange(8), outside=np.arange(8, 24))
    else:  # compared with a branch
        contrast = Contrast(inside=np.arange(16, 24), outside=partial)
        replacement = Contrast(inside=np.arange(16, 24), outside=np.arange(8))
    found = marker_statistics(
        matrix_at(X), np.array([0, 1]), [contrast], linkage="complete", metric="sqeuclidean"
    )[0]
    ranked = X[np.concatenate([replacement.inside, replacement.outside]), :1]
    n_inside = replacement.inside.size
    positions = Contrast(inside=np.arange(n_inside), outside=np.arange(n_inside, len(ranked)))
    expected = naive_p_values(ranked, positions)[0] if is_replaced else 1.0
    assert found.p_values[0] == pytest.approx(expected, rel=1e-8)


def test_in_noise_features_of_the_tree_do_not_mark_its_clusters():
    """They would if they were tested against clusters that they helped to make."""
    flagged, naive, total = 0, 0, 0
    for seed in range(10):
        X = make_noise(seed, n_features=150).X
        features = np.arange(15)
        labels = tree_of(X, features).cut(3)
        for contrast, found in zip(
            contrasts_of(labels), compute_markers(X, features, labels), strict=True
        ):
            total += 1
            flagged += np.any(found.q_values[features] <= 0.05)
            plain = stats.false_discovery_control(naive_p_values(X, contrast))
            naive += np.any(plain[features] <= 0.05)
    assert flagged <= 0.15 * total
    assert naive >= 0.6 * total


@pytest.mark.parametrize("make", [make_simulation_1, make_simulation_2])
def test_true_markers_are_found(make):
    data = make(0, mu=1.5)
    features = np.flatnonzero(data.support)
    found = compute_markers(
        data.X, features, tree_of(data.X, features, "ward").cut(4), linkage="ward"
    )
    passed = np.any([mark.q_values <= 0.05 for mark in found], axis=0)
    assert passed[data.support].sum() >= 45
    assert passed[~data.support].sum() <= 20  # of 450, in up to four contrasts


def test_means_and_effect_sizes_are_those_of_the_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6)) + 100.0
    X[rng.random(X.shape) < 0.2] = np.nan
    labels = np.repeat([0, 1], [8, 12])
    found = compute_markers(X, [0, 1], labels)
    for x, j in zip(X.T, range(6), strict=True):
        inside, outside = (x[labels == k][~np.isnan(x[labels == k])] for k in (0, 1))
        assert found[0].mean_inside[j] == pytest.approx(inside.mean())
        assert found[0].mean_outside[j] == pytest.approx(outside.mean())
        squares = np.sum((inside - inside.mean()) ** 2) + np.sum((outside - outside.mean()) ** 2)
        pooled = np.sqrt(squares / (inside.size + outside.size - 2))
        effect = (inside.mean() - outside.mean()) / pooled
        assert found[0].effect_size[j] == pytest.approx(effect)
        assert found[1].effect_size[j] == pytest.approx(-effect)


def test_constant_and_unobserved_features_are_no_markers():
    X = np.random.default_rng(1).normal(size=(12, 5))
    labels = np.repeat([0, 1], 6)
    X[:, 0] = 3.0
    X[:6, 1] = np.nan  # nothing inside
    X[:, 2] = labels  # constant within
    found = compute_markers(X, [3, 4], labels)[0]
    assert found.p_values[0] == found.p_values[1] == 1.0
    assert np.isnan(found.effect_size[:3]).all()
    assert found.mean_inside[0] == 3.0
    assert np.isnan(found.mean_inside[1])
    assert np.isfinite(found.mean_outside[1])
    assert (found.mean_inside[2], found.mean_outside[2]) == (0.0, 1.0)


def test_groups_with_few_observed_values_have_means_and_effect_sizes():
    X = np.random.default_rng(3).normal(size=(10, 4))
    X[:, 0] = [1.0, 2, *[np.nan] * 4, 7, *[np.nan] * 3]  # two inside, one outside
    X[:, 1] = [5.0, *[np.nan] * 5, 7, *[np.nan] * 3]  # one in each group
    found = compute_markers(X, [2, 3], np.repeat([0, 1], 5))[0]
    np.testing.assert_allclose(found.mean_inside[:2], [1.5, 5.0])
    np.testing.assert_allclose(found.mean_outside[:2], [7.0, 7.0])
    # The sum of squares is 0.5, with one degree of freedom; a single value has no deviation.
    np.testing.assert_allclose(found.effect_size[:2], [-5.5 / np.sqrt(0.5), np.nan])


def test_groups_whose_most_similar_branches_overlap_are_not_compared():
    """The most similar branch of the first group contains that of the second group."""
    # The tree of feature 1 merges samples 6 to 9, and then adds samples 0 to 5 one by one.
    chain = np.concatenate([3.0 ** np.arange(1, 7), [0.0, 0.1, 0.2, 0.3], 1e6 + np.arange(4)])
    X = np.column_stack([np.random.default_rng(5).normal(size=14), chain])
    X[:6, 0] += 5.0
    tree = tree_of(X, [1])
    inside, outside = np.arange(6), np.arange(6, 10)
    assert tree.most_similar_branch(inside, at_least=0.5).tolist() == list(range(10))
    assert tree.most_similar_branch(outside, at_least=0.5).tolist() == outside.tolist()
    found = marker_statistics(
        matrix_at(X),
        np.array([0, 1]),
        [Contrast(inside=inside, outside=outside)],
        linkage="complete",
        metric="sqeuclidean",
    )[0]
    assert found.p_values[0] == 1.0


def test_without_contrasts_there_are_no_statistics():
    X = np.random.default_rng(6).normal(size=(10, 4))
    assert (
        marker_statistics(matrix_at(X), np.arange(2), [], linkage="complete", metric="sqeuclidean")
        == []
    )


def test_a_single_feature_and_a_group_of_one_sample_are_accepted():
    X = np.random.default_rng(2).normal(size=(10, 4))
    labels = np.array([0] * 9 + [1])
    for features in ([1], [0, 1, 2, 3]):
        for mark in compute_markers(X, features, labels):
            assert np.all((mark.p_values >= 0) & (mark.p_values <= 1))
            assert np.isfinite(mark.effect_size).all()
    assert compute_markers(X, [1], labels)[0].p_values[1] == 1.0, (
        "no tree is left to test it against"
    )


@pytest.mark.parametrize(("size", "is_tested"), [(3, False), (4, True)])
def test_trees_of_correlations_have_at_least_three_features(size, is_tested):
    """A feature is tested with trees of the others: two of them have no correlations."""
    data = make_simulation_1(1, mu=3.0)
    features = np.arange(size)
    tree = agglomerate(pairwise_distances(data.X[:, :50], "correlation"), "average")
    found = compute_markers(
        data.X[:, :80], features, tree.cut(2), linkage="average", metric="correlation"
    )
    p_values = np.array([mark.p_values for mark in found])
    assert np.any(p_values[:, :size] < 1) == is_tested
    assert np.any(p_values[:, size:] < 1)


def test_weights_count_as_they_do_in_the_distances():
    X = make_simulation_1(2).X[:, 40:60]
    features, weights = np.arange(12), np.linspace(0.1, 1.0, 12)
    labels = tree_of(X, features).cut(2)
    weighted = compute_markers(X, features, labels, weights=weights)
    scaled = X.copy()
    scaled[:, features] *= np.sqrt(weights)
    for mark, other in zip(weighted, compute_markers(scaled, features, labels), strict=True):
        np.testing.assert_allclose(mark.p_values, other.p_values)
        np.testing.assert_allclose(mark.effect_size, other.effect_size)
    blocks = compute_markers(X, features, labels, weights=weights, metric="cityblock")
    scaled[:, features] *= np.sqrt(weights)
    others = compute_markers(scaled, features, labels, metric="cityblock")
    np.testing.assert_allclose(blocks[0].p_values, others[0].p_values)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_markers_do_not_depend_on_the_storage(implementation, metric):
    features = np.arange(5, 45)
    weights = None if metric == "correlation" else np.linspace(0.1, 1.0, 40)
    labels = np.repeat([0, 1, 2], 8)
    for A in tables(implementation):
        near = compute_markers(
            implementation.in_memory(A), features, labels, metric=metric, weights=weights
        )
        found = compute_markers(implementation(A), features, labels, metric=metric, weights=weights)
        for mark, expected in zip(found, near, strict=True):
            for name in ("mean_inside", "mean_outside", "effect_size", "p_values", "q_values"):
                np.testing.assert_array_equal(getattr(mark, name), getattr(expected, name))
