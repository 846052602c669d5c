"""The whole search: agreement with the plain twin, with any workers, and edge cases."""

from dataclasses import replace
from itertools import zip_longest

import joblib
import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist

import plain_twin
from mrshc.core import search as search_module
from mrshc.core.data import centred_array
from mrshc.core.data.centred_array import centre_array
from mrshc.core.inference import feature_scores
from mrshc.core.inference.refinement import refine_feature_sets
from mrshc.core.inference.refinement_settings import RefinementSettings
from mrshc.core.search import SearchPlan, search
from mrshc.core.selection import candidates
from mrshc.core.sparse_pca import next_component
from mrshc.core.trees import gap_statistic, tree
from mrshc.core.trees.gap_statistic import GapSettings
from mrshc.core.trees.tree import LINKAGES
from mrshc.datasets import make_simulation_1
from storage_backends import clustered, latin_square, matrix_at, path_on


def check_progress(done, total):
    assert 0 < done <= total


def small_problem(seed):
    """Return two or three clusters on a few features, with noise, of random sizes."""
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(12, 30)), int(rng.integers(8, 40)), int(rng.integers(2, 4))
    useful = int(rng.integers(3, 7))
    centres = rng.normal(scale=2.5, size=(k, useful))
    X = rng.normal(size=(n, p))
    X[:, :useful] += centres[rng.integers(k, size=n)]
    return X


def run(
    X,
    *,
    targets=(2, 3, 5, 8),
    ranks=(1, 2, 3),
    K=None,
    n_jobs=None,
    tolerance=0,
    memory=None,
    selection="silhouette",
    refine=False,
    **gap,
):
    plan = SearchPlan(
        targets=targets,
        ranks=ranks,
        n_clusters=K,
        tolerance=tolerance,
        gap=GapSettings(n_references=20, **gap),
        entropy=7,
        selection=selection,
        refine=refine,
    )
    return search(matrix_at(X), plan, n_jobs=n_jobs, progress=check_progress, memory=memory)


@pytest.fixture(scope="module", autouse=True)
def stored_steps_of_the_plain_twin():
    """Compute feature sets and gap tests of the plain twin once for the same arguments.

    Feature sets do not depend on the linkage, and a tree is pruned without and with a limit of the
    number of clusters. The plain twin itself stores nothing: benchmarks measure its time.
    """
    hit, prefers_split = plain_twin.hit, plain_twin.prefers_split
    sets, tests = {}, {}

    def stored_hit(X, q, rank):
        key = (X.shape, X.tobytes(), q, rank)
        if key not in sets:
            sets[key] = hit(X, q, rank)
        return sets[key]

    def stored_test(X, halves, rng, **options):
        arguments = (X.shape, X.tobytes(), str(halves), str(rng.bit_generator.state))
        key = (*arguments, *options.values())
        if key not in tests:
            tests[key] = prefers_split(X, halves, rng, **options)
        return tests[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_twin, "hit", stored_hit)
        patch.setattr(plain_twin, "prefers_split", stored_test)
        yield


def assert_agrees_with_plain_twin(X, result, *, targets=(2, 3, 5, 8), ranks=(1, 2, 3), **options):
    q, rank, K, features, labels = plain_twin.mrshc(X, targets, ranks, B=20, entropy=7, **options)
    assert (result.chosen.target, result.chosen.features.rank) == (q, rank)
    assert result.n_clusters == K
    np.testing.assert_array_equal(result.chosen.features.indices, features)
    np.testing.assert_array_equal(result.labels, labels)


@pytest.mark.slow
@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("seed", range(2))
def test_fast_code_agrees_with_the_plain_twin(seed, linkage):
    X = small_problem(seed)
    assert_agrees_with_plain_twin(X, run(X, linkage=linkage), linkage=linkage)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_fast_code_agrees_with_the_plain_twin_on_city_blocks(seed):
    X = small_problem(seed)
    assert_agrees_with_plain_twin(X, run(X, metric="cityblock"), metric="cityblock")


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["complete", "average", "ward"])
@pytest.mark.parametrize("seed", range(2))
def test_fast_code_agrees_with_the_plain_twin_on_correlations(seed, linkage):
    X = small_problem(seed)
    X = X + np.random.default_rng(seed).normal(size=X.shape[1])  # correlations depend on offsets
    options = {"targets": (4, 6, 8), "linkage": linkage, "metric": "correlation"}
    assert_agrees_with_plain_twin(X, run(X, **options), **options)


