import numpy as np
import pytest

import plain_twin
import reference
from mrshc.core.data.conversion import as_data_matrix
from mrshc.core.kernels.sparse_direction import sparse_direction
from mrshc.core.sparse_kmeans.centred_columns import CentredColumns
from mrshc.core.sparse_kmeans.partitions import (
    PartitionPath,
    PartitionSettings,
    permutation_gap,
    permuted_criteria,
)
from storage_backends import ArrayInBlocks

INPUTS = {"A": "input_A", "B": "input_B", "I": "simI_rep1"}
RUNS = reference.runs("sparse_kmeans")


def path_of(X, n_clusters, *, seed=0, **options):
    settings = PartitionSettings(n_clusters=n_clusters, **{"n_init": 20, **options})
    columns = CentredColumns(as_data_matrix(X))
    return PartitionPath(columns, settings, seed=np.random.SeedSequence(seed))


def weights(solution, p):
    dense = np.zeros(p)
    dense[solution.indices] = solution.weights
    return dense


def between(X, labels):
    """Return the sum of squares between clusters of each feature, by its definition."""
    groups = [X[labels == k] for k in np.unique(labels)]
    return sum(len(g) * np.square(g.mean(axis=0) - X.mean(axis=0)) for g in groups)


def identity(run):
    return f"{run['input']}-{run['wbound']}"


@pytest.mark.parametrize("run", RUNS, ids=identity)
def test_weights_for_given_labels_are_those_of_sparcl(run):
    """sparcl searches for its threshold to a limited accuracy, so its weights have another norm.

    With the L1 norm of its weights as the bound, the weights are the same.
    """
    X, labels = reference.matrix(INPUTS[run["input"]]), np.array(run["labels"]) - 1
    columns = CentredColumns(as_data_matrix(X))
    squares = columns.between_sums_of_squares(labels, run["K"])
    indices, values = sparse_direction(squares, float(np.sum(run["ws"])))
    found = np.zeros(X.shape[1])
    found[indices] = values
    np.testing.assert_allclose(found, run["ws"], atol=1e-6)
    criterion = found @ squares * columns.length**2
    assert criterion == pytest.approx(run["crit"][-1], rel=1e-6)
    # The norms of sparcl are close to the bounds that were given.
    norm_at_most = min(run["wbound"], np.sum(run["ws"]))
    assert np.sum(run["ws"]) == pytest.approx(norm_at_most, rel=5e-4)


@pytest.mark.parametrize("run", RUNS, ids=identity)
def test_criterion_is_at_least_that_of_sparcl(run):
    X = reference.matrix(INPUTS[run["input"]])
    for seed in range(3):
        found = path_of(X, run["K"], seed=seed).solve(float(np.sum(run["ws"])))
        assert found.criterion >= run["crit"][-1] * (1 - 1e-9)
        assert found.converged


# In this run, sparcl found a worse partition than in its own single run with the same bound.
WORSE_IN_SPARCL = ("A", 2.0)


@pytest.mark.parametrize(("name", "n_clusters"), [("A", 4), ("B", 3)])
def test_permutation_gaps_are_those_of_sparcl(name, n_clusters):
    """The mean of the permutations, not only the gap, is compared.

    The criterion of the data need not be that of sparcl, whose partition may be worse.
    """
    table = reference.table("sparse_kmeans_permute").query("input == @name")
    columns = CentredColumns(as_data_matrix(reference.matrix(f"input_{name}")))
    settings = PartitionSettings(n_clusters=n_clusters, n_init=20)
    path = PartitionPath(columns, settings, seed=np.random.SeedSequence(0))
    solutions = [path.solve(bound) for bound in table["wbound"]]
    n_permutations = 40
    options = {"n_permutations": n_permutations, "entropy": 0, "n_jobs": None}
    found = permutation_gap(columns, solutions, settings, progress=lambda *_: None, **options)
    criteria = np.array([s.criterion for s in solutions])
    # sparcl exceeds its bounds by up to this share, and so does its criterion.
    assert np.all(criteria >= table["tot"] * (1 - 1e-3))
    error = np.sqrt(table["sdgap"] ** 2 / 10 + found.standard_deviation**2 / n_permutations)
    mean = np.log(criteria) - found.gap
    mean_in_sparcl = np.log(table["tot"]) - table["gap"]
    assert np.all(np.abs(mean - mean_in_sparcl) < 3 * error)
    is_same = [(name, bound) != WORSE_IN_SPARCL for bound in table["wbound"]]
    assert np.all((np.abs(found.gap - table["gap"]) < 3 * error)[is_same])


