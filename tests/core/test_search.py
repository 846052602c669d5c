"""The search as a whole: against the plain twin, across workers, and in its limits."""

import joblib
import numpy as np
import plain_twin
import pytest

from mrshc.core.gap import GapSettings
from mrshc.core.matrix import centred_matrix
from mrshc.core.search import SearchPlan, search
from mrshc.core.tree import LINKAGES


def small_problem(seed):
    """Two or three clusters on a few features, some noise, sizes that vary."""
    rng = np.random.default_rng(seed)
    n, p, k = int(rng.integers(12, 30)), int(rng.integers(8, 40)), int(rng.integers(2, 4))
    useful = int(rng.integers(3, 7))
    centres = rng.normal(scale=2.5, size=(k, useful))
    X = rng.normal(size=(n, p))
    X[:, :useful] += centres[rng.integers(k, size=n)]
    return X


def run(X, *, targets=(2, 3, 5, 8), ranks=(1, 2, 3), K=None, n_jobs=None, **gap):
    plan = SearchPlan(
        targets=targets,
        ranks=ranks,
        n_clusters=K,
        tolerance=0,
        gap=GapSettings(n_references=20, **gap),
        entropy=7,
    )
    matrix = centred_matrix(X, center="columns", drop_constant=True)
    return search(matrix, plan, n_jobs=n_jobs, progress=lambda done, total: None)


def assert_agrees_with_twin(X, result, **options):
    q, rank, K, features, labels = plain_twin.mrshc(
        X, (2, 3, 5, 8), (1, 2, 3), B=20, entropy=7, **options
    )
    assert (result.chosen.target, result.chosen.features.rank) == (q, rank)
    assert result.n_clusters == K
    np.testing.assert_array_equal(result.chosen.features.indices, features)
    np.testing.assert_array_equal(result.labels, labels)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("seed", range(20))
def test_fast_code_agrees_with_the_plain_twin(seed, linkage):
    X = small_problem(seed)
    assert_agrees_with_twin(X, run(X, linkage=linkage), linkage=linkage)


@pytest.mark.parametrize("seed", range(5))
def test_fast_code_agrees_with_the_plain_twin_on_city_blocks(seed):
    X = small_problem(seed)
    assert_agrees_with_twin(X, run(X, metric="cityblock"), metric="cityblock")


@pytest.mark.parametrize("seed", range(5))
def test_fast_code_agrees_with_the_plain_twin_for_known_k(seed):
    X = small_problem(seed)
    assert_agrees_with_twin(X, run(X, K=3), K=3)