def test_feature_sets_for_correlations_have_at_least_three_features():
    """The first component selects one or two features; from three on, correlations differ."""
    X = small_problem(0)
    X[:, 1] = X[:, 0]  # both are selected, or neither
    X[:, [3, 4, 5]] = X[:, [2]]
    sizes = {
        metric: run(X, targets=(3,), ranks=(1,), metric=metric).features.size
        for metric in ("sqeuclidean", "correlation")
    }
    assert sizes["sqeuclidean"] < 3 <= sizes["correlation"]


@pytest.mark.parametrize("seed", range(5))
def test_fast_code_agrees_with_the_plain_twin_for_known_k(seed):
    X = small_problem(seed)
    assert_agrees_with_plain_twin(X, run(X, K=3), K=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_fast_code_agrees_with_the_plain_twin_for_higher_ranks(seed):
    X, ranks = small_problem(seed), (1, 2, 3, 4, 5)
    assert_agrees_with_plain_twin(X, run(X, ranks=ranks), ranks=ranks)


def test_default_k_is_derived_from_ranks_1_to_3():
    """Higher ranks would give more clusters, but are not used."""
    bits = (np.arange(64)[:, None] >> np.arange(5)) & 1
    signal = np.repeat((2 * bits - 1) * np.array([1.4, 1.3, 1.2, 1.1, 1.0]), 2, axis=1)
    X = signal + np.random.default_rng(3).normal(scale=0.1, size=(64, 10))
    ranks = (1, 2, 3, 4, 5)
    unlimited = run(X, targets=(8,), ranks=ranks, K=64).candidates
    assert max(c.n_leaves for c in unlimited[:3]) == 8
    assert unlimited[3].n_leaves == 16
    assert run(X, targets=(8,), ranks=ranks).n_clusters == 8


def test_tolerance_is_passed_to_the_search_for_features():
    loose = run(small_problem(0), targets=(8,), ranks=(1,), tolerance=3).chosen.features
    assert loose.reached
    assert loose.indices.size == 11


def test_result_is_the_same_for_any_number_of_workers_and_any_backend():
    X = small_problem(3)
    alone = run(X)
    others = [run(X, n_jobs=2)]
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            others.append(run(X))
    for other in others:
        for mine, theirs in zip(alone.candidates, other.candidates, strict=True):
            assert mine.silhouette == theirs.silhouette
            assert mine.chosen == theirs.chosen
            np.testing.assert_array_equal(mine.features.indices, theirs.features.indices)
            np.testing.assert_array_equal(
                mine.pruned.tree.linkage_matrix, theirs.pruned.tree.linkage_matrix
            )
            assert mine.pruned.splits == theirs.pruned.splits


def test_evaluation_does_not_depend_on_other_candidates():
    X = small_problem(4)
    together = {(c.target, c.features.rank): c for c in run(X, K=2).candidates}
    for q in (3, 5):
        for alone in run(X, targets=(q,), K=2).candidates:
            same = together[q, alone.features.rank]
            assert (alone.silhouette, alone.n_leaves) == (same.silhouette, same.n_leaves)


def test_result_does_not_depend_on_the_order_of_columns():
    X = small_problem(5)
    order = np.random.default_rng(0).permutation(X.shape[1])
    plain, shuffled = run(X), run(X[:, order])
    np.testing.assert_array_equal(plain.labels, shuffled.labels)
    np.testing.assert_array_equal(
        plain.chosen.features.indices, np.sort(order[shuffled.chosen.features.indices])
    )


def test_ranks_above_the_number_of_features_are_not_tried():
    tried = {(c.target, c.features.rank) for c in run(small_problem(0), targets=(1, 2)).candidates}
    assert tried == {(1, 1), (2, 1), (2, 2)}


def test_most_leaves_are_chosen_if_all_candidates_are_screened_out():
    rng = np.random.default_rng(0)
    result = run(rng.random((15, 6)), K=9)
    assert all(c.screened_out for c in result.candidates)
    best = max(result.candidates, key=lambda c: (c.n_leaves, c.silhouette))
    assert result.chosen is best
    assert result.n_supported == best.n_leaves < result.n_leaves == result.n_clusters == 9


@pytest.mark.parametrize("selection", ["silhouette", "evidence", "association"])
@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("K", [2, 5, 15])
def test_a_given_number_of_clusters_is_obtained(K, refine, selection):
    """Noise, in which neither the gap statistic nor other features support that many clusters."""
    X = np.random.default_rng(0).random((15, 12))
    result = run(X, targets=(6,), K=K, refine=refine, selection=selection)
    assert np.unique(result.labels).size == result.n_leaves == K
    assert result.n_supported < K
    kept = result.chosen.pruned.splits[: result.chosen.n_leaves - 1]
    assert result.pruned.splits[: len(kept)] == kept


def test_supported_clusters_have_no_further_splits():
    X = three_groups()
    result, free = run(X, targets=(10,), K=3), run(X, targets=(10,))
    assert free.n_leaves == 3
    assert result.n_supported is None
    assert result.pruned.splits == result.chosen.pruned.splits
    assert free.n_supported is None
    np.testing.assert_array_equal(result.labels, free.labels)


def test_progress_counts_every_step_once():
    seen = []
    X = small_problem(6)
    plan = SearchPlan(
        targets=(2, 3, 8),
        ranks=(1, 2, 3, 4),  # K is derived from the first three
        n_clusters=None,
        tolerance=0,
        gap=GapSettings(n_references=5),
        entropy=0,
    )
    matrix = centre_array(X, center="columns", drop_constant=True)
    search(matrix, plan, n_jobs=None, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (plan.n_steps, plan.n_steps) == (18, 18)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_an_interrupted_search_is_resumed():
    X = small_problem(3)
    whole = {}
    uninterrupted = run(X, memory=whole)
    for kept in range(len(whole) + 1):
        memory = dict(list(whole.items())[:kept])
        again = run(X, memory=memory)
        assert list(memory)[:kept] == list(whole)[:kept]
        assert set(memory) == set(whole)
        assert all(memory[name] is whole[name] for name in list(whole)[:kept])
        assert again.chosen.target == uninterrupted.chosen.target
        assert [c.silhouette for c in again.candidates] == [
            c.silhouette for c in uninterrupted.candidates
        ]
        np.testing.assert_array_equal(again.labels, uninterrupted.labels)


def test_removed_candidates_and_best_ranks_are_marked():
    for seed in range(10):
        result = run(small_problem(seed))
        rows = [c for c in result.candidates if not c.screened_out]
        assert not any(c.removed or c.best_rank for c in result.candidates if c.screened_out)
        for q in {c.target for c in rows}:
            assert sum(c.best_rank for c in rows if c.target == q) == 1
        if result.n_leaves == result.n_clusters:
            assert result.chosen.best_rank
            assert not result.chosen.removed


CASES = {
    "1": {"targets": (20,), "ranks": (2,)},
    "2": {"targets": (20,), "K": 3},
    "3": {"targets": (5, 10, 20, 40)},
}


def assert_same(one, other):
    for mine, theirs in zip(one.candidates, other.candidates, strict=True):
        np.testing.assert_array_equal(mine.features.indices, theirs.features.indices)
        assert mine.features.l1_bound == theirs.features.l1_bound
        assert (mine.chosen, mine.removed) == (theirs.chosen, theirs.removed)
        assert (mine.n_leaves, mine.best_rank) == (theirs.n_leaves, theirs.best_rank)
        assert mine.silhouette == pytest.approx(theirs.silhouette, rel=1e-10)
        assert mine.scores == pytest.approx(theirs.scores, rel=1e-8)
    assert one.n_clusters == other.n_clusters
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(
        one.pruned.tree.linkage_matrix, other.pruned.tree.linkage_matrix, rtol=1e-10
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("implementation", "case", "selection"),
    latin_square(CASES, ["silhouette", "evidence", "association"]),
    indirect=["implementation"],
)
def test_result_is_the_same_for_every_storage_backend(implementation, case, selection):
    A = clustered()
    with_missing = np.where(np.random.default_rng(1).random(A.shape) < 0.1, np.nan, A)
    for table in (A, with_missing):
        options = CASES[case] | {"selection": selection, "n_jobs": 2}
        assert_same(
            run(implementation.in_memory(table), **options), run(implementation(table), **options)
        )


def test_refined_result_is_the_same_for_every_storage_backend(implementation):
    options = {"targets": (10, 20), "refine": True}
    A = clustered(n=45)
    in_memory, found = (
        run(implementation.in_memory(A), **options),
        run(implementation(A), **options),
    )
    assert found.refined.supported
    assert_same(in_memory, found)
    np.testing.assert_allclose(found.refined.q_values, in_memory.refined.q_values, rtol=1e-10)


# The plan of a search ---------------------------------------------------------------------------

PLAN = SearchPlan(
    targets=(2, 3, 8),
    ranks=(1, 2, 3, 4),
    n_clusters=None,
    tolerance=0,
    gap=GapSettings(n_references=5),
    entropy=0,
)


def test_the_smallest_rank_is_tried_with_every_number_of_features():
    plan = replace(PLAN, targets=(1, 2, 3), ranks=(2, 3))
    assert plan.grid == [(1, 2), (2, 2), (3, 2), (3, 3)]
    assert plan.n_steps == 8
    assert replace(plan, refine=True).n_steps == 9
    # The association rule refines all feature sets in one step, whatever `refine` is.
    assert replace(plan, selection="association").n_steps == 9
    assert replace(plan, selection="association", refine=True).n_steps == 9


def test_trees_are_cut_only_for_rules_that_cut_trees():
    assert PLAN.n_cuts(50) is None
    assert replace(PLAN, selection="evidence").n_cuts(50) == 10
    assert replace(PLAN, selection="evidence", n_clusters=12).n_cuts(50) == 12
    assert replace(PLAN, selection="association").n_cuts(50) == 10


def test_components_have_twenty_iterations_unless_they_converge_before():
    plan = replace(PLAN, targets=(20,), ranks=(1,), n_clusters=2)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(30, 60))
    plain = search(matrix_at(noise), plan, n_jobs=None, progress=check_progress)
    assert [(c.n_iter, c.converged) for c in plain.components] == [(20, False)]
    one_direction = noise + 10.0 * np.outer(rng.normal(size=30), np.arange(60) < 20)
    plain = search(matrix_at(one_direction), plan, n_jobs=None, progress=check_progress)
    (component,) = plain.components
    assert component.converged
    assert 2 < component.n_iter < 20
    exact = search(
        matrix_at(one_direction),
        replace(plan, tol=1e-12, max_iter=500),
        n_jobs=None,
        progress=check_progress,
    )
    np.testing.assert_allclose(component.weights, exact.components[0].weights, atol=1e-6)


def test_the_components_of_the_chosen_rank_select_its_features():
    X = small_problem(3)
    for ranks in ((1,), (3,)):
        result = run(X, targets=(8,), ranks=ranks)
        assert len(result.components) == ranks[0]
        selected = np.unique(np.concatenate([c.indices for c in result.components]))
        np.testing.assert_array_equal(selected, result.features)


# Number of clusters ------------------------------------------------------------------------------


def three_groups():
    X = np.random.default_rng(0).normal(size=(30, 60))
    X[:10, :20] += 4.0
    X[10:20, 20:40] += 4.0
    return X


def test_the_evidence_rule_reports_the_clusters_found_but_at_least_two():
    options = {"targets": (10,), "ranks": (1, 2), "selection": "evidence"}
    found = run(three_groups(), **options)
    assert (found.n_leaves, found.n_clusters) == (3, 3)
    assert np.unique(found.labels).size == 3
    noise = run(np.random.default_rng(0).normal(size=(30, 40)), **options)
    assert (noise.n_leaves, noise.n_clusters) == (1, 2)
    given = run(three_groups(), K=5, **options)
    assert (given.n_leaves, given.n_clusters, given.n_supported) == (5, 5, None)
    forced = run(np.random.default_rng(0).normal(size=(30, 40)), K=3, **options)
    assert (forced.n_leaves, forced.n_supported) == (3, 1)
    np.testing.assert_array_equal(forced.labels, forced.pruned.tree.cut(3))


# Refinement --------------------------------------------------------------------------------------


def refined(X, **options):
    return run(X, ranks=(1,), refine=True, **options)


@pytest.mark.parametrize(("K", "n_leaves"), [(None, 3), (2, 2), (9, 9), (14, 14)])
def test_the_tree_is_built_on_the_associated_features_and_cut(K, n_leaves):
    """The tests of association support clusters, not a number of clusters."""
    result = refined(clustered(n=45, p=80), targets=(10,), K=K)
    assert result.refined.supported
    np.testing.assert_array_equal(result.features, result.refined.features)
    assert result.features.size > result.chosen.features.indices.size
    assert result.n_leaves == result.n_clusters == n_leaves
    assert result.n_supported is None
    assert result.pruned.tests == {}
    np.testing.assert_array_equal(result.labels, result.pruned.tree.cut(n_leaves))


@pytest.mark.parametrize("K", [None, 2, 3])
def test_supported_clusters_are_at_least_two_if_the_gap_statistic_prefers_one(K):
    """A gradient, along which the samples are spread evenly, shows in twelve features."""
    X = np.random.default_rng(0).normal(size=(30, 40))
    X[:, :12] += 4.0 * np.linspace(-1, 1, 30)[:, None]
    assert run(X[:, :12], targets=(12,), ranks=(1,)).n_leaves == 1
    result = refined(X, targets=(8,), K=K)
    assert result.refined.supported
    assert result.n_leaves == result.n_clusters == (K or 2)
    assert result.n_supported is None
    np.testing.assert_array_equal(result.labels, result.pruned.tree.cut(K or 2))


def test_a_refined_tree_is_cut_where_the_dispersion_has_its_largest_drop_ratio():
    for seed in range(3):
        X = clustered(n=45, p=80, seed=seed)
        result = refined(X, targets=(10,), linkage="average")
        columns = X[:, result.features]
        tree = scipy_linkage(pdist(columns, "sqeuclidean"), "average")
        cuts = [fcluster(tree, k, "maxclust") for k in range(1, 12)]
        within = [
            sum(np.sum((c - c.mean(axis=0)) ** 2) for c in (columns[cut == g] for g in set(cut)))
            for cut in cuts
        ]
        drops = -np.diff(within)
        assert result.n_leaves == 2 + np.argmax(drops[:-1] / drops[1:])


def test_clusters_that_few_features_support_become_one():
    X = np.random.default_rng(1).normal(size=(24, 60))
    X[:12, :40] += 1.0
    plain = run(X, targets=(20,), ranks=(1,))
    result = refined(X, targets=(20,))
    assert plain.refined is None
    assert result.refined.supported is False
    assert (plain.n_leaves, result.n_leaves, result.n_clusters) == (2, 1, 2)
    np.testing.assert_array_equal(result.features, plain.features)
    np.testing.assert_array_equal(result.labels, 0)
    given, plain = refined(X, targets=(20,), K=2), run(X, targets=(20,), ranks=(1,), K=2)
    assert (given.n_leaves, given.n_supported, plain.n_supported) == (2, 1, None)
    np.testing.assert_array_equal(given.labels, plain.labels)


def test_a_set_too_small_to_be_refined_keeps_its_clusters():
    X = np.random.default_rng(0).normal(size=(30, 40))
    X[:15, :2] += 6.0
    plain = run(X, targets=(2,), ranks=(1,))
    result = refined(X, targets=(2,))
    assert result.refined.supported is None
    assert plain.n_leaves == result.n_leaves == 2
    np.testing.assert_array_equal(result.features, plain.features)
    np.testing.assert_array_equal(result.labels, plain.labels)


# The association rule -----------------------------------------------------------------------------

STARTS = {"targets": (10, 20, 40), "ranks": (1, 3), "selection": "association"}


def with_missing_cells(A):
    return np.where(np.random.default_rng(1).random(A.shape) < 0.1, np.nan, A)


@pytest.fixture(scope="module", name="associated")
def result_of_the_association_rule():
    return run(clustered(n=45), **STARTS)


def assert_same_association(one, other):
    assert_same(one, other)
    for mine, theirs in zip(one.candidates, other.candidates, strict=True):
        np.testing.assert_array_equal(mine.refined.associated, theirs.refined.associated)
        assert mine.refined.strength == pytest.approx(theirs.refined.strength, rel=1e-8)
        assert mine.refined.n_rounds == theirs.refined.n_rounds


def test_candidates_of_the_association_rule_have_refined_feature_sets(associated):
    for candidate in associated.candidates:
        assert candidate.refined.supported
        np.testing.assert_array_equal(candidate.features.indices, candidate.refined.features)
        assert candidate.scores["n_associated"] == candidate.refined.associated.size
        assert candidate.scores["strength"] == candidate.refined.strength
    assert associated.refined is associated.chosen.refined
    assert associated.refined.strength == max(c.refined.strength for c in associated.candidates)
    np.testing.assert_array_equal(associated.features, associated.chosen.features.indices)
    assert np.isin(np.arange(40), associated.features).sum() >= 38
    assert associated.n_leaves == associated.n_clusters == 3
    np.testing.assert_array_equal(associated.labels, associated.pruned.tree.cut(3))


def test_three_start_sets_are_refined_for_several_rounds():
    X = make_simulation_1(0).X
    result = run(X, **STARTS)
    matrix = matrix_at(X)
    path = path_on(matrix, n_components=3, most=40)
    starts = [path.search(q=q, rank=r).indices for q in (10, 20, 40) for r in (1, 3)]
    expected = refine_feature_sets(matrix, starts, RefinementSettings(), n_continued=3)
    for candidate, refinement in zip(result.candidates, expected, strict=True):
        np.testing.assert_array_equal(candidate.refined.features, refinement.features)
        assert candidate.refined.n_rounds == refinement.n_rounds
    assert sum(c.refined.n_rounds > 1 for c in result.candidates) == 3


def test_the_association_rule_does_not_refine_twice(associated):
    assert_same_association(run(clustered(n=45), refine=True, **STARTS), associated)


@pytest.mark.parametrize("prepare", [np.asarray, with_missing_cells], ids=["complete", "missing"])
def test_associated_features_are_the_same_for_every_storage_backend(implementation, prepare):
    A = prepare(clustered(n=45))
    in_memory = run(implementation.in_memory(A), **STARTS)
    assert in_memory.refined.supported
    assert_same_association(in_memory, run(implementation(A), **STARTS))


def test_associated_features_are_the_same_for_any_number_of_workers(associated):
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert_same_association(run(clustered(n=45), **STARTS), associated)
    assert_same_association(run(clustered(n=45), n_jobs=2, **STARTS), associated)


def test_associated_features_do_not_depend_on_the_order_of_columns(associated):
    order = np.random.default_rng(0).permutation(400)
    shuffled = run(clustered(n=45)[:, order], **STARTS)
    np.testing.assert_array_equal(shuffled.labels, associated.labels)
    np.testing.assert_array_equal(np.sort(order[shuffled.features]), associated.features)
    np.testing.assert_array_equal(
        np.sort(order[shuffled.refined.associated]), associated.refined.associated
    )
    assert shuffled.refined.strength == pytest.approx(associated.refined.strength, rel=1e-8)


def test_an_interrupted_search_by_the_association_rule_is_resumed(associated):
    X, whole = clustered(n=45), {}
    run(X, memory=whole, **STARTS)
    n_sets = len(associated.candidates)
    assert [name.split()[0] for name in whole][:n_sets] == ["features"] * n_sets
    assert n_sets < len(whole) <= 2 * n_sets
    for n_kept in (1, n_sets, n_sets + 1, len(whole)):
        memory = dict(list(whole.items())[:n_kept])
        assert_same_association(run(X, memory=memory, **STARTS), associated)
        assert set(memory) == set(whole)
        assert all(memory[name] is whole[name] for name in list(whole)[:n_kept])


def test_the_association_rule_reports_a_single_cluster_in_noise():
    X = np.random.default_rng(0).normal(size=(30, 80))
    result = run(X, **STARTS)
    assert all(c.refined.supported is False for c in result.candidates)
    assert (result.n_leaves, result.n_clusters, result.n_supported) == (1, 2, None)
    np.testing.assert_array_equal(result.labels, 0)
    given = run(X, K=4, **STARTS)
    assert (given.n_leaves, given.n_clusters, given.n_supported) == (4, 4, 1)
    np.testing.assert_array_equal(given.labels, given.pruned.tree.cut(4))


def test_a_given_number_of_associated_clusters_is_supported(associated):
    given = run(clustered(n=45), K=12, **STARTS)
    assert (given.n_leaves, given.n_clusters, given.n_supported) == (12, 12, None)
    np.testing.assert_array_equal(given.features, associated.features)
    np.testing.assert_array_equal(given.labels, associated.pruned.tree.cut(12))


def test_a_start_set_of_few_features_without_associations_keeps_its_clusters():
    X = np.random.default_rng(0).normal(size=(30, 40))
    X[:15, :2] += 6.0
    result = run(X, **{**STARTS, "targets": (2,), "ranks": (1,)})
    assert result.refined.supported is None
    np.testing.assert_array_equal(result.features, [0, 1])
    assert result.n_leaves == np.unique(result.labels).size >= 2
    np.testing.assert_array_equal(run(X, K=2, **{**STARTS, "targets": (2,)}).labels[:15], 0)


# Steps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refine", "selection"),
    [(False, "silhouette"), (True, "silhouette"), (False, "association"), (True, "association")],
)
def test_steps_of_a_resumed_search_are_counted_once(refine, selection):
    plan = replace(PLAN, refine=refine, selection=selection)
    matrix, whole = matrix_at(small_problem(6)), {}
    search(matrix, plan, n_jobs=None, progress=check_progress, memory=whole)
    n_sets = len(plan.grid)
    for n_kept in (1, n_sets, n_sets + 2, len(whole)):
        seen = []
        search(
            matrix,
            plan,
            n_jobs=None,
            progress=lambda done, total, seen=seen: seen.append((done, total)),
            memory=dict(list(whole.items())[:n_kept]),
        )
        done = [count for count, _ in seen]
        assert {total for _, total in seen} == {plan.n_steps}
        assert done == sorted(set(done))
        assert done[-1] == plan.n_steps
        # The feature sets in memory are reported together.
        assert done[0] == min(n_kept, n_sets)