def test_solution_satisfies_the_conditions_of_an_optimum():
    X = reference.matrix("input_B")
    for bound in (1.0, 1.7, 4.0, np.sqrt(200)):
        found = path_of(X, 3).solve(bound)
        squares = between(X, found.labels)
        w = weights(found, 200)
        np.testing.assert_allclose(w, plain_twin.sparse_direction(squares, bound), atol=1e-9)
        assert found.criterion == pytest.approx(w @ squares)
        assert (found.l1_bound, found.converged) == (bound, True)
        # The nearest centre in weighted features is that of the sample's own cluster.
        centers = np.array([X[found.labels == k].mean(axis=0) for k in range(3)])
        distances = np.square(X[:, None] - centers) @ w
        np.testing.assert_array_equal(distances.argmin(axis=1), found.labels)


def test_without_a_bound_the_first_step_is_k_means_on_all_features():
    from sklearn.cluster import KMeans

    X = reference.matrix("input_B")
    inertia = KMeans(3, n_init=20, random_state=0).fit(X).inertia_
    found = path_of(X, 3, max_iter=1).solve(np.sqrt(200))
    total = np.square(X - X.mean(axis=0)).sum()
    assert total - between(X, found.labels).sum() == pytest.approx(inertia)
    assert (found.n_iter, found.converged) == (1, False)


def test_more_iterations_do_not_decrease_the_criterion():
    X = reference.matrix("simI_rep1")
    criteria = [path_of(X, 3, max_iter=m).solve(2.0).criterion for m in range(1, 6)]
    assert np.all(np.diff(criteria) >= 0)
    assert criteria[1] > criteria[0]


def test_clusters_are_numbered_by_their_first_samples():
    X = reference.matrix("input_B")
    for seed in range(5):
        labels = path_of(X, 5, seed=seed).solve(3.0).labels
        first = [int(np.flatnonzero(labels == k)[0]) for k in range(5)]
        assert first == sorted(first)


@pytest.mark.parametrize("q", [1, 2, 5, 20, 200])
def test_search_finds_a_number_of_features(q):
    found = path_of(reference.matrix("input_B"), 3).search(q)
    assert found.indices.size == q


def test_the_solution_does_not_depend_on_bounds_that_were_solved_before():
    X = reference.matrix("simI_rep1")
    one, other = path_of(X, 4), path_of(X, 4)
    for bound in (1.5, 3.0, 6.0):
        other.solve(bound)
    found, again = one.solve(2.0), other.solve(2.0)
    np.testing.assert_array_equal(found.labels, again.labels)
    assert found.criterion == again.criterion
    assert one.solve(2.0) is found


@pytest.mark.parametrize("unit", [2.0**-480, 2.0**480])
def test_units_of_the_data_do_not_matter(unit):
    X = reference.matrix("input_A")
    found, scaled = path_of(X, 4).solve(2.0), path_of(X * unit, 4).solve(2.0)
    np.testing.assert_array_equal(found.labels, scaled.labels)
    np.testing.assert_array_equal(found.weights, scaled.weights)
    assert scaled.criterion == found.criterion * unit**2


def test_permuted_criteria_are_those_of_the_permuted_data():
    X = reference.matrix("input_A")
    columns = CentredColumns(as_data_matrix(X))
    settings = PartitionSettings(n_clusters=3, n_init=50)
    options = {"l1_bounds": [1.5, 3.0], "settings": settings, "entropy": 3, "permutation": 4}
    found = permuted_criteria(columns=columns, **options)
    ((_, values),) = columns.permute(3, 4).blocks()
    path = path_of(values * columns.length, 3, n_init=50)
    expected = [path.solve(bound).criterion for bound in (1.5, 3.0)]
    np.testing.assert_allclose(found, expected)
    others = permuted_criteria(columns=columns, **{**options, "permutation": 5})
    assert not np.any(others == found)
    blocks = CentredColumns(ArrayInBlocks(X))
    assert not blocks.in_memory
    np.testing.assert_array_equal(permuted_criteria(columns=blocks, **options), found)
