"""The gap test in several threads gives the same numbers as the compiled test."""

from itertools import product

import numpy as np
import pytest

from mrshc.core.parallel import threads_for_parts
from mrshc.core.trees import gap_statistic
from mrshc.core.trees.gap_statistic import GapSettings, gap_curve
from mrshc.core.trees.tree import agglomerate, pairwise_distances

CASES = list(product(["sqeuclidean", "cityblock", "correlation"], ["complete", "average"], [2, 3]))


@pytest.mark.parametrize(("metric", "linkage", "max_clusters"), CASES)
@pytest.mark.parametrize("stop_early", [True, False])
def test_the_test_of_many_samples_is_that_of_few(
    metric, linkage, max_clusters, stop_early, monkeypatch
):
    X = np.random.default_rng(0).normal(size=(40, 5))
    X[:18] += 1.0
    distances = pairwise_distances(X, metric)
    tree = agglomerate(distances, linkage)
    curves = []
    for many in (1000, 10):
        monkeypatch.setattr(gap_statistic, "MANY_SAMPLES", many)
        with threads_for_parts(2):
            curve = gap_curve(
                X,
                distances,
                partitions=[tree.cut(k) for k in range(1, max_clusters + 1)],
                rng=np.random.default_rng(3),
                settings=GapSettings(
                    linkage=linkage,
                    metric=metric,
                    n_references=27,
                    max_clusters=max_clusters,
                    stop_early=stop_early,
                ),
            )
        curves.append(curve)
    few, many = curves
    assert few.n_clusters == many.n_clusters
    np.testing.assert_array_equal(few.log_dispersion, many.log_dispersion)
    # Inner products of a part of the samples may be rounded differently.
    np.testing.assert_allclose(few.reference, many.reference, rtol=1e-10)