@pytest.mark.parametrize("targets", [(4, 8), (2, 3, 8)], ids=["8 pairs", "9 pairs"])
def test_feature_sets_are_searched_alternately_from_both_halves_of_the_grid(targets):
    """Neighbouring pairs need the same L1 bounds, for which two workers would wait."""
    memory, plan = {}, replace(PLAN, targets=targets)
    search(matrix_at(small_problem(6)), plan, n_jobs=None, progress=check_progress, memory=memory)
    halves = np.array_split(plan.grid, 2)  # the first is the larger one
    alternating = [pair for both in zip_longest(*halves) for pair in both if pair is not None]
    names = [f"features {q} {rank}" for q, rank in alternating]
    assert [name for name in memory if name.startswith("features")] == names


def test_equal_feature_sets_are_evaluated_once():
    memory = {}
    X = three_groups()
    result = run(X, targets=(60,), ranks=(1, 2), tolerance=60, memory=memory)
    n_distinct = len({tuple(c.features.indices) for c in result.candidates})
    assert sum(name.startswith("evaluation") for name in memory) == n_distinct


USES_OF_MANY_SAMPLES = (
    candidates,
    centred_array,
    gap_statistic,
    next_component,
    feature_scores,
    search_module,
    tree,
)


@pytest.mark.parametrize(
    ("selection", "metric", "linkage", "is_incomplete"),
    [
        ("silhouette", "sqeuclidean", "ward", False),
        ("silhouette", "sqeuclidean", "ward", True),
        ("silhouette", "cityblock", "complete", False),
        ("silhouette", "correlation", "average", False),
        ("association", "sqeuclidean", "ward", False),
        ("association", "sqeuclidean", "ward", True),
        ("association", "correlation", "average", True),
        ("evidence", "sqeuclidean", "ward", False),
        ("evidence", "cityblock", "complete", True),
    ],
)
def test_the_result_for_many_samples_is_that_for_few(
    selection, metric, linkage, is_incomplete, monkeypatch
):
    X = clustered(n=66, p=80)
    if is_incomplete:
        X[np.random.default_rng(1).random(X.shape) < 0.02] = np.nan
    settings = {"selection": selection, "metric": metric, "linkage": linkage}
    results = [run(X, targets=(5, 9), **settings)]
    for module in USES_OF_MANY_SAMPLES:
        monkeypatch.setattr(module, "MANY_SAMPLES", 10)
    results += [run(X, targets=(5, 9), n_jobs=n_jobs, **settings) for n_jobs in (1, 2)]
    few, one_thread, two_threads = results
    # The start vectors are rounded differently, and so are the loadings.
    for many in (one_thread, two_threads):
        np.testing.assert_array_equal(many.features, few.features)
        np.testing.assert_array_equal(many.labels, few.labels)
        np.testing.assert_allclose(
            many.pruned.tree.linkage_matrix, few.pruned.tree.linkage_matrix, rtol=1e-8
        )
    # The result does not depend on the number of threads in any digit.
    for one, two in zip(one_thread.components, two_threads.components, strict=True):
        np.testing.assert_array_equal(one.weights, two.weights)
        np.testing.assert_array_equal(one.u, two.u)
